"""Faults of budgets that are split: parts that get too much, and parts that nobody pays for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sfumato import combine, events, plan
from sfumato.accounting.filters import Filter
from sfumato.audit import seams, surface
from sfumato.bounds import measured
from sfumato.mechanisms import mwem, optimal_keys, thresholds, top_k
from sfumato.query import design

from ..mutant import Shelf, attacks, plans, plant, swap, swap_everywhere, verifies

FAULTS = Shelf("splitting")


@FAULTS.fault("only the first part of a sequence is charged", by=plans("Sequence of three"))
def first_part() -> None:
    swap(combine.Sequence, "event", lambda _: lambda self: self.children[0].event)


@FAULTS.fault("a repetition is charged once", by=plans("Repeat of four"))
def charged_once() -> None:
    swap(combine.Repeat, "event", lambda _: lambda self: self.plan.event)


@FAULTS.fault("parts under replace at the price of one", by=attacks("A1"))
def one_part() -> None:
    swap(events.Partition, "touched", lambda _: lambda self: 1)


@FAULTS.fault("every winner gets the whole epsilon", by=verifies("TopK of all", "TopK"))
def every_winner() -> None:
    swap(top_k.TopK, "rate", lambda rate: lambda self: self.k * rate(self))


@FAULTS.fault("every question of a query gets the whole budget", by=attacks("Q4"))
def whole_shares() -> None:
    swap_everywhere(
        design.shares_of,
        lambda one: (
            lambda questions, weights, rest, **named: dict.fromkeys(one(questions, weights, rest, **named), rest)
        ),
    )


@FAULTS.fault("choosing is free in MWEM", by=attacks("S1"))
def free_choice() -> None:
    def leave_out_choices(_: Any) -> Any:
        def event(self: Any) -> events.Event:
            noisy = events.Laplace(epsilon=surface.round_epsilon(self), relation=self.unit.change)
            return events.Repeat(noisy, self.rounds + (self.total is None))

        return event

    swap(mwem.MWEM, "event", leave_out_choices)


@FAULTS.fault("MWEM measures with the whole budget each time", by=attacks("S1"))
def whole_rounds() -> None:
    swap(mwem.MWEM, "law", lambda law: lambda self: type(law(self))(law(self).spread / (2 * self.rounds + 1)))


@FAULTS.fault("half the noise on questions", by=verifies("questions that move both ways"))
def half() -> None:
    _thinner(2)


@FAULTS.fault("an eighth of the noise on questions", by=(*verifies("SparseVector"), *attacks("V1")))
def eighth() -> None:
    _thinner(8)


def _thinner(times: int) -> None:
    def thin_out(gate_of: Any) -> Any:
        def thin(*, query_scale: Any, count: int, **named: Any) -> Any:
            return gate_of(query_scale=query_scale / times, count=count, **named)

        return thin

    swap_everywhere(thresholds.gate_of, thin_out)


@FAULTS.fault("every level of a tree gets the whole budget", by=plans("a tall tree"))
def every_level() -> None:
    swap(
        measured.Measured,
        "in_steps",
        lambda _: lambda self, exponent: self.query.in_steps(exponent + self.strategy.bits),
    )


@FAULTS.fault("children of a reserve are not counted", by=plans("an endless reserve"))
def free_children() -> None:
    plant(seams.CHILD_PAID, lambda _: lambda self, child: None)


@FAULTS.fault("a body that catches a failure goes on", by=plans("a body that goes on"))
def caught() -> None:
    def hand_out_catchable_reserve(_: Any) -> Any:
        def run(self: Any, rows: Any, run_: Any) -> Any:
            return self.body(plan.Run(run_.noise, rows=rows, reserve=Filter.of(self.budget), rehearsal=run_.rehearsal))

        return run

    plant(seams.RESERVE, hand_out_catchable_reserve)


@FAULTS.fault("crossings are not counted from question to question", by=attacks("V1"))
def never_over() -> None:
    def never_count(_: Any) -> Any:
        def above(self: Any, question: Any, steps: Any) -> Any:
            now = surface.conversation(self)
            return now.gate.answer(question.in_units(steps, now.gate.finer), now.threshold, now.left, now.noise)

        return above

    plant(seams.CROSSINGS, never_count)


@FAULTS.fault("every key of a unit gets the whole budget", by=plans("three keys each"))
def whole_keys() -> None:
    """The coins as they are flipped, which the price and the exact chances do not know of."""
    swap(
        optimal_keys.OptimalKeys,
        "chances",
        lambda chances: lambda self, n: chances(replace(self, per_unit=1), n),
    )


@FAULTS.fault("new keys of a group are as high as one unit's", by=verifies("keys of a group"))
def low_keys() -> None:
    plant(seams.NEW_KEYS, lambda _: lambda self: ((1 << -self.exponent, self.per_unit),))
