"""Private queries by OpenDP on Polars: the worker for bench.query.

Rows are truncated per user and key, then keys per user. Of the rules that choose a user's keys, `sample`, the default,
fails in 0.16.0 ("multiple fields with name 'key' found"), so `first` it is. The noise scales are given in proportion
to the sensitivities, which spends the budget evenly; the default leaves a float sum with a tenth of it. `max_length`
is a public bound on the rows of a key: the noise of a float sum grows with it.
"""

import math

import opendp.prelude as dp
import polars as pl
import query_jobs

dp.enable_features("contrib")


def grouped(path, l0, linf, lower, upper, epsilon, delta, noise, longest):
    rows = float(l0 * linf)
    people = float(l0 * linf)  # n_unique knows of no better bound after truncation
    largest = max(abs(lower), abs(upper))
    table = (
        _query(path, l0, linf, _loss(epsilon, delta, noise), longest)
        .group_by("key")
        .agg(
            dp.len(scale=rows, signed=True),
            pl.col("user_id").n_unique().dp.noise(scale=people).alias("users"),
            pl.col("v1").fill_null(lower).fill_nan(lower).clip(lower, upper).sum().dp.noise(scale=rows * largest),
        )
        .release()
        .collect()
    )
    found = table.select("key", "len", "users", "v1").iter_rows()
    return {key: [count, users, total, total / count if count > 0 else None] for key, count, users, total in found}


def medians(path, keys, l0, linf, lower, upper, epsilon, delta, longest, candidates):
    public = pl.LazyFrame({"key": keys})
    steps = [lower + (upper - lower) * i / (candidates - 1) for i in range(candidates)]
    table = (
        _query(path, l0, linf, dp.loss_of(epsilon=epsilon, delta=delta), longest)
        .group_by("key")
        .agg(pl.col("v1").fill_null(lower).fill_nan(lower).dp.median(steps))
        .with_keys(public)
        .release()
        .collect()
    )
    return dict(table.select("key", "v1").iter_rows())


def _query(path, l0, linf, loss, longest):
    context = dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["key"], max_length=longest, max_groups=10_000)],
    )
    return context.query().truncate_per_group(linf, by=["key"]).truncate_num_groups(l0, by=["key"], keep="first")


def _loss(epsilon, delta, noise):
    if noise == "laplace":
        return dp.loss_of(epsilon=epsilon, delta=delta)
    return dp.loss_of(rho=_rho(epsilon, delta / 2), delta=delta / 2)


def _rho(epsilon, delta):
    """The largest rho whose zCDP is (epsilon, delta)-DP (Canonne, Kamath and Steinke 2020), found by halving."""
    low, high = 0.0, epsilon
    for _ in range(60):
        rho = (low + high) / 2
        low, high = (rho, high) if _delta(rho, epsilon) <= delta else (low, rho)
    return low


def _delta(rho, epsilon):
    orders = (1 + 1.02**i / 100 for i in range(700))
    exponents = ((a - 1) * (a * rho - epsilon) + (a - 1) * math.log1p(-1 / a) - math.log(a) for a in orders)
    return math.exp(min(exponents))


if __name__ == "__main__":
    query_jobs.serve({"grouped": grouped, "medians": medians})
