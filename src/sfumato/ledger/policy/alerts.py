"""Telling alerts: to a log, the terminal, and a webhook.

Telling comes after the commit. It may fail, be slow or be lost, and nothing is spent, refused or delayed for it.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from . import webhook
from .policy import Policy
from .watch import SEVERITIES, WHAT, Alert, Watch

__all__ = ["SEVERITIES", "WHAT", "Alert", "Watch", "flush", "tell"]

_LOG = logging.getLogger("sfumato.ledger")


def tell(alerts: Iterable[Alert], policy: Policy) -> None:
    """Tell them wherever the policy says. Never raises."""
    told = tuple(alerts)
    if not told:
        return
    rule = policy.alerts
    if rule.log:
        for alert in told:
            _quietly(_LOG.warning, "%s", _line(alert))
    if rule.terminal:
        for alert in told:
            _quietly(_write, f"sfumato: {_line(alert)}\n")
    if rule.webhook is not None:
        _quietly(webhook.post, _body(told), rule)


def flush(seconds: float = 2.0) -> bool:
    """Wait for what is still on its way to a webhook; False if some of it is after that time."""
    return webhook.flush(seconds)


def _quietly(work: Callable[..., object], *given: object) -> None:
    try:
        work(*given)
    except Exception as problem:  # somebody's log handler, a closed terminal, no thread to be had
        with contextlib.suppress(Exception):
            _LOG.warning("alerts could not be told (%s)", type(problem).__name__)


def _write(line: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(line)
        sys.stderr.flush()


def _line(alert: Alert) -> str:
    """On one line, whatever an account is called."""
    return "".join(c if c.isprintable() else "?" for c in str(alert))


def _body(alerts: tuple[Alert, ...]) -> dict[str, Any]:
    """What is posted. `text` is what chat systems show."""
    return {"text": "\n".join(map(_line, alerts)), "alerts": [asdict(alert) for alert in alerts]}
