"""The command that raises a limit."""

from __future__ import annotations

from ...accounting.budget import Budget


def raise_command(account: str, enough: Budget | None) -> str:
    """To a budget that is enough for what was asked; its help where none is known."""
    start = f"sfumato ledger limit {account} "
    return f"{start}--help" if enough is None else f"{start}{_options(enough)} --reason WHY"


def _options(budget: Budget) -> str:
    if budget.rho is not None:
        return f"--rho {float(budget.rho):g}"
    delta = f" --delta {float(budget.delta):g}" if budget.delta else ""
    return f"--epsilon {float(budget.epsilon):g}{delta}" + " --raisable" * budget.raisable
