"""What --json prints is what `sfumato schema` says it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sfumato.cli.documents import Document
from sfumato.cli.work.schemas import documents
from sfumato.office.documents import Document as OfficeDocument
from tests.cli.front import BY_WARD, make_project, sfumato


def schema(name: str, folder: Path) -> Any:
    ran = sfumato("schema", name, at=folder)
    assert ran.code == 0 and ran.err == "", ran.err
    found = json.loads(ran.out)
    jsonschema.Draft202012Validator.check_schema(found)
    return found


@pytest.mark.parametrize(
    ("words", "code", "document"),
    [
        (("describe",), 0, "describe"),
        (("quote", BY_WARD), 0, "quote"),
        (("quote", BY_WARD, "--explain", "--limit", "advise"), 0, "quote"),
        (("quote", BY_WARD, "--epsilon", "9"), 5, "quote"),
        (("query", BY_WARD), 0, "query"),
        (("query", BY_WARD, "--out", "answer.csv"), 0, "query"),
        (("query", "SELECT MIN(day) AS a, QUANTILE(cost, [0.5, 0.9]) AS q FROM visits", "--epsilon", "1"), 0, "query"),
        (("rehearse", BY_WARD), 0, "rehearse"),
        (("schema",), 0, "schemas"),
        (("query", "SELECT nothing"), 4, "problem"),
        (("query", BY_WARD, "--epsilon", "9"), 5, "problem"),
        (("query", "--nonsense"), 2, "problem"),
        (("describe", "-C", "nowhere"), 3, "problem"),
    ],
    ids=lambda each: " ".join(each)[:40] if isinstance(each, tuple) else None,
)
def test_a_document_is_as_published(words: tuple[str, ...], code: int, document: str, tmp_path: Path) -> None:
    folder = make_project(tmp_path)
    ran = sfumato(*words, "--json", at=folder)
    assert (ran.code, ran.err) == (code, "")
    body = json.loads(ran.out)
    name, _, version = body["document"].partition("/")
    assert version == "1" and name == document
    published = schema(name, folder)
    jsonschema.validate(body, published)
    with pytest.raises(jsonschema.ValidationError):  # and the schema does refuse something
        jsonschema.validate(body | {"surprise": 1}, published)


@pytest.mark.slow
def test_every_document_is_published(tmp_path: Path) -> None:
    listed = json.loads(sfumato("schema", "--json", at=tmp_path).out)["names"]
    assert {"project", "describe", "quote", "query", "rehearse", "problem", "schemas"} <= set(listed)
    for name, kind in documents().items():
        found = schema(name, tmp_path)
        assert found["additionalProperties"] is False, name
        kinds = found["properties"]["document"]
        assert f"{name}/1" in [kinds.get("const"), *kinds.get("enum", ())], name
        assert issubclass(kind, Document | OfficeDocument) and name in listed


def test_the_project_schema_is_published(tmp_path: Path) -> None:
    import yaml

    from tests.cli.front import YAML

    text = YAML.replace("1e-", "1.0e-")  # what PyYAML, unlike editors and us, takes for a number
    jsonschema.validate(json.loads(json.dumps(yaml.safe_load(text), default=str)), schema("project", tmp_path))
    assert sfumato("schema", "project", "--json", at=tmp_path).out == sfumato("schema", "project", at=tmp_path).out
