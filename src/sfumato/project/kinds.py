"""Any registered plan in a file: `kind: laplace`, and its fields by name.

    kind: laplace
    query: {kind: mean, column: age, lower: 0, upper: 120}
    epsilon: 0.5

A kind is the registered name of a record without its version, and without "plan-", "strategy-" or "workload-" before
it. Whom to hide comes from the project. Numbers are exact, as they are written; a plan's own validators judge them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import partial
from pathlib import Path as FilePath
from typing import Any, get_args, get_origin, get_type_hints

from pydantic_core import PydanticCustomError

from .. import kinds, record
from ..accounting.budget import Budget
from ..bounds import Among, Between, Bounded
from ..errors import SfumatoError
from ..plain_yaml import Bare, Path, number
from ..plan import Plan
from ..schema import Column, Schema
from ..strategies import Strategy, Workload
from ..units import Unit
from .checking import meant
from .code import function_of
from .faults import Faults
from .fields import category, text

KIND = "kind"
_PARENTS = (Plan, Bounded, Strategy, Workload, Among, Between, Budget, Column)
_ALONE = (Budget, Column)  # of one kind only, which need not be named
_PREFIXES = ("plan-", "strategy-", "workload-")
_NOTHING = ("", "~", "null")
_ELSEWHERE = {
    "sql": "write sql, or file, instead of kind",
    "sgd": "a training has a file of its own: `sfumato train`; docs/project-file.md shows one",
}


def word_of(cls: type) -> str:
    """What a file calls it."""
    name = str(getattr(cls, KIND)).partition("/")[0]
    return next((name.removeprefix(start) for start in _PREFIXES if name.startswith(start)), name)


def known_kinds(parent: type[Any] | tuple[type[Any], ...] = _PARENTS) -> dict[str, type[Any]]:
    """Every kind that a file may name, of these classes; of several versions of one, the last."""
    kinds.load(queries=True)
    parents = parent if isinstance(parent, tuple) else (parent,)
    registered = {name: cls for each in parents for name, cls in record.kinds(each).items()}
    by_version = sorted(registered.items(), key=lambda item: int(item[0].partition("/")[2]))
    return {word_of(cls): cls for _, cls in by_version}


def own_fields(cls: type[Any]) -> dict[str, Field[Any]]:
    """The fields that a file gives: all but the unit, which is the project's, and what is only shown."""
    types = hints(cls)
    return {
        each.name: each
        for each in fields(cls)
        if each.init and types.get(each.name) is not Unit and not each.metadata.get("shown")
    }


def needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def hints(cls: type[Any]) -> dict[str, Any]:
    """The types of the fields; none where they cannot be told."""
    try:
        return get_type_hints(cls)
    except NameError:
        return {}


