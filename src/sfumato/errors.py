"""What sfumato raises. A message names the argument, the cause and the fix; none ever holds a value of the data."""

import re
import threading
import warnings
from collections.abc import Callable
from typing import Self, TypeVar

T = TypeVar("T")


def install_line(extra: str) -> str:
    """How an extra is installed, for messages. From a checkout: the name on package registries is not ours yet, and
    whoever takes it would be installed by a line with it."""
    return f"pip install '.[{extra}]' in a checkout of sfumato"


_TWO_PARTS = re.compile(r"((?:[^\[:\n]|\[[^\]]*\]|:(?! ))+): ([^\n]+?)\.?")  # a colon in a unit's brackets is no end
_NAMED = re.compile(r"([a-z_]+)(?: = | is missing| is not allowed| are not allowed)")


class SfumatoError(Exception):
    """The parent of every error of this package. Its text is for people; whoever decides by it reads these:

    cause     what is in the way
    fix       what to do about it, in Python's words; None where the error does not say
    argument  the name of the argument that is refused, where it is one
    code      what happened, in a word that never changes: of the kind of error, or of this refusal

    A text in the form of the house, "cause: fix", is taken apart here, when the error is made, and nowhere else.
    """

    code = "error"

    def __init__(
        self,
        text: str = "",
        *,
        cause: str | None = None,
        fix: str | None = None,
        code: str | None = None,
        argument: str | None = None,
    ) -> None:
        super().__init__(text)
        if cause is None:
            parts = _TWO_PARTS.fullmatch(text.strip()) if fix is None else None
            cause, fix = parts.groups() if parts is not None else (text.strip().rstrip("."), fix)
            named = _NAMED.match(text) if argument is None else None
            argument = argument if named is None else named[1]
        self._cause, self.fix, self.argument = cause, fix, argument
        if code is not None:
            self.code = code

    @property
    def cause(self) -> str:
        return self._cause

    def anew(self) -> Self:
        """The same error without a traceback: the one that was raised holds on to the frames it came through."""
        again = type(self).__new__(type(self), *self.args)
        again.__dict__.update(self.__dict__)
        return again


class ArgumentError(SfumatoError, ValueError):
    """A public argument is not allowed. Raised before data is touched and before anything is charged."""

    code = "argument"


class PlanError(SfumatoError):
    """A plan does not fit the data it is asked of (unit, schema, columns). Raised before anything is charged."""

    code = "plan"


class BudgetError(SfumatoError):
    """The ledger refuses a spend. Nothing was charged."""

    code = "budget"


class PolicyError(BudgetError):
    """The policy forbids it. Nothing was charged. `act` is what others can approve, if that is what is missing."""

    code = "policy"

    def __init__(self, text: str, act: object = None, *, cause: str | None = None, code: str | None = None) -> None:
        super().__init__(text, cause=text.strip().rstrip(".") if cause is None else cause, code=code)
        self.act = act


class ReceiptError(SfumatoError):
    """A receipt is missing, spent, or belongs to something else."""

    code = "receipt"


class LedgerError(SfumatoError):
    """The ledger cannot be read or written. Nothing is released without one."""

    code = "ledger"


class BusyError(SfumatoError):
    """Another process is at work on the same project. Nothing was charged."""

    code = "busy"


class RecordError(SfumatoError, ValueError):
    """Stored JSON cannot be read: an unknown name or version, or fields that do not belong to it."""

    code = "record"


class UnsupportedEventError(SfumatoError):
    """No accountant of the asked notion can price this event. Never answered by a silent infinity."""

    code = "unpriced"


class DataError(SfumatoError):
    """A release failed on the data's side. The text is fixed, so it tells nothing about the data."""

    code = "data"
    CAUSE = (
        "The release failed while it ran on the private data. The charge stays, because whether and how a run fails "
        "may depend on the data."
    )
    FIX = "Find the cause on made-up rows: curator.rehearse(plan) shows full errors for free."
    TEXT = f"{CAUSE} {FIX}"

    def __init__(self) -> None:
        super().__init__(self.TEXT, cause=self.CAUSE, fix=self.FIX)


class _Silence:
    """No warnings while work on the data goes on: whether one comes, and what it says, may depend on the data.

    Warning filters belong to the process, so the first worker in sets them and the last one out puts them back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
            self._inside += 1
            warnings.simplefilter("ignore")  # each of them: somebody may have set filters of their own meanwhile

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._before.__exit__(None, None, None)


_SILENCE = _Silence()


def guarded(work: Callable[[], T]) -> T:
    """Do work on the data; whatever goes wrong there becomes a DataError that keeps no trace of the cause."""
    error: type[BaseException] = DataError
    try:
        with _SILENCE:
            return work()
    except KeyboardInterrupt:
        error = KeyboardInterrupt
    except BaseException:  # an exit of the process or of a task may hold data in its text as well
        pass
    raise error  # outside the handlers, so that the inner error is not its context


def ended_by(problem: BaseException) -> str:
    """How a receipt ends with this: "interrupted" by hand, which no row decides, or "failed", which a row may have."""
    return "interrupted" if isinstance(problem, KeyboardInterrupt) else "failed"


class PrivacyWarning(UserWarning):
    """A choice that is allowed but weakens the guarantee below what most readers would expect."""
