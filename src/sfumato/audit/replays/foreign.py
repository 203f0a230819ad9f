"""Pipelines that are not sfumato's: any library, or noise of your own.

    recorder = Recorder()
    noisy = recorder.mechanism("count", len(rows), sensitivity=1, event=events.Laplace(epsilon=1), noise=add_laplace)

Outside an audit a recorder does nothing: the data is loaded, the noise is added. Inside `audit.replay` it hands out the
audit's tables, and every mechanism goes through the tape.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeVar

import numpy as np

from ... import checks, events
from ...errors import ArgumentError
from ...events import Event
from .recording import LESS_NOISE, Call, Tape, vector_moves

T = TypeVar("T")
Norm = Literal["l1", "l2", "linf"]
NORMS: tuple[Norm, ...] = ("l1", "l2", "linf")
_ROUNDING = 1e-9


class Recorder:
    """Stands where a pipeline adds noise, so that an audit can see it.

    mechanism  one release: the value before noise, how far one change of the unit may move it, what it costs, and the
               function that adds the noise
    wrap       the same around a function of yours that adds noise already
    charge     what the pipeline itself books, where it keeps a budget
    data       what the pipeline reads: in an audit, the audit's table
    """

    def __init__(self) -> None:
        self._tape: Tape | None = None
        self._table: Any = None

    def data(self, load: Any) -> Any:
        """The table: of the audit while one runs, else what `load` is or gives."""
        if self._tape is not None:
            return self._table
        return load() if callable(load) else load

    def charge(self, event: Event) -> Event:
        """The pipeline pays for this."""
        checks.instance(event, Event, "event", "an event, such as events.Laplace(epsilon=1)")
        if self._tape is not None:
            self._tape.charges.append(event)
        return event

    def mechanism(
        self,
        name: str,
        value: Any,
        *,
        sensitivity: float,
        noise: Callable[[Any], T],
        norm: Norm = "l1",
        event: Event | None = None,
        scale: float | None = None,
        **public: Any,
    ) -> T:
        """Release `noise(value)`.

        sensitivity  the most that one change of the unit moves the value, in `norm`
        event        what it costs; left out, nothing is added up
        scale        the scale of the noise (a standard deviation, for Gaussian noise): compared with what the event and
                     the sensitivity ask for
        public       everything else that may be known: names of columns, bounds, categories
        """
        checks.one_of(norm, "norm", NORMS)
        if event is not None:
            checks.instance(event, Event, "event", "an event, such as events.Laplace(epsilon=1)")
        if not callable(noise):
            raise checks.refuse("noise", type(noise).__name__, "a function that adds noise to the value")
        tape = self._tape
        if tape is None:
            return noise(value)
        declared, spread = _amount(sensitivity, "sensitivity"), None if scale is None else _amount(scale, "scale")
        seen = {"sensitivity": sensitivity, "norm": norm, "scale": scale, **public}
        call = tape.begin(name, _copied(seen), event)
        _enough_noise(tape, call, event, declared, spread)
        before = _numbers(value)
        measure = vector_moves(declared, norm)
        released: T = tape.give(call, before, lambda: noise(value), measure, again=True)
        return released

    def wrap(
        self,
        function: Callable[..., T],
        *,
        value: str | None = None,
        sensitivity: str | float = "sensitivity",
        norm: Norm = "l1",
        event: Callable[[Mapping[str, Any]], Event] | Event | None = None,
        scale: str | None = None,
        name: str | None = None,
        private: tuple[str, ...] = (),
    ) -> Callable[..., T]:
        """A function that adds noise, on the tape.

        value        the argument that holds the value before noise; the first one unless named
        sensitivity  the argument that holds it, or the number itself
        event        what a call costs: an event, or a function of the call's arguments, by name
        scale        the argument that holds the scale of the noise, if there is one
        private      arguments besides the value that nobody is to see, such as a generator
        """
        shape = _signature(function)
        checks.one_of(norm, "norm", NORMS)
        if event is not None and not callable(event):
            checks.instance(event, Event, "event", "an event, or a function of the call's arguments that gives one")
        if not isinstance(sensitivity, str):
            _amount(sensitivity, "sensitivity")
        hidden_too: Any = private
        if isinstance(hidden_too, str) or not isinstance(hidden_too, Collection):
            raise checks.refuse("private", private, "names of arguments, such as private=('generator',)")
        private_value = value if value is not None else next(iter(shape.parameters))
        named_arguments = [private_value, scale, *private, sensitivity if isinstance(sensitivity, str) else None]
        if missing := [each for each in named_arguments if each is not None and each not in shape.parameters]:
            named = getattr(function, "__name__", "the function")
            raise ArgumentError(f"{named} has no argument {missing[0]!r}: name the one that it has.")

        @functools.wraps(function)
        def taped(*args: Any, **more: Any) -> T:
            if self._tape is None:
                return function(*args, **more)
            bound = shape.bind(*args, **more)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
            hidden = {private_value, *private}

            def add_noise(_: Any) -> T:
                return function(*bound.args, **bound.kwargs)

            return self.mechanism(
                name or str(getattr(function, "__name__", type(function).__name__)),
                arguments[private_value],
                sensitivity=arguments[sensitivity] if isinstance(sensitivity, str) else sensitivity,
                norm=norm,
                event=event(arguments) if callable(event) else event,
                scale=None if scale is None else arguments[scale],
                noise=add_noise,
                arguments={each: what for each, what in arguments.items() if each not in hidden},
            )

        return taped

    def _attach(self, tape: Tape, table: Any) -> None:
        if self._tape is not None:
            raise ArgumentError("recorder is not allowed here: it is on another tape already.")
        self._tape, self._table = tape, table

    def _detach(self) -> None:
        self._tape, self._table = None, None


def _amount(value: Any, name: str) -> float:
    """A size that is one: whatever moves is below infinity, so an infinite sensitivity would hide every leak."""
    amount = math.nan
    if not isinstance(value, str | bytes | bool):
        with suppress(TypeError, ValueError):
            amount = float(value)
    if not 0 <= amount < math.inf:
        raise checks.refuse(name, type(value).__name__, "a finite number from 0 on")
    return amount


def _signature(function: Any) -> inspect.Signature:
    """What a function takes; at least the value."""
    if not callable(function):
        raise checks.refuse("function", type(function).__name__, "a function that adds noise to its first argument")
    with suppress(TypeError, ValueError):
        signature = inspect.signature(function)
        if signature.parameters:
            return signature
    name = str(getattr(function, "__name__", type(function).__name__))
    raise checks.refuse("function", name, "one that takes the value before noise; or wrap it in one of your own")


def _numbers(value: Any) -> Any:
    """A copy: the noise may be added in place."""
    with suppress(Exception):
        return np.array(value, dtype=np.float64)
    raise ArgumentError("value is not allowed: give a number, or an array of numbers.")


def _copied(public: Mapping[str, Any]) -> Mapping[str, Any]:
    copied = {}
    for name, value in public.items():
        copied[name] = value
        with suppress(Exception):  # what cannot be copied is compared as it is then
            copied[name] = copy.deepcopy(value)
    return copied


def _enough_noise(tape: Tape, call: Call, event: Event | None, sensitivity: float, scale: float | None) -> None:
    """Is the noise as wide as its event and the sensitivity say?"""
    needed = None
    if isinstance(event, events.Laplace):
        needed = sensitivity / float(event.epsilon)
    elif isinstance(event, events.Gaussian):
        needed = sensitivity * float(event.multiplier)
    if needed is not None and scale is not None and not float(scale) >= needed * (1 - _ROUNDING):
        words = f"noise of scale {float(scale):.6g}, where its event and sensitivity ask for {needed:.6g}"
        tape.add(LESS_NOISE, tape.where(call), words)
