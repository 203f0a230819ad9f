"""Who may do what, how much, and what takes more than one person: a value, and rules that only read it.

A policy is stored whole in an entry of the ledger and read back from there, so that every process obeys the same one.
Nothing here reads a file, a clock or the data. Where several rules speak, the strictest one holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction
from typing import Any, NamedTuple

from ... import checks
from ...accounting.budget import Budget
from ...checks import Exact
from ...errors import ArgumentError, PolicyError
from ...record import record
from .mechanisms import kinds_within, with_noise
from .parts import AccountRule, AlertRule, Band, exceeds, patterns, ruled, tree
from .people import ACTS, DUTIES, ROLES, needed, people

__all__ = [
    "ACTS", "DUTIES", "ROLES", "AccountRule", "AlertRule", "Asked", "Band", "Policy", "kinds_within"
]  # fmt: skip


class Asked(NamedTuple):
    """How many persons must approve a release, and why."""

    approvals: int
    reasons: tuple[str, ...]


@record("policy/1")
@dataclass(frozen=True, kw_only=True)
class Policy:
    """What an organisation has decided about its budgets.

    people          who has which roles: {"ana@example.org": ("analyst",)}; whoever is not listed may do nothing
    accounts        limits and rules per account
    bands           epsilon of one release above which approvals are needed, for all accounts
    needed          approvals per act, where more than `ACTS` says: {"raise": 3}
    delta_above     a delta above 1/n, n the number of units: "approve" takes approvals, "refuse" none
    mechanisms      allowed kinds of plans, as patterns: ("laplace/*", "gaussian/1"); empty for all
    grades          allowed grades of noise
    purpose         must a release name its purpose?
    overcommit      may the limits of an account's children add up to more than its own? The own one binds either way
    alerts          when to tell, and whom
    approval_days   days after which an approval is no longer good
    """

    people: Any
    accounts: tuple[AccountRule, ...] = ()
    bands: tuple[Band, ...] = ()
    needed: Any = ()
    delta_above: str = "approve"
    mechanisms: tuple[str, ...] = ()
    grades: tuple[str, ...] = ("exact",)
    purpose: bool = True
    overcommit: bool = True
    alerts: AlertRule = field(default_factory=AlertRule)
    approval_days: int = 30

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "people", people(self.people))
        put(self, "needed", needed(self.needed))
        put(self, "accounts", tree(self.accounts))
        put(self, "bands", ruled(self.bands, "bands"))
        put(self, "mechanisms", patterns(self.mechanisms, "mechanisms"))
        checks.one_of(self.delta_above, "delta_above", ("approve", "refuse"))
        grades = self.grades
        if not isinstance(grades, tuple | list) or not grades or len(set(map(str, grades))) < len(grades):
            raise checks.refuse("grades", grades, "a list of different grades: 'exact', 'float'")
        put(self, "grades", tuple(checks.one_of(grade, "grades", ("exact", "float")) for grade in grades))
        for name in ("purpose", "overcommit"):
            checks.instance(getattr(self, name), bool, name, "True or False")
        checks.instance(self.alerts, AlertRule, "alerts", "an AlertRule")
        put(self, "approval_days", checks.whole(self.approval_days, "approval_days", most=3660))
        self._can_be_changed()
        self._limits_fit()
        self._people_fit()

    def _can_be_changed(self) -> None:
        """Somebody must be able to replace it, or a slip in the list of people would hold for ever."""
        able = {duty: {who for who, _ in self.people if not self.refusal(who, duty)} for duty in ("adopt", "approve")}
        needed = self.approvals("adopt")
        if not any(len(able["approve"] - {adopter}) >= needed for adopter in able["adopt"]):
            raise ArgumentError(
                f"people: this policy could never be changed: list a privacy officer, and {needed} others who are "
                "privacy officer or data owner, to approve what the first adopts."
            )

    def _limits_fit(self) -> None:
        for rule in self.accounts:
            above = self._limit_above(rule)
            if rule.limit is None:
                continue
            comparable = above is not None and (above.rho is None) == (rule.limit.rho is None)
            if above is not None and comparable and (more := exceeds(rule.limit, above)) is not None:
                raise ArgumentError(
                    f"accounts {rule.name!r}: its {more} is above that of the account it belongs to, which binds: "
                    "lower it."
                )
            if self.delta_above == "refuse" and rule.rows is not None and rule.limit.delta * rule.rows > 1:
                raise ArgumentError(
                    f"accounts {rule.name!r}: the delta of its limit is above 1/n, n = {rule.rows}: lower delta, or "
                    "set delta_above to 'approve'."
                )
        if not self.overcommit:
            self._shared_out()

    def _people_fit(self) -> None:
        """Whoever is to pay from an account may spend, and may pay from those above it."""
        for rule in self.accounts:
            for who in rule.people:
                if (refusal := self.refusal(who, "spend")) is not None:
                    raise ArgumentError(f"accounts {rule.name!r}: {refusal}; only who may spend pays from an account.")
            above = self.account(rule.parent) if rule.parent else None
            while above is not None:
                if above.people and (strange := set(rule.people) - set(above.people)):
                    raise ArgumentError(
                        f"accounts {rule.name!r}: {min(strange)!r} pays from it, and so from {above.name!r}, which "
                        "lists others only: list them there too."
                    )
                above = self.account(above.parent) if above.parent else None

    def _limit_above(self, rule: AccountRule) -> Budget | None:
        """The limit of the nearest account above that has one."""
        above = self.account(rule.parent) if rule.parent else None
        while above is not None and above.limit is None:
            above = self.account(above.parent) if above.parent else None
        return above.limit if above is not None else None

    def _shared_out(self) -> None:
        for rule in self.accounts:
            if rule.limit is None:
                continue
            for currency in ("epsilon", "delta", "rho"):
                given = [getattr(below, currency) for below in self._limits_below(rule.name)]
                own = getattr(rule.limit, currency)
                if any(given) and (own is None or sum(filter(None, given)) > own):
                    raise ArgumentError(
                        f"accounts {rule.name!r}: the limits below it add up to more {currency} than it has: lower "
                        "them, or set overcommit to true."
                    )

    def _limits_below(self, name: str) -> list[Budget]:
        """The limits that share an account's own: of its children, and through children that have none."""
        found: list[Budget] = []
        for rule in self.accounts:
            if rule.parent == name:
                found += self._limits_below(rule.name) if rule.limit is None else [rule.limit]
        return found

    def roles(self, principal: str) -> tuple[str, ...]:
        """Their roles; none for a stranger."""
        return dict(self.people).get(principal, ()) if isinstance(principal, str) else ()

    def refusal(self, principal: str, duty: str) -> str | None:
        """Why they may not do that; None where they may."""
        allowed = DUTIES[checks.one_of(duty, "duty", DUTIES)]
        roles = self.roles(principal)
        if not roles:
            return f"the policy does not list {principal!r}: whoever is not listed may do nothing"
        if any(role in allowed for role in roles):
            return None
        return f"{principal!r} is {' and '.join(roles)}, and may not {duty}: that is for {' or '.join(allowed)}"

    def account(self, name: str) -> AccountRule | None:
        """The rules of an account; None for one that the policy does not list."""
        return next((rule for rule in self.accounts if rule.name == name), None)

    def lists_fresh(self, name: str, budget: Budget, parent: str | None) -> bool:
        """Does it list that account with that limit, at that place, below no other limit?"""
        rule = self.account(name)
        return rule is not None and (rule.limit, rule.parent) == (budget, parent) and self._limit_above(rule) is None

    def from_the_top(self) -> tuple[AccountRule, ...]:
        """The rules of all accounts, each after that of its parent."""
        ordered: dict[str | None, AccountRule] = {}
        rest = list(self.accounts)
        while rest:
            ready = [rule for rule in rest if rule.parent is None or rule.parent in ordered]
            ordered.update((rule.name, rule) for rule in ready)
            rest = [rule for rule in rest if rule.name not in ordered]
        return tuple(ordered.values())

    def approvals(self, act: str) -> int:
        """How many persons must approve an act of `ACTS`."""
        checks.one_of(act, "act", ACTS)
        return int(dict(self.needed).get(act, ACTS[act]))

    @property
    def lock_after(self) -> int:
        """Failures on the data's side after which an account locks."""
        return self.alerts.lock_after

    def asked(
        self,
        *,
        accounts: tuple[str, ...],
        plan: str | tuple[str, ...],
        grade: str,
        epsilon: Exact,
        delta: Exact,
        purpose: str,
    ) -> Asked:
        """What a release needs before it is paid; raises PolicyError where it is forbidden.

        plan      its registered name, or those of all plans within it (`kinds_within`)
        epsilon   its price; None where it has none at its delta, which is above every band
        """
        rules = [rule for name in accounts if (rule := self.account(name)) is not None]
        self._allowed(rules, (plan,) if isinstance(plan, str) else tuple(plan), grade, purpose)
        price = None if epsilon is None else checks.rational(epsilon, "epsilon", "an exact number, or None")
        asks = [self._band(self.bands, price, "")]
        asks += [self._band(rule.bands, price, f" of account {rule.name!r}") for rule in rules]
        asks += [self._delta(rule, checks.rational(delta, "delta", "an exact number")) for rule in rules]
        needed = [(number, reason) for number, reason in asks if number]
        return Asked(max((number for number, _ in needed), default=0), tuple(reason for _, reason in needed))

    def limit_asked(self, name: str, budget: Budget) -> Asked:
        """What a limit for that account needs, besides what opening or raising takes; raises PolicyError where it is
        above the policy's."""
        rule = self.account(name)
        if rule is None:
            return Asked(0, ())
        if rule.limit is not None and (more := exceeds(budget, rule.limit)) is not None:
            cause = f"the policy gives account {name!r} {rule.limit}, and this limit has more {more}"
            raise PolicyError(f"{cause}: adopt another policy first", cause=cause, code="policy-lists")
        number, reason = self._delta(rule, budget.delta)
        return Asked(number, (reason,) if number else ())

    def _allowed(self, rules: list[AccountRule], kinds: tuple[str, ...], grade: str, purpose: str) -> None:
        if grade not in self.grades:
            raise PolicyError(
                f"the policy allows noise of grade {' or '.join(self.grades)} only: use the curator's own"
            )
        if self.purpose and not (isinstance(purpose, str) and purpose.strip()):
            raise PolicyError(
                "the policy asks what a release is for: say it in note=",
                cause="the policy asks what a release is for",
                code="no-purpose",
            )
        for allowed, where in ((self.mechanisms, ""), *((rule.mechanisms, f" on {rule.name!r}") for rule in rules)):
            if allowed and (strange := _strange(kinds, allowed)) is not None:
                raise PolicyError(f"the policy does not allow {strange}{where}: it allows {', '.join(allowed)}")

    def _band(self, bands: tuple[Band, ...], price: Fraction | None, where: str) -> tuple[int, str]:
        reached = [band for band in bands if price is None or price > band.above]
        if not reached:
            return 0, ""
        top = reached[-1]
        if top.approvals is None:
            raise PolicyError(
                f"the policy refuses a release above epsilon = {float(top.above):g}{where}: ask with more noise"
            )
        return top.approvals, f"its epsilon is above the band{where} at {float(top.above):g}"

    def _delta(self, rule: AccountRule, delta: Fraction) -> tuple[int, str]:
        if rule.rows is None or delta * rule.rows <= 1:
            return 0, ""
        words = f"its delta is above 1/n for the n = {rule.rows} units of account {rule.name!r}"
        if self.delta_above == "refuse":
            raise PolicyError(f"the policy refuses it: {words}; ask with a smaller delta")
        return self.approvals("delta"), words


def _strange(kinds: tuple[str, ...], allowed: tuple[str, ...]) -> str | None:
    """The first kind that no pattern matches."""
    for kind in with_noise(kinds) or ("a plan whose parts are not named",):
        names = (kind, kind.removeprefix("plan-"))
        if not any(fnmatchcase(name, pattern) for name in names for pattern in allowed):
            return kind
    return None
