from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import ArgumentError, PlanError
from sfumato.schema import Table, category, key, real, whole
from sfumato.sources import Csv, connect
from tests.sources.odd_tables import run, view

TABLE = Table({"a": key(), "b": real(0, 10**9)})


def _rows(folder: Path, text: bytes, **how: Any) -> list[tuple[Any, Any]]:
    (folder / "t.csv").write_bytes(text)
    return [(row["a"], row["b"]) for row in view(TABLE, Csv(folder / "t.csv", **how))]


def test_columns_are_not_sniffed(tmp_path: Path) -> None:
    """Numbers for a hundred thousand rows, then text: a sniffer would take the column for numbers, and fail."""
    file = tmp_path / "late.csv"
    with file.open("w") as lines:
        lines.write("a,b\n")
        lines.writelines(f"{number},{number}\n" for number in range(100_000))
        lines.write("late,2020-01-01\n00012,'7'\n")
    opened = connect({"t": (TABLE, Csv(file))})
    assert opened.tables == {"t": {"a": "VARCHAR", "b": "DOUBLE"}}
    assert run(opened, "SELECT count(*) n, count(b) b, sum(b)::BIGINT s FROM t") == [
        {"n": 100_002, "b": 100_000, "s": 4999950000}
    ]
    assert run(opened, "SELECT count(*) n FROM t WHERE a IN ('late', '00012')") == [{"n": 2}]
    opened.close()


@pytest.mark.parametrize("quote", ['"', ""])
@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"x", ("x", None)),
        (b"x,1,2,3", ("x", 1.0)),
        (b"x,", ("x", None)),
        (b",1", (None, 1.0)),
        (b",", (None, None)),
        (b"", None),
        (b"\xff,1", None),
        (b"x,\xc3", None),
        (b"x\0y,1", ("x\0y", 1.0)),
        (b"x,1\r", ("x", 1.0)),
        (b" x , 1 ", (" x ", 1.0)),
        (b"y" * 1_500_000 + b",1", ("y" * 1_500_000, 1.0)),
        (b"y" * 5_000_000 + b",1", None),
        (b'y"z,1', ('y"z', 1.0)),
        (b"'x',1", ("'x'", 1.0)),
        (b"\\,1", ("\\", 1.0)),
        (b"#x,1", ("#x", 1.0)),
        ("é,1".encode(), ("é", 1.0)),
    ],
)
def test_an_odd_line_changes_no_other(tmp_path: Path, quote: str, line: bytes, row: tuple[Any, Any] | None) -> None:
    around = [("0", 5.0), ("zz", 6.0)]
    expected = [around[0], *([row] if row else []), around[1]]
    found = _rows(tmp_path, b"a,b\n0,5\n" + line + b"\nzz,6\n", quote=quote)
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_quotes_hold_delimiters_quotes_and_line_breaks(tmp_path: Path) -> None:
    text = b'a,b\n"x,y",1\n"say ""no""",2\n"two\nlines",3\n"",4\n"z"w,5\n'
    rows = _rows(tmp_path, text)
    assert rows[:3] == [('say "no"', 2.0), ("two\nlines", 3.0), ("x,y", 1.0)]
    assert (None, 4.0) in rows and len(rows) == 5


def test_without_quotes_every_line_speaks_for_itself(tmp_path: Path) -> None:
    text = b'a,b\nx,1\n"y,2\nz,3\n'
    assert _rows(tmp_path, text, quote="") == [('"y', 2.0), ("x", 1.0), ("z", 3.0)]
    assert len(_rows(tmp_path, text)) < 3  # with quotes, the open one takes what follows along


def test_cells_cannot_pretend_to_be_rows(tmp_path: Path) -> None:
    """A reader that starts in the middle of the file would take the lines inside of these cells for rows."""
    file, cell = tmp_path / "forged.csv", 'x\n"5","6"\n7,8\n' * 2000
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["b", "a"])
        writer.writerows((number, cell if number % 2 else "plain") for number in range(600))
    opened = connect({"t": (TABLE, Csv(file))}, threads=4)
    assert run(opened, "SELECT count(*) n, sum(b)::BIGINT s FROM t") == [{"n": 600, "s": 179_700}]
    opened.close()


@pytest.mark.parametrize("quote", ['"', ""])
def test_threads_and_odd_lines_do_not_change_what_is_read(tmp_path: Path, quote: str) -> None:
    draw, file = random.Random(7), tmp_path / "long.csv"
    lines = [
        draw.choice([f"k{n},{n % 1000}", f"k{n}", f"k{n},{n % 1000},more", f"k{n},\xff", ""]) for n in range(400_000)
    ]
    file.write_bytes(b"\xef\xbb\xbfa,b\r\n" + "\r\n".join(lines).encode("latin-1"))
    kept = [line.split(",") for line in lines if line and "\xff" not in line]
    expected = [{"n": len(kept), "s": sum(int(cells[1]) for cells in kept if len(cells) > 1)}]
    for threads in (1, 4):
        opened = connect({"t": (TABLE, Csv(file, quote=quote))}, threads=threads)
        assert run(opened, "SELECT count(a) n, sum(b)::BIGINT s FROM t") == expected
        opened.close()


def test_files_without_rows_and_without_header(tmp_path: Path) -> None:
    assert _rows(tmp_path, b"a,b\n") == []
    assert _rows(tmp_path, b"a,b") == []
    assert _rows(tmp_path, b"", header=False) == []
    assert _rows(tmp_path, b"x,1\ny\n", header=False) == [("x", 1.0), ("y", None)]
    with pytest.raises(PlanError, match="no column 'a'"):
        _rows(tmp_path, b"")


def test_headers_are_matched_by_name(tmp_path: Path) -> None:
    assert _rows(tmp_path, b'b,"more, of it",a\n1,2,x\n') == [("x", 1.0)]
    assert _rows(tmp_path, b"b;B;a\n1;2;x\n", delimiter=";") == [("x", 1.0)]
    assert _rows(tmp_path, b"a,b\nNA,NA\n", null="NA") == [(None, None)]
    assert _rows(tmp_path, "a,b\né,1\n".encode("utf-16"), encoding="utf-16") == [("é", 1.0)]
    for header, words in ((b"a,c", "no column 'b'"), (b"a,b,a", "several columns 'a'"), (b"a,\xff", "cannot be read")):
        with pytest.raises(PlanError, match=words) as refused:
            _rows(tmp_path, header + b"\nSECRET,1\n")
        assert "SECRET" not in str(refused.value)


def test_categories_and_whole_numbers_are_exact_text(tmp_path: Path) -> None:
    table = Table({"a": category(["01", "1"]), "b": whole(-(2**63), 2**63 - 1)})
    (tmp_path / "t.csv").write_text("a,b\n01,9007199254740993\n1,-9223372036854775808\n1.0,2.5\n")
    assert view(table, Csv(tmp_path / "t.csv")) == [
        {"a": "01", "b": 2**53 + 1},
        {"a": "1", "b": -(2**63)},
        {"a": None, "b": 2},
    ]


@pytest.mark.parametrize(
    "how",
    [
        {"delimiter": ""},
        {"delimiter": ",,"},
        {"delimiter": "\n"},
        {"delimiter": "é"},
        {"quote": ","},
        {"quote": "''"},
        {"quote": None},
        {"header": "yes"},
        {"encoding": "cp1252"},
        {"null": None},
        {"null": "a,b"},
        {"path": "many*.csv"},
        {"path": ""},
    ],
)
def test_odd_options_are_refused_before_anything_is_opened(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(how))):
        Csv(**{"path": "nowhere.csv", **how})
