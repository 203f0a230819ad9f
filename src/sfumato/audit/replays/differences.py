"""Where two results differ: every place, exactly.

What a pipeline makes of the same noisy answers must be the same on neighbours, to the last bit. So nothing here is
nearly equal. What names a run and not its data (a receipt) is not compared, and what cannot be looked into is said.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ... import record
from ...curator import Curator
from ...errors import SfumatoError
from ...plan import Plan, Receipt
from ...private import Private
from ...release import Release

Kind = Literal["value", "shape", "opaque"]
Seen = dict[tuple[int, int], tuple[Any, Any]]  # with what was seen, so that no other thing gets its id

_DEEPEST = 16
_MOST = 24  # differences that are told of one comparison
_LONGEST = 48
_OF_THE_RUN = (Curator, Private, Receipt)


@dataclass(frozen=True)
class Difference:
    """One place where two results differ. "shape": other keys, lengths or types; "opaque": nobody can tell."""

    path: str
    kind: Kind
    here: str
    there: str

    def describe(self, shown: bool) -> str:
        """In words; without values where the rows were somebody's own."""
        if self.kind == "opaque":
            return f"{self.path} cannot be compared ({self.here})"
        return f"{self.path} is {self.here} on one and {self.there} on the other" if shown else f"{self.path} differs"


def differences(here: Any, there: Any, path: str = "result") -> list[Difference]:
    """Where they differ; none if they are the same."""
    unlike: list[Difference] = []
    for difference in _walk(here, there, path, 0, {}):
        unlike.append(difference)
        if len(unlike) == _MOST:
            break
    return unlike


def _walk(here: Any, there: Any, path: str, depth: int, seen: Seen) -> Iterator[Difference]:
    if here is there or (isinstance(here, _OF_THE_RUN) and type(here) is type(there)):
        return
    if type(here) is not type(there):
        yield _difference(path, "shape", type(here).__name__, type(there).__name__)
        return
    if isinstance(here, float | complex | np.number | np.bool_ | int | str | bytes):
        if not _equal(here, there):
            yield _difference(path, "value", here, there)
        return
    if (id(here), id(there)) in seen or depth > _DEEPEST:
        return
    seen[id(here), id(there)] = here, there
    if isinstance(here, np.ndarray):
        yield from _arrays(here, there, path, depth, seen)
    elif isinstance(here, AbstractSet) and not isinstance(here, Mapping):
        if here != there:
            yield _difference(path, "shape", here, there)
    elif isinstance(here, Mapping):
        yield from _mappings(here, there, path, depth, seen)
    elif isinstance(here, list | tuple):
        yield from _lists(here, there, path, depth, seen)
    else:
        yield from _objects(here, there, path, depth, seen)


def _arrays(here: Any, there: Any, path: str, depth: int, seen: Seen) -> Iterator[Difference]:
    if here.shape != there.shape or here.dtype != there.dtype:
        one, other = (f"{each.dtype} of shape {each.shape}" for each in (here, there))
        yield _difference(path, "shape", one, other)
    elif here.dtype == object:
        yield from _lists(here.ravel().tolist(), there.ravel().tolist(), path, depth, seen)
    elif not np.array_equal(here, there, equal_nan=here.dtype.kind in "fcmM"):
        unlike = np.flatnonzero((here != there).ravel())
        place = int(unlike[0])
        yield _difference(path, "value", here.flat[place], there.flat[place])


def _mappings(here: Any, there: Any, path: str, depth: int, seen: Seen) -> Iterator[Difference]:
    if here.get("is") == there.get("is") == "exact":  # the JSON of a fraction
        if here["value"] != there["value"]:
            yield _difference(path, "value", _decimal(here["value"]), _decimal(there["value"]))
        return
    if list(here) != list(there):  # the order of keys is seen, too
        yield _difference(f"the keys of {path}", "shape", list(here), list(there))
    for key in here:
        if key in there:
            place = f"{path}.{key}" if isinstance(key, str) and key.isidentifier() else f"{path}[{key!r}]"
            yield from _walk(here[key], there[key], place, depth + 1, seen)


def _lists(here: Any, there: Any, path: str, depth: int, seen: Seen) -> Iterator[Difference]:
    if len(here) != len(there):
        yield _difference(f"the length of {path}", "shape", len(here), len(there))
    for place, (one, other) in enumerate(zip(here, there, strict=False)):
        yield from _walk(one, other, f"{path}[{place}]", depth + 1, seen)


def _objects(here: Any, there: Any, path: str, depth: int, seen: Seen) -> Iterator[Difference]:
    if isinstance(here, Release):
        yield from _walk(public_fields(here.plan), public_fields(there.plan), f"{path}.plan", depth + 1, seen)
        yield from _walk(here.raw, there.raw, f"{path}.raw", depth + 1, seen)
        return
    if isinstance(here, Plan):
        yield from _walk(public_fields(here), public_fields(there), path, depth + 1, seen)
        return
    inside = _inside(here), _inside(there)
    if inside[0] is not None and inside[1] is not None:
        yield from _walk(*inside, path, depth + 1, seen)
        return
    if not _says_when_equal(here):
        yield _difference(path, "opaque", type(here).__name__, type(there).__name__)
        return
    try:
        same = bool(here == there)
    except Exception:
        yield _difference(path, "opaque", type(here).__name__, type(there).__name__)
        return
    if not same:
        yield _difference(path, "value", here, there)


def _inside(value: Any) -> Any:
    """What a thing is made of, as plain values; None where it does not say."""
    if inspect.isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return {"function": value.__qualname__, "closure": cells, "defaults": value.__defaults__}
    for name in ("state_dict", "to_pydict"):  # models, Arrow tables
        if callable(getattr(value, name, None)) and not isinstance(value, type):
            return dict(getattr(value, name)())
    if callable(getattr(value, "detach", None)):  # tensors
        return np.asarray(value.detach().cpu())
    if callable(getattr(value, "to_dict", None)) and hasattr(value, "columns"):  # frames
        named = [str(each) for each in value.columns]
        return {"columns": named, "cells": [list(value[each]) for each in value.columns]}
    if callable(getattr(value, "to_list", None)):  # series
        return list(value.to_list())
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name, None) for each in fields(value)}
    own = getattr(value, "__dict__", None)
    return None if own is None or isinstance(value, type) or _says_when_equal(value) else dict(own)


def _says_when_equal(value: Any) -> bool:
    own: Any = type(value).__eq__
    return own is not object.__eq__


def public_fields(plan: Plan[Any, Any]) -> Any:
    """What a plan makes public, as values that can be compared; one that has no JSON, field by field."""
    try:
        return record.encode(plan)
    except SfumatoError:
        return {each.name: getattr(plan, each.name) for each in fields(plan)}


def _equal(here: Any, there: Any) -> bool:
    if isinstance(here, float | np.floating) and math.isnan(here) and math.isnan(there):
        return True
    return bool(here == there)


def _difference(path: str, kind: Kind, here: Any, there: Any) -> Difference:
    return Difference(path, kind, _short(here), _short(there))


def _decimal(fraction: str) -> str:
    try:
        return f"{float(Fraction(fraction)):.12g}"
    except OverflowError:
        return fraction


def _short(value: Any) -> str:
    words = value if isinstance(value, str) else repr(value)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."
