"""Every kind of record that this version knows. Whoever reads stored plans back asks for them first."""

from __future__ import annotations

from importlib import import_module


def load() -> None:
    """Import what registers records, so that no stored name is unknown only because nobody has used it yet."""
    for part in ("bounds", "combine", "events", "jointly", "mechanisms", "strategies", "tidy"):
        import_module(f".{part}", __package__)
