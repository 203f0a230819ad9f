"""What tests of the library reach inside it, by name: the audits of others, and the referee.

A curator releases; everything here goes past it, on data that somebody made up. What opens private data without a
receipt is not here, and never will be. Where a fault is planted in a line of the library, `seams` names the line.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from ..noise import Bits, Noise
from ..plan import Plan, Receipt, Run
from ..schema import Table

if TYPE_CHECKING:
    from ..learn.blurring import StepSum
    from ..learn.engine import Engine
    from ..learn.owners import OwnerWatch
    from ..learn.stepping import Batch, Stepper
    from ..ledger.charges import Charges
    from ..ledger.desk import Desk
    from ..ledger.ledger import Ledger
    from ..ledger.proof.anchor import Anchor
    from ..ledger.proof.anchored import AnchoredStore
    from ..ledger.stores.base import Account, Book, Store
    from ..ledger.stores.memory import MemoryStore
    from ..ledger.stores.sqlite import SQLiteStore
    from ..mechanisms.mwem import MWEM
    from ..mechanisms.thresholds import Gate, GateConversation

# plans


def run(plan: Plan[Any, Any], data: Any, noise: Noise | Run) -> Any:
    """What the code of a plan gives for this data: the raw answer, unpaid and unwritten."""
    return plan._run(data, noise if isinstance(noise, Run) else Run(noise))


def runs(plan: Plan[Any, Any], data: Any, run: Run, count: int) -> Any:
    """So many raw answers at once, by the plan's own way to give them."""
    return plan._runs(data, run, count)


def questions(plan: Any, table: Table) -> list[Any]:
    """The questions that an interactive plan carries, each on its grid."""
    accepted: list[Any] = plan._accepted(table)
    return accepted


def keys_held(plan: Any, rows: Any, noise: Noise) -> tuple[Any, Any]:
    """(unit, code of key) of every key that counts, where a plan chooses among unknown keys."""
    keys: tuple[Any, Any] = plan._held(rows, Run(noise))
    return keys


def round_epsilon(plan: MWEM) -> Fraction:
    """What one choice or one measurement of MWEM may cost."""
    return plan._part


def question_reach(plan: MWEM) -> Fraction:
    """How far one unit moves the answer to a question of MWEM, in whole steps."""
    return plan._reach(plan._whole)


def centre(mean: Any, exponent: int) -> tuple[int, int]:
    """The middle of a mean's bounds and the half of their width, in steps."""
    middle, half = mean._centre(exponent)
    return middle, half


class Conversation(NamedTuple):
    """A conversation at a gate, while it goes on."""

    gate: Gate
    noise: Noise
    threshold: Any
    left: Any  # an array of one number: what is taken off it is gone


def conversation(watch: GateConversation) -> Conversation:
    """The inside of a conversation of a sparse vector."""
    return Conversation(watch._gate, watch._noise, watch._threshold, watch._left)


def bits_of(noise: Noise) -> Bits:
    """Where a noise has its bits from."""
    return noise._bits


# engines


def engine_of(session: Any) -> Any:
    """The engine's own connection behind a session, past the lock on what may be asked of it, with all its views."""
    for name, (table, _) in session._given.items():
        session._see(name, table.columns)
    return session._engine


def fetch(session: Any, bound: Any) -> Any:
    """A bound statement's table, within the seconds that the session has."""
    return session._timed(bound)


# ledgers


def store_of(ledger: Ledger) -> Store:
    """Where a ledger keeps its entries and accounts."""
    return ledger._store


def desk_of(part: Any) -> Desk:
    """Who writes for a ledger, or for a part of one."""
    desk: Desk = part._desk
    return desk


def charges_of(ledger: Ledger) -> Charges:
    """What a ledger charges by, as the class says that it was made of."""
    return ledger._charges


def unpaid_receipt(ledger: Ledger, accounts: tuple[str, ...], plan: Plan[Any, Any], data: str) -> Receipt:
    """A receipt as the ledger writes one, for what nobody has paid."""
    from ..ledger.request import Request

    return charges_of(ledger).receipt(accounts, Request(accounts, plan, data, "exact", ""), "plan")


def accounts_read(book: Any) -> dict[str, Account]:
    """The accounts that a transaction on SQLite has read, and decides by."""
    accounts: dict[str, Account] = book._accounts
    return accounts


def connection_of(store: SQLiteStore) -> Any:
    """The connection of a store in a file."""
    return store._connection


def anchor_of(store: AnchoredStore) -> Anchor:
    """Where a store publishes how far it is."""
    return store._anchor


def take_as_entered(store: AnchoredStore) -> None:
    """Let a store believe that it published its token."""
    store._entered = True


def trial(store: MemoryStore) -> Book:
    """A transaction on a store in memory that keeps nothing of what is written into it."""
    from ..ledger.stores.memory import DraftBook

    return DraftBook(store._kept)


def keep(store: MemoryStore, written: Any) -> None:
    """Keep what was written into a trial, whatever has been written since."""
    store._kept.take(written.new)


def share(store: MemoryStore, other: MemoryStore) -> None:
    """From now on this store reads what the other one has."""
    store._kept = other._kept


def snapshot(store: MemoryStore) -> MemoryStore:
    """A store that stays as this one is now."""
    from ..ledger.stores.memory import MemoryStore

    copy = MemoryStore()
    copy._kept = type(store._kept)(**{name: pages.copy() for name, pages in vars(store._kept).items()})
    return copy


# training


class OpenStep(NamedTuple):
    """The sum of one step of training, while its micro-batches come in."""

    stepper: Stepper
    noise: Noise
    sum: StepSum
    steps: Any  # the sum itself, an array of whole steps: what is added to it is released
    norm: float


def step_of(batch: Batch) -> OpenStep:
    """The inside of a batch."""
    return OpenStep(batch._stepper, batch._stepper._noise, batch._sum, batch._sum._total, batch._norm)


def watch_by(engine: Engine, watch: OwnerWatch) -> None:
    """Let another watch say which row of a batch is whose, and forget what was surveyed."""
    engine._watch, engine._surveyed = watch, None
