"""What `sfumato init` learns of a file: the first line of a CSV file and no byte more, however odd that line is."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.cli.problems import CommandError
from sfumato.cli.work.proposing import KINDS, propose
from sfumato.cli.work.table_looks import DeclaredColumn, look
from sfumato.project import open_project
from tests.cli.front import environment, sfumato

SECRET = "Violetta Valery,consumption"


def names(path: Path) -> list[str]:
    return [column.name for column in look(path).columns]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_not_a_byte_beyond_the_first_line_is_read(tmp_path: Path) -> None:
    """Seen from the operating system: all that the whole command ever reads of the file."""
    header = "patient,ward\r\n"
    path = tmp_path / "visits.csv"
    path.write_text(header + f"{SECRET}\r\n" * 1000, encoding="utf-8", newline="")
    calls = "read,pread64,readv,preadv,preadv2,mmap,sendfile,copy_file_range,splice"
    command = ["strace", "-f", "-qq", "-e", f"trace={calls}", "-P", str(path), "-o", str(tmp_path / "calls")]
    command += [sys.executable, "-m", "sfumato.cli", "init", str(tmp_path / "new"), "--source", str(path), "--yes"]
    subprocess.run(command, env=environment(), check=True, capture_output=True)
    seen = [line for line in (tmp_path / "calls").read_text(encoding="utf-8").splitlines() if "(" in line]
    assert seen and all(re.search(r"\bread\(", line) for line in seen), "one way to read, and it was used"
    assert sum(int(line.rpartition("= ")[2]) for line in seen) == len("patient,ward\r")
    assert "Violetta" not in (tmp_path / "calls").read_text(encoding="utf-8")


def test_only_single_bytes_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(f"patient,ward\n{SECRET}\n", encoding="utf-8")
    whole, asked = os.read, bytearray()

    def recorded(file: int, size: int) -> bytes:
        found = whole(file, size)
        asked.extend(found)
        return found

    def shut(*words: Any, **more: Any) -> Any:
        raise AssertionError("the file is opened another way")

    monkeypatch.setattr(os, "read", recorded)
    monkeypatch.setattr(io, "open", shut)
    monkeypatch.setattr("builtins.open", shut)
    assert names(path) == ["patient", "ward"]
    monkeypatch.undo()
    assert asked == b"patient,ward\n"


def test_a_file_without_names_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "visits.csv"
    path.write_text(SECRET, encoding="utf-8")

    def shut(*words: Any, **more: Any) -> Any:
        raise AssertionError("opened")

    monkeypatch.setattr(os, "open", shut)
    assert look(path, header=False).columns == ()


def test_a_row_of_data_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("P17,2026-01-03,1999.5,4711\n", encoding="utf-8")
    ran = sfumato("init", "--source", "visits.csv", "--yes", at=tmp_path)
    assert ran.code == 2 and "may hold no names" in ran.err
    assert not re.search("P17|1999|4711|2026-01-03", ran.err + ran.out)
    named = (
        "--no-header",
        "--unit",
        "patient",
        "--column",
        "patient=key",
        "--column",
        "day=date:2026-01-01:2026-12-31",
    )
    ran = sfumato(
        "init", "--source", "visits.csv", "--yes", *named, "--column", "cost=real:0:9", "--column", "x=out", at=tmp_path
    )
    assert ran.code == 0
    (tmp_path / "visits.csv").write_text("P17,2026-01-03,1999.5,4711\n" * 500, encoding="utf-8")
    ran = sfumato("query", "SELECT COUNT(*) AS n FROM visits", "--limit", "rows=500", "--epsilon", "1", at=tmp_path)
    assert ran.code == 0


@pytest.mark.parametrize(
    "row",
    [
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, <=50K",
        "Violetta;Gasse 3;31.12.1971;rot;ledig",
        "Violetta,red,single,?,north",
        '"Violetta","red","1,5","north","single"',
    ],
)
def test_a_row_of_words_with_a_number_among_them_is_data(tmp_path: Path, row: str) -> None:
    """As UCI Adult begins: the first person must not become the names of the columns."""
    (tmp_path / "adult.data").write_text(f"{row}\n", encoding="utf-8")
    ran = sfumato("init", "--source", "adult.data", "--yes", "--unit", "row", at=tmp_path)
    assert ran.code == 2 and "may hold no names" in ran.err and not (tmp_path / "sfumato.yaml").exists()
    assert not re.search("State-gov|Never-married|Violetta|single|ledig|Gasse", ran.err + ran.out)


def test_years_as_names_are_names_if_you_say_so(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("patient,2024,2025,2026\n", encoding="utf-8")
    assert sfumato("init", "--source", "visits.csv", "--yes", at=tmp_path).code == 2
    assert sfumato("init", "--source", "visits.csv", "--yes", "--header", at=tmp_path).code == 0
    assert list(open_project(tmp_path).schema.tables["visits"].columns) == ["patient", "2024", "2025", "2026"]


@pytest.mark.parametrize(
    ("line", "found", "said"),
    [
        (b"\xef\xbb\xbfpatient,ward\n", ["patient", "ward"], None),
        (b"patient;ward;cost\n", ["patient", "ward", "cost"], "semicolons"),
        (b"patient|ward\n", ["patient", "ward"], "vertical bars"),
        (b"patient\tward\n", ["patient", "ward"], "tabs"),
        (b'"patient","the ward, old",cost\n', ["patient", "the ward, old", "cost"], None),
        (b'"a;b;c",patient\n', ["a;b;c", "patient"], None),
        (b'"say ""hi""",patient\n', ['say "hi"', "patient"], None),
        (b"patient,,cost\n", ["patient", "cost"], "column 2 has no name"),
        (b"patient,cost,cost\n", ["patient"], "several columns are called 'cost'"),
        (b"patient,Cost,cost\n", ["patient", "Cost"], "one name in SQL"),
        (b"patient,ward,day, cost\n", ["patient", "ward", "day", " cost"], "spaces around it"),
        (b'patient, "the ward, old" ,day, cost\n', ["patient", "the ward, old", "day", "cost"], None),
        (b"patient,ward", ["patient", "ward"], None),
        (b"patient,ward\r" + SECRET.encode(), ["patient", "ward"], None),
        ("patient,größe\n".encode("latin-1"), ["patient", "größe"], "latin-1"),
        ("patient,größe\n".encode("utf-16"), ["patient", "größe"], "utf-16"),
        (b"patient,a\x07b\n", ["patient"], "cannot be printed"),
        (b"patient," + b"x" * 300 + b"\n", ["patient"], "too long"),
    ],
)
def test_odd_headers(tmp_path: Path, line: bytes, found: list[str], said: str | None) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(line)
    seen = look(path)
    assert [column.name for column in seen.columns] == found
    assert (seen.notes == ()) if said is None else any(said in note for note in seen.notes)
    ran = sfumato("init", "--source", "visits.csv", "--yes", at=tmp_path)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "is empty"),
        (b"\n" + SECRET.encode(), "is empty"),
        (b",,\n", "is empty"),
        (b'patient,"ward\n' + SECRET.encode(), "opens a quote"),
        (b"\x1f\x8b\x08\x00\x00", "compressed"),
        (b"PK\x03\x04abc\n", "compressed"),
        (b"\x00\x01\x02\n", "not text"),
        (b"x" * (1 << 16) + b",y", "does not end"),
        (b"\xff\xfea", "not utf-16"),
    ],
)
def test_headers_that_are_none(tmp_path: Path, line: bytes, said: str) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(line)
    with pytest.raises(CommandError) as problem:
        look(path)
    assert said in problem.value.why and "Violetta" not in str(problem.value)


