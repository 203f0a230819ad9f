"""What a watched release must keep, checked in exact fractions.

total     in units of its noise, all that one change moves is within what the event says, over all draws together
blocks    and within its own part of the budget for each block: sums, votes, distinct values, trees, bars
new       groups that one neighbour has alone stay hidden but for probability key_delta
additive  sums of everybody are the sums of the others plus those of the one: no row depends on another unit's
alike     row order, row groups, files and threads change no whole number
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato import events
from sfumato.laws import Law, RoundedGaussian, RoundedLaplace
from sfumato.query.measures import Coordinate

from .watching import Asked, Broken, Cells, Drawn, Watched

PAIRS = (("all", "without a", 1), ("all", "without b", 1), ("without a", "without b", 2))
"""Neighbours that differ by so many units. The last ones differ by a unit that was replaced, or by a group of two."""


@dataclass
class Found:
    """How much of what is allowed was used, at most: 1 is all of it. Tests that find little would prove little."""

    used: dict[str, float] = field(default_factory=dict)

    def note(self, name: str, used: Fraction, where: str) -> None:
        self.used[name] = max(self.used.get(name, 0.0), float(used))
        if used > 1:
            raise Broken(f"{name}: {where}: {float(used):.6g} times what is allowed")


def check(seen: Watched) -> Found:
    """All claims; Broken where one does not hold."""
    found = Found()
    for asked in seen.asked:
        _alike(asked)
        if not _is_distinct(asked):
            _additive(asked)
    for one, other, units in PAIRS:
        where = f"{one} and {other}"
        _total(seen, one, other, units, found, where)
        _blocks(seen, one, other, units, found, where)
        replaced = one != "all" and seen.plan.unit.change == "replace"
        if replaced or units <= seen.plan.unit.group:
            _new_groups(seen, one, other, found, where)
    return found


def _alike(asked: Asked) -> None:
    if asked.cells["all"] != asked.cells["mixed"]:
        raise Broken(f"alike: the order of rows, files or threads show: {asked.text}")


def _is_distinct(asked: Asked) -> bool:
    return "COUNT(DISTINCT x)" in asked.text


def _additive(asked: Asked) -> None:
    whole, parts = asked.cells["all"], (asked.cells["without a"], asked.cells["alone"])
    zero = (0,) * asked.width
    if not zero:  # a public table's values, which are the same for all
        if whole != parts[0]:
            raise Broken(f"additive: public keys differ: {asked.text}")
        return
    # A group in which nobody has a say is not told, though units count in it: only what both parts tell is compared.
    told = set(parts[0]) & set(parts[1]) if "SUM(v) > 0" in asked.text else {*whole, *parts[0], *parts[1]}
    for key in told:
        sums = tuple(map(sum, zip(*(each.get(key, zero) for each in parts), strict=True)))
        if whole.get(key, zero) != sums:
            raise Broken(f"additive: one unit's rows depend on another's, at {key}: {asked.text}")


def _total(seen: Watched, one: str, other: str, units: int, found: Found, where: str) -> None:
    """sum |difference|^2 / scale^2 <= 1/multiplier^2, or sum |difference| / scale <= epsilon."""
    used = spent(seen, one, other)
    part = Fraction(units, seen.plan.blur.sides)
    noise = seen.plan.event.events[0] if isinstance(seen.plan.event, events.Bundle) else seen.plan.event
    if isinstance(noise, events.Gaussian):
        found.note("total", used * noise.multiplier**2 / part**2, where)
    else:
        assert isinstance(noise, events.Laplace)
        found.note("total", used / noise.epsilon / part, where)


def spent(seen: Watched, one: str, other: str) -> Fraction:
    """sum |difference|^2 / scale^2, or sum |difference| / scale, over all draws of a release."""
    moves = _moves(seen, one, other)
    return sum((size_of(moved, drawn.law) / _scale(drawn.law) for drawn, moved in moves), Fraction(0))


def size_of(moved: list[int], law: Law) -> Fraction:
    """Squares for Gaussian noise, sizes for Laplace noise."""
    return Fraction(sum(each * each for each in moved) if isinstance(law, RoundedGaussian) else sum(map(abs, moved)))


def _scale(law: Law) -> Fraction:
    assert isinstance(law, RoundedGaussian | RoundedLaplace)
    return Fraction(law.spread) ** (2 if isinstance(law, RoundedGaussian) else 1)


def _moves(seen: Watched, one: str, other: str) -> list[tuple[Drawn, list[int]]]:
    """Each draw, and by how much the numbers below it differ: of a tree, all nodes, not only those looked at."""
    trees = _trees(seen)
    found, done = [], set()
    for drawn in seen.drawn:
        asked = seen.asked[drawn.after]
        if drawn.after in trees:
            if drawn.after not in done:
                found += [(drawn, moved) for moved in _levels(asked, one, other, trees[drawn.after])]
            done.add(drawn.after)
        elif drawn.threshold is not None:
            first, second = asked.cells[one], asked.cells[other]
            found.append((drawn, [first[key][-1] - second[key][-1] for key in first if key in second]))
        else:
            both = zip(drawn.exact[one].reshape(-1).tolist(), drawn.exact[other].reshape(-1).tolist(), strict=True)
            found.append((drawn, [a - b for a, b in both]))
    return found


def _trees(seen: Watched) -> dict[int, Any]:
    """By the number of a statement: the tree whose leaves it counts. Statements of trees come in order, then bars'."""
    counted = [place for place, asked in enumerate(seen.asked) if "leaf" in asked.names]
    return {place: tree.leaves for place, tree in zip(counted, seen.plan.questions.ranked.values(), strict=False)}


