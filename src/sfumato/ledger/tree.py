"""Who pays: the accounts that are named, all above them, and those of the data sets and blocks that are read.

    organisation > data set > block or team > project > person

Budgets belong to the data and its unit. A data set is known by an account that bears its name, or by an entry that says
which accounts hold its people's budget: a view or a copy is charged where the original is. Data that nobody has
entered is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .. import address, checks
from ..accounting.filters import Budget, Filter
from ..errors import BudgetError
from ..record import record
from ..units import Unit
from .policy.parts import LEVELS
from .stores.base import Account, Book

_DEEPEST = 64
_SHOWN = 12  # accounts that a refusal lists


@record("data-set/1")
@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set as the ledger knows it.

    accounts  where its people's budgets are, one for each unit that is protected
    blocks    the account of each block (a day, a month) that has a budget of its own
    same_as   data sets that it is a view or a copy of: it is charged wherever they are, also later
    """

    name: str
    accounts: tuple[str, ...] = ()
    blocks: Mapping[str, str] = field(default_factory=dict)
    same_as: tuple[str, ...] = ()


def found(book: Book, name: str) -> Account:
    account = book.account(checks.label(name, "the name of an account"))
    if account is None:
        names = sorted(book.accounts())
        known = f"there are {', '.join(names[:_SHOWN])}" if names else "the ledger has none yet"
        more = ", ..." if len(names) > _SHOWN else ""
        raise BudgetError(
            f"there is no account {name!r} ({known}{more}): open one with a budget first", code="no-account"
        )
    return account


def above(book: Book, account: Account) -> Iterator[Account]:
    """The accounts over it, the nearest first."""
    for _ in range(_DEEPEST):
        if account.parent is None:
            return
        account = found(book, account.parent)
        yield account
    raise BudgetError(f"the tree above account {account.name!r} is deeper than {_DEEPEST} levels")


def limited_by(book: Book, account: Account) -> Account | None:
    """The nearest account above it that has a limit."""
    return next((each for each in above(book, account) if each.filter is not None), None)


def below(book: Book, name: str) -> Iterator[Account]:
    """The open accounts right under it."""
    for each in book.accounts():
        account = found(book, each)
        if account.parent == name and not account.closed:
            yield account


def limited_below(book: Book, name: str) -> Iterator[Account]:
    """The open accounts with a limit whose nearest limit above is this one's: folders do not stand between."""
    for each in below(book, name):
        if each.filter is None:
            yield from limited_below(book, each.name)
        else:
            yield each


def bears_data(account: Account | None) -> bool:
    """Is it the account of the data set of its name? A team's or a person's never is."""
    return account is not None and account.level in ("", "data set")


def known_data(book: Book, name: str) -> DataSet:
    """What is known of it: what entries say, the account that bears its name, and all that of what it is a copy of."""
    first: DataSet | None = book.fact("data", name)
    accounts, blocks, passed, todo = dict[str, None](), dict[str, str](), set[str](), [name]
    while todo:
        each = todo.pop(0)
        if each not in passed:
            passed.add(each)
            said: DataSet = book.fact("data", each) or DataSet(name=each)
            accounts |= dict.fromkeys((*((each,) if bears_data(book.account(each)) else ()), *said.accounts))
            blocks = {**said.blocks, **blocks}
            todo += said.same_as
    same_as = () if first is None else first.same_as
    return DataSet(name=name, accounts=tuple(accounts), blocks=blocks, same_as=same_as)


def data_set(book: Book, name: str) -> DataSet:
    """The same, refused where nobody has entered it."""
    known = known_data(book, name)
    if not known.accounts:
        raise BudgetError(
            f"the ledger knows no data set {name!r}: open an account with this name, or, if its people are in data "
            "that is known (a view, a copy), say so with ledger.register(...)",
            code="no-data-set",
        )
    return known


def payers(book: Book, named: tuple[str, ...], data: str, unit: Unit) -> dict[str, Account]:
    """Every account that a release on this data has to fit."""
    checks.texts(named, "accounts")
    if not (named or data):
        raise BudgetError("no account is named: somebody has to pay; name them in a tuple")
    paying: dict[str, Account] = {}
    for name in (*named, *(of_data(book, data, unit) if data else ())):
        account = found(book, name)
        for each in (account, *above(book, account)):
            paying[each.name] = each
    return {name: account for name, account in paying.items() if account.filter is not None or account.closed}


