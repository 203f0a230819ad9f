"""One plan of every kind that the package ships, small enough to be run a hundred thousand times.

    for name, make in shipped.PLANS.items():
        print(name, audit.check(make()))

Whatever is audited, verified or mutated in a loop goes over these: the sample that each registered kind gives of
itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import kinds
from ..plan import Plan
from ..units import Unit

ROW, REPLACE, USER = Unit(), Unit(change="replace"), Unit("user:id")
WARDS = ("east", "north", "west")


def _sampling(kind: Callable[[], type[Plan[Any, Any]]]) -> Callable[[], Plan[Any, Any]]:
    return lambda: kind().sample()


PLANS: dict[str, Callable[[], Plan[Any, Any]]] = {name: _sampling(kind) for name, kind in kinds.plans().items()}
