"""How long an account lasts: at the present rate, and in releases of one kind.

An estimate helps to plan and promises nothing: what counts is what the filters say when a release is asked for. All
accounts above count as well; the one that runs out first is named.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ... import address, checks
from ...accounting.balance import Balance
from ...errors import ArgumentError, PolicyError
from ...events import Event
from ...ledger.balances import like_the_last
from ...ledger.charges import LOCK_AFTER, price_of, text_of
from ...ledger.counting import MOST, WINDOW, narrowest_counts, times
from ...ledger.policy.policy import Policy, kinds_within
from ...ledger.stores.base import Account, Book, Store
from ...ledger.tree import above, found, payers
from ...plan import Plan
from ...units import Unit
from .history import moment
from .rate import rate_of

_LONGEST = timedelta(days=36500)


@dataclass(frozen=True)
class More:
    """How many more of one kind fit, and which account says so. `reason` is there where it is none.

    needs  what the policy in force asks of each of them; who asks is not known here, so neither is whether they may
    """

    what: str
    count: int
    binding: str
    reason: str | None = None
    needs: str | None = None

    def __str__(self) -> str:
        many = f"more than {self.count:.0e}" if self.count >= MOST else f"{self.count}"
        why = f": {self.reason}" if self.reason else f" (account {self.binding!r} binds)"
        return f"{many} more of: {self.what}{why}" + (f"; {self.needs}" if self.needs else "")


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What lies ahead of an account.

    exhausted  when the first account on the path runs out at the rate of the window; None with the `reason`
    more       how many more of the plans that were asked about
    balance    what everything so far amounts to, on the account itself, and how many more like the last release fit;
               None where it has no limit of its own
    """

    account: str
    now: datetime
    since: datetime | None
    releases: int
    exhausted: datetime | None
    binding: str | None
    reason: str | None
    more: tuple[More, ...]
    balance: Balance | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "account": self.account,
            "now": self.now.isoformat(),
            "since": None if self.since is None else self.since.isoformat(),
            "releases": self.releases,
            "exhausted": None if self.exhausted is None else self.exhausted.isoformat(),
            "binding": self.binding,
            "reason": self.reason,
            "more": [asdict(each) for each in self.more],
            "spent": None if self.balance is None else str(self.balance),
            "delta": None if self.balance is None else self.balance.fine,
            "text": str(self),
        }

    def __str__(self) -> str:
        lines = [f"Account {self.account!r}"]
        if self.balance is not None:
            lines.append(f"  {self.balance}")
            lines += [f"  delta: {self.balance.fine}"] if self.balance.fine else []
        window = "" if self.since is None else f" ({self.releases} releases since {self.since:%Y-%m-%d %H:%M} UTC)"
        if self.exhausted is not None:
            lines.append(
                f"  at this rate exhausted on {self.exhausted:%Y-%m-%d}{window}; account {self.binding!r} binds"
            )
        else:
            lines.append(f"  {self.reason}{window}")
        return "\n".join([*lines, *(f"  {each}" for each in self.more)])


def forecast(
    store: Store,
    account: str,
    *,
    plan: Plan[Any, Any] | None = None,
    data: str | None = None,
    alpha: float = 0.05,
    error: float | None = None,
    size: float | None = None,
    window: timedelta = WINDOW,
    now: datetime | None = None,
) -> Forecast:
    """What the account, with all above it, still has room for.

    plan    count how many more of this plan fit; one that is prepaid comes on top
    data    an address: its data sets and blocks count too
    error   count how many more counts (one row of a unit each) fit whose error stays within +- error with confidence
            1 - alpha; with `size`, a public number of rows, error is a part of it: error=0.05, size=20_000
    window  the time that the rate is taken over
    now     the end of that time
    """
    if not isinstance(window, timedelta) or not timedelta(0) < window <= _LONGEST:
        raise checks.refuse("window", window, "a time above 0, such as timedelta(days=30), and below a hundred years")
    if now is not None and (not isinstance(now, datetime) or now.year < 1900):
        raise checks.refuse("now", now, "a datetime from 1900 on, or leave it out")
    if plan is not None:
        checks.instance(plan, Plan, "plan", "a plan, such as sf.mechanisms.Laplace(...)")
    if data is not None:
        address.read(data)
    end = datetime.now(UTC) if now is None else moment(now.isoformat()) or datetime.now(UTC)
    unit = None if plan is None else plan.unit
    with store.reading() as book:
        path = _path(book, account, data, unit)
        policy: Policy | None = book.fact("policy", "")
    more = []
    if plan is not None:
        more.append(_more(path, policy, type(plan).__name__, plan))
    if error is not None:
        more.append(_counts(path, policy, alpha, error, size))
    rate = rate_of(store, path, end - window, end)
    if (stopped := next(filter(None, (_shut(each, _lock(policy)) for each in path)), None)) is not None:
        rate = rate._replace(exhausted=None, binding=None, reason=f"nothing more is paid: {stopped}")
    own = next((like_the_last(store, each) for each in path if each.name == account), None)
    return Forecast(account=account, now=end, more=tuple(more), balance=own, **rate._asdict())


