"""V1, sparse vectors: Lyu, Su, Li, "Understanding the sparse vector technique for differential privacy" (2017).

Six variants were published and four of them are wrong. What gives them away are answers to a few dozen questions about
one person: each input below is a pair of neighbours, a list of questions and an event that a wrong variant makes much
likelier on one of them. The event is fixed beforehand, so Clopper-Pearson bounds on its two probabilities, shared over
all inputs and targets, prove an epsilon that the target certainly exceeds; above the promise, the target is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import bounds, schema
from sfumato.audit import surface
from sfumato.audit.counting import at_least, at_most
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.noise import Bits, Noise, SecureBits
from sfumato.rows import Rows
from sfumato.schema import Table
from sfumato.units import Unit

from .. import mutants
from .sampling import ABOVE, conversations
from .verdict import FALSE_ALARM, Verdict

TRIALS = 400_000
_BLOCK = 50_000
_TABLE = Table({"w": schema.category(("a", "b", "c"))})
_REPLACE, _ADD = Unit(change="replace"), Unit()

Event = Callable[[NDArray[np.int8], NDArray[np.float64]], NDArray[np.bool_]]


@dataclass(frozen=True)
class Input:
    """Neighbours, questions, and the event to count. A question is (category, threshold): how many rows are of it."""

    name: str
    unit: Unit
    rows: Sequence[str]
    neighbour: Sequence[str]
    questions: Sequence[tuple[str, float]]
    event: Event
    count: int = 1
    share: float = 1.0  # of the trials: inputs with many questions need fewer

    def tables(self) -> list[Rows]:
        return [Rows.read(_TABLE, {"w": list(cells)}, self.unit) for cells in (self.rows, self.neighbour)]


def _told(*sequence: int) -> Event:
    return lambda verdicts, shown: np.asarray((verdicts == np.array(sequence)).all(axis=1))


def _second_crosses_more(verdicts: NDArray[np.int8], shown: NDArray[np.float64]) -> NDArray[np.bool_]:
    crossings = (verdicts == ABOVE).reshape(len(verdicts), 2, -1).sum(axis=2)
    return np.asarray(crossings[:, 1] - crossings[:, 0] >= 0) & np.asarray((verdicts >= 0).all(axis=1))


def _low_value_last(verdicts: NDArray[np.int8], shown: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray((verdicts[:, :-1] == 0).all(axis=1) & (verdicts[:, -1] == ABOVE) & (shown[:, -1] <= 2))


INPUTS = (
    Input("below, above", _REPLACE, "b", "a", [("a", 0), ("b", 0)], _told(0, 1)),
    Input("20 x below, above", _REPLACE, "b", "a", [("a", 2)] * 20 + [("b", 2)], _told(*[0] * 20, 1)),
    Input("5 x below, 5 x above", _REPLACE, "b", "a", [("a", 0)] * 5 + [("b", 1)] * 5, _told(*[0] * 5, *[1] * 5), 5),
    Input("60 questions each", _REPLACE, "b", "a", [("a", 0)] * 60 + [("b", 1)] * 60, _second_crosses_more, 1, 0.1),
    Input("6 x below, low value", _REPLACE, "b", "a", [("a", 0)] * 6 + [("c", 0)], _low_value_last),
    Input("20 x below while all rise, above", _ADD, "b", "ba", [("a", 2)] * 20 + [("b", 3)], _told(*[0] * 20, 1)),
)


@dataclass(frozen=True)
class Variant:
    """A kind of sparse vector, with what its fields say beyond epsilon, count and questions."""

    kind: type[SparseVector]
    epsilon: float = 1.0
    fields: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = tuple(given.name for given in INPUTS)

    @property
    def name(self) -> str:
        return self.kind.__name__ + ("".join(f", {name}" for name in self.fields))

    def plan(self, neighbours: Input) -> SparseVector | None:
        """The plan for these questions; None where it does not take them."""
        if neighbours.name not in self.inputs or (self.fields.get("monotone") and neighbours.unit.change == "replace"):
            return None
        queries = {name: bounds.histogram("w", (name,), neighbours.unit) for name in "abc"}
        questions = tuple((queries[name], threshold) for name, threshold in neighbours.questions)
        return self.kind(
            epsilon=self.epsilon, protects=neighbours.unit, count=neighbours.count, questions=questions, **self.fields
        )


LIBRARY = (Variant(SparseVector), Variant(SparseVector, fields={"monotone": True}))
MUTANTS = (  # each with the inputs that give it away: the fewer are tried, the more each of them proves
    Variant(mutants.NoisyValueShown, inputs=("20 x below, above", "6 x below, low value")),
    Variant(mutants.NoiseWithoutCount, inputs=("20 x below, above",)),
    Variant(mutants.NoQueryNoise, inputs=("below, above",)),
    Variant(mutants.NeverEnding, inputs=("5 x below, 5 x above", "60 questions each")),
    Variant(mutants.Resuming, inputs=("60 questions each",)),
)


def attack(targets: Sequence[Variant] = LIBRARY, *, trials: int = TRIALS, bits: Bits | None = None) -> Verdict:
    proven = shown(targets, trials=trials, bits=bits)
    broken = [f"{name} by [{given}]" for (name, given), (epsilon, claim) in proven.items() if epsilon > claim]
    broken += unending() if targets is LIBRARY else []
    text = (
        f"Promises are exceeded: {'; '.join(broken)}."
        if broken
        else f"No input proves an epsilon above the promise, with {trials} conversations each."
    )
    return Verdict("V1", bool(broken), text, _figures(proven))


def unending() -> list[str]:
    """Conversations as they are released, on questions that all cross: after so many crossings nothing more is told."""
    rows, endless = Rows.read(_TABLE, {"w": ["a"] * 4}, _ADD), []
    far = ((bounds.count(_ADD), -1000), (bounds.histogram("w", ("a", "b", "c"), _ADD), -1000), (bounds.count(_ADD), 0))
    for count in (1, 2, 4):
        plan = SparseVector(epsilon=1, protects=_ADD, threshold=-1000, count=count, questions=far * 3)
        answers = surface.run(plan, rows, Noise(SecureBits()))
        if sum(int(np.sum(each["above"])) for each in answers) > count:
            endless.append(f"{type(plan).__name__} by [questions that all cross], which goes on after {count}")
    return endless


def control(targets: Sequence[Variant] = MUTANTS, *, trials: int = TRIALS, bits: Bits | None = None) -> Verdict:
    """The attack on the planted bugs: broken only if every one of them is."""
    proven = shown(targets, trials=trials, bits=bits)
    caught = {name for (name, _), (epsilon, claim) in proven.items() if epsilon > claim}
    missed = [target.name for target in targets if target.name not in caught]
    text = f"Not caught: {', '.join(missed)}." if missed else f"All {len(targets)} planted bugs are caught."
    return Verdict("V1", not missed, text, _figures(proven))


def _figures(proven: dict[tuple[str, str], tuple[float, float]]) -> dict[str, float]:
    return {f"{name}, [{given}]: epsilon at least": epsilon for (name, given), (epsilon, _) in proven.items()}


def shown(
    targets: Sequence[Variant], *, trials: int, bits: Bits | None = None
) -> dict[tuple[str, str], tuple[float, float]]:
    """(target, input) -> (epsilon proven, epsilon promised)."""
    source = SecureBits() if bits is None else bits
    plans = [(target, given, plan) for target in targets for given in INPUTS if (plan := target.plan(given))]
    alpha = FALSE_ALARM / (4 * len(plans))  # two directions, two bounds each
    proofs = {}
    for target, neighbours, plan in plans:
        runs = max(int(trials * neighbours.share), 1)
        hits = [_hits(plan, neighbours, rows, runs, source) for rows in neighbours.tables()]
        proven = max(_proven(hits[0], hits[1], runs, alpha), _proven(hits[1], hits[0], runs, alpha))
        proofs[target.name, neighbours.name] = (proven, float(plan.epsilon))
    return proofs


def _hits(plan: SparseVector, neighbours: Input, rows: Rows, runs: int, bits: Bits) -> int:
    hits = 0
    for start in range(0, runs, _BLOCK):
        verdicts, values = conversations(plan, rows, min(_BLOCK, runs - start), bits)
        if not isinstance(plan, mutants.NoisyValueShown):
            values = np.zeros_like(values)  # nothing is shown
        hits += int(neighbours.event(verdicts, values).sum())
    return hits


def _proven(hits: int, others: int, runs: int, alpha: float) -> float:
    low, high = float(at_least(hits, runs, alpha)), float(at_most(others, runs, alpha))
    return max(0.0, float(np.log(low / high))) if low > 0 else 0.0
