"""What is worth a look: a step of what alerts remember of an account, and the words they make of it.

An alert is made of what the ledger holds, never of the data. No rule depends on what is remembered here: an account's
limit binds whether anybody is told or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from ... import checks
from ...checks import Exact
from ...record import record
from .parts import AlertRule
from .policy import Policy

WHAT = ("spent", "burn", "alike", "failures", "locked")
SEVERITIES = ("note", "warning", "urgent")

_MOST_ALIKE = 64  # questions that are remembered per account
_DIGITS = 16  # of a question's digest
_GRID = 10**6  # shares are kept to this, so that what is remembered stays small
_MOST_COUNTED = 10**9


@dataclass(frozen=True, kw_only=True)
class Alert:
    """Something to look at."""

    account: str
    what: str
    level: str
    words: str

    def __post_init__(self) -> None:
        checks.one_of(self.what, "what", WHAT)
        checks.one_of(self.level, "level", SEVERITIES)

    def __str__(self) -> str:
        return f"{self.level}: {self.words}"


@record("watch/1")
@dataclass(frozen=True, kw_only=True)
class Watch:
    """What alerts remember of an account. Windows of time follow one another; what was in one is not in the next.

    since     when the window began; "" before the first
    latest    the latest time seen: a clock that is put back reopens nothing
    before    share of the limit that was spent when the window began
    share     share of the limit that was spent when it was last seen
    alike     questions asked in this window, and how often, the latest last
    told      the largest threshold that was told
    burned    was the burn rate told in this window?
    failures  failures that were seen
    """

    account: str
    since: str = ""
    latest: str = ""
    before: Exact = Fraction(0)
    share: Exact = Fraction(0)
    alike: tuple[tuple[str, int], ...] = ()
    told: Exact = Fraction(0)
    burned: bool = False
    failures: int = 0

    def __post_init__(self) -> None:
        checks.label(self.account, "account")
        for name in ("before", "share", "told"):
            object.__setattr__(self, name, checks.rational(getattr(self, name), name, "a share"))
        for name in ("since", "latest"):
            if getattr(self, name):
                _time(getattr(self, name))
        if not isinstance(self.alike, tuple) or len(self.alike) > _MOST_ALIKE:
            raise checks.refuse("alike", self.alike, f"at most {_MOST_ALIKE} questions, each with a number")

    def after(
        self,
        policy: Policy,
        at: str | datetime,
        share_before: Fraction,
        share_after: Fraction,
        alike_digest: str | None,
        failures: int,
    ) -> tuple[Watch, tuple[Alert, ...]]:
        """What is remembered after a step of the account, and what there is to tell.

        at             the ledger's time; no other clock is read
        share_before   share of the limit that was spent before the step; `share_after` is that after it
        alike_digest   the question that was asked; None where none was
        failures       the account's failures on the data's side, after the step
        """
        rule = policy.alerts
        was, share = _low(share_before), _low(share_after)
        watch = self._raised(rule, was)._at(_time(at), rule, was)
        alerts: list[Alert] = []
        steps: tuple[Callable[[Watch], tuple[Watch, Alert | None]], ...] = (
            lambda watch: watch._spent(rule, share),
            lambda watch: watch._burnt(rule, share),
            lambda watch: watch._asked(rule, alike_digest),
            lambda watch: watch._failed(rule, failures),
        )
        for step in steps:
            watch, alert = step(watch)
            alerts += [] if alert is None else [alert]
        return replace(watch, share=share), tuple(alerts)

    def _raised(self, rule: AlertRule, was: Fraction) -> Watch:
        """After a raise the share has fallen: what lies above it may be told again, and the window's start shrinks
        with it."""
        if was >= self.share:
            return self
        passed = max((mark for mark in rule.spent if mark <= was), default=Fraction(0))
        return replace(self, before=_low(self.before * was / self.share), told=min(self.told, passed))

    def _at(self, at: datetime, rule: AlertRule, was: Fraction) -> Watch:
        if self.latest:
            at = max(at, _time(self.latest))
        watch = replace(self, latest=at.isoformat())
        if self.since and at - _time(self.since) < timedelta(days=rule.days):
            return watch
        return replace(watch, since=watch.latest, before=was, alike=(), burned=False)

    def _spent(self, rule: AlertRule, share: Fraction) -> tuple[Watch, Alert | None]:
        mark = max((mark for mark in rule.spent if mark <= share), default=Fraction(0))
        if mark <= self.told:
            return self, None
        level = "urgent" if mark == rule.spent[-1] else "note" if mark == rule.spent[0] else "warning"
        words = f"account {self.account!r} has spent {_percent(share)} of its limit, and so passed {_percent(mark)}"
        return replace(self, told=mark), self._alert("spent", level, words)

    def _burnt(self, rule: AlertRule, share: Fraction) -> tuple[Watch, Alert | None]:
        burnt = share - self.before
        if rule.burn is None or self.burned or burnt < rule.burn:
            return self, None
        words = f"account {self.account!r} has spent {_percent(burnt)} of its limit since {self.since[:16]}"
        return replace(self, burned=True), self._alert("burn", "warning", words)

    def _asked(self, rule: AlertRule, digest: str | None) -> tuple[Watch, Alert | None]:
        if not digest or rule.alike is None:
            return self, None
        seen, name = dict(self.alike), digest[:_DIGITS]
        count = min(seen.pop(name, 0) + 1, _MOST_COUNTED)
        if len(seen) == _MOST_ALIKE:
            del seen[min(seen, key=lambda each: seen[each])]  # of those asked least, the oldest
        watch = replace(self, alike=(*seen.items(), (name, count)))
        if count % rule.alike:
            return watch, None
        words = (
            f"account {self.account!r} was asked nearly the same {count} times since {self.since[:16]} "
            f"(question {name}): many answers to one question average its noise away"
        )
        return watch, self._alert("alike", "warning", words)

    def _failed(self, rule: AlertRule, failures: int) -> tuple[Watch, Alert | None]:
        watch = replace(self, failures=min(failures, _MOST_COUNTED))
        if failures <= self.failures or failures < rule.failures:
            return watch, None
        words = f"{failures} release(s) of account {self.account!r} failed on the data's side"
        if failures >= rule.lock_after:
            words += ": it is locked until a privacy officer has looked at them"
            return watch, self._alert("locked", "urgent", words)
        return watch, self._alert("failures", "warning", words)

    def _alert(self, what: str, level: str, words: str) -> Alert:
        return Alert(account=self.account, what=what, level=level, words=words)


def _time(at: Any) -> datetime:
    allowed = "a time with its zone, such as 2026-01-31T12:00:00+00:00"
    try:
        time = datetime.fromisoformat(at) if isinstance(at, str) else at
        if isinstance(time, datetime) and time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise checks.refuse("at", at, allowed)


def _low(share: Any) -> Fraction:
    """A share on the grid, rounded down."""
    number = checks.rational(share, "share", "a share of the limit")
    return Fraction(max(number, Fraction(0)) * _GRID // 1, _GRID)


def _percent(share: Fraction) -> str:
    return f"{float(share * 100):.3g} %"
