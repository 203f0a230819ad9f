"""What must hold after a process died that released: the attack's own checks, as assertions."""

from __future__ import annotations

from pathlib import Path

from sfumato_referee.attacks.ledger import releasing


def check_after(folder: Path, design: str = "right", *, releases: int = releasing.RELEASES) -> None:
    """L1, L3, L4 and L5 on what a dead process left behind, and the ledger goes on."""
    fault = releasing.fault_after(folder, design, releases=releases)
    assert fault is None, fault
