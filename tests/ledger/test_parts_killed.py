"""Processes that die between paying for a list and its last part: nothing is paid twice, no part runs twice."""

from __future__ import annotations

import shutil
import signal
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.errors import ReceiptError
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.stores.sqlite import SQLiteStore
from sfumato_referee.attacks.ledger.releasing import PRICE, curator_of, draws, prepare
from tests.helpers import spent
from tests.ledger.striking import said
from tests.ledger.workers.prepaying import PARTS, STEPS, list_of, work


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What each of them left behind."""
    folder = tmp_path_factory.mktemp("killed")
    template = prepare(folder / "template")
    for step in STEPS:
        shutil.copytree(template, folder / step)
    ended = dict(
        line.rsplit(" ", 1) for line in said([sys.executable, "-m", "tests.ledger.workers.prepaying", str(folder)])
    )
    assert ended == dict.fromkeys(STEPS, str(-signal.SIGKILL))
    return folder


def left(killed: Path, step: str, tmp_path: Path) -> tuple[Path, Ledger]:
    place = tmp_path / "left"
    shutil.copytree(killed / step, place)
    ledger = Ledger(SQLiteStore(place / "ledger"))
    assert ledger.verify().ok, ledger.verify()
    return place, ledger


def paid_now(ledger: Ledger) -> Fraction:
    return spent(ledger, "patients")[0]


@pytest.mark.parametrize("step", STEPS)
def test_who_asks_again_with_the_same_keys_goes_on(killed: Path, step: str, tmp_path: Path) -> None:
    place, ledger = left(killed, step, tmp_path)
    assert paid_now(ledger) == (0 if step == "before prepay" else PARTS * PRICE)
    told = []
    for _ in range(2):
        plans = list_of()
        curator_of(ledger, place, 0).prepay(plans, key="list")
        for number, (name, part) in enumerate(plans.parts.items()):
            try:
                release = curator_of(ledger, place, number).release(part, key=f"{name} of list")
                told.append(release.raw)
            except ReceiptError as problem:
                assert "a new key pays again" in str(problem)
                told.append(None)
    assert told[:PARTS] == told[PARTS:], "the same answers, or the same refusal"
    assert [answer is None for answer in told[:PARTS]] == [STEPS[step], False, False]
    assert paid_now(ledger) == PARTS * PRICE, "nothing was paid twice"
    assert all(times == 1 for times in draws(place).values()), "no part ran twice"
    assert ledger.verify().ok, ledger.verify()
    ledger.shut()


@pytest.mark.parametrize("step", STEPS)
def test_a_part_that_died_pays_again_under_a_new_key(killed: Path, step: str, tmp_path: Path) -> None:
    place, ledger = left(killed, step, tmp_path)
    curator, plans = curator_of(ledger, place, 0), list_of()
    curator.prepay(plans, key="list")
    before = paid_now(ledger)
    release = curator.release(plans.parts["part0"], key="anew")
    again = step in ("after open", "before settle")  # spending and opening are durable together, or not at all
    assert paid_now(ledger) == before + (PRICE if again else 0)
    assert release.receipt is not None and release.receipt.loop == ("plan" if again else "part")
    assert sum(draws(place).values()) <= (2 if again else 1), "as many draws as payments"
    assert ledger.verify().ok, ledger.verify()
    ledger.shut()


def test_the_worker_does_its_work(tmp_path: Path) -> None:
    place = prepare(tmp_path / "whole")
    ledger = Ledger(SQLiteStore(place / "ledger"))
    work(place, ledger)
    work(place, ledger)
    assert paid_now(ledger) == PARTS * PRICE and sum(draws(place).values()) == PARTS
    with pytest.raises(ReceiptError, match="answered already"):
        work(place, ledger, keys=False)
    ledger.shut()
