from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import Private, Schema, Unit
from sfumato.query import sql
from sfumato.query.refusal import QueryError
from sfumato.schema import real, tensor

VISITS = Schema.of(image=tensor((2, 2), 0, 1), cost=real(0, 10))


@pytest.mark.parametrize(
    "text",
    ["SELECT SUM(image) FROM data", "SELECT COUNT(image) FROM data", "SELECT COUNT(*) FROM data WHERE image > 0",
     "SELECT image, COUNT(*) FROM data GROUP BY image", "SELECT COUNT(*) FROM data WHERE image IS NULL"],
)  # fmt: skip
def test_an_array_is_no_column_to_sql(text: str) -> None:
    with pytest.raises(QueryError, match="There is no column 'image'"):
        sql(text, VISITS, unit=Unit(), epsilon=1)


def test_the_other_columns_are_answered() -> None:
    data: dict[str, Any] = {"image": np.zeros((500, 2, 2)), "cost": [5.0] * 500}
    private = Private("visits", data, unit=Unit(), schema=VISITS)
    curator = sf.Curator(private, sf.MemoryLedger({"visits": sf.Budget(epsilon=10)}))
    plan = sql("SELECT COUNT(*) AS n, SUM(cost) AS total FROM data", VISITS, unit=Unit(), epsilon=5)
    answer = curator.release(plan).value.rows[0]
    assert abs(answer["n"] - 500) < 100 and abs(answer["total"] - 2500) < 1000
