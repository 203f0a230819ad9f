"""The budgets of a project: the total, its parts, and how an account of each adds up what is spent."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..accounting.budget import Budget, common_shares
from ..plain_yaml import Path
from .faults import Faults
from .form import AllocationForm, ProjectForm, TotalForm

_PLANS, _FAILURES = Fraction(1, 10), Fraction(1, 4)


def total_of(form: ProjectForm, faults: Faults) -> Budget | None:
    """The whole budget, with the gauges that the mode asks for."""
    path: Path = ("budget", "total")
    return budget_of(form.budget.total, form.privacy.accounting_mode, path, faults)


def parts_of(form: ProjectForm, total: Budget, faults: Faults) -> dict[str, Budget]:
    """The budgets of the accounts below it."""
    budgets: dict[str, Budget] = {}
    sizes: dict[str, Fraction] = dict.fromkeys(("epsilon", "delta", "rho"), Fraction(0))
    for name, part in form.budget.allocations.items():
        path: Path = ("budget", "allocations", name)
        if name == form.name:
            faults.add(path, "this is the name of the data set's own account", "give the part another name")
            continue
        budget = _part(part, total, form.privacy.accounting_mode, path, faults)
        if budget is not None:
            budgets[name] = budget
            for size in sizes:
                sizes[size] += getattr(budget, size) or 0
    for size, taken in sizes.items():
        if taken > (getattr(total, size) or 0):
            cause = f"the parts add up to more {size} than the total has"
            faults.add(("budget", "allocations"), cause, "give parts of at most 1 in all")
            break
    return budgets


def _part(part: AllocationForm, total: Budget, mode: str, path: Path, faults: Faults) -> Budget | None:
    if part.share is None:
        if part.epsilon is None and part.rho is None:
            faults.add(path, "it does not say how much", "write a share such as 0.5, or {epsilon: 1, delta: 1e-7}")
            return None
        budget = budget_of(part, mode, path, faults)
        if budget is not None and not budget.within(total):
            faults.add(path, f"{budget} is more than the total, {total}", "give it less")
            return None
        return budget
    if part.model_fields_set != {"share"}:
        faults.add(path, "a share says all of it", "give the share, or epsilon and delta, or rho")
        return None
    if not 0 < part.share <= 1:
        faults.add(path, "it is no share of the total", "give a number above 0, at most 1")
        return None
    sizes = {name: size * part.share for name in ("epsilon", "delta", "rho") if (size := getattr(total, name))}
    return faults.trying(path, lambda: Budget(**sizes, shares=shares_of(mode, sizes), raisable=total.raisable))


def budget_of(form: TotalForm, mode: str, path: Path, faults: Faults) -> Budget | None:
    sizes = {name: size for name in ("epsilon", "delta", "rho") if (size := getattr(form, name)) is not None}
    refused = _refused(mode, sizes)
    if refused:
        faults.add(("privacy", "accounting_mode"), *refused)
        return None
    return faults.trying(path, lambda: Budget(**sizes, shares=shares_of(mode, sizes), raisable=form.raisable))


def _refused(mode: str, sizes: dict[str, Any]) -> tuple[str, str] | None:
    if "rho" in sizes and mode not in ("auto", "zcdp"):
        return f"a budget in rho is not added up as {mode}", "write auto or zcdp, or give the budget in epsilon"
    if "rho" not in sizes and not sizes.get("delta") and mode not in ("auto", "pure"):
        return f"{mode} needs a delta, and the budget has none", "write auto or pure, or give budget.total a delta"
    return None


def shares_of(mode: str, sizes: dict[str, Any]) -> dict[str, Fraction] | None:
    """How delta is divided among the gauges. A part is for what may fail by itself, and one for the plans' own deltas,
    whatever the gauge."""
    if mode == "auto" or not sizes.get("delta") or "epsilon" not in sizes:
        return None
    if mode == "pure":
        return {"plans": Fraction(1)}
    if mode == "rdp":
        shares = common_shares(sizes["epsilon"], sizes["delta"])
        orders = [name for name, _ in shares if name.startswith("renyi:")]
    else:
        orders = ["concentrated" if mode == "zcdp" else "gaussian"]
    return {"plans": _PLANS, **dict.fromkeys(orders, (1 - _PLANS - _FAILURES) / len(orders)), "failures": _FAILURES}