@pytest.mark.parametrize("suffix", ["parquet", "duckdb"])
def test_a_file_that_is_none(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"visits.{suffix}"
    path.write_bytes(SECRET.encode() * 100)
    with pytest.raises(CommandError) as problem:
        look(path, table="visits")
    assert "cannot be" in problem.value.why and "Violetta" not in repr(problem.value.__context__)


@pytest.mark.parametrize(
    ("name", "kind", "bounds"),
    [
        ("patient", "key", None),
        ("user_id", "key", None),
        ("customerNumber", "key", None),
        ("visit_id", "key", None),
        ("age", "whole", ("0", "120")),
        ("Age at visit", "whole", ("0", "120")),
        ("date_of_visit", "date", "some"),
        ("created_at", "moment", "some"),
        ("dob", "date", "some"),
        ("amount", "real", None),
        ("totalCost", "real", None),
        ("sex", "category", None),
        ("home_state", "category", None),
        ("is_smoker", "flag", None),
        ("hasInsurance", "flag", None),
        ("email", "out", None),
        ("patient_name", "out", None),
        ("patient_age", "whole", ("0", "120")),
        ("comments", "out", None),
        ("zip", "key", None),
        ("pct_paid", "real", ("0", "100")),
        ("xyzzy", "key", None),
        ("", "key", None),
    ],
)
def test_kinds_are_proposed_from_names(name: str, kind: str, bounds: Any) -> None:
    found = propose(DeclaredColumn(name))
    assert found.kind == kind
    if bounds is None:
        assert found.lower is None and found.upper is None
    elif bounds != "some":
        assert (found.lower, found.upper) == bounds
    assert (found.unit > 0) == (name in ("patient", "user_id", "customerNumber", "visit_id"))


@pytest.mark.parametrize(
    ("name", "declared", "kind"),
    [
        ("x", "INTEGER", "whole"),
        ("x", "uint8", "whole"),
        ("x", "DECIMAL(18,3)", "real"),
        ("x", "double", "real"),
        ("x", "timestamp[us, tz=UTC]", "moment"),
        ("x", "date32[day]", "date"),
        ("x", "BOOLEAN", "flag"),
        ("x", "VARCHAR", "key"),
        ("x", "INTEGER[]", "out"),
        ("x", "list<item: int64>", "out"),
        ("x", "STRUCT(a INTEGER)", "out"),
        ("x", "dictionary<values=string, indices=int32, ordered=0>", "key"),
        ("age", "DOUBLE", "real"),
        ("status", "INTEGER", "category"),
        ("patient", "BIGINT", "key"),
        ("day", "TIMESTAMP", "moment"),
        ("cost", "BIGINT", "whole"),
        ("email", "VARCHAR", "out"),
        ("interval", "INTERVAL", "key"),
    ],
)
def test_declared_types_say_more(name: str, declared: str, kind: str) -> None:
    assert propose(DeclaredColumn(name, declared)).kind == kind


HOSTILE = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=20) | st.sampled_from(
    ["no", "yes", "null", "~", "on", "1e3", "- a", "# x", "a: b", "{", "[x]", "*a", "&a", "!t", "%", "@", "`", '"', "'",
     "a # TODO: b", "select", "order", "[bold]x[/bold]", "patient", "é", "x\u202ey", "1_000", "0x1f", "2026-01-01",
     "<<"]
)  # fmt: skip


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(header=st.lists(HOSTILE, min_size=1, max_size=6))
def test_any_header_makes_a_project_or_a_clear_refusal(
    tmp_path_factory: pytest.TempPathFactory, header: list[str]
) -> None:
    """Whatever the names, what is written is read again as the same columns."""
    folder = tmp_path_factory.mktemp("odd")
    line = ",".join('"' + name.replace('"', '""') + '"' for name in ["patient id", *header])
    (folder / "a.csv").write_text(line + "\n", encoding="utf-8", newline="")
    ran = sfumato("init", "--source", "a.csv", "--unit", "patient id", "--header", "--yes", "--json", at=folder)
    assert ran.code == 0, ran.out
    seen = look(folder / "a.csv")
    proposed = [propose(column) for column in seen.columns]
    assert all(column.kind in KINDS for column in proposed)
    if any(column.missing and column.kind != "category" for column in proposed):
        assert '"ready": false' in ran.out
        return
    wanted = {column.name for column in proposed if column.kind != "out"} | {"patient id"}
    assert set(open_project(folder).schema.tables["a"].columns) == wanted