def _path(book: Book, account: str, data: str | None, unit: Unit | None) -> list[Account]:
    own = found(book, account)
    path = {each.name: each for each in (own, *above(book, own))}
    if data is not None:
        fixed = unit or next((each.unit for each in path.values() if each.unit is not None), None) or Unit()
        path.update(payers(book, (account,), data, fixed))
    return [each for each in path.values() if each.filter is not None or each.closed or each.name == account]


def _lock(policy: Policy | None) -> int:
    return LOCK_AFTER if policy is None else policy.lock_after


def _more(path: list[Account], policy: Policy | None, what: str, plan: Plan[Any, Any]) -> More:
    """The least over the path, if the policy lets such a plan through."""
    least = More(what, MOST, path[0].name)
    for each in path:
        reason = _stopped(each, plan.unit, plan.event, _lock(policy))
        count = 0 if reason else times(each, plan.event, plan.delta)
        if count < least.count:
            least = More(what, count, each.name, reason or (None if count else f"account {each.name!r} has no room"))
    if policy is None or not least.count:
        return least
    try:
        asked = policy.asked(
            accounts=tuple(each.name for each in path if each.filter is not None),
            plan=kinds_within(text_of(plan)),
            grade=policy.grades[0] if plan.grade == "exact" else plan.grade,
            epsilon=price_of(plan),
            delta=plan.delta,
            purpose="a forecast",
        )
    except PolicyError as refused:
        return replace(least, count=0, reason=str(refused))
    if not asked.approvals:
        return least
    return replace(least, needs=f"each needs {asked.approvals} approval(s): {'; '.join(asked.reasons)}")


def _shut(account: Account, lock: int) -> str | None:
    if account.closed:
        return f"account {account.name!r} is closed"
    if account.failures >= lock:
        return f"account {account.name!r} is locked"
    return None


def _stopped(account: Account, unit: Unit, event: Event, lock: int) -> str | None:
    if (shut := _shut(account, lock)) is not None:
        return shut
    if event.relation != unit.change:
        return f"its event compares other neighbours than its unit, [{unit}]"
    if account.filter is not None and account.unit not in (None, unit):
        return f"account {account.name!r} protects [{account.unit}], not [{unit}]"
    return None


def _counts(path: list[Account], policy: Policy | None, alpha: float, error: float, size: float | None) -> More:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise checks.refuse("alpha", alpha, "a probability above 0 and below 1")
    part = checks.positive(error, "error")
    within = part if size is None else part * checks.positive(size, "size")
    unit = next((each.unit for each in path if each.unit is not None), None) or Unit()
    confidence = f"{100 * (1 - alpha):g} %"
    best: More | None = None
    for name, plan in narrowest_counts(unit, float(within), alpha):
        what = f"{name} counts at +-{float(within):g} ({confidence})"
        what += "" if size is None else f", +-{100 * float(part):g} % of {float(size):g}"
        found_ = _more(path, policy, what, plan)
        best = found_ if best is None or found_.count > best.count else best
    if best is None:
        raise ArgumentError(f"error = {float(within):g} is not allowed: no count has so little or so much noise.")
    return best
