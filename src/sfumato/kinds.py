"""Every kind of record that this version knows. Whoever reads stored plans back asks for them first."""

from __future__ import annotations


def load() -> None:
    """Import what registers records, so that no stored name is unknown only because nobody has used it yet."""
    from . import bounds, combine, events, jointly, mechanisms, strategies, tidy  # noqa: F401
