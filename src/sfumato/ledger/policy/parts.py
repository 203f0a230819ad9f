"""The parts of a policy: bands of epsilon, the rules of one account, and what to tell whom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from ... import checks
from ...accounting.budget import Budget
from ...checks import Exact
from ...errors import ArgumentError
from ...record import record
from ...units import Unit

LEVELS = ("organisation", "data set", "block", "team", "project", "person")

_MOST_BANDS, _MOST_PATTERNS, _MOST_APPROVALS = 20, 200, 20
_MOST_ACCOUNTS, _DEEPEST = 2000, 20  # accounts, and accounts above an account
_MOST_PEOPLE = 2000
_MOST_FAILURES = 10  # answered or failed is one unprotected bit each time
_PATTERN = re.compile(r"[A-Za-z0-9*?\[\]!_-]{1,80}(/[0-9*?]{1,10})?")
_ADDRESS = re.compile(r"[A-Za-z0-9:/?&=%+~.,;@_\[\]-]{1,500}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
_HERE = ("localhost", "127.0.0.1", "::1")


@record("policy-band/1")
@dataclass(frozen=True, kw_only=True)
class Band:
    """A release whose epsilon is above `above` needs that many approvals; None refuses it."""

    above: Exact
    approvals: int | None = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "above", checks.epsilon(self.above, "above", warn=False, zero=True))
        if self.approvals is not None:
            object.__setattr__(self, "approvals", checks.whole(self.approvals, "approvals", most=_MOST_APPROVALS))


@record("policy-account/1")
@dataclass(frozen=True, kw_only=True)
class AccountRule:
    """What the policy says of one account.

    limit        the most that its budget may be; None for a mere folder, or where the policy leaves it open
    protects     the unit that it protects; None leaves it to the first release
    rows         the public number n of units, for delta <= 1/n
    people       who pays from it, or from what is below it: nobody else does, and they leave it out of no release on
                 the data above it (`paying`); empty for whoever may spend
    bands, mechanisms   besides those for all
    """

    name: str
    parent: str | None = None
    level: str = ""
    limit: Budget | None = None
    protects: Unit | None = None
    rows: int | None = None
    people: tuple[str, ...] = ()
    bands: tuple[Band, ...] = ()
    mechanisms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.label(self.name, "the name of an account")
        if self.parent is not None:
            checks.label(self.parent, f"parent of {self.name!r}")
        checks.one_of(self.level, f"level of {self.name!r}", ("", *LEVELS))
        if self.limit is not None and type(self.limit) is not Budget:
            raise checks.refuse(f"limit of {self.name!r}", self.limit, "a Budget")
        if self.protects is not None:
            checks.instance(self.protects, Unit, f"protects of {self.name!r}", "a Unit")
        if self.rows is not None:
            object.__setattr__(self, "rows", checks.whole(self.rows, f"rows of {self.name!r}", most=10**15))
        object.__setattr__(self, "people", _people(self.people, f"people of {self.name!r}"))
        object.__setattr__(self, "bands", ruled(self.bands, f"bands of {self.name!r}"))
        object.__setattr__(self, "mechanisms", patterns(self.mechanisms, f"mechanisms of {self.name!r}"))

    @property
    def unit(self) -> str:
        """Whom it protects, in words."""
        return "" if self.protects is None else str(self.protects)


@record("policy-alerts/1")
@dataclass(frozen=True, kw_only=True)
class AlertRule:
    """When to tell, and whom.

    spent          shares of an account's limit that are told when they are passed
    burn           share of the limit which is told when it is spent within one window; None for never
    alike          number of near-identical plans within one window that is told; None for never
    days           length of a window
    failures       failures on the data's side that are told
    lock_after     failures after which the account locks
    log, terminal  tell the logger "sfumato.ledger", and stderr
    webhook        an address to POST to: https, or http on this machine
    secret         the environment variable that holds the value of `header`; the secret itself is in no policy
    """

    spent: tuple[Exact, ...] = (Fraction(1, 2), Fraction(4, 5), Fraction(19, 20))
    burn: Exact = Fraction(1, 4)
    alike: int | None = 5
    days: int = 7
    failures: int = 1
    lock_after: int = 3
    log: bool = True
    terminal: bool = False
    webhook: str | None = None
    header: str = "Authorization"
    secret: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not isinstance(self.spent, tuple | list) or len(self.spent) > 20:
            raise checks.refuse("spent", self.spent, "a list of at most 20 shares")
        put(self, "spent", tuple(_share(item, "spent") for item in self.spent))
        if list(self.spent) != sorted(set(self.spent)):
            raise checks.refuse("spent", self.spent, "different shares from small to large")
        if self.burn is not None:
            put(self, "burn", _share(self.burn, "burn"))
        if self.alike is not None:
            put(self, "alike", checks.whole(self.alike, "alike", least=2, most=10**6))
        put(self, "days", checks.whole(self.days, "days", most=3660))
        put(self, "lock_after", checks.whole(self.lock_after, "lock_after", most=_MOST_FAILURES))
        put(self, "failures", checks.whole(self.failures, "failures", most=self.lock_after))
        for name in ("log", "terminal"):
            checks.instance(getattr(self, name), bool, name, "True or False")
        if self.webhook is not None:
            _address(self.webhook)
        if not isinstance(self.header, str) or not _HEADER.fullmatch(self.header):
            raise checks.refuse("header", self.header, "the name of an HTTP header, such as 'Authorization'")
        if self.header.lower() in ("host", "content-length", "content-type", "transfer-encoding", "connection"):
            raise checks.refuse("header", self.header, "a header that does not belong to the request itself")
        if self.secret is not None and (not isinstance(self.secret, str) or not _VARIABLE.fullmatch(self.secret)):
            # never shown: somebody may have put the secret itself here
            raise ArgumentError(
                "secret is not the name of an environment variable: give the name of one, never the secret itself."
            )


def _share(value: Any, name: str) -> Fraction:
    allowed = "a share above 0 and at most 1"
    number = checks.rational(value, name, allowed)
    if not 0 < number <= 1:
        raise checks.refuse(name, value, allowed)
    return number


def _address(webhook: Any) -> None:
    """Told over a channel that others cannot read: https, or this machine itself. The text is not shown: it may be
    a secret."""
    good = isinstance(webhook, str) and _ADDRESS.fullmatch(webhook) is not None
    try:
        parts = urlsplit(webhook if good else "")
        host, _ = parts.hostname, parts.port
    except ValueError:
        good, host = False, None
    safe = good and host and (parts.scheme == "https" or (parts.scheme == "http" and host in _HERE))
    if not safe or "@" in parts.netloc:
        raise ArgumentError(
            "webhook is not an address to tell alerts to: give an https:// address (or http:// on localhost) without a "
            "user or password in it."
        )


def _people(given: Any, name: str) -> tuple[str, ...]:
    if not isinstance(given, tuple | list) or len(given) > _MOST_PEOPLE or len(set(map(str, given))) < len(given):
        raise checks.refuse(name, given, "a list of people, each of them once")
    return tuple(sorted(checks.label(each, name) for each in given))


def ruled(bands: Any, name: str) -> tuple[Band, ...]:
    """Bands in order: the higher the epsilon, the more it takes; only the last may refuse."""
    if not isinstance(bands, tuple | list) or len(bands) > _MOST_BANDS:
        raise checks.refuse(name, bands, f"a list of at most {_MOST_BANDS} Bands")
    for band in bands:
        checks.instance(band, Band, name, "a list of Bands")
    for lower, upper in pairwise(bands):
        more = lower.approvals is not None and (upper.approvals is None or upper.approvals >= lower.approvals)
        if lower.above >= upper.above or not more:
            raise ArgumentError(
                f"{name}: give them from low to high epsilon, never fewer approvals above, refuse last."
            )
    return tuple(bands)


def patterns(given: Any, name: str) -> tuple[str, ...]:
    """Patterns of registered names, such as "laplace/*"."""
    allowed = "a list of names of mechanisms, such as 'laplace/*' or 'gaussian/1'"
    if isinstance(given, str) or not isinstance(given, tuple | list) or len(given) > _MOST_PATTERNS:
        raise checks.refuse(name, given, allowed)
    for pattern in given:
        if not isinstance(pattern, str) or not _PATTERN.fullmatch(pattern):
            raise checks.refuse(name, pattern, allowed)
    return tuple(dict.fromkeys(given))


def tree(given: Any) -> tuple[AccountRule, ...]:
    """Rules by name, each below a parent that is listed, nowhere in a circle."""
    if not isinstance(given, tuple | list) or len(given) > _MOST_ACCOUNTS:
        raise checks.refuse("accounts", given, "a list of AccountRules")
    for rule in given:
        checks.instance(rule, AccountRule, "accounts", "a list of AccountRules")
    parents = {rule.name: rule.parent for rule in given}
    if len(parents) < len(given):
        raise ArgumentError("accounts: two rules have one name: keep one of them.")
    for name in parents:
        passed, above = {name}, parents[name]
        while above is not None:
            if above not in parents:
                raise ArgumentError(
                    f"accounts {name!r}: its parent {above!r} is not listed: list it, or correct the name."
                )
            if above in passed:
                raise ArgumentError(f"accounts {name!r}: it would be its own parent: correct the parents.")
            if len(passed) > _DEEPEST:
                raise ArgumentError(
                    f"accounts {name!r}: it has more than {_DEEPEST} accounts above it: make it flatter."
                )
            passed.add(above)
            above = parents[above]
    return tuple(sorted(given, key=lambda rule: rule.name))


def exceeds(budget: Budget, limit: Budget) -> str | None:
    """The currency in which a budget is above a limit, or which the limit does not have."""
    for currency in ("epsilon", "delta", "rho"):
        asked, most = getattr(budget, currency), getattr(limit, currency)
        if asked is not None and (most is None or asked > most):
            return currency
    return None
