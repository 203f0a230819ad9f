"""Where budgets live."""

from .memory import MemoryLedger

__all__ = ["MemoryLedger"]
