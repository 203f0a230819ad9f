"""The checklist of NIST SP 800-226, as far as the entries go.

What only the organisation knows comes from `About`; what nobody said is "not stated". `redact` leaves named fields out,
and says so.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import checks
from ...accounting.budget import Budget
from ...ledger.stores.base import Store
from .about import UNKNOWN, WITHHELD, About, known_fields
from .findings import Findings, counted, findings, flavour, roles
from .hazards import Hazard, hazards
from .statement import digits_above


class Line(NamedTuple):
    """One field that a claim must state, and where NIST asks for it."""

    field: str
    text: str
    section: str


@dataclass(frozen=True)
class Checklist:
    """The claim of an account, field by field, and the hazards that apply to it with what is done about them."""

    account: str
    number: int
    hash: str
    lines: tuple[Line, ...]
    hazards: tuple[Hazard, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "scheme": "NIST SP 800-226 (initial public draft)",
            "account": self.account,
            "entry": {"number": self.number, "hash": self.hash},
            "fields": {line.field: line.text for line in self.lines},
            "hazards": [each._asdict() for each in self.hazards],
        }

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that nobody stated."""
        return tuple(line.field for line in self.lines if line.text == UNKNOWN)

    def __str__(self) -> str:
        lines = [f"NIST SP 800-226 checklist of account {self.account!r}, as of entry {self.number} ({self.hash[:16]})"]
        for line in self.lines:
            lines.append(f"[{' ' if line.text == UNKNOWN else 'x'}] {line.field}: {line.text}  [{line.section}]")
        lines.append("Hazards that apply")
        lines += [f"  {each.number:>2} {each.text} -> {each.control}" for each in self.hazards]
        return "\n".join(lines)


def checklist(store: Store, account: str, about: About | None = None, *, redact: Collection[str] = ()) -> Checklist:
    """The fields of a claim, from the entries of an account."""
    if about is not None:
        checks.instance(about, About, "about", "an About(...), or leave it out")
    found, told = findings(store, account), about or About()
    lines = _lines(found, told)
    known_fields(redact, {line.field for line in lines})
    shown = tuple(line._replace(text=WITHHELD) if line.field in redact else line for line in lines)
    now = found.statement
    return Checklist(account, now.number, now.hash, shown, hazards(found))


def _lines(found: Findings, about: About) -> list[Line]:
    now = found.statement
    limit = now.largest
    withouts = [f"{each.of}: {each.text} (to {each.recipients})" for each in found.declared]
    beside = "; ".join(
        f"{each.label}: " + (f"epsilon = {each.epsilon:.4g}" if each.epsilon is not None else f"none, {each.reason}")
        for each in now.beside
    )
    spent = ", ".join(f"{float(each.spent):.4g} of {float(each.limit):.4g} {each.currency}" for each in now.standing)
    composed = f"privacy filter, adaptively chosen; spent {spent or 'nothing'}; beside: {beside}"
    composed += f"; {found.lists} list(s) of releases were fixed in advance and paid as one" if found.lists else ""
    releases = f"{found.releases} ({counted(found.states)})" if found.releases else "none yet"
    bounds = list(found.bounds) + (["and more"] if found.more_bounds else [])
    return [
        Line("epsilon and delta", UNKNOWN if limit is None else _limit(limit), "2.2, 2.3"),
        Line("original parameters", _original(now.standing) or UNKNOWN, "2.2"),
        Line("variant", f"account: {flavour(found)}; releases: {counted(found.variants)}", "Table 1"),
        Line("unit", now.protects or UNKNOWN, "2.4"),
        Line("neighbours", counted(found.relations) if found.releases else now.change or UNKNOWN, "2.4"),
        Line("contribution bounds", "; ".join(bounds) or UNKNOWN, "2.4"),
        Line("total budget", now.guarantee, "2.2"),
        Line("composition", UNKNOWN if limit is None else composed, "2.2"),
        Line("releases", UNKNOWN if limit is None else releases, "4.1"),
        Line("other releases", "; ".join(withouts) or "none entered in the ledger's register", "2.6"),
        Line("post-processing", _afterwards(found, about), "2.6"),
        Line("algorithm", _algorithm(found), "3.1"),
        Line("library", counted(found.libraries), "3.1"),
        Line("bounds given by", about.bounds_by or UNKNOWN, "3.4"),
        Line("utility", about.utility or UNKNOWN, "3.2"),
        Line("bias", about.bias or UNKNOWN, "3.3"),
        Line("query model", _model(about), "4.1"),
        Line("trust", f"{about.model}: {about.trust}" if about.trust else UNKNOWN, "4.2"),
        Line("side channels", f"noise: {counted(found.grades)}; bits: {counted(found.randomness)}", "4.3"),
        Line("security", about.security or UNKNOWN, "4.4"),
        Line("access control", about.access or roles(found), "4.4"),
        Line("data minimisation", about.minimisation or UNKNOWN, "4.5"),
        Line("actors", counted(found.actors), "4.1"),
        Line("purposes", counted(found.purposes), "4.1"),
    ]


def _limit(budget: Budget) -> str:
    if budget.rho is not None:
        return f"rho = {digits_above(budget.rho)}"
    return f"epsilon = {digits_above(budget.epsilon)}" + (
        f", delta = {digits_above(budget.delta)}" if budget.delta else ""
    )


def _original(standing: tuple[Any, ...]) -> str:
    """A release passes while one gauge has room, so of several limits one holds in the end, and nobody knows which."""
    told = ", ".join(f"{each.currency} <= {digits_above(each.limit)}" for each in standing)
    return f"at least one of {told}" if len(standing) > 1 else told


def _algorithm(found: Findings) -> str:
    """The plans, and the noise that their events name."""
    plans = counted(found.mechanisms)
    return f"{plans}; noise: {counted(found.noises)}" if found.noises else plans


def _afterwards(found: Findings, about: About) -> str:
    """What plans do with noisy numbers, which is free, and what the organisation does with the answers."""
    if not found.releases:
        return about.postprocessing or UNKNOWN
    plans = counted(found.afterwards) if found.afterwards else "none"
    return f"by the plans, from noisy numbers alone: {plans}; by the organisation: {about.postprocessing or UNKNOWN}"


def _model(about: About) -> str:
    return UNKNOWN if about.asked is None else "interactive" if about.asked else "data release"
