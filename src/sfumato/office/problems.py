"""Why the office does not go on: what, why, how to mend it, and a word for it that a skin gives its own code to."""

from __future__ import annotations

from typing import Literal

from ..errors import SfumatoError

Reason = Literal["usage", "file", "refused", "budget", "interrupted"]


class OfficeError(SfumatoError):
    """A release that cannot go on.

    reason  what kind of trouble it is
    case    which one of them, in a word of its own: a skin may know a better fix, in the words of its own options
    """

    def __init__(self, what: str, why: str, fix: str, reason: Reason, case: str = "") -> None:
        super().__init__(f"{what}: {why}; {fix}", cause=why, fix=fix, code=case or reason)
        self.what, self.why, self.reason, self.case = what, why, reason, case
