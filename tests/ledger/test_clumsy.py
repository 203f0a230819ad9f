"""Clumsy hands: whatever is given in the wrong place is refused in one sentence that names it, and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato import Budget, open_ledger
from sfumato.errors import ArgumentError, LedgerError, PolicyError, SfumatoError
from sfumato.ledger import Act, Key, Ledger, compare, dump_policy, load_policy, parse_policy, verify
from sfumato.ledger.__main__ import main
from sfumato.ledger.stores.sqlite_file import NO_FILE, NO_FOLDER, NO_PATH
from tests.helpers import laplace

SECRET = 41.4375  # a value of the data, given in the wrong place


class Mute:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


ODD: tuple[Any, ...] = (
    7, -1, 1.5, float("nan"), True, b"x", ["a"], (None,), ([],), {"a": SECRET}, {1}, Mute(), 1j, 10**5000, "\ud800",
    "a\0b", np.array([SECRET, 2.0]), Budget, laplace(1).event, timedelta(days=10**8), datetime.min,
)  # fmt: skip
Use = Callable[[Ledger, Any], Any]
PLAN = laplace(0.1)
USES: dict[str, Use] = {
    "open_account name": lambda ledger, odd: ledger.open_account(odd, None),
    "open_account budget": lambda ledger, odd: ledger.open_account("new", odd, parent="a"),
    "open_account parent": lambda ledger, odd: ledger.open_account("new", None, parent=odd),
    "open_account level": lambda ledger, odd: ledger.open_account("new", None, level=odd),
    "open_account unit": lambda ledger, odd: ledger.open_account("new", None, unit=odd),
    "open_account reason": lambda ledger, odd: ledger.open_account("new", None, reason=odd),
    "register data": lambda ledger, odd: ledger.register(odd, same_as="a", reason="r"),
    "register accounts": lambda ledger, odd: ledger.register("view", accounts=odd, reason="r"),
    "register same_as": lambda ledger, odd: ledger.register("view", same_as=odd, reason="r"),
    "open_block data": lambda ledger, odd: ledger.open_block(odd, "1", Budget(epsilon=1)),
    "open_block block": lambda ledger, odd: ledger.open_block("a", odd, Budget(epsilon=1)),
    "open_block budget": lambda ledger, odd: ledger.open_block("a", "1", odd),
    "open_block account": lambda ledger, odd: ledger.open_block("a", "1", Budget(epsilon=1), account=odd),
    "move source": lambda ledger, odd: ledger.move(odd, "c", epsilon=0.1, reason="r"),
    "move reason": lambda ledger, odd: ledger.move("b", "c", epsilon=0.1, reason=odd),
    "change_limit budget": lambda ledger, odd: ledger.change_limit("b", odd, reason="r"),
    "close_account reason": lambda ledger, odd: ledger.close_account("b", reason=odd),
    "declare data": lambda ledger, odd: ledger.declare(odd, "invariant", "t", recipients="p", reason="r"),
    "declare text": lambda ledger, odd: ledger.declare("a@1", "invariant", odd, recipients="p", reason="r"),
    "ask act": lambda ledger, odd: ledger.ask(odd, reason="r"),
    "approve name": lambda ledger, odd: ledger.approve(odd, reason="r"),
    "adopt policy": lambda ledger, odd: ledger.adopt(odd, reason="r"),
    "accept_restore": lambda ledger, odd: ledger.accept_restore("r", odd),
    "statement": lambda ledger, odd: ledger.statement(odd),
    "statement delta": lambda ledger, odd: ledger.statement("a", delta=odd),
    "forecast plan": lambda ledger, odd: ledger.forecast("a", plan=odd),
    "forecast data": lambda ledger, odd: ledger.forecast("a", data=odd),
    "forecast window": lambda ledger, odd: ledger.forecast("a", window=odd),
    "forecast now": lambda ledger, odd: ledger.forecast("a", now=odd),
    "history account": lambda ledger, odd: list(ledger.history(account=odd)),
    "history by": lambda ledger, odd: list(ledger.history(by=odd)),
    "history last": lambda ledger, odd: list(ledger.history(last="7" if odd is ODD[0] else odd)),
    "releases data": lambda ledger, odd: list(ledger.releases(data=odd)),
    "declared data": lambda ledger, odd: list(ledger.declared(data=odd)),
    "checklist about": lambda ledger, odd: ledger.checklist("a", odd),
    "checklist redact": lambda ledger, odd: ledger.checklist("a", redact=odd),
    "registry about": lambda ledger, odd: ledger.registry("a", odd),
    "export format": lambda ledger, odd: ledger.export("never.csv", format=odd),
    "verify anchor": lambda ledger, odd: ledger.verify(anchor=odd),
    "verify store": lambda ledger, odd: verify(odd),
    "Ledger store": lambda ledger, odd: Ledger(odd),
    "quote plan": lambda ledger, odd: ledger.quote(("a",), odd, data="a@1"),
    "quote accounts": lambda ledger, odd: ledger.quote(odd, PLAN, data="a@1"),
    "path plan": lambda ledger, odd: ledger.path(("a",), odd, data="a@1"),
    "spend plan": lambda ledger, odd: ledger.spend(("a",), odd, data="a@1", grade="exact", note=""),
    "spend data": lambda ledger, odd: ledger.spend(("a",), PLAN, data=odd, grade="exact", note=""),
    "spend key": lambda ledger, odd: ledger.spend(("a",), PLAN, data="a@1", grade="exact", note="", key=odd),
    "hold plan": lambda ledger, odd: ledger.hold(("a",), odd, data="a@1", grade="exact", note=""),
    "dump_policy": lambda ledger, odd: dump_policy(odd),
    "compare": lambda ledger, odd: compare(None, odd),
}


@pytest.fixture
def ledger(quick: Path) -> Iterator[Ledger]:
    with open_ledger(quick / "ledger", create=True, principal="bea") as made:
        made.open_account("a", Budget(epsilon=3))
        made.open_account("b", Budget(epsilon=1), parent="a")
        made.open_account("c", Budget(epsilon=1), parent="a")
        yield made


@pytest.mark.parametrize("name", USES)
def test_odd_arguments_are_refused_and_change_nothing(ledger: Ledger, name: str) -> None:
    before = len(list(ledger.history()))
    for odd in ODD:
        with pytest.raises(SfumatoError) as refusal:
            USES[name](ledger, odd)
        text = str(refusal.value)
        assert len(text) < 1200 and "\n" not in text and str(SECRET) not in text
    assert len(list(ledger.history())) == before


def test_one_text_is_no_list_of_names(ledger: Ledger) -> None:
    """Its letters are accounts here."""
    with pytest.raises(ArgumentError, match="accounts = 'abc' is not allowed: give a tuple of names"):
        ledger.register("view", accounts="abc", reason="r")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a tuple of names"):
        ledger.quote("abc", PLAN, data="a@1")  # type: ignore[arg-type]


def test_a_path_that_is_no_place_for_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    places = {
        tmp_path: NO_FILE,
        tmp_path / "pipe": NO_FILE,
        tmp_path / "circle": NO_PATH,
        tmp_path / ("x" * 300): NO_PATH,
    }
    for place, message in places.items():
        for how in ({}, {"create": True}, {"read_only": True}):
            with pytest.raises(LedgerError) as refusal:
                open_ledger(place, **how)
            assert str(refusal.value) == message
    with pytest.raises(LedgerError) as refusal:
        open_ledger(tmp_path / "none" / "ledger", create=True)
    assert str(refusal.value) == NO_FOLDER
    for odd in (None, 7, b"x", [], Mute(), "", "a\0b"):
        for use in (open_ledger, Key.make, Key.load, load_policy):
            with pytest.raises(ArgumentError):
                use(odd)  # type: ignore[operator]
    assert sorted(tmp_path.iterdir()) == before


def test_what_is_refused_leaves_no_new_file(tmp_path: Path) -> None:
    for how in (
        {"principal": "a\nb"}, {"principal": 7}, {"wait": "long"}, {"wait": -1}, {"wait": float("nan")},
        {"read_only": "yes"}, {"anchor": 7, "key": 7}, {"anchor": "x", "key": tmp_path / "none"},
    ):  # fmt: skip
        with pytest.raises(SfumatoError):
            open_ledger(tmp_path / "ledger", create=True, **how)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_a_closed_ledger_says_so_every_time(ledger: Ledger) -> None:
    ledger.shut()
    ledger.shut()
    for _ in range(3):
        with pytest.raises(LedgerError, match="the ledger was closed: open it anew"):
            ledger.left("a")


def test_a_refusal_for_want_of_approvals_says_what_can_be_typed(quick: Path) -> None:
    people = "policy: 1\npeople:\n  dora: [data owner]\n  omar: [privacy officer]\n  pia: [privacy officer]\n"
    with open_ledger(quick / "ledger", create=True, principal="omar") as ledger:
        ledger.adopt(parse_policy(people), reason="r")
        other = parse_policy(people + "  ana: [analyst]\n")
        with pytest.raises(PolicyError) as refusal:
            ledger.adopt(other, reason="r")
        assert "name = ledger.ask(error.act, reason=...)" in str(refusal.value)
        assert "ledger.approve(name, reason=...)" in str(refusal.value)
        assert isinstance(refusal.value.act, Act)
        assert ledger.ask(refusal.value.act, reason="r") in ledger.pending()


def test_the_command_line_says_what_is_wrong(ledger: Ledger, quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given, told in (
        ([str(quick)], NO_FILE),
        ([str(quick / "none")], "there is no ledger at that path"),
        ([str(quick / "ledger"), "--anchor", ""], "anchor = '' is not allowed"),
        ([str(quick / "ledger"), "--key", "zz"], "--key is not a public key"),
    ):
        for task in ("verify", "head"):
            assert main([task, *given]) == 2
            found = capsys.readouterr()
            assert not found.out and found.err.startswith("the ledger could not be checked: ") and told in found.err
