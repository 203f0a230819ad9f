"""YAML is read as it is written, with its lines; whatever a file holds, only a ProjectError comes out."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("yaml")

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato import plain_yaml
from sfumato.plain_yaml import Bare, YamlError
from sfumato.project import ProjectError, json_schema, open_project
from sfumato.project.lines import load
from sfumato.project.published import PUBLISHED

GOOD = """\
sfumato: 1
name: hospital
unit: user:patient
tables:
  visits:
    source: visits.csv
    columns:
      patient: key
      ward: {type: category, values: [east, north]}
      cost: {type: real, lower: 0, upper: 5000}
budget:
  total: {epsilon: 3, delta: 1e-6}
"""


def project(folder: Path, text: str | bytes) -> Any:
    (folder / "sfumato.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    return open_project(folder)


def test_lines_are_those_of_the_file() -> None:
    text = (
        "# first\n\na: 1\nb:  # why\n  c: |\n    long\n    text\n  d: [x,\n      y]\n"
        "e: {f: 1,\n    g: 2}\nh: 'over\n  lines'\ni: last\n"
    )
    lines = plain_yaml.read(text).lines
    found = {plain_yaml.where(path): line for path, line in lines.items()}
    assert found == {
        "the file": 1, "a": 3, "b": 4, "b.c": 5, "b.d": 8, "b.d[0]": 8, "b.d[1]": 9, "e": 10, "e.f": 10, "e.g": 11,
        "h": 12, "i": 14,
    }  # fmt: skip
    windows = plain_yaml.read(text.replace("\n", "\r\n"))
    assert dict(windows.lines) == dict(lines)


def test_what_stands_in_quotes_is_told_apart() -> None:
    value = plain_yaml.read("a: [no, 'no', \"no\", 1e-6, 2026-01-01, true]\nb: >\n  no\n").value
    assert value["a"] == ["no", "no", "no", "1e-6", "2026-01-01", "true"]
    assert [isinstance(each, Bare) for each in value["a"]] == [True, False, False, True, True, True]
    assert not isinstance(value["b"], Bare)


def test_the_nearest_place_that_a_text_has() -> None:
    read = plain_yaml.read("a:\n  b: 1\n")
    assert read.nearest(("a", "b", "c", 3)) == ("a", "b")
    assert read.line(("a", "x")) == 1
    assert read.line(("a", "b", "c")) == 2
    assert read.line(("nowhere",)) == 1


def test_numbers_are_exact(tmp_path: Path) -> None:
    made = project(tmp_path, GOOD.replace("epsilon: 3, delta: 1e-6", "epsilon: 0.1, delta: 1e-6"))
    assert made.budget.epsilon == Fraction(1, 10)
    assert made.budget.delta == Fraction(1, 10**6)
    third = project(tmp_path, GOOD.replace("epsilon: 3", "epsilon: 1/3"))
    assert third.budget.epsilon == Fraction(1, 3)
    parts = project(tmp_path, GOOD + "  allocations: {a: 0.1, b: 0.2, c: 0.7}\n").allocations
    assert sum(part.epsilon for part in parts.values()) == 3
    assert sum(part.delta for part in parts.values()) == Fraction(1, 10**6)


def test_values_mean_what_quotes_say(tmp_path: Path) -> None:
    def values(written: str) -> tuple[Any, ...]:
        made = project(tmp_path, GOOD.replace("[east, north]", written))
        return tuple(made.schema.table("visits").columns["ward"].categories)

    assert values('["no", "yes"]') == ("no", "yes")
    assert values("[1, 2, -3]") == (1, 2, -3)
    assert values('["1", "2"]') == ("1", "2")
    assert values("[true, false]") == (True, False)
    assert values("[east wing, n/a, y, 1a, 1e]") == ("east wing", "n/a", "y", "1a", "1e")
    assert values('["01", "1e-6", "null", "2026-01-01", "~", ""]') == ("01", "1e-6", "null", "2026-01-01", "~", "")
    numbers = ("1e5", "0x1f", "1_000", "12:30", ".inf", "0o7", "007", "08", "-09", "1/3", "+1", ".5", "9" * 30)
    for wrong in ("no", "No", "NO", "off", "y: 1", "~", *numbers):
        with pytest.raises(ProjectError, match=r"^sfumato\.yaml:9: "):
            values(f"[{wrong}]")


def test_a_byte_order_mark_and_windows_lines_are_no_matter(tmp_path: Path) -> None:
    made = project(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert made.name == "hospital"


def test_names_that_look_like_something_else(tmp_path: Path) -> None:
    text = GOOD.replace("cost:", '"no":').replace("name: hospital", "name: 2026\nversion: 2026-11")
    made = project(tmp_path, text)
    assert (made.name, made.private.version) == ("2026", "2026-11")
    assert "no" in made.schema.table("visits").columns


def test_a_file_of_megabytes_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="too long"):
        project(tmp_path, GOOD + "#" * 3_000_000)


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="there is no project"):
        open_project(tmp_path)
    with pytest.raises(ProjectError, match=r"there is no project in '.*nowhere'"):
        open_project(tmp_path / "nowhere")
    (tmp_path / "sfumato.yaml").mkdir()
    with pytest.raises(ProjectError):
        open_project(tmp_path)
    with pytest.raises(ProjectError, match="does not exist"):
        load(tmp_path / "plan.yaml")


_words = st.sampled_from(
    ["no", "1e-6", "true", "key", "real", "category", "user:patient", "row", "auto", "0.5", "-1", "1/0", "2026-01-01"]
)
_names = st.sampled_from(
    ["sfumato", "name", "unit", "tables", "visits", "columns", "source", "type", "lower", "upper", "values", "budget",
     "total", "epsilon", "delta", "rho", "allocations", "share", "limits", "rows", "privacy", "ledger", "about", "of"]
)  # fmt: skip
_scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), _words)
_anything = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(_names, _scalars.filter(lambda key: key == key)), inner, max_size=5),
    ),
    max_leaves=25,
)
pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.PrivacyWarning")  # a drawn epsilon may be weak
_quietly = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_quietly
@given(said=_anything)
def test_nothing_but_a_project_error_comes_out(tmp_path: Path, said: Any) -> None:
    with pytest.raises(ProjectError):
        project(tmp_path, yaml.safe_dump(said, allow_unicode=True))


@_quietly
@given(path=st.sampled_from([path for path in plain_yaml.read(GOOD).lines if path]), said=_anything)
def test_nothing_but_a_project_error_comes_out_of_one_changed_place(tmp_path: Path, path: Any, said: Any) -> None:
    whole = yaml.load(GOOD.replace("1e-6", "1.0e-6"), Loader=yaml.SafeLoader)
    inner = whole
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = said
    try:
        project(tmp_path, yaml.safe_dump(whole, allow_unicode=True, sort_keys=False))
    except ProjectError as error:
        assert error.line is None or error.line >= 1


@_quietly
@given(text=st.one_of(st.text(), st.binary(), st.text(alphabet="{}[]:,-?&*!|>'\"%@` \n\tab#")))
def test_nothing_but_a_project_error_comes_out_of_any_text(tmp_path: Path, text: str | bytes) -> None:
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    with pytest.raises(ProjectError):
        project(tmp_path, data)


@_quietly
@given(cut=st.integers(0, len(GOOD)), insert=st.text(alphabet="{}[]:,-?&*!|>'\"%@` \n\ta0\u2028\x00\\", max_size=4))
def test_a_good_file_with_something_in_it(tmp_path: Path, cut: int, insert: str) -> None:
    try:
        project(tmp_path, GOOD[:cut] + insert + GOOD[cut:])
    except ProjectError as error:
        assert str(error).startswith("sfumato.yaml")


def test_a_text_is_read_without_being_built() -> None:
    with pytest.raises(YamlError):
        plain_yaml.read("a: !!python/object/apply:os.system ['true']")
    with pytest.raises(YamlError):
        plain_yaml.read("a: &a [x]\nb: [*a, *a]\n")


def test_the_published_schema_is_up_to_date() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json_schema(), (
        "write it anew: sfumato schema project > src/sfumato/project/sfumato.schema.json"
    )


def test_the_schema_agrees_with_the_form(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.Draft202012Validator(json_schema())
    jsonschema.Draft202012Validator.check_schema(json_schema())
    whole = yaml.safe_load(GOOD.replace("1e-6", "1.0e-6"))
    assert list(checker.iter_errors(whole)) == []
    for spoil in (
        {"nmae": 1}, {"unit": 3}, {"tables": {"visits": {"source": "v.csv"}}}, {"sfumato": 2},
        {"tables": {"visits": {"source": "v.csv", "columns": {"cost": "real"}}}},
        {"tables": {"visits": {"source": "v.csv", "columns": {"cost": {"type": "real", "lower": 0}}}}},
        {"tables": {"visits": {"source": "v.csv", "columns": {"ward": {"type": "category"}}}}},
        {"budget": {"total": {"epsilon": "three"}}}, {"privacy": {"accounting_mode": "moments"}},
    ):  # fmt: skip
        spoiled = {**whole, **spoil}
        assert list(checker.iter_errors(spoiled)), spoil
        with pytest.raises(ProjectError):
            project(tmp_path, yaml.safe_dump(spoiled))
