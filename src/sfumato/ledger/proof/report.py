"""What a check of the ledger found."""

from __future__ import annotations

from typing import NamedTuple

from .chain import Link

_MOST = 20  # problems that are told one by one


class Problem(NamedTuple):
    """What is wrong, and at which entry, if it is one."""

    entry: int | None
    text: str

    def __str__(self) -> str:
        return self.text if self.entry is None else f"entry {self.entry}: {self.text}"


class Report(NamedTuple):
    """What `verify` found. It holds no data."""

    head: Link
    checkpoints: int
    accounts: int
    receipts: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems

    @property
    def first_bad(self) -> int | None:
        """The first bad entry; None if all are good, or what is bad is no entry."""
        return min((problem.entry for problem in self.problems if problem.entry is not None), default=None)

    def __str__(self) -> str:
        found = (
            f"{self.head.number} entries, {self.checkpoints} checkpoints, {self.accounts} accounts, "
            f"{self.receipts} receipts"
        )
        lines = ["the ledger holds: " + found if self.ok else "THE LEDGER DOES NOT HOLD: " + found]
        lines += [f"  {problem}" for problem in self.problems[:_MOST]]
        if len(self.problems) > _MOST:
            lines.append(f"  and {len(self.problems) - _MOST} more")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])
