"""A series at the desk: paid once, each block once and in order, whatever happens in between."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sfumato.curator as curator_module
from sfumato.errors import ArgumentError, PlanError
from sfumato.office.documents import Agreement
from sfumato.office.problems import OfficeError
from sfumato.office.series import SeriesDocument, agreed, over, quoted_series, ran_series, reading
from sfumato.project import Project, ProjectError, open_project
from sfumato.project.series_file import SeriesFile, load_series
from sfumato.query.dated.time_blocks import TimeBlock

START = dt.date(2026, 3, 2)
YAML = """\
sfumato: 1
name: clicks
unit: user:reader
version: {version}
tables:
  clicks:
    source: clicks.csv
    unit: reader
    columns:
      reader: key
      ad: {{type: category, values: [north, south]}}
      day: {{type: date, lower: 2026-01-01, upper: 2027-12-31}}
ledger: {{place: budget.ledger, principal: bea}}
budget:
  total: {{epsilon: 2, delta: 1e-6}}
"""
SERIES = """\
sfumato-series: 1
name: clicks by ad
sql: SELECT ad, COUNT(*) AS clicks FROM clicks GROUP BY ad
column: day
start: 2026-03-02
days: 4
levels: {day: {most: 2}}
limits: {rows: 2}
wait: 6
epsilon: 1
"""


def at(day: int, hour: int = 7) -> dt.datetime:
    """So many days after the first one, by UTC."""
    return dt.datetime.combine(START + dt.timedelta(days=day), dt.time(hour), dt.UTC)


def write_rows(folder: Path, *extra: str) -> None:
    rows = [f"r{n},{('north', 'south')[n % 2]},{START + dt.timedelta(days=n % 4)}" for n in range(40)]
    (folder / "clicks.csv").write_text("\n".join(["reader,ad,day", *rows, *extra, ""]), encoding="utf-8")


def project_in(folder: Path, version: str = "stream") -> Project:
    (folder / "sfumato.yaml").write_text(YAML.format(version=version), encoding="utf-8")
    return open_project(folder)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write_rows(tmp_path)
    project = project_in(tmp_path)
    with project.ledger(create=True) as ledger:
        project.open_accounts(ledger)
    return project


def series_in(project: Project, text: str = SERIES) -> SeriesFile:
    file = project.folder / "clicks.yaml"
    file.write_text(text, encoding="utf-8")
    return load_series(file, project)


def run(project: Project, order: SeriesFile, now: dt.datetime, **more: Any) -> SeriesDocument:
    return ran_series(project, order, now, agreed, **more)


def states(body: SeriesDocument) -> list[str]:
    return [block.status for block in body.blocks]


def entries(project: Project) -> Counter[str]:
    with project.ledger(read_only=True) as ledger:
        return Counter(entry.kind for entry in ledger.history())


def used(project: Project) -> float | None:
    with project.ledger(read_only=True) as ledger:
        return ledger.used("clicks")


def test_it_is_paid_once_and_every_block_is_released_once_after_it_is_over(project: Project) -> None:
    order = series_in(project)
    offer = quoted_series(project, order, at(0))
    assert (offer.paid, offer.fits, states(offer)) == (False, True, ["ahead"] * 4)
    assert offer.price == "epsilon = 1" and offer.prices["1 day"].startswith("epsilon = 0.5")
    with pytest.raises(OfficeError, match="nothing to read"):
        reading(project, order)
    assert states(run(project, order, at(1, 5))) == ["ahead"] * 4, "its late rows still come"
    spent = used(project)
    assert spent == pytest.approx(0.5) and entries(project)["spend"] == 1
    assert states(run(project, order, at(1, 6))) == ["released", "ahead", "ahead", "ahead"]
    assert states(run(project, order, at(3))) == ["answered", "released", "released", "ahead"]
    before = entries(project)
    for now in (at(3), at(0), at(3), at(-400)):  # again, and by a clock that went back
        assert set(states(run(project, order, now))) <= {"answered", "ahead"}
    assert entries(project) == before and used(project) == spent
    assert before["part"] == 3 and before["spend"] == 1
    assert states(run(project, order, at(900))) == ["answered"] * 3 + ["released"]
    with project.ledger(read_only=True) as ledger:
        ledger.verify()


def test_rows_that_come_late_are_never_added(project: Project) -> None:
    order = series_in(project)
    run(project, order, at(2))
    before = reading(project, order).by_level("day").raw("clicks")
    write_rows(project.folder, *(f"late{n},north,{START}" for n in range(5000)))
    body = run(project, order, at(3))
    assert states(body) == ["answered", "answered", "released", "ahead"]
    assert reading(project, order).by_level("day").raw("clicks")[:4] == pytest.approx(before)
    quiet = quoted_series(project, order, at(3))
    assert states(quiet) == ["answered"] * 3 + ["ahead"]


def test_a_crash_leaves_its_block_empty_for_ever_and_no_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = series_in(project)
    with pytest.raises(OfficeError, match="nothing was charged"):  # nobody agreed
        ran_series(project, order, at(0), lambda _: Agreement(plans=()))
    assert entries(project)["spend"] == 0
    run(project, order, at(0))
    spent = used(project)
    first, second, *_ = order.plan.parts.values()
    with project.ledger() as ledger:  # what a process leaves that dies between the payment and the answer
        data = project.private.address
        receipt = ledger.spend((), first, data=data, grade="exact", note="", owners=project.private.owners, key="died")
        ledger.open(receipt)

    def interrupted(*_: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:  # and one that is stopped while the data is open
        patch.setattr(curator_module, "_ran", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(project, order, at(2))
    assert states(run(project, order, at(2))) == ["stopped", "stopped", "ahead", "ahead"]
    assert states(run(project, order, at(9))) == ["stopped", "stopped", "released", "released"]
    assert used(project) == spent and entries(project)["spend"] == 1 and second.hash != first.hash
    blocks = reading(project, order)
    assert blocks.window("2026-03-02", "2026-03-05").raw("clicks") == [None, None]
    assert None not in blocks.window("2026-03-04", "2026-03-05").raw("clicks")


def test_a_run_that_fails_on_the_datas_side_says_so_and_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, ran, calls = series_in(project), curator_module._ran, []

    def failing(*arguments: Any) -> bytes:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("r7 is in it")
        return ran(*arguments)

    monkeypatch.setattr(curator_module, "_ran", failing)
    body = run(project, order, at(2))
    assert states(body) == ["failed", "released", "ahead", "ahead"]
    assert "r7" not in str(body.blocks[0].problem)
    assert states(run(project, order, at(2))) == ["stopped", "answered", "ahead", "ahead"]


def test_two_jobs_at_once_release_each_block_once(project: Project) -> None:
    order = series_in(project)
    bodies: list[SeriesDocument] = []
    jobs = [threading.Thread(target=lambda: bodies.append(run(project, order, at(4), wait=120.0))) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert sorted(map(tuple, map(states, bodies))) == [("answered",) * 4, ("released",) * 4]
    assert entries(project)["part"] == 4 and entries(project)["spend"] == 1


def test_a_block_is_passed_over_where_a_later_one_was_released_and_first_blocks_count(project: Project) -> None:
    order = series_in(project)
    run(project, order, at(0))
    with project.ledger() as ledger:
        project.curator(ledger).release(order.plan.parts["day 2026-03-04"], key="by hand")
    assert states(run(project, order, at(9))) == ["passed", "passed", "answered", "released"]
    assert entries(project)["part"] == 2


def test_without_most_any_order_will_do(project: Project) -> None:
    order = series_in(project, SERIES.replace("{day: {most: 2}}", "day"))
    run(project, order, at(0))
    with project.ledger() as ledger:
        project.curator(ledger).release(order.plan.parts["day 2026-03-04"], key="by hand")
    assert states(run(project, order, at(9))) == ["released", "released", "answered", "released"]


def test_another_version_and_a_budget_that_is_short_charge_nothing(project: Project) -> None:
    order = series_in(project)
    run(project, order, at(1))
    before = entries(project)
    with pytest.raises(OfficeError, match="nothing was charged"):
        run(project_in(project.folder, "other"), order, at(2))
    dear = series_in(project_in(project.folder), SERIES.replace("epsilon: 1", "epsilon: 1.5"))
    assert quoted_series(project, dear, at(2)).fits is False
    with pytest.raises(OfficeError, match=r"nothing was charged|short|budget"):
        run(project, dear, at(2))
    assert entries(project) == before


def test_a_block_is_over_when_its_last_day_is_and_the_hours_for_late_rows() -> None:
    week = TimeBlock("week", START, START + dt.timedelta(days=7))
    assert not over(week, 6, at(7, 5)) and over(week, 6, at(7, 6)) and over(week, 0, at(7, 0))
    east = dt.timezone(dt.timedelta(hours=9))
    assert not over(week, 0, dt.datetime(2026, 3, 9, 8, tzinfo=east))
    with pytest.raises(ValueError, match="time zone"):
        over(week, 6, dt.datetime(2026, 3, 9))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("sfumato-series: 1", "sfumato-series: 2"), "no version"),
        (("wait: 6", "wait: -1"), "wait"),
        (("column: day", "colum: day"), "did you mean column"),
        (("days: 4", "days: 0"), "days"),
        (("{day: {most: 2}}", "{day: {mots: 2}}"), "did you mean most"),
        (("{day: {most: 2}}", "[day, decade]"), "level"),
        (("COUNT(*)", "AVG(day)"), "."),
        (("start: 2026-03-02", "start: monday"), "start"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_its_own_words(
    project: Project, change: tuple[str, str], words: str
) -> None:
    with pytest.raises((ProjectError, ArgumentError, PlanError), match=words):
        series_in(project, SERIES.replace(*change))