def of_data(book: Book, data: str, unit: Unit) -> Iterator[str]:
    """The accounts that a release on this data is charged to, whoever asks for it."""
    for part in address.read(data):
        known = data_set(book, part.name)
        fitting = [name for name in known.accounts if found(book, name).unit in (None, unit)]
        if not fitting or all(found(book, name).filter is None for name in fitting):
            raise BudgetError(
                f"data set {part.name!r} has no budget that protects [{unit}]: guarantees for different units do not "
                "add up; open an account for this one"
            )
        yield from fitting
        if known.blocks and unit.change != "add-remove":
            raise BudgetError(
                f"data set {part.name!r} has a budget per block: only a unit that is added or removed fits"
            )
        if known.blocks and not part.blocks:
            raise BudgetError(f"data set {part.name!r} has a budget per block: say which blocks are read")
        for block in part.blocks if known.blocks else ():
            if block not in known.blocks:
                raise BudgetError(f"data set {part.name!r} has no block {block!r} yet: open it with a budget first")
            yield known.blocks[block]


def check_place(book: Book, name: str, budget: Budget | None, parent: str | None, level: str, reason: str) -> None:
    """May an account with this budget stand there?"""
    over = None if parent is None else found(book, parent)
    if over is not None and over.closed:
        raise BudgetError(f"account {parent!r} is closed: open the new one elsewhere")
    path = [] if over is None else [over, *above(book, over)]
    if len(path) >= _DEEPEST:
        raise BudgetError(f"account {name!r} would have more than {_DEEPEST - 1} above it: make the tree flatter")
    ranks = [LEVELS.index(each.level) for each in path if each.level]
    if level and ranks and LEVELS.index(level) <= ranks[0]:
        raise BudgetError(f"a {level} does not stand below a {LEVELS[ranks[0]]}: the order is {' > '.join(LEVELS)}")
    if budget is None:
        return
    limit = next((each for each in path if each.filter is not None), None)
    if limit is not None and limit.filter is not None:
        if not budget.within(limit.filter.budget):
            raise BudgetError(
                f"{name!r} would get {budget}, above what {limit.name!r} has, {limit.filter.budget}: give it less"
            )
    elif not reason and beside(book, parent):
        raise BudgetError(
            f"account {name!r} would be a fresh budget, beside those that the ledger has: give the parent= that it "
            "is a part of, or the reason= why nobody's budget is counted twice (other people's data, say)",
            code="fresh-budget",
        )


def beside(book: Book, parent: str | None) -> bool:
    """Would a limit there be a fresh budget, beside those that the ledger has?"""
    over = None if parent is None else found(book, parent)
    if over is not None and (over.filter is not None or limited_by(book, over) is not None):
        return False
    return any(_fresh(book, found(book, each)) for each in book.accounts())


def check_unit(book: Book, name: str, level: str, unit: Unit | None) -> None:
    """The account that bears a data set's name is one of its own: another unit does not come in by that door."""
    units = [found(book, each).unit for each in known_data(book, name).accounts]
    if level in ("", "data set") and units and unit not in units:
        raise BudgetError(
            f"data set {name!r} has its budget in other accounts, which protect another unit: open this one under "
            "another name, and register it"
        )


def _fresh(book: Book, account: Account) -> bool:
    return account.filter is not None and limited_by(book, account) is None


def changed(account: Account, after: Filter, by: str) -> Account:
    """An account after its limit was changed."""
    most = account.promised
    granted = account.granted if by in account.granted else (*account.granted, by)
    unused = account.filter is not None and account.filter.fresh and not account.held
    promised = after.budget if most is None or unused else _largest(most, after.budget)
    return replace(account, filter=after, promised=promised, granted=granted)


def _largest(one: Budget, other: Budget) -> Budget:
    """What covers both: which of them binds may have been decided after seeing answers."""
    if one.within(other) or other.within(one):
        return other if one.within(other) else one
    return Budget(epsilon=max(one.epsilon, other.epsilon), delta=max(one.delta, other.delta))
