"""A search for the pair of neighbours that a plan tells apart most: extremes, random tables, and hill climbing.

A pair is built as a scene (who stays, who changes), and every step of the search goes from scene to scene, so that
whatever is tried is a pair of neighbours under the plan's unit. Pairs are ranked on a few cheap runs of their own, in
which both sides draw the same bits: what differs between the outputs then comes from the data alone. The judgement
knows nothing of these runs, so a poor ranking costs power and never soundness.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..noise import Bits, SeededBits
from ..plan import Plan
from ..schema import Column, Table
from . import views
from .neighbours import (
    Pair,
    Person,
    Scene,
    became,
    describe,
    extreme_people,
    listed_names,
    pair_of,
    scenes,
    too_many,
)
from .outputs import OutputReading
from .stages import stage_of
from .subjects import Failed, OfPlan, Subject
from .telling import candidates

_SIZES = (0, 0, 1, 1, 2, 3, 4, 6, 9, 14, 40)  # of the crowd beside the changing unit
_MOST_GROUP = 24
_ROUGH = 1e-7  # about what one bound of the judgement gets
_KEPT = 16  # pairs that the climb goes on from, and whose closeness is looked at again
_ALIKE = 2  # of pairs whose outputs move alike, so many are kept
_FEW, _MANY = 6, 400  # pairs that are tried, where no time says otherwise
_NARROW = 4  # columns that are looked at one by one as well
_LEAST, _EVENTS_RUNS = 12, 1_000  # runs on each side of a pair that is tried; and where runs are cheap


@dataclass(frozen=True)
class Dice:
    """Choices out of random words."""

    bits: Bits

    def below(self, count: int) -> int:
        return int(self.bits.words(1)[0] % np.uint64(count))

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.below(len(choices))]

    def share(self) -> float:
        return float(self.bits.words(1)[0] >> np.uint64(11)) * 2.0**-53

    def words(self, count: int) -> NDArray[np.uint64]:
        return self.bits.words(count)


@dataclass(frozen=True)
class World:
    """Random people and scenes for one plan, and steps from one scene to another: all of them neighbours."""

    plan: Plan[Any, Any]
    table: Table
    extremes: tuple[Person, ...]
    dice: Dice

    @classmethod
    def of(cls, plan: Plan[Any, Any], table: Table, bits: Bits) -> World:
        return cls(plan, table, tuple(extreme_people(plan, table)), Dice(bits))

    def scene(self) -> Scene:
        """Anybody beside anybody."""
        kinds = [self.person() for _ in range(self.dice.pick((1, 1, 2, 3, 8)))]
        others = tuple(self.dice.pick(kinds) for _ in range(self.dice.pick(_SIZES)))
        before, after = self._change()
        scene = Scene(others, before, after, self.dice.below(len(others) + 1))
        return self._fitting(scene)

    def _change(self) -> tuple[tuple[Person, ...], tuple[Person, ...]]:
        unit, dice = self.plan.unit, self.dice
        group = min(unit.group, _MOST_GROUP)
        if unit.change == "add-remove":
            gone = 0 if dice.below(2) else dice.below(group + 1)
            one, other = self.person(), self.person()
            return (one,) * gone, (other,) * (group - gone)
        before = self._group(group)
        return before, became(before, self._group(group) if unit.change == "replace" else (), unit)

    def _group(self, count: int) -> tuple[Person, ...]:
        if self.dice.below(2):
            return (self.person(),) * count
        return tuple(self.person() for _ in range(count))

    def person(self) -> Person:
        """An extreme unit, or one of random rows; a column that is constant per unit is so here."""
        if self.dice.below(2):
            return self.extremes[self.dice.below(len(self.extremes))]
        many = self.dice.pick((1, 1, 2, 3, too_many(self.plan))) if self.plan.unit.of_kind.many else 1
        row = self._row()
        if self.dice.below(2):
            return (row,) * many
        constant = {name: row[name] for name, column in self.table.columns.items() if column.constant and name in row}
        return (row, *(self._row() | constant for _ in range(many - 1)))

    def _row(self) -> dict[str, Any]:
        columns = self.table.columns.items()
        return {name: self.cell(column) for name, column in columns if name not in self.plan.unit.naming}

    def cell(self, column: Column) -> Any:
        """An extreme cell as often as one from within."""
        dice = self.dice
        kind = column.of_kind
        return dice.pick(kind.extremes(column)) if dice.below(2) else kind.drawn(column, dice)

    # -------------------------------------------------------------------------------------------- steps of the climb

    def step(self, scene: Scene) -> Scene:
        """A scene nearby."""
        steps: list[Callable[[Scene], Scene]] = [
            self._changed_differently,
            self._crowd,
            self._moved,
            self._cell_changed,
        ]
        return self._fitting(self.dice.pick(steps)(scene))

    def _changed_differently(self, scene: Scene) -> Scene:
        before, after = self._change()
        if self.plan.unit.change == "replace" and self.dice.below(2):
            scene = replace(scene, after=after) if self.dice.below(2) else replace(scene, before=after)
            return replace(scene, after=became(scene.before, scene.after, self.plan.unit))
        return replace(scene, before=before, after=after)

    def _crowd(self, scene: Scene) -> Scene:
        """One more beside it, one fewer, twice as many, or half as many."""
        others, dice = scene.others, self.dice
        way = dice.below(5)
        if way == 0 or not others:
            return replace(scene, others=(*others, self.person()))
        if way == 1:
            return replace(scene, others=(*others, dice.pick(others)))
        if way == 2:
            gone = dice.below(len(others))
            return replace(scene, others=others[:gone] + others[gone + 1 :])
        return replace(scene, others=others[: len(others) // 2] if way == 3 else (others * 2)[:80])

    def _moved(self, scene: Scene) -> Scene:
        """The changing unit elsewhere in the table, or swapped with one of the crowd."""
        if not scene.others or self.dice.below(2):
            return replace(scene, place=self.dice.below(len(scene.others) + 1))
        number = self.dice.below(len(scene.others))
        changed = scene.after or scene.before
        others = (*scene.others[:number], changed[0], *scene.others[number + 1 :])
        return replace(scene, others=others)

    def _cell_changed(self, scene: Scene) -> Scene:
        """Another value in one cell of one unit."""
        places = [(part, i) for part in ("others", "before", "after") for i, p in enumerate(getattr(scene, part)) if p]
        part, i = self.dice.pick(places) if places else ("others", -1)
        names = [name for name in self.table.columns if name not in self.plan.unit.naming]
        if i < 0 or not names:
            return scene
        people = list(getattr(scene, part))
        person, name = list(people[i]), self.dice.pick(names)
        column, value = self.table.columns[name], self.cell(self.table.columns[name])
        for row in range(len(person)) if column.constant or self.dice.below(2) else (self.dice.below(len(person)),):
            person[row] = person[row] | {name: value}
        people[i] = tuple(person)
        after: dict[str, Any] = {part: tuple(people)}
        changed = replace(scene, **after)
        return replace(changed, after=became(changed.before, changed.after, self.plan.unit))

    def _fitting(self, scene: Scene) -> Scene:
        """Where units are categories, as many of the crowd as there are names for."""
        names = listed_names(self.table, self.plan.unit)
        return replace(scene, others=scene.others[: len(names) - scene.changing]) if names else scene

    def pair(self, scene: Scene, words: str = "") -> Pair:
        return pair_of(self.plan, self.table, scene, words or described(scene))


def described(scene: Scene) -> str:
    """A scene in words."""
    before, after = (describe(people[0]) if people else "nobody" for people in (scene.before, scene.after))
    more = (
        f" ({len(scene.before)} and {len(scene.after)} units)" if max(len(scene.before), len(scene.after)) > 1 else ""
    )
    beside = f"{len(scene.others)} others" if scene.others else "nobody else"
    return f"{before} becomes {after}{more}; beside it {beside}, by search"


# ------------------------------------------------------------------------------------------------ the hunt


@dataclass(frozen=True)
class RankedPair:
    """A pair with how well a few runs on the same bits tell it apart."""

    pair: Pair
    scene: Scene
    score: float
    move: bytes  # what the runs showed, so that pairs that do the same are not all kept


def hunt(
    plan: Plan[Any, Any], subject: Subject, table: Table, bits: Bits, *, runs: int, until: float | None = None
) -> tuple[list[Pair], int]:
    """The pairs worth a closer look, the most telling first, and how many were tried; `runs` in all, both sides
    together, are spent on it."""
    seed, world = Dice(bits).below(2**62), World.of(plan, table, bits)
    by_events = subject.in_bulk and not subject.steady
    few = _EVENTS_RUNS if by_events else 4 * _LEAST if subject.in_bulk else _LEAST
    room = max(_FEW, runs // (2 * few))
    if until is None:
        room = min(room, _MANY // 3 if by_events else _MANY)
    most = stage_of(plan).most_pairs
    if most is not None:
        room = min(room, most)
    score = partial(_shown, judged=runs) if by_events else _closeness
    scripted, stride = list(scenes(plan, table)), 1
    if most is not None:
        scripted = _heaviest_first(scripted)[: max(room // 2, _FEW)]
    else:
        stride = max(1, -(-len(scripted) // max(room // 3, _FEW)))
    tried: list[RankedPair] = []

    def look(words: str, scene: Scene) -> RankedPair:
        pair = world.pair(scene, words)
        ranked = RankedPair(pair, scene, *score(subject, pair, few, seed))
        tried.append(ranked)
        return ranked

    def open_still() -> bool:
        return len(tried) < room and (until is None or time.monotonic() < until)

    for words, scene in scripted[::stride]:
        look(words, scene)
        if until is not None and time.monotonic() > until and len(tried) >= _FEW:
            break
    while open_still() and len(tried) < 2 * room // 3:
        look("", world.scene())
    tops = _best(tried, 3)
    while open_still():
        turn = len(tried) % len(tops)
        ranked = look("", world.step(tops[turn].scene))
        if ranked.score > tops[turn].score:
            tops[turn] = ranked
    return [each.pair for each in _best(tried, _KEPT)], len(tried)


def _heaviest_first(named_scenes: Sequence[tuple[str, Scene]]) -> list[tuple[str, Scene]]:
    """Where few scenes can be tried: of each crowd in turn, those in which most rows change."""
    turns: dict[int, list[tuple[str, Scene]]] = {}
    for named_scene in sorted(named_scenes, key=lambda named: -sum(map(len, (*named[1].before, *named[1].after)))):
        turns.setdefault(id(named_scene[1].others), []).append(named_scene)
    return [each for turn in zip_longest(*turns.values()) for each in turn if each is not None]


def _best(tried: Sequence[RankedPair], most: int) -> list[RankedPair]:
    """The highest, but of those that do the same only the first few."""
    best: list[RankedPair] = []
    for ranked in sorted(tried, key=lambda ranked: -ranked.score):
        if sum(ranked.move == other.move for other in best) < _ALIKE:
            best.append(ranked)
        if len(best) == most:
            break
    return best


def _closeness(subject: Subject, pair: Pair, runs: int, seed: int) -> tuple[float, bytes]:
    """How far outputs are moved, in widths of their noise; how much the width differs; and how often they differ."""
    outputs = [_alike(subject, data, runs, seed) for data in pair]
    if all(isinstance(each, Failed) for each in (outputs[0][0], outputs[1][0])):
        return -1.0, b""
    one, other = map(replace(OutputReading.fit(*outputs), grains=()).of, outputs)  # the lowest bits are chance here
    width = np.concatenate([one, other]).std(axis=0)
    width[width == 0] = 1.0
    moved = (one - other).mean(axis=0) / width
    widened = np.abs(one.std(axis=0) - other.std(axis=0)) / width
    differ = (np.abs(one - other) > 1e-9 * width).any(axis=1).mean()
    used = subject.used(pair) if isinstance(subject, OfPlan) else None
    score = float(np.sqrt(np.sum(moved**2) + np.max(widened) ** 2) + differ) if used is None else used
    return score, np.round(np.concatenate([moved, widened]), 2).tobytes()


def _shown(subject: Subject, pair: Pair, runs: int, seed: int, *, judged: int) -> tuple[float, bytes]:
    """How bad the worst event looks: where runs are cheap, rare events are seen as well."""
    outputs = [_alike(subject, data, runs, seed) for data in pair]
    reading = replace(OutputReading.fit(*outputs), grains=())
    first, second = map(reading.of, outputs)
    alone = views.simple(reading.names) if len(reading.names) <= _NARROW else ()
    learnt = [*alone, *views.fitted(first, second)]
    if not learnt:
        return -1.0, b""
    best = candidates(learnt, first, second, subject.claims, _ROUGH, runs=judged, most=1)[0]
    return best.score, np.round([first.mean(), second.mean(), first.std(), second.std()], 3).tobytes()


def _alike(subject: Subject, data: Any, runs: int, seed: int) -> Any:
    """Runs whose bits are the same whatever the data."""
    if subject.in_bulk:
        return subject.outputs(data, runs, SeededBits(seed))
    return [subject.outputs(data, 1, SeededBits(seed + i))[0] for i in range(runs)]
