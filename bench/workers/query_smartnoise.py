"""Private queries by SmartNoise SQL on a data frame: the worker for bench.query.

It bounds the rows of a user, whatever their keys: here to l0 x linf, as many as the others may take. Its epsilon is for
each column, and three are noisy; the mean is the quotient of two of them, which is cheaper than to ask for it.
"""

import pandas as pd
import query_jobs
import snsql

QUERY = "SELECT key, COUNT(*) AS n, COUNT(DISTINCT user_id) AS users, SUM(v1) AS total FROM db.t GROUP BY key"


def grouped(path, l0, linf, lower, upper, epsilon, delta):
    frame = pd.read_parquet(path)
    table = {
        "max_ids": l0 * linf,
        "row_privacy": False,
        "sample_max_ids": True,
        "censor_dims": True,
        "clamp_counts": False,
        "clamp_columns": True,
        "user_id": {"type": "int", "private_id": True},
        "key": {"type": "string" if frame["key"].dtype == object else "int"},
        "v1": {"type": "float", "lower": float(lower), "upper": float(upper)},
    }
    metadata = {"": {"db": {"t": table}}}
    privacy = snsql.Privacy(epsilon=epsilon / 3, delta=delta * 2 / 3)
    reader = snsql.from_df(frame, privacy=privacy, metadata=metadata)
    spent, lost = reader.get_privacy_cost(QUERY)
    if spent > epsilon * (1 + 1e-9) or lost > delta:
        raise ValueError(f"this would cost epsilon={spent}, delta={lost}")
    rows = reader.execute(QUERY)[1:]
    return {key: [n, users, total, total / n if n > 0 else None] for key, n, users, total in rows}


if __name__ == "__main__":
    query_jobs.serve({"grouped": grouped})
