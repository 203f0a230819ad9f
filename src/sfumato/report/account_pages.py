"""The report of an account: its guarantee, its budget over time, every release on it with its question and its answer,
and what lies ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .. import checks
from ..ledger.ledger import Ledger
from ..units import Unit
from . import disclosure, gauges, guarantee, listing, proof, words
from .accounts.about import About
from .accounts.register import Declared
from .accounts.releases import Released
from .accounts.statement import Statement, Under
from .over_time import OverTime
from .redaction import Redaction
from .reports import Report
from .unprotected import Gap, gaps

MOST = 500  # releases that are listed, the latest first
_MARKS = (0.5, 0.8, 0.95)  # shares that are told where no policy and no project says otherwise


def account_report(
    ledger: Ledger,
    account: str,
    *,
    about: About | None = None,
    redact: Collection[str] = (),
    alert_threshold: float | None = None,
) -> Report:
    """What a compliance officer signs of an account: everything that was, or may yet be, released on it.

    about            what only the organisation knows: the `about:` of sfumato.yaml
    redact           topics that are withheld, and named as such; see `redaction.TOPICS`
    alert_threshold  the share of the limit from which on the report warns: that of sfumato.yaml
    """
    hide, stated = Redaction(redact), disclosure.checked(ledger, about)
    marks = _marks(ledger, alert_threshold)
    now = ledger.statement(account)
    past = _Past(ledger, account, now.number)
    listed = listing.listed(ledger, past.rows, hide)
    promise = guarantee.of_account(now)
    verified = proof.verified(ledger)
    declared = disclosure.declared(ledger, [account, *past.data], hide)
    document = {
        "report": "report-account/2",
        "title": f"Account {account}",
        "made": proof.origin(hide),
        "redacted": list(hide.topics),
        "account": {
            "name": account,
            "level": now.level,
            "parent": now.parent,
            "closed": now.is_closed,
            "locked": now.locked,
            "failures": now.failures,
            "holds": now.holds,
            "releases": now.releases,
            "used": gauges.used(now),
            "balance": gauges.balance_text(now),
            "lowered_to": words.exponent(str(now.limit)) if now.limit != now.largest else None,
        },
        "guarantee": promise,
        "standing": gauges.standing(now),
        "closed_gauges": list(now.closed),
        "beside": [each._asdict() for each in now.beside],
        "over_time": past.course.lines() | {"marks": marks},
        "allocations": [_under(each) for each in now.children],
        "allocated": {
            "sum": None if now.allocated is None else words.exponent(now.allocated),
            "over": now.overcommitted,
        },
        "blocks": [_under(each) for each in now.blocks],
        "releases": listed,
        "releases_in_all": past.count,
        "states": past.states,
        "forecast": _forecast(ledger, account),
        "alerts": _alerts(now, marks, verified["holds"], past, len(declared)),
        "not_protected": [each._asdict() for each in _gaps(now, past, declared)],
        "evidence": {"entry": now.number, "hash": now.hash, "verify": verified},
        "checklist": disclosure.checklist(ledger, account, about, hide, answered=listing.fields_by_answers(listed)),
        "registry": disclosure.registry(ledger, account, about, hide),
        "still_open": disclosure.still_open(stated),
    }
    return Report(document)


def _gaps(now: Statement, past: _Past, declared: Iterable[Declared]) -> list[Gap]:
    rare, block = guarantee.has_rare_outcomes(now), now.level == "block"
    return gaps(past.units, past.loops, rare, declared, block, now.parent, past.grades)


class _Past:
    """The releases of an account, read once: the latest of them whole, of the others what a report counts."""

    def __init__(self, ledger: Ledger, account: str, last: int) -> None:
        self.course = OverTime(account)
        self.units: dict[Unit, None] = {}
        self.loops: dict[str, None] = {}
        self.grades: dict[str, None] = {}
        self.data: dict[str, None] = {}
        self.states: dict[str, int] = {}
        self.count = 0
        latest: deque[Released] = deque(maxlen=MOST)
        for row in ledger.releases(account=account, price=False, last=last):
            self.count += 1
            self.course.take(row)
            self.units[row.unit] = None
            self.loops[row.loop] = None
            self.grades[row.grade] = None
            self.data.update(dict.fromkeys(place.name for place in row.places))
            short = words.state_words(row)[0]
            self.states[short] = self.states.get(short, 0) + 1
            latest.append(row)
        self.rows = sorted(latest, key=lambda row: row.number)


def _marks(ledger: Ledger, threshold: float | None) -> list[float]:
    if threshold is not None:
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 < threshold <= 1:
            raise checks.refuse("alert_threshold", threshold, "a share above 0 and up to 1, such as 0.8")
        return [float(threshold)]
    policy = ledger.policy()
    return list(_MARKS) if policy is None else [float(each) for each in policy.alerts.spent]


def _under(part: Under) -> dict[str, Any]:
    return {
        "name": part.name,
        "level": part.level,
        "limit": "no limit of its own" if part.limit is None else words.exponent(part.limit),
        "used": part.share,
        "closed": part.closed,
    }


def _forecast(ledger: Ledger, account: str) -> dict[str, Any]:
    ahead = ledger.forecast(account)
    window = "" if ahead.since is None else f", by {ahead.releases} releases since {ahead.since:%Y-%m-%d}"
    sentence = (
        f"At this rate{window}, it is exhausted on {ahead.exhausted:%Y-%m-%d}; account {ahead.binding!r} binds."
        if ahead.exhausted is not None
        else f"{(ahead.reason or 'nothing is known')[:1].upper()}{(ahead.reason or 'nothing is known')[1:]}."
    )
    return {
        "sentence": sentence,
        "exhausted": None if ahead.exhausted is None else ahead.exhausted.isoformat(),
        "binding": ahead.binding,
        "releases": ahead.releases,
        "since": None if ahead.since is None else ahead.since.isoformat(),
    }


def _alerts(now: Statement, marks: list[float], holds: bool, past: _Past, declared: int) -> list[dict[str, str]]:
    """What somebody should look at, the most urgent first. Made of what the ledger holds, never of the data."""
    return [{"level": level, "words": told} for level, told in _told(now, marks, holds, past, declared)]


def _told(now: Statement, marks: list[float], holds: bool, past: _Past, declared: int) -> Iterator[tuple[str, str]]:
    used = gauges.used(now)
    if not holds:
        yield "urgent", "the ledger does not hold: do not sign this report before that is explained"
    if now.locked:
        yield "urgent", f"the account is locked after {now.failures} failures on the data's side"
    elif now.failures:
        yield "warning", f"{now.failures} release(s) failed on the data's side since the last unlock"
    if used is not None and used >= 1:
        yield "urgent", "the budget is exhausted: nothing more can be released on this account"
    elif used is not None and (passed := [mark for mark in marks if mark <= used]):
        yield (
            "warning",
            f"{words.percent(used)} of the limit is spent, which passes the mark of {words.percent(passed[-1])}",
        )
    if now.overcommitted:
        yield "note", f"the accounts below may spend {now.allocated} together, more than this one, whose limit holds"
    if now.holds:
        yield "note", f"{now.holds} hold(s) are open: room is set aside that nothing has spent yet"
    if unfinished := past.states.get("opened, no answer"):
        yield "warning", f"{unfinished} release(s) were opened and have no answer: they run, or their processes ended"
    if declared:
        yield "note", f"the register names {declared} release(s) that no guarantee covers: see what is not protected"
    if now.is_closed:
        yield "note", "the account is closed: nothing more is paid from it"
