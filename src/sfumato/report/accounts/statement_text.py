"""The words of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .statement import Standing, Statement, Under


def lines(told: Statement) -> list[str]:
    """A statement as people read it."""
    found = [f"Account {told.account!r}" + (f" ({told.level})" if told.level else "") + _state(told)]
    found += [f"  guarantee  {told.guarantee}", f"  releases   {told.releases}, as of entry {told.number}"]
    if told.balance is not None:
        found.append(f"  spent      {told.balance}")
        found += [f"  delta      {told.balance.fine}"] if told.balance.fine else []
    found += [f"  holds      {told.holds} open"] if told.holds else []
    found += ["  beside, not the guarantee"] if told.beside else []
    for each in told.beside:
        if each.epsilon is None:
            found.append(f"    no figure: {each.reason}  [{each.label}]")
        else:
            delta = f", delta = {each.delta:.4g}" if each.delta else ""
            found.append(f"    epsilon = {each.epsilon:.4g}{delta}  [{each.label}]")
    found += _below("accounts below", told.children)
    if told.allocated is not None:
        more = {True: " (more than this account's own limit, which holds)", False: "", None: ""}[told.overcommitted]
        found.append(f"    allocated in all: {told.allocated}{more}")
    found += _below("blocks, each a budget for (unit, block)", told.blocks)
    found += _table("the lifetime loss of a unit, over all blocks", told.lifetime)
    return found


def gauge_lines(told: Statement) -> list[str]:
    """The gauges of an account, as people read them who ask for them."""
    found = _table("spent so far (the account is exhausted when every line is)", told.standing)
    if told.failures_delta is not None:
        gone, most = map(float, told.failures_delta)
        found.append(f"    {'delta of the releases themselves':36}{gone:>12.5g}{most - gone:>12.5g}{most:>12.5g}")
    return found + ([f"  closed     {', '.join(told.closed)}"] if told.closed else [])


def _state(told: Statement) -> str:
    words = ["locked"] if told.locked else []
    words += [f"{told.failures} failure(s)"] if told.failures else []
    words += ["closed"] if told.is_closed else []
    return f": {', '.join(words)}" if words else ""


def _table(title: str, standing: tuple[Standing, ...]) -> list[str]:
    if not standing:
        return []
    lines = [f"  {title}", f"    {'':36}{'spent':>12}{'left':>12}{'limit':>12}"]
    for each in standing:
        figures = "".join(f"{float(number):>12.5g}" for number in (each.spent, each.left, each.limit))
        lines.append(f"    {each.currency:36}{figures}{each.share:>8.1%}")
    return lines


def _below(title: str, accounts: tuple[Under, ...]) -> list[str]:
    if not accounts:
        return []
    lines = [f"  {title}"]
    for each in accounts:
        spent = "" if each.share is None else f"  {each.share:.1%} spent"
        ended = "  closed" if each.closed else ""
        lines.append(f"    {each.name:36}{each.limit or 'no budget of its own'}{spent}{ended}")
    return lines
