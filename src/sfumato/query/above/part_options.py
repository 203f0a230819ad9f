"""What each release of a report gets: its part of the budget, and what was said of its own columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from ... import checks
from ...accounting import gdp
from ...errors import ArgumentError
from ..asked import asked as in_one_way
from ..front import front
from ..plan import Sql
from .above_rules import AboveError
from .release_blocks import ReleasePart

_SPLIT = ("text", "epsilon", "delta", "rho", "keys", "bounds", "limits", "shares")


def parts(releases: Mapping[str, ReleasePart], options: Mapping[str, Any]) -> dict[str, Sql]:
    """A plan for each release; all of them together cost what was asked.

    Gaussian noise: the releases compose into one Gaussian whose 1/m^2 is the sum of theirs (Dong, Roth, Su 2022), so
    the whole budget is one rho = 1/(2 m^2), with m the least multiplier that (epsilon, delta) allows, and each release
    has an equal part of it. Half of delta is for groups that are chosen privately, as in one query, in equal parts for
    the releases that do so. Without delta epsilons add up, and are split.
    """
    mine = {name: _own(release, options) for name, release in releases.items()}
    _refuse_unused(releases, options, mine)
    delta = checks.delta(options.get("delta") or 0, zero=True)
    laplace = options.get("rho") is None and not delta
    choose = [name for name, fields_ in mine.items() if _chooses(releases[name], fields_, laplace)]
    prices = _prices(list(releases), choose, options, delta)
    return {name: _plan({**mine[name], **prices[name]}) for name in releases}


def of_one(release: ReleasePart, options: Mapping[str, Any]) -> Sql:
    """The plan of one release as if it had all of the budget: what it asks for and what it leaves do not depend on its
    part."""
    budget = {field: options[field] for field in ("epsilon", "delta", "rho") if options.get(field) is not None}
    return in_one_way(_plan({**_own(release, options), **budget}))


def _plan(fields_: Mapping[str, Any]) -> Sql:
    return Sql(**fields_)


def _prices(names: list[str], choose: list[str], options: Mapping[str, Any], delta: Fraction) -> dict[str, Any]:
    """Fields of the budget, by release."""
    many = len(names)
    if many == 1:
        own = {field: options[field] for field in ("epsilon", "delta", "rho") if options.get(field) is not None}
        return {names[0]: own}
    if options.get("rho") is None and not delta:
        epsilon = checks.epsilon(options.get("epsilon"))
        return {name: {"epsilon": epsilon / many} for name in names}
    if options.get("rho") is not None:
        rho = checks.positive(options["rho"], "rho")
    else:
        left = delta / 2 if choose else delta
        rho = 1 / (2 * gdp.least_multiplier(checks.epsilon(options.get("epsilon")), left) ** 2)
    spread = choose or names
    return {
        name: {"rho": _short(rho / many), "delta": delta / len(spread) if name in spread else Fraction(0)}
        for name in names
    }


def _short(value: Fraction) -> Fraction:
    """Twelve digits, downwards."""
    digits = 11 - math.floor(math.log10(value))
    return Fraction(math.floor(value * Fraction(10) ** digits)) / Fraction(10) ** digits


def _chooses(release: ReleasePart, options: Mapping[str, Any], laplace: bool) -> bool:
    """Are its groups chosen privately?"""
    bounds = {name: (Fraction(low), Fraction(high)) for name, (low, high) in options.get("bounds", {}).items()}
    read = front(
        release.text, options["schema"], options["protects"], bounds=bounds, keys=options.get("keys", {}),
        noise="laplace" if laplace else "gaussian", released=options.get("released", {}),
    )  # fmt: skip
    if release.lists and not read.selects:
        raise AboveError(
            "Which groups there are is public here, so a list of them would tell nothing of the data.",
            "count in each, with COUNT(*); or have them chosen by the data: keys={'column': 'select'}",
            release.select,
        )
    return read.selects


def _own(release: ReleasePart, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one release: those that speak of all, and those that name a column of it."""
    own = {name: value for name, value in options.items() if name not in _SPLIT}
    own["text"] = release.text
    read = {table.name for table in release.select.find_all(exp.Table)}
    own["released"] = {name: table for name, table in (options.get("released") or {}).items() if name in read}
    keys = {name.lower(): value for name, value in (options.get("keys") or {}).items()}
    own["keys"] = {key.alias: keys[key.alias] for key in release.keys if key.alias in keys}
    own["bounds"] = dict(_by_alias(release, options.get("bounds") or {}, columns=True))
    own["shares"] = dict(_by_alias(release, options.get("shares") or {}, columns=False))
    limits = options.get("limits")
    if limits is not None:
        reach = dict(_by_alias(release, limits.reach, columns=False))
        own["limits"] = replace(limits, reach=reach)
    return own


def _by_alias(release: ReleasePart, options: Mapping[str, Any], *, columns: bool) -> Iterator[tuple[str, Any]]:
    """What was said of an output of the query, under the name that its aggregate has in the release; `columns`: it may
    also be said of a column that is aggregated."""
    for name, value in options.items():
        for measured in release.aggregates:
            if name.lower() in (output.lower() for output in measured.names):
                yield measured.alias, value
            elif columns and any(name.lower() == column.name.lower() for column in measured.node.find_all(exp.Column)):
                yield name, value


def _refuse_unused(
    releases: Mapping[str, ReleasePart], options: Mapping[str, Any], mine: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse what names no column of any release."""
    outputs = {output.lower() for release in releases.values() for one in release.aggregates for output in one.names}
    keys = {key.alias for release in releases.values() for key in release.keys}
    columns = {name.lower() for fields_ in mine.values() for name in fields_["bounds"]}
    limits = options.get("limits")
    for word, names, allowed in (
        ("bounds", options.get("bounds") or {}, outputs | columns),
        ("shares", options.get("shares") or {}, outputs),
        ("reach", {} if limits is None else limits.reach, outputs),
        ("keys", options.get("keys") or {}, keys),
    ):
        for name in names:
            if name.lower() not in allowed:
                instead = f"name one of {', '.join(sorted(allowed))}" if allowed else "leave it out"
                raise ArgumentError(f"{word} names {name!r}, which is no column of a release here: {instead}.")
