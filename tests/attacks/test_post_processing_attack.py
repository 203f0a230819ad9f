"""P1, Q6 and S1: each is withstood, and breaks its planted bugs for the reason it names."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

from sfumato import bounds
from sfumato.errors import DataError
from sfumato_referee.attacks import post_processing, sql_time, synthetic
from sfumato_referee.attacks.post_processing import USER, ReadsAgain, ReleaseScene, SecretTable, ShowsItself, TellsOn


def test_p1_nothing_that_is_shown_holds_a_cell_or_changes() -> None:
    verdict = post_processing.attack(cells=100)
    assert not verdict.broken and verdict.figures["views"] > 40 and verdict.figures["texts"] > 90, verdict


@pytest.mark.parametrize(
    ("scene", "changed", "leaks"),
    [
        pytest.param(
            ReleaseScene(more={"again": ReadsAgain(query=bounds.clipped_sum("dose", 0, 1000, USER), epsilon=1)}),
            True,
            False,
            id="finish reads the data",
        ),
        pytest.param(ReleaseScene(private=ShowsItself), False, True, id="rows in a repr"),
        pytest.param(ReleaseScene(curator=TellsOn), False, True, id="a cell in an error"),
    ],
)
def test_p1_breaks_every_planted_bug_for_what_it_is(scene: ReleaseScene, changed: bool, leaks: bool) -> None:
    verdict = post_processing.attack(scene, cells=60)
    assert verdict.broken
    assert (verdict.figures["changed"] > 0, verdict.figures["with a cell"] > 0) == (changed, leaks), verdict


def test_p1_hears_logs_warnings_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    with post_processing._overheard() as heard:
        logging.getLogger("some.library").debug("cell %s", "one")
        warnings.warn("cell two", UserWarning, stacklevel=1)
        print("cell three")
    assert [word for word in ("one", "two", "three") if any(word in each for each in heard)] == ["one", "two", "three"]
    assert capsys.readouterr().out == ""


def test_p1_knows_a_cell_when_it_sees_one() -> None:
    table = SecretTable(50)
    texts, numbers = table.secrets()
    dose = float(table.columns["dose"][3])
    raw = np.float64(dose).tobytes().decode("latin-1")
    for text in (f"x{table.columns['who'][7]}y", f"{dose!r}", f"[{dose:.12f}]", raw):
        assert post_processing._holds(text, texts, numbers)
    for text in (f"{dose:.2f}", "common", "east", "id", ""):
        assert not post_processing._holds(text, texts, numbers)
    table.overwrite()
    assert set(table.columns["who"]) == {"gone"}


def test_q6_one_slow_row_changes_neither_words_nor_charge() -> None:
    verdict = sql_time.attack(length=10**4)
    assert not verdict.broken and verdict.figures["most"] > 0, verdict


def test_q6_what_is_stopped_says_the_fixed_text_and_stays_paid() -> None:
    text, (_, heavy) = sql_time.QUERIES[-1], sql_time.tables(10**4)
    limits = {"threads": 1, "memory": 2**28}
    whole = sql_time._asked(sql_time.LIBRARY, text, heavy, {**limits, "seconds": 20.0})
    for _ in range(50):  # on a busy machine the clock may come too late
        stopped = sql_time._asked(sql_time.LIBRARY, text, heavy, {**limits, "seconds": 1e-6})
        if stopped.status != "answered":
            break
    assert (whole.status, stopped.status, stopped.words) == ("answered", "DataError", DataError.TEXT)
    assert whole.charged == stopped.charged


def test_q6_breaks_the_text_as_written() -> None:
    verdict = sql_time.attack(sql_time.CONTROL, length=10**3, seconds=1.0)
    assert verdict.broken and verdict.figures["differ"] >= 1


def test_s1_an_outlier_is_not_copied_and_both_planted_bugs_are_found() -> None:
    verdict = synthetic.attack(runs=60)
    assert not verdict.broken and verdict.figures["drawn"] == pytest.approx(verdict.figures["paid"], rel=1e-6), verdict
    # Noise lands on the very count in about one release of 1,500, so three of 60 are chance once in 80,000 runs.
    assert verdict.figures["copied"] <= 2 / 60
    assert synthetic.control(runs=200).broken
