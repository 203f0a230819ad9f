"""What sfumato raises. A message names the argument, the cause and the fix; none ever holds a value of the data."""

import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def install_line(extra: str) -> str:
    """How an extra is installed, for messages. From a checkout: the name on package registries is not ours yet, and
    whoever takes it would be installed by a line with it."""
    return f"pip install '.[{extra}]' in a checkout of sfumato"


class SfumatoError(Exception):
    """The parent of every error of this package."""


class ArgumentError(SfumatoError, ValueError):
    """A public argument is not allowed. Raised before data is touched and before anything is charged."""


class PlanError(SfumatoError):
    """A plan does not fit the data it is asked of (unit, schema, columns). Raised before anything is charged."""


class BudgetError(SfumatoError):
    """The ledger refuses a spend. Nothing was charged."""


class PolicyError(BudgetError):
    """The policy forbids it. Nothing was charged. `act` is what others can approve, if that is what is missing."""

    def __init__(self, text: str, act: object = None) -> None:
        super().__init__(text)
        self.act = act


class ReceiptError(SfumatoError):
    """A receipt is missing, spent, or belongs to something else."""


class LedgerError(SfumatoError):
    """The ledger cannot be read or written. Nothing is released without one."""


class BusyError(SfumatoError):
    """Another process is at work on the same project. Nothing was charged."""


class RecordError(SfumatoError, ValueError):
    """Stored JSON cannot be read: an unknown name or version, or fields that do not belong to it."""


class UnsupportedEventError(SfumatoError):
    """No accountant of the asked notion can price this event. Never answered by a silent infinity."""


class DataError(SfumatoError):
    """A release failed on the data's side. The text is fixed, so it tells nothing about the data."""

    TEXT = (
        "The release failed while it ran on the private data. The charge stays, because whether and how a run fails "
        "may depend on the data. Find the cause on made-up rows: curator.rehearse(plan) shows full errors for free."
    )

    def __init__(self) -> None:
        super().__init__(self.TEXT)


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