class Builder:
    """Makes records of what a file says. All that is wrong is added to the faults, at its line.

    code  the functions of the user's own that were imported, as the file names them
    """

    def __init__(self, schema: Schema, unit: Unit, file: FilePath, faults: Faults) -> None:
        self._schema, self._unit, self._file, self._faults = schema, unit, file, faults
        self.code: list[str] = []

    def plan(self, path: Path, written: Mapping[str, Any]) -> Plan[Any, Any] | None:
        """The plan of a release; None where something is wrong with it."""
        before = self._faults.count
        plan = self._record(path, written, Plan, "plan")
        if plan is None or self._faults.count > before:
            return None
        self._trying(path, lambda: plan.check_schema(self._schema))
        return plan if self._faults.count == before else None

    def _record(self, path: Path, written: Mapping[str, Any], parent: Any, what: str) -> Any:
        classes = known_kinds(parent if isinstance(parent, type) and issubclass(parent, _PARENTS) else _PARENTS)
        word = written[KIND]
        cls = classes.get(str(word)) if isinstance(word, str) else None
        if cls is None or str(word) in _ELSEWHERE:
            cause = f"there is no kind of {what} {str(word)[:60]!r}" if cls is None else f"{word} has a form of its own"
            self._faults.add((*path, KIND), cause, _ELSEWHERE.get(str(word)) or meant(str(word), list(classes)))
            return None
        takes, types = own_fields(cls), hints(cls)
        before = self._faults.count
        for name in written:
            if name != KIND and name not in takes:
                others = [other for other in takes if other not in written]
                self._faults.add((*path, name), f"{word} has no such field", meant(str(name), others or list(takes)))
        slips = self._faults.count > before
        for name, field in takes.items():
            if needed(field) and name not in written and not slips:
                self._faults.add(
                    path, f"{name} is missing, which {word} needs", f"add {name}{_example(types.get(name))}"
                )
        values = {
            name: self._value((*path, name), written[name], types.get(name), bool(field.metadata.get("live")))
            for name, field in takes.items()
            if name in written
        }
        if self._faults.count > before:
            return None
        units = {each.name: self._unit for each in fields(cls) if types.get(each.name) is Unit}
        return self._trying(path, lambda: cls(**values, **units))

    def _value(self, path: Path, written: Any, hint: Any, live: bool) -> Any:
        """What a field holds; None, and a fault, where it cannot be read."""
        if live:
            return self._live(path, written)
        if isinstance(written, dict):
            named = written if hint not in _ALONE else {KIND: word_of(hint), **written}
            if KIND in named:
                return self._record(path, named, hint, str(path[-1]))
            return self._mapping(path, written, get_args(hint) or (str, Any))
        if isinstance(written, list):
            inside = (get_args(hint) or (Any,))[0]
            return tuple(self._value((*path, place), item, inside, False) for place, item in enumerate(written))
        if isinstance(hint, type) and issubclass(hint, _PARENTS) and isinstance(written, Bare):
            return self._record(path, {KIND: written}, hint, str(path[-1]))  # query: count
        return self._trying(path, lambda: _scalar(written, hint))

    def _mapping(self, path: Path, written: dict[Any, Any], types: tuple[Any, ...]) -> dict[Any, Any]:
        """Names are texts; keys of a partition are values of a category."""
        read = text if types[0] is str else category
        names = {name: self._trying((*path, str(name)), partial(read, name)) for name in written}
        return {names[name]: self._value((*path, str(name)), item, types[-1], False) for name, item in written.items()}

    def _live(self, path: Path, written: Any) -> Any:
        """A function of the user's own."""

        def wrong(cause: str, fix: str) -> SfumatoError:
            self._faults.add(path, cause, fix)
            return SfumatoError(cause)

        if not isinstance(written, str):
            self._faults.add(path, "a function is needed here", "write module:function, such as rules:body")
            return None
        self.code.append(str(written))
        try:
            return function_of(str(written), self._file, wrong)
        except SfumatoError:
            return None

    def _trying(self, path: Path, make: Callable[[], Any]) -> Any:
        """What it makes; whatever it refuses is told at its place. No data is open here, so all of it may be."""
        try:
            return self._faults.trying(path, make)
        except PydanticCustomError:
            raise
        except Exception as problem:
            lines = str(problem).strip().splitlines() or [""]
            self._faults.add(path, f"this cannot be used: {lines[0][:200]}", "see docs/mechanisms for what it takes")
            return None


def _scalar(written: Any, hint: Any) -> Any:
    """A number, true or false, nothing, or a text; where the field is for texts, only that."""
    if not isinstance(written, Bare):
        return str(written)
    if hint is str:
        return text(written)
    if written in _NOTHING:
        return None
    exact = number(written)
    if exact is not None:
        return int(exact) if exact.denominator == 1 else exact
    return category(written)


def _example(hint: Any) -> str:
    """What a missing field might hold."""
    kind = get_origin(hint) or hint
    if inspect.isclass(kind) and issubclass(kind, _PARENTS):
        words = list(known_kinds(kind))
        return f", such as {{kind: {words[0] if 'count' not in words else 'count'}}}"
    return ""
