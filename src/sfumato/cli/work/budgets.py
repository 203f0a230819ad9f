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
    for number, each in enumerate(shown):
        head = Text(f"{label if number == 0 else '':{len(label)}}  ", style="dim")
        name = Text(f"{each.account:{wide}}  ") if len(shown) > 1 else Text(f"{each.account}  ")
        if each.used is None:
            say(console, Text("no limit of its own", style="dim"), first=Text.assemble(head, name))
            continue
        width = 20 if console.width >= _NARROW else 10
        before = each.before if each.before is not None else each.used
        drawn = bar(before, now=each.used if each.fits is not False else before, width=width)
        words = _in_words(each, now, brief=console.width < _WIDE and not console.soft_wrap)
        say(console, Text.assemble(drawn, "  ", words), first=Text.assemble(head, name))


def _in_words(each: AccountDocument, now: bool, brief: bool) -> Text:
    state = " (closed)" if each.closed else " (locked)" if each.locked else ""
    told = balance_of(each, now=now)
    text = "no limit of its own" if told is None else told.words(brief=brief)
    if each.fits is False:
        return Text(f"{text}{state}; no room for this", style="bold red")
    return Text(f"{text}{state}")
