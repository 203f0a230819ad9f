"""What the ledger can say of an account to the outside: gathered once, told by the checklist and the registry file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ...ledger.parts import LIST
from ...ledger.policy.policy import Policy
from ...ledger.proof.chain import Link
from ...ledger.stores.base import Book, Store
from ...ledger.tree import above
from ...ledger.tree import found as book_account
from .about import UNKNOWN
from .history import entry_of
from .plans import bound_words, mechanisms, noises
from .register import Declared, charged_together, declared_in, is_of
from .releases import releases
from .statement import Statement, stated
from .tally import Tally, Tallying

OTHERS = "others"
_SHOWN = 20  # different bounds that are listed
_MOST = 20  # names in a list, the most frequent first
_FLAVOURS = {"rho": "Zero-concentrated DP", "pure": "Pure DP", "approximate": "Approximate DP"}
_KEPT = 1000  # different purposes that are counted each for itself: a free text may be new every time


@dataclass
class Findings:
    """Counted over all releases of an account."""

    statement: Statement = field(init=False)
    declared: tuple[Declared, ...] = ()
    policy: Policy | None = None  # the one in force
    above: tuple[str, ...] = ()  # the accounts over it
    mechanisms: Counter[str] = field(default_factory=Counter)
    noises: Counter[str] = field(default_factory=Counter)
    variants: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    libraries: Counter[str] = field(default_factory=Counter)
    grades: Counter[str] = field(default_factory=Counter)
    randomness: Counter[str] = field(default_factory=Counter)
    loops: Counter[str] = field(default_factory=Counter)
    roles: Counter[str] = field(default_factory=Counter)
    actors: Counter[str] = field(default_factory=Counter)
    deltas: Counter[Fraction] = field(default_factory=Counter)
    data: Counter[str] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    purposes: Counter[str] = field(default_factory=Counter)
    bounds: Counter[str] = field(default_factory=Counter)
    more_bounds: bool = False
    afterwards: Counter[str] = field(default_factory=Counter)  # what plans do with numbers that are noisy already
    lists: int = 0  # paid as one; their parts are the releases
    first: str | None = None
    last: str | None = None

    @property
    def releases(self) -> int:
        return self.states.total()


def findings(store: Store, account: str) -> Findings:
    """What the ledger knows of an account, for whoever has to state it."""
    found, counting, declarations = Findings(), Tallying(account), list[Declared]()

    def also(link: Link, told: Mapping[str, Any]) -> None:
        counting.take(told)
        if told.get("kind") == "declare":
            declarations.append(declared_in(entry_of(link, None, told)))

    def tallied(last: int) -> Tally:
        _read(store, account, last, also, found)
        return counting.found()

    found.statement = stated(store, account, tallied)
    with store.reading() as book:
        own = book_account(book, account)
        found.policy, found.above = book.fact("policy", ""), tuple(each.name for each in above(book, own))
        names = charged_together(book, {account, *found.above, *_below(book, account), *found.data})
    found.declared = tuple(each for each in declarations if is_of(each, names))
    return found


def _below(book: Book, account: str) -> Iterator[str]:
    """Every account under it, closed ones too."""
    under: dict[str | None, list[str]] = {}
    for name in book.accounts():
        under.setdefault(book_account(book, name).parent, []).append(name)
    todo = [account]
    while todo:
        below = under.pop(todo.pop(), [])
        yield from below
        todo += below


def _read(
    store: Store, account: str, last: int, also: Callable[[Link, Mapping[str, Any]], None], found: Findings
) -> None:
    for row in releases(store, account=account, price=False, last=last, also=also):
        if row.loop == LIST:
            found.lists += 1
            continue
        found.mechanisms.update(mechanisms(row.plan) if row.plan else ["unknown"])
        found.noises.update(noises(row.event))
        found.afterwards.update(row.afterwards)
        found.variants[row.variant] += 1
        found.states[row.state] += 1
        found.libraries[row.library or UNKNOWN] += 1
        found.grades[row.grade or UNKNOWN] += 1
        found.randomness[row.randomness or UNKNOWN] += 1
        found.loops[row.loop] += 1
        found.roles[row.role or UNKNOWN] += 1
        found.actors[row.actor or UNKNOWN] += 1
        if len(found.deltas) < _SHOWN:
            found.deltas[row.delta or Fraction(0)] += 1
        found.units[str(row.unit)] += 1
        found.relations[row.unit.change] += 1
        purpose = row.purpose or UNKNOWN
        found.purposes[purpose if purpose in found.purposes or len(found.purposes) < _KEPT else OTHERS] += 1
        for place in row.places:
            found.data[place.name] += 1
        for bound in row.bounds or ():
            _bound(found, bound_words(bound, row.unit.noun))
        found.first = min(filter(None, (found.first, row.at)), default=None)
        found.last = max(filter(None, (found.last, row.at)), default=None)


def _bound(found: Findings, text: str) -> None:
    if text in found.bounds or len(found.bounds) < _SHOWN:
        found.bounds[text] += 1
    else:
        found.more_bounds = True


def flavour(found: Findings) -> str:
    limit = found.statement.largest
    if limit is None:
        return UNKNOWN
    return _FLAVOURS["rho" if limit.rho is not None else "approximate" if limit.delta else "pure"]


def roles(found: Findings) -> str:
    named = {role: count for role, count in found.roles.items() if role != UNKNOWN}
    return f"roles of the policy in force: {counted(Counter(named))}" if named else UNKNOWN


def counted(counts: Counter[str]) -> str:
    told = [f"{name} ({count})" for name, count in counts.most_common(_MOST)]
    return ", ".join([*told, *([f"and {len(counts) - _MOST} more"] if len(counts) > _MOST else [])]) or UNKNOWN
