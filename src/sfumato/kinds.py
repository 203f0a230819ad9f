"""Every kind of record that this version knows. Whoever reads stored plans back asks for them first.

A file in a folder of `_CORE` is found by itself: a new mechanism needs no line here. An area that needs no more than
the core does is one word in `_CORE`; one with an extra of its own is one line in `_AREAS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import isabstract
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

from . import record

if TYPE_CHECKING:
    from .plan import Plan

_CORE = ("bounds", "combine", "events", "jointly", "mechanisms", "strategies", "tidy")


class _Area(NamedTuple):
    """A folder whose plans need something that may not be installed.

    needs   what that is
    plans   its plans, each in its module
    always  its modules with records that need it not
    apart   is it too slow to load for a file that may name any kind? Then its plans have a file of their own
    """

    needs: str
    plans: tuple[tuple[str, str], ...]
    always: tuple[str, ...] = ()
    apart: bool = False


_AREAS = {
    "learn": _Area("torch", (("plan", "SGD"),), always=("features",), apart=True),
    "query": _Area(
        "sqlglot",
        (
            ("plan", "Sql"),
            ("above.report_plan", "SqlReport"),
            ("above.stages_plan", "SqlStages"),
            ("dated.series_plan", "SqlSeries"),
            ("tabled.workload_plan", "SqlWorkload"),
        ),
    ),
}


def load(*, queries: bool = False) -> None:
    """Import what registers records, so that no stored name is unknown only because nobody has used it yet.

    queries  SQL and other areas with an extra, too, where it is installed: reading a query back takes some 20 ms, so
             only who checks prices, or reads a file that may name any kind, asks for it
    """
    _load_core()
    for name, area in _AREAS.items():
        whole = queries and not area.apart and find_spec(area.needs) is not None
        for module in (*area.always, *(module for module, _ in area.plans if whole)):
            import_module(f".{name}.{module}", __package__)


def plans() -> dict[str, Callable[[], type[Plan[Any, Any]]]]:
    """Every kind of plan that the package registers, by the name of its class: what gives the class imports it."""
    from .plan import Plan

    load()
    classes = [cls for cls in record.kinds(Plan).values() if _of_the_core(cls)]  # type: ignore[type-abstract]
    listed: dict[str, Callable[[], type[Plan[Any, Any]]]] = {cls.__name__: _giving(cls) for cls in classes}
    for name, area in _AREAS.items():
        listed |= {cls: _importing(f".{name}.{module}", cls) for module, cls in area.plans}
    return listed


def _of_the_core(cls: type) -> bool:
    """Is it of this package, and of no area? Tests and users register their own."""
    package, _, rest = cls.__module__.partition(".")
    return package == __package__ and rest.partition(".")[0] in _CORE and not isabstract(cls)


def _giving(cls: type[Plan[Any, Any]]) -> Callable[[], type[Plan[Any, Any]]]:
    return lambda: cls


def _importing(module: str, name: str) -> Callable[[], type[Plan[Any, Any]]]:
    return lambda: getattr(import_module(module, __package__), name)


@cache
def _load_core() -> None:
    for part in _CORE:
        for module in (part, *_within(part)):
            import_module(f".{module}", __package__)


def _within(part: str) -> Iterator[str]:
    """The files of a folder."""
    folder = import_module(f".{part}", __package__)
    return (f"{part}.{module.name}" for module in iter_modules(getattr(folder, "__path__", ())))
