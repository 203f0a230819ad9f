"""describe, quote, query and rehearse, from the shell to the ledger."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.project import open_project
from tests.cli.front import BY_WARD, YAML, Ran, make_project, sfumato

COUNT = "SELECT COUNT(*) AS n FROM visits"
ROWS = 1200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_project(tmp_path)


def told(ran: Ran) -> Any:
    assert ran.err == "", ran.err
    return json.loads(ran.out)


def spent(folder: Path, account: str = "hospital") -> float:
    project = open_project(folder)
    with project.ledger(read_only=True) as ledger:
        return float(ledger.spent(account)[0].spent)


def kinds(folder: Path) -> list[str]:
    with open_project(folder).ledger(read_only=True) as ledger:
        return [entry.kind for entry in ledger.history()]


def test_describe_tells_all_that_is_public(folder: Path) -> None:
    ran = sfumato("describe", at=folder)
    assert ran.code == 0 and ran.err == ""
    for words in (
        "everything one patient ever contributed", "8 rows, 3 groups for one", "visits  private  data/visits.csv",
        "wards  public", "key, names the unit", "[0, 1000]", "[2026-01-01, 2026-12-31]", "east, north, west",
        "0 of 2 epsilon spent at delta 1e-06", "0 releases so far",
        "epsilon = 2, delta = 1e-06", "training", "evaluation",
    ):  # fmt: skip
        assert words in ran.out, words


def test_describe_reads_no_data_and_needs_no_ledger(tmp_path: Path) -> None:
    folder = make_project(tmp_path, ledger=False)
    (folder / "data" / "visits.csv").unlink()
    ran = sfumato("describe", at=folder)
    assert ran.code == 0
    assert "data/visits.csv is missing" in ran.out and "there is no ledger yet" in ran.out
    body = told(sfumato("describe", "--json", at=folder))
    assert [table["found"] for table in body["tables"]] == [False, True]
    assert body["releases"] is None and body["budget"] == []


def test_describe_finds_the_project_by_folder_or_file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    away = tmp_path_factory.mktemp("away")
    for place in (folder, folder / "sfumato.yaml"):
        body = told(sfumato("describe", "-C", str(place), "--json", at=away))
        assert body["project"] == "hospital" and body["tables"][0]["source"] == "data/visits.csv"


def test_a_quote_charges_nothing_and_reads_nothing(folder: Path) -> None:
    before = kinds(folder)
    (folder / "data" / "visits.csv").unlink()
    ran = sfumato("quote", BY_WARD, at=folder)
    assert ran.code == 0
    for words in (
        "epsilon = 0.5 at delta = 1e-07",
        "n ± ",
        "mean: not known yet",
        "0 of 2 epsilon spent",
        "this one makes it 0.5; room for about ",
        "fits the budget",
    ):
        assert words in ran.out, words
    assert kinds(folder) == before


def test_a_quote_says_why_the_adviser_knows_no_error(folder: Path) -> None:
    body = told(sfumato("quote", COUNT, "--limit", "advise", "--json", at=folder))
    assert body["advised"] and body["errors"][0]["error"] is None and "adviser" in body["errors"][0]["why"]
    known = told(sfumato("quote", COUNT, "--limit", "rows=2", "--json", at=folder))
    assert not known["advised"] and known["errors"][0]["error"] > 0


def test_a_quote_that_does_not_fit_ends_with_five(folder: Path) -> None:
    ran = sfumato("quote", COUNT, "--epsilon", "5", at=folder)
    assert ran.code == 5 and "does not fit the budget" in ran.out and "asked 5, spent 0, left 2 of 2" in ran.out
    body = told(sfumato("quote", COUNT, "--epsilon", "5", "--json", at=folder))
    assert body["fits"] is False and body["budget"][0]["fits"] is False
    assert told(sfumato("query", COUNT, "--epsilon", "5", "--dry-run", "--json", at=folder))["document"] == "quote/1"


def test_a_quote_names_every_account_on_the_path(folder: Path) -> None:
    body = told(sfumato("quote", COUNT, "--account", "evaluation", "--epsilon", "0.55", "--json", at=folder))
    parts = {each["account"]: each for each in body["budget"]}
    assert set(parts) == {"hospital", "evaluation"}
    assert parts["evaluation"]["used"] > parts["hospital"]["used"] > parts["hospital"]["before"] == 0


def test_explain_numbers_the_steps_and_shows_the_statement(folder: Path) -> None:
    ran = sfumato("quote", BY_WARD, "--explain", at=folder)
    assert " 1. read the rows" in ran.out and "The SQL that the engine runs" in ran.out and "GROUP BY" in ran.out


def test_a_query_pays_once_and_is_free_again(folder: Path) -> None:
    first = told(sfumato("query", BY_WARD, "--json", "--note", "planning", at=folder))
    assert not first["free"] and spent(folder) == 0.5
    assert first["receipt"]["note"] == "planning" and len(first["receipt"]["hash"]) == 64
    again = sfumato("query", f"  {BY_WARD}\n", at=folder)
    assert again.code == 0 and "answered before: free" in again.out and spent(folder) == 0.5
    second = told(sfumato("query", BY_WARD, "--json", at=folder))
    assert second["free"] and second["rows"] == first["rows"] and second["receipt"] == first["receipt"]
    with open_project(folder).ledger(read_only=True) as ledger:
        entry = ledger.entry(first["receipt"]["id"])
        assert entry is not None and (entry.number, entry.hash) == (first["receipt"]["entry"], first["receipt"]["hash"])
        assert ledger.entry("0" * 32) is None


def test_the_answer_is_right_within_its_noise(folder: Path) -> None:
    body = told(sfumato("query", COUNT, "--json", "--limit", "rows=3", "--noise", "gaussian", at=folder))
    number = body["rows"][0]["n"]
    assert abs(number["value"] - ROWS) < 8 * number["std"]  # fails by chance less than once in 10^15
    assert number["reliable"] and number["high"] is None and number["error"] is None and number["bias"] is None
    assert number["value"] - number["low"] == pytest.approx(1.96 * number["std"], rel=0.01)
    # At the project's 0.5, noise hides in one run of ten how much limits cut, and the interval is open.
    more = ("--limit", "rows=3", "--unclip", "--epsilon", "1.5")
    known = told(sfumato("query", COUNT, "--json", *more, at=folder))["rows"][0]["n"]
    assert known["low"] < known["value"] < known["high"] and known["bias"] >= 0 and known["error"] > known["std"]


def test_the_screen_shows_error_bars_price_receipt_and_budget(folder: Path) -> None:
    ran = sfumato("query", BY_WARD, at=folder)
    for words in (
        "ward", "east", " ≥ ", " noise ± ", "at least, at 95 %", "- each patient counts for at most 8 rows", "hides",
        "epsilon = 0.5 at delta = 1e-07", "of the ledger, hash ",
        "0.5 of 2 epsilon spent at delta 1e-06; it was 0; room for about ",
    ):  # fmt: skip
        assert words in ran.out, words
    assert "limits=" not in ran.out and "unclip=True" not in ran.out  # the shell has options, not arguments


def test_alpha_widens_the_bars(folder: Path) -> None:
    wide = told(sfumato("query", COUNT, "--json", "--alpha", "0.01", at=folder))["rows"][0]["n"]
    near = told(sfumato("query", COUNT, "--json", "--alpha", "0.2", at=folder))["rows"][0]["n"]
    assert wide["value"] == near["value"] and wide["low"] < near["low"]
    assert "at least, at 80 %" in sfumato("query", COUNT, "--alpha", "0.2", at=folder).out


def test_the_alert_comes_over_the_threshold(folder: Path) -> None:
    assert told(sfumato("query", COUNT, "--json", at=folder))["alert"] is None
    ran = sfumato("query", BY_WARD, "--epsilon", "1.4", at=folder)
    assert ran.code == 0 and "alert" in ran.out and "of the budget of 'hospital' is spent" in ran.out


def test_a_refusal_says_what_would_fit_and_its_command_helps(folder: Path) -> None:
    count = (COUNT, "--noise", "gaussian")  # one of whose gauges is another unit
    ran = sfumato("query", *count, "--epsilon", "5", at=folder)
    assert ran.code == 5 and "asked 5, spent 0, left 2 of 2; with this one it would be " in ran.err
    assert "delta: asked 0 for unknown keys and the like, left 2.5e-07 of 2.5e-07" in ran.err and "mu^2" not in ran.err
    fitting = ran.err.partition("room: for one like it at epsilon ")[2].split()[0]
    command = ran.err[ran.err.index("ledger limit hospital") :].split()
    assert command[-2:] == ["--reason", "WHY"]
    assert sfumato("query", *count, "--epsilon", fitting, at=folder).code == 0
    assert sfumato("query", *count, "--epsilon", "2.9", at=folder).code == 5
    assert sfumato(*command, at=folder).code == 0
    assert sfumato("query", *count, "--epsilon", "2.5", at=folder).code == 0
    gauges = sfumato("quote", *count, "--epsilon", "9", "--gauges", at=folder)
    assert gauges.code == 5 and "mu^2: asked " in gauges.out
    assert "sfumato ledger limit hospital --epsilon " in gauges.out


def test_the_command_of_a_refusal_raises_the_limit_far_enough_for_what_was_asked(folder: Path) -> None:
    assert sfumato("query", COUNT, "--epsilon", "0.4", at=folder).code == 0
    for epsilon in ("5", "25"):  # doubling the limit once is too little for either
        ran = sfumato("query", BY_WARD, "--epsilon", epsilon, at=folder)
        assert ran.code == 5 and ran.err.count("is weak") == (epsilon == "25"), "what was only tried is not told"
        assert sfumato(*ran.err[ran.err.index("ledger limit hospital") :].split(), at=folder).code == 0
        assert sfumato("query", BY_WARD, "--epsilon", epsilon, at=folder).code == 0


def test_where_delta_is_short_the_refusal_tells_a_delta_that_fits_and_raises_no_epsilon(folder: Path) -> None:
    unknown = ("query", "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost", "--epsilon", "0.2", "--delta")
    assert sfumato("query", COUNT, "--epsilon", "0.4", at=folder).code == 0
    ran = sfumato(*unknown, "2e-6", at=folder)
    assert ran.code == 5 and "left 2.5e-07 of 2.5e-07: too little" in ran.err
    command = ran.err[ran.err.index("ledger limit hospital") :].split()
    assert command[3:5] == ["--epsilon", "2"]
    fitting = ran.err.partition("room: for one like it at delta ")[2].split()[0]
    assert sfumato(*unknown, fitting, at=folder).code == 0
    assert sfumato(*command, at=folder).code == 0


def test_six_counts_leave_room_for_a_query_with_unknown_keys(folder: Path) -> None:
    for number in range(6):
        assert sfumato("query", f"SELECT COUNT(*) AS n FROM visits WHERE cost > {number}", "--epsilon", "0.1",
                       at=folder).code == 0  # fmt: skip
    unknown = "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost"
    ran = sfumato("quote", unknown, "--epsilon", "0.3", at=folder)
    assert ran.code == 0 and "fits the budget" in ran.out, ran.out


def test_a_key_never_pays_twice(folder: Path) -> None:
    words = ("query", COUNT, "--key", "monday", "--json")
    first, second = told(sfumato(*words, at=folder)), told(sfumato(*words, at=folder))
    assert second["free"] and first["rows"] == second["rows"] and spent(folder) == 0.5


def test_an_account_below_pays_too(folder: Path) -> None:
    sfumato("query", COUNT, "--account", "evaluation", "--epsilon", "0.25", at=folder)
    assert spent(folder) == 0.25 and spent(folder, "evaluation") > 0 and spent(folder, "training") == 0


@pytest.mark.parametrize("how", ["file", "stdin", "dash"])
def test_the_query_comes_from_a_file_or_a_pipe(folder: Path, how: str) -> None:
    first = told(sfumato("query", COUNT, "--json", at=folder))
    (folder / "count.sql").write_text(f"\ufeff{COUNT}\n", encoding="utf-8")
    words = {"file": ("--file", "count.sql"), "stdin": (), "dash": ("-",)}[how]
    again = told(sfumato("query", *words, "--json", at=folder, stdin=f"{COUNT}\n"))
    assert again["free"] and again["rows"] == first["rows"]  # the same question, however it is typed


def test_csv_parquet_and_json_carry_the_same(folder: Path) -> None:
    import pyarrow.parquet

    body = told(sfumato("query", BY_WARD, "--json", at=folder))
    ends = ("", "_std", "_low", "_high", "_bias")
    heads = ["ward", *(f"{name}{end}" for name in ("n", "mean") for end in ends)]
    for name in ("answer.csv", "answer.parquet", "answer.json"):
        ran = sfumato("query", BY_WARD, "--out", name, at=folder)
        assert ran.code == 0 and f"wrote    {name} (3 rows)" in ran.out, ran.err
        assert not list(folder.glob(".*.part"))
    table = pyarrow.parquet.read_table(folder / "answer.parquet").to_pylist()
    listed = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    with (folder / "answer.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for wanted, *forms in zip(body["rows"], table, listed, lines, strict=True):
        for form in forms:
            assert list(form) == heads and form["ward"] == wanted["ward"]
            assert float(form["n"]) == wanted["n"]["value"] and float(form["n_low"]) == wanted["n"]["low"]
    printed = sfumato("query", BY_WARD, "--format", "csv", at=folder).out
    assert next(csv.reader(io.StringIO(printed))) == heads
    assert json.loads(sfumato("query", BY_WARD, "--format", "json", at=folder).out) == listed


def test_every_option_reaches_the_plan(folder: Path) -> None:
    words = (
        "quote", "SELECT ward, SUM(cost) AS total, COUNT(*) AS n FROM visits GROUP BY ward", "--rho", "0.001",
        "--limit", "rows=4", "--limit", "reach.total=300", "--bounds", "total=0:500", "--keys", "ward=east,west",
        "--share", "total=3", "--floor", "--json",
    )  # fmt: skip
    body = told(sfumato(*words, at=folder))
    assert body["price"] == "rho = 0.001" and body["epsilon"] is None
    assert "4 rows" in body["limits"] and "300 in total" in body["limits"]
    plain = told(sfumato(*[each for each in words if each not in ("--share", "total=3")], at=folder))
    assert plain["plan"] != body["plan"]
    wanted = told(sfumato("quote", COUNT, "--accuracy", "n=50", "--delta", "1e-7", "--json", at=folder))
    assert wanted["errors"][0]["error"] == pytest.approx(50, rel=0.01)


def test_a_quantile_is_asked_for_in_its_own_unit_or_by_rank(folder: Path) -> None:
    asked = ("quote", "SELECT MEDIAN(cost) AS m FROM visits", "--delta", "1e-7", "--limit", "rows=4", "--json")
    euros = told(sfumato(*asked, "--accuracy", "m=20", "--group-rows", "50000", at=folder))
    rank, own = euros["errors"]
    assert rank["column"] == "m (in rows of rank)" and rank["why"] is None
    assert own["column"] == "m" and own["error"] == pytest.approx(20, rel=0.02)
    assert own["why"] == "if the 50,000 rows of a group were spread evenly over 0 to 1,000"
    assert rank["error"] < 1000  # a fiftieth of the rows, less a leaf
    ranks = told(sfumato(*asked, "--accuracy", f"rank.m={rank['error']}", at=folder))
    assert ranks["epsilon"] == pytest.approx(euros["epsilon"], rel=0.01)
    unsaid = sfumato(*asked[:-1], "--accuracy", "m=20", at=folder)
    assert unsaid.code == 2 and "--group-rows 1000; or in rows of rank: --accuracy rank.COLUMN=20" in unsaid.err


def test_groups_may_hold_commas_and_be_chosen(folder: Path) -> None:
    listed = "ward: {type: category, values: [east, north, west]}"
    (folder / "sfumato.yaml").write_text(YAML.replace(listed, "ward: key", 1), encoding="utf-8")
    quoted = told(
        sfumato("quote", f"{COUNT} GROUP BY ward", "--keys", 'ward="a, b",c', "--json", "--explain", at=folder)
    )
    assert any("2 public values" in step for step in quoted["steps"])
    chosen = told(sfumato("quote", f"{COUNT} GROUP BY ward", "--keys", "ward=select", "--json", "--explain", at=folder))
    assert any("private" in step for step in chosen["steps"])


def test_a_rehearsal_is_free_and_says_so(folder: Path) -> None:
    before = kinds(folder)
    (folder / "data" / "visits.csv").unlink()  # not read
    ran = sfumato("rehearse", BY_WARD, at=folder)
    assert ran.code == 0 and "MADE-UP ROWS" in ran.out and "free" in ran.out
    assert told(sfumato("rehearse", BY_WARD, "--json", "--rows", "50", at=folder))["made_up"] is True
    assert kinds(folder) == before


def test_a_rehearsal_needs_no_ledger(tmp_path: Path) -> None:
    assert sfumato("rehearse", COUNT, at=make_project(tmp_path, ledger=False)).code == 0


def test_rows_as_units_work_the_same(tmp_path: Path) -> None:
    text = YAML.replace("unit: user:patient", "unit: row").replace("    unit: patient\n", "")
    folder = make_project(tmp_path, text=text.replace("limits: {rows: 8, keys: 3}\n", ""))
    body = told(sfumato("query", COUNT, "--epsilon", "1", "--json", at=folder))
    assert body["hides"] == "one row, present or absent"
    assert abs(body["rows"][0]["n"]["value"] - ROWS) < 8 * body["rows"][0]["n"]["std"] + 1e-9


def test_dates_and_lists_have_a_form_in_json(folder: Path) -> None:
    text = "SELECT MIN(day) AS first, QUANTILE(cost, [0.25, 0.75]) AS quarters FROM visits"
    body = told(sfumato("query", text, "--epsilon", "1", "--json", at=folder))
    row = body["rows"][0]
    assert row["first"]["value"].startswith("2026-") and len(row["quarters"]["value"]) == 2
    assert len(row["quarters"]["low"]) == len(row["quarters"]["high"]) == 2
    assert sfumato("query", text, "--epsilon", "1", at=folder).code == 0
