"""Checkpoints: what was released so far, so that a training that was stopped can go on.

A checkpoint holds weights, the optimiser's state and counters: all of it post-processing of noisy sums that were paid
for. It holds no state of the random source (a step that runs again has fresh noise, and is paid for again) and no
batch. The budget is in the ledger alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from ..errors import PlanError

_KIND = "sfumato checkpoint/1"


def save(path: Path, *, plan: str, receipt: str, state: dict[str, Any]) -> None:
    """Write it beside the old one, and put it in its place in one step."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as file:
        torch.save({"is": _KIND, "plan": plan, "receipt": receipt, "state": state}, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def refuse_other(path: Path, *, plan: str) -> None:
    """Refuse the checkpoint of another plan, before anything is paid for."""
    if path.exists() and _read(path)["plan"] != plan:
        raise _another(path)


def load(path: Path, *, plan: str, receipt: str) -> dict[str, Any] | None:
    """What was saved last; None where there is nothing yet. Refuses the checkpoint of another training."""
    if not path.exists():
        return None
    stored = _read(path)
    if (stored["plan"], stored["receipt"]) != (plan, receipt):
        raise _another(path)
    state: dict[str, Any] = stored["state"]
    return state


def _read(path: Path) -> dict[str, Any]:
    try:
        stored: dict[str, Any] = torch.load(path, weights_only=True)
        kind = stored["is"]
    except Exception:
        raise PlanError(f"checkpoint {path.name!r} cannot be read: remove it, or give another path") from None
    if kind != _KIND:
        raise PlanError(f"checkpoint {path.name!r} is of a kind that this version does not know")
    return stored


def _another(path: Path) -> PlanError:
    return PlanError(
        f"checkpoint {path.name!r} belongs to another training (another plan, or another key): remove it, or give "
        "another path"
    )
