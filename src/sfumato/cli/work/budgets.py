"""Where accounts stand, on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...office.budgets import balance_of
from ...office.documents import AccountDocument
from ..screen import bar, say

_NARROW, _WIDE = 72, 100


def show_accounts(
    console: Console, shown: Sequence[AccountDocument], *, label: str = "budget", now: bool = False
) -> None:
    """A bar for each, and what everything so far amounts to beside the limit; in a quote, what stands `now`."""
    wide = max((len(each.account) for each in shown), default=0)
    for number, account in enumerate(shown):
        head = Text(f"{label if number == 0 else '':{len(label)}}  ", style="dim")
        name = Text(f"{account.account:{wide}}  ") if len(shown) > 1 else Text(f"{account.account}  ")
        if account.used is None:
            say(console, Text("no limit of its own", style="dim"), first=Text.assemble(head, name))
            continue
        width = 20 if console.width >= _NARROW else 10
        before = account.before if account.before is not None else account.used
        drawn = bar(before, now=account.used if account.fits is not False else before, width=width)
        words = _in_words(account, now, brief=console.width < _WIDE and not console.soft_wrap)
        say(console, Text.assemble(drawn, "  ", words), first=Text.assemble(head, name))


def _in_words(account: AccountDocument, now: bool, brief: bool) -> Text:
    state = " (closed)" if account.closed else " (locked)" if account.locked else ""
    balance = balance_of(account, now=now)
    text = "no limit of its own" if balance is None else balance.words(brief=brief)
    if account.fits is False:
        return Text(f"{text}{state}; no room for this", style="bold red")
    return Text(f"{text}{state}")
