"""What is audited: something that can be run many times on made-up data, and what it claims.

A plan runs through its own code, and says itself whether it can run many times at once (`Plan._runs`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

from .. import checks
from ..errors import ArgumentError
from ..noise import Bits, Noise, SeededBits
from ..plan import Plan, Run
from ..schema import Table
from .arguments import check_maker
from .claims import claims_of
from .neighbours import Pair
from .outputs import unreadable
from .stages import stage_of, table_for

MakeNoise = Callable[[Bits], Noise]


class Subject(Protocol):
    """Something that claims to hide a difference."""

    @property
    def kind(self) -> str: ...
    @property
    def claims(self) -> Mapping[float, float]: ...
    @property
    def in_bulk(self) -> bool:
        """Are many runs hardly dearer than one?"""

    @property
    def steady(self) -> bool:
        """Is the noise of a run the same on the same bits, whatever the data?"""

    def outputs(self, data: Any, count: int, bits: Bits) -> Any:
        """So many independent outputs: a list, or an array with a row for each."""


class Failed(dict[str, str]):
    """The output of a run that raised: that it did is one bit, which the audit looks at like any other."""


@dataclass(frozen=True)
class OfPlan:
    """A plan, with the noise it is given."""

    plan: Plan[Any, Any]
    noise: MakeNoise = Noise

    def __post_init__(self) -> None:
        check_maker(self.noise)

    @property
    def kind(self) -> str:
        return type(self.plan).__name__

    @cached_property
    def claims(self) -> Mapping[float, float]:
        sold = claims_of(self.plan)
        if not sold:
            raise ArgumentError("plan is not allowed: no accountant prices its event, so there is no claim to audit.")
        return dict(sorted(sold.items()))

    @cached_property
    def table(self) -> Table:
        return table_for(self.plan)

    @cached_property
    def answers(self) -> bool:
        """Is it a query whose numbers can be answered many times at once?"""
        return stage_of(self.plan).repeats(self.plan)

    @property
    def in_bulk(self) -> bool:
        return self.plan.bulk != "no"

    @property
    def steady(self) -> bool:
        return self.plan.bulk == "steady"

    def used(self, pair: Pair) -> float | None:
        """The share of its price that a pair uses, where the numbers of a query and their laws say it; None for other
        plans, and where it does not run."""
        if not self.answers:
            return None
        from .sql_losses import beside_noise, without_noise

        try:
            return beside_noise(self.plan, *(without_noise(self.plan, data) for data in pair))
        except Exception:  # whether it runs on such rows is for the samples to say
            return None

    def outputs(self, data: Any, count: int, bits: Bits) -> Any:
        if self.in_bulk:
            with suppress(Exception):  # what fails, fails run by run
                return self.plan._runs(data, Run(self.noise(bits)), count)
        return [self._one(data, bits) for _ in range(count)]

    def _one(self, data: Any, bits: Bits) -> Any:
        try:
            return self.plan._run(data, Run(self.noise(bits)))
        except Exception as problem:
            return Failed(failed=type(problem).__name__)


@dataclass(frozen=True)
class OfCode:
    """A user's own mechanism: run(data), or run(data, noise). What has a default keeps it, unless it is the noise."""

    run: Callable[..., Any]
    claimed: Mapping[float, float]
    noise: MakeNoise = Noise

    def __post_init__(self) -> None:
        check_maker(self.noise)
        if self._way == "unfit":
            allowed = "a function of the data, or of the data and the noise; all else needs a default"
            raise checks.refuse("run", self.kind, allowed)

    @property
    def kind(self) -> str:
        return str(getattr(self.run, "__name__", type(self.run).__name__))

    @property
    def claims(self) -> Mapping[float, float]:
        return self.claimed

    @property
    def in_bulk(self) -> bool:
        return False

    @property
    def steady(self) -> bool:
        return False

    @cached_property
    def _way(self) -> Literal["without", "by place", "by name", "unfit"]:
        """How it is handed noise to draw from. Without, its randomness is its own affair."""
        try:
            parameters = list(inspect.signature(self.run).parameters.values())
        except (TypeError, ValueError):  # Python does not know its arguments
            return "without"
        places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        others = [each for each in parameters[1:] if each.name != "noise" or each.kind is each.POSITIONAL_ONLY]
        needed = [each for each in others if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
        needed = [each for each in needed if each.kind is not each.VAR_POSITIONAL]
        if not places and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
            return "unfit"
        if len(others) < len(parameters[1:]):
            return "unfit" if needed else "by name"
        if len(needed) > 1 or any(each.kind is each.KEYWORD_ONLY for each in needed):
            return "unfit"
        return "by place" if needed else "without"

    def check_runs(self, one: Any, other: Any) -> None:
        """Refuse code that runs on neither of two inputs, and outputs that nobody can read: a slip in the code, of
        which an audit would see nothing."""
        problem: BaseException | None = None
        ran = False
        for data in (one, other):
            try:
                output = self._run(data, self.noise(SeededBits(0)))
            except (Exception, SystemExit) as raised:
                problem = raised
                continue
            ran = True
            if inspect.iscoroutine(output):
                output.close()
                raise checks.refuse("run", self.kind, "a function that is not async: lambda x: asyncio.run(f(x))")
            if kind := unreadable(output):
                raise ArgumentError(
                    f"run is not allowed: its output holds a {kind}, which cannot be read. "
                    "Return numbers, texts, arrays, tables, or lists and dicts of them."
                )
        if ran:
            return
        raise ArgumentError(
            f"run is not allowed: it raised {type(problem).__name__} on both inputs of a pair. Give pairs it can take."
        ) from problem

    def outputs(self, data: Any, count: int, bits: Bits) -> list[Any]:
        noise = self.noise(bits)
        return [self._one(data, noise) for _ in range(count)]

    def _one(self, data: Any, noise: Noise) -> Any:
        try:
            return self._run(data, noise)
        except (Exception, SystemExit) as problem:  # a program that ends is seen to end
            return Failed(failed=type(problem).__name__)

    def _run(self, data: Any, noise: Noise) -> Any:
        if self._way == "without":
            output = self.run(data)
        else:
            output = self.run(data, noise=noise) if self._way == "by name" else self.run(data, noise)
        return list(output) if isinstance(output, Iterator) else output  # what is still to come is output, too
