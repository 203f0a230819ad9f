"""Faults of the ledger: budgets that are not charged, not kept, given back, or not checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sfumato import exact, process
from sfumato.accounting import members
from sfumato.audit import seams, surface
from sfumato.ledger import charges, holds, owners, parts, payments, tree
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.proof import chain
from sfumato.ledger.stores import digest, sqlite

from ..mutant import Shelf, attacks, plans, plant, swap, swap_everywhere

FAULTS = Shelf("ledger")


@FAULTS.fault("a failure gives the charge back", by=(*plans("Laplace"), *attacks("L4")))
def refunded() -> None:
    """What a failed release was charged comes back."""

    def spend(pay: Any) -> Any:
        def remember_then_pay(self: Any, *arguments: Any, **named: Any) -> Any:
            with surface.desk_of(self).reading() as book:
                self.before = {name: book.account(name) for name in book.accounts()}
            return pay(self, *arguments, **named)

        return remember_then_pay

    def settle(one: Any) -> Any:
        def back(self: Any, receipt: Any, outcome: str, answer: Any = None) -> None:
            one(self, receipt, outcome, answer)
            if outcome == "failed":
                with surface.store_of(self).writing() as book:
                    for name in receipt.accounts:
                        book.put_account(self.before[name])

        return back

    swap(Ledger, "spend", spend)
    swap(Ledger, "settle", settle)


@FAULTS.fault("a receipt opens again and again", by=attacks("L3"))
def opens_again() -> None:
    def open_again(_: Any) -> Any:
        def open(self: Any, receipt: Any) -> None:
            desk = surface.desk_of(self)
            with desk.writing() as book:
                filed = holds.filed_as(book, receipt)
                desk.write(book, "open", {"receipt": receipt.id})
                book.file(filed._replace(state="opened"))

        return open

    swap(payments.Payments, "open", open_again)


@FAULTS.fault("stored answers of other data", by=attacks("B4"))
def other_data() -> None:
    def answer_any_version(answer: Any) -> Any:
        def any_version(self: Any, accounts: Any, plan_hash: str, data: str) -> Any:
            with surface.desk_of(self).reading() as book:
                versions = {filed.receipt.data for filed in _filed(book)}
            answers = (answer(self, accounts, plan_hash, each) for each in sorted(versions))
            return next((each for each in answers if each is not None), None)

        return any_version

    swap(payments.Payments, "answer", answer_any_version)


def _filed(book: Any) -> list[Any]:
    from sfumato import record

    filings = []
    for number in range(1, book.head.number + 1):
        stored = book.entry(number)
        entry = {} if stored is None else record.parse(stored[1], dict)
        if entry.get("kind") == "spend" and (filed := book.filed(entry["receipt"].id)) is not None:
            filings.append(filed)
    return filings


@FAULTS.fault("one more passes when the limit is reached", by=attacks("R2", "L11"))
def one_more() -> None:
    swap(exact, "is_above", lambda one: lambda spent, limit: one(spent, limit * 3 / 2))


@FAULTS.fault("only the first account pays", by=attacks("B4", "L13"))
def first_pays() -> None:
    def charge_first(payers: Any) -> Any:
        return lambda *arguments: dict(list(payers(*arguments).items())[:1])

    swap_everywhere(tree.payers, charge_first)


@FAULTS.fault("nothing above an account is charged", by=attacks("B4"))
def none_above() -> None:
    swap_everywhere(tree.above, lambda _: lambda book, account: iter(()))


@FAULTS.fault("what is held is free for others", by=attacks("B4"))
def held_for_none() -> None:
    swap(members.Member, "backs", lambda _: lambda self, reserved: True)


@FAULTS.fault("a part of a list is taken for good", by=attacks("B4"))
def taken_for_good() -> None:
    swap(parts, "take", lambda _: lambda book, of, plan: None)


@FAULTS.fault("the chain does not cover its entries", by=attacks("L5"))
def open_chain() -> None:
    swap(chain.Link, "next", lambda link: lambda self, body: link(self, b""))


@FAULTS.fault("a second key pays for the same request", by=attacks("L3"))
def unknown_keys() -> None:
    swap(holds.Holds, "under", lambda _: lambda self, book, key, accounts, plan, data: None)


@FAULTS.fault("accounts never lock", by=attacks("B4"))
def never_locked() -> None:
    swap(charges, "LOCK_AFTER", lambda _: 10**9)


@FAULTS.fault("a closed account pays on", by=attacks("B4"))
def never_closed() -> None:
    swap(charges.Charges, "usable", lambda _: lambda self, *arguments, **named: None)


@FAULTS.fault("read, decide, and then take the lock", by=attacks("L2", "L7"))
def read_first() -> None:
    def read_before_locking(writing: Any) -> Any:
        @contextmanager
        def late(self: Any) -> Iterator[Any]:
            with self.reading() as book:
                seen = {name: book.account(name) for name in book.accounts()}
            with writing(self) as book:
                surface.accounts_read(book).update({name: each for name, each in seen.items() if each is not None})
                yield book

        return late

    swap(sqlite.SQLiteStore, "writing", read_before_locking)


@FAULTS.fault("a spend that is never committed", by=attacks("L3"))
def half_written() -> None:
    plant(seams.COMMIT, lambda _: lambda self: None)


@FAULTS.fault("a copy of the data is charged where it was once", by=attacks("B4"))
def stale_copies() -> None:
    """Accounts that the data got after it was copied do not pay for the copy."""

    def charge_copy_alone(_: Any) -> Any:
        def alone(book: Any, name: str) -> Any:
            data_set = book.fact("data", name) or tree.DataSet(name=name)
            own = (name,) if tree.bears_data(book.account(name)) else ()
            accounts = tuple(dict.fromkeys((*own, *data_set.accounts)))
            return tree.DataSet(name=name, accounts=accounts, blocks=data_set.blocks, same_as=data_set.same_as)

        return alone

    swap_everywhere(tree.known_data, charge_copy_alone)


@FAULTS.fault("a fork takes itself for the process that began", by=attacks("L16"))
def forks_count_apart() -> None:
    swap(process.Home, "left", lambda _: lambda self: False)


@FAULTS.fault("nobody compares the head outside", by=attacks("L17"))
def never_compared() -> None:
    swap_everywhere(seams.HEAD_HELD.value(), lambda _: lambda book, link: True)


@FAULTS.fault("the state beside the entries is believed", by=attacks("L18"))
def believed() -> None:
    swap(digest, "begun", lambda _: lambda head, last, rows: digest.Digest.of(head, rows))
    swap(digest.Tally, "check", lambda _: lambda self, name, of: None)


@FAULTS.fault("a project says whose rows are whose", by=attacks("L19"))
def other_owners() -> None:
    swap_everywhere(owners.new_owners, lambda _: lambda book, data, plan, owners: {})
