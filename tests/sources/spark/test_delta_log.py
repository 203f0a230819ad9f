"""The log of a Delta table, commit by commit: which files live, and what is refused by its name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sfumato.errors import PlanError
from sfumato.sources.delta_log import replayed

SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "who", "type": "long", "nullable": True, "metadata": {}}]})
START = [{"protocol": {"minReaderVersion": 1}}, {"metaData": {"schemaString": SCHEMA, "partitionColumns": []}}]


def add(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "stats": '{"maxValues": {"who": 4711}}', **more}}


def table(*commits: list[dict[str, Any]], first: int = 0) -> dict[int, str]:
    return {first + i: "\n".join(map(json.dumps, commit)) + "\n" for i, commit in enumerate(commits)}


def test_files_that_were_removed_are_gone_and_names_are_decoded() -> None:
    later = [{"remove": {"path": "c.parquet"}}, add("d.parquet")]
    commits = table([*START, add("a%20b.parquet"), add("c.parquet")], later)
    log = replayed(commits, "/visits", "visits")
    assert (log.version, log.files) == (1, ("/visits/a b.parquet", "/visits/d.parquet"))


def test_partitions_are_read_off_folders_that_are_called_so() -> None:
    start = [START[0], {"metaData": {"schemaString": SCHEMA, "partitionColumns": ["ward"]}}]
    right = add("ward=a%2520b/x.parquet", partitionValues={"ward": "a b"})
    none = add("ward=__HIVE_DEFAULT_PARTITION__/y.parquet", partitionValues={"ward": None})
    log = replayed(table([*start, right, none]), "/visits", "visits")
    assert log.files == ("/visits/ward=a%20b/x.parquet", "/visits/ward=__HIVE_DEFAULT_PARTITION__/y.parquet")
    for path in ("x.parquet", "ward=b/x.parquet"):
        wrong = add(path, partitionValues={"ward": "a"})
        with pytest.raises(PlanError, match="folders that are not called after the values"):
            replayed(table([*start, wrong]), "/visits", "visits")


@pytest.mark.parametrize(
    ("commits", "message"),
    [
        (table([*START, add("x.parquet")], first=11), "a checkpoint stands for them"),
        ({0: "not json\n"}, "a commit that is no JSON"),
        (table([add("x.parquet")]), "says nothing of its columns"),
        (table([*START, add("x.parquet", deletionVector={"storageType": "u"})]), "deletion vectors"),
        (table([*START, add("s3://elsewhere/x.parquet")]), "files outside of its folder"),
        (table([*START, add("../x.parquet")]), "files outside of its folder"),
        (table([*START, add("%2Fetc/x.parquet")]), "files outside of its folder"),
        (table([{"protocol": {"minReaderVersion": 4}}, START[1]]), "version 4 of the format"),
        (table([{"protocol": {"minReaderVersion": 3, "readerFeatures": ["v2Checkpoint"]}}]), "'v2Checkpoint'"),
        (
            table([{"metaData": {"schemaString": SCHEMA, "configuration": {"delta.columnMapping.mode": "name"}}}]),
            "column mapping",
        ),
    ],
)
def test_what_is_not_read_is_refused_by_its_name(commits: dict[int, str], message: str) -> None:
    with pytest.raises(PlanError, match=message) as caught:
        replayed(commits, "/visits", "visits")
    assert "4711" not in str(caught.value)
