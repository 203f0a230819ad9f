"""Private training: a PyTorch model, trained by DP-SGD in one backward pass, priced before it runs and paid for step by
step.

>>> from sfumato import learn
>>> float(learn.Flat(norm=1).norm)  # no record's gradient is longer
1.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import PlanError, install_line

if TYPE_CHECKING:
    from .aside import Progress
    from .checking import check, per_record
    from .clipping import Adaptive, Automatic, Flat, PerGroup, PerLayer
    from .datasets import encode
    from .features import Features, Target
    from .fixing import fix
    from .forecasting import Forecast, forecast
    from .front import sgd
    from .live import optimiser
    from .metrics import accuracy, by_group
    from .plan import SGD
    from .trained import Trained

_HOMES = {
    "Adaptive": "clipping",
    "Automatic": "clipping",
    "Features": "features",
    "Flat": "clipping",
    "Forecast": "forecasting",
    "PerGroup": "clipping",
    "PerLayer": "clipping",
    "Progress": "aside",
    "SGD": "plan",
    "Target": "features",
    "Trained": "trained",
    "accuracy": "metrics",
    "by_group": "metrics",
    "check": "checking",
    "encode": "datasets",
    "fix": "fixing",
    "forecast": "forecasting",
    "optimiser": "live",
    "per_record": "checking",
    "sgd": "front",  # a module of that name would hide the function
}

__all__ = [
    "SGD",
    "Adaptive",
    "Automatic",
    "Features",
    "Flat",
    "Forecast",
    "PerGroup",
    "PerLayer",
    "Progress",
    "Target",
    "Trained",
    "accuracy",
    "by_group",
    "check",
    "encode",
    "fix",
    "forecast",
    "optimiser",
    "per_record",
    "sgd",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato.learn' has no attribute {name!r}")
    try:
        import_module("torch")
    except ImportError:
        raise PlanError(f"training needs PyTorch, which is not installed: {install_line('learn')}") from None
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
