"""What accounts were charged: each gauge before a release and after it, and where an account stands."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..plan import Gauge
from . import words
from .accounts.releases import Released
from .accounts.statement import Statement


def charged(row: Released) -> list[dict[str, Any]]:
    """For every account that paid: each gauge before, the price, and after. What the entries do not tell is None."""
    accounts = []
    for account in row.accounts:
        before = _by_currency(row.before.get(account))
        after = _by_currency(row.after.get(account))
        prices = {each[0]: each[1] for each in row.charged.get(account) or ()}
        names = dict.fromkeys([*before, *prices, *after])
        accounts.append(
            {
                "account": account,
                "gauges": [_change(name, before.get(name), prices.get(name), after.get(name)) for name in names],
            }
        )
    return accounts


def _by_currency(gauges: tuple[Gauge, ...] | None) -> dict[str, Gauge]:
    return {gauge.currency: gauge for gauge in gauges or ()}


def _change(name: str, before: Gauge | None, price: Fraction | None, after: Gauge | None) -> dict[str, Any]:
    gauge = after or before
    return {
        "currency": name,
        "before": _text(before.spent if before else None),
        "price": _text(price),
        "after": _text(after.spent if after else None),
        "limit": _text(gauge.limit if gauge else None),
        "share_before": _share(before),
        "share_after": _share(after),
        "closed": after is None and before is not None,
    }


def standing(now: Statement) -> list[dict[str, Any]]:
    """The gauges of an account as they stand."""
    return [
        {
            "currency": each.currency,
            "spent": words.near(each.spent),
            "left": words.near(each.left),
            "limit": words.near(each.limit),
            "share": min(each.share, 1.0),
            "exact": {"spent": str(each.spent), "limit": str(each.limit)},
        }
        for each in now.standing
    ]


def used(now: Statement) -> float | None:
    """The share that is gone: what everything so far amounts to, over the limit."""
    if now.largest is None:
        return None
    return 1.0 if now.balance is None else min(now.balance.used, 1.0)


def balance_text(now: Statement) -> str | None:
    """What everything so far amounts to, beside the limit, and how many more fit."""
    if now.balance is None:
        return None
    fine = f". Delta: {now.balance.fine}" if now.balance.fine else ""
    return words.exponent(f"{now.balance}{fine}")


def _text(value: Fraction | None) -> str | None:
    return None if value is None else words.near(value)


def _share(gauge: Gauge | None) -> float | None:
    return None if gauge is None or not gauge.limit else min(float(gauge.spent / gauge.limit), 1.0)