def _levels(asked: Asked, one: str, other: str, tree: Any) -> list[list[int]]:
    moved = differences(asked.cells[one], asked.cells[other])
    levels = []
    for stride in tree.strides:
        nodes: dict[Any, int] = defaultdict(int)
        for (*key, leaf), by in moved.items():
            nodes[(*key, int(leaf) // stride)] += by
        levels.append(list(nodes.values()))
    return levels


def differences(first: Cells, second: Cells) -> dict[tuple[str, ...], int]:
    """By how much the last number of each key differs."""
    return {key: first.get(key, (0,))[-1] - second.get(key, (0,))[-1] for key in {*first, *second}}


def _blocks(seen: Watched, one: str, other: str, units: int, found: Found, where: str) -> None:
    parts: dict[str, list[tuple[Coordinate, Law, list[int]]]] = defaultdict(list)
    levels: dict[str, int] = defaultdict(int)
    for drawn, moved in _moves(seen, one, other):
        if drawn.coordinate is None:
            # The adviser: a unit is in one bar of each histogram. (Its totals are in the sum over all draws.)
            if "which" in seen.asked[drawn.after].names:
                found.note("advice", Fraction(sum(map(abs, moved)), units << 8), where)
            continue
        name = drawn.coordinate.measure.name
        kind = _kind(seen, name)
        levels[name] += kind == "tree"
        parts[kind if kind in ("sums", "votes") else f"{kind}: {name}: {levels[name]}"].append(
            (drawn.coordinate, drawn.law, moved)
        )
    for name, block in parts.items():
        total = sum((each.share for each, _, _ in block), Fraction(0))
        used = Fraction(0)
        for each, law, moved in block:
            step = Fraction(2) ** (each.exponent - each.bits)
            if name.startswith("distinct"):  # in L1, whatever the noise
                found.note("distinct", sum(map(abs, moved)) * step / each.reach / units, where)
            power = 2 if isinstance(law, RoundedGaussian) else 1
            used += each.share / total * size_of(moved, law) * (step / each.reach / units) ** power
        found.note(name.split(":")[0], used, where)


def _kind(seen: Watched, name: str) -> str:
    questions = seen.plan.questions
    for kind, names in (("distinct", questions.distinct), ("tree", questions.ranked), ("bars", questions.binned)):
        if name in names:
            return kind
    return "votes" if name == "units" else "sums"


def _new_groups(seen: Watched, one: str, other: str, found: Found, where: str) -> None:
    for drawn in seen.drawn:
        if drawn.threshold is None:
            continue
        first, second = seen.asked[drawn.after].cells[one], seen.asked[drawn.after].cells[other]
        for mine, theirs in ((first, second), (second, first)):
            heights = [row[-1] for key, row in mine.items() if key not in theirs]
            chances = [float(drawn.law.sf(drawn.threshold - height - 1)) for height in heights]
            shown = -math.expm1(sum(math.log1p(-min(each, 0.5)) for each in chances))
            rounding = 1 - Fraction(1, 10**6)  # these are floats
            found.note("new", Fraction(shown) / seen.plan.blur.key_delta * rounding, where)
