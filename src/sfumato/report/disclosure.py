"""The NIST SP 800-226 checklist and the deployments-registry file, with how to state what nobody stated yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from .. import checks
from ..ledger.ledger import Ledger
from .accounts.about import About
from .accounts.register import Declared
from .redaction import Redaction
from .words import UNKNOWN

# Field of the checklist -> field of About, and what to write there.
_STATED_BY = {
    "post-processing": "postprocessing",
    "bounds given by": "bounds_by",
    "utility": "utility",
    "bias": "bias",
    "query model": "asked",
    "trust": "trust",
    "security": "security",
    "access control": "access",
    "data minimisation": "minimisation",
}
_ABOUT = {
    "name": "what the product is called",
    "curators": "who is responsible for the data, a list",
    "intended_use": "what the answers are for",
    "product_type": "what is published: statistics, a model, a dashboard",
    "region": "where the people live",
    "sector": "health, education, transport, ...",
    "description": "the product in two sentences",
    "publication_date": "when it is published",
    "trust": "whom people, curator and readers have to trust, and why",
    "changing": "true if new data comes in over time",
    "asked": "true if analysts ask questions of their own, false if a product is published",
    "data_domain": "which people and which records the data covers",
    "preprocessing": "what was done to the data before, and whether that was paid for",
    "postprocessing": "what was done to the answers after",
    "utility": "how exact the answers must be for their use, and whether they are",
    "bias": "who is served worse by noise, clipping and suppressed groups",
    "security": "how the data is protected at rest and in use",
    "access": "who may ask, and who may read the data",
    "minimisation": "what was not collected, or was deleted",
    "justification": "why this epsilon and this unit",
    "bounds_by": "who gave the bounds, and that they did so without looking at the data",
    "authors": "who wrote the registry entry, a list",
    "sources": "where more can be read",
}
_ELSEWHERE = {
    "purposes": "give every release its purpose: note=... in Python, --note on the command line",
    "unit": "open the account with its unit",
    "epsilon and delta": "open the account with a budget",
    "original parameters": "open the account with a budget; an exhausted one has no gauge left",
    "composition": "open the account with a budget",
    "releases": "open the account with a budget",
    "actors": "open the ledger with principal=..., or ledger: {principal: ...} in sfumato.yaml",
}


def how_to_state(field: str) -> str:
    """Where somebody says what the checklist lacks."""
    if field in _STATED_BY:
        name = _STATED_BY[field]
        return f"about: {{{name}: ...}} in sfumato.yaml ({_ABOUT[name]})"
    return _ELSEWHERE.get(field, "the ledger tells it as soon as a release says it")


def checked(ledger: Any, about: Any) -> About:
    """What the organisation says, nothing where it says nothing. Refused where an argument is something else."""
    checks.instance(ledger, Ledger, "ledger", "a ledger, such as open_ledger(...)")
    if about is not None:
        checks.instance(about, About, "about", "an About(...), or leave it out")
    return about or About()


def still_open(about: About) -> list[dict[str, str]]:
    """The fields of `about` that nobody filled in."""
    empty = [each.name for each in fields(about) if getattr(about, each.name) in (None, ())]
    return [{"field": name, "what": _ABOUT[name]} for name in empty]


def checklist(
    ledger: Ledger,
    account: str,
    about: About | None,
    hide: Redaction,
    release: Mapping[str, str] | None = None,
    answered: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Every field of the checklist.

    release   what one release tells of a field by itself
    answered  what the answers of the account tell of a field where nobody stated it
    """
    filled = ledger.checklist(account, about, redact=hide.checklist)
    lines = []
    for line in filled.lines:
        if line.text == UNKNOWN and (answered or {}).get(line.field):
            line = line._replace(text=(answered or {})[line.field])
        stated = line.text != UNKNOWN
        own = (release or {}).get(line.field) or None
        lines.append(
            {
                "field": line.field,
                "release": None if own is None else hide(line.field, own) if line.field in hide.checklist else own,
                "account": line.text,
                "section": line.section,
                "stated": stated or bool(own),
                "how": None if stated or own else how_to_state(line.field),
            }
        )
    return {
        "scheme": "NIST SP 800-226 (initial public draft)",
        "account": account,
        "entry": {"number": filled.number, "hash": filled.hash},
        "fields": lines,
        "hazards": [each._asdict() for each in filled.hazards],
        "open": [line["field"] for line in lines if not line["stated"]],
    }


def registry(ledger: Ledger, account: str, about: About | None, hide: Redaction) -> str | None:
    """The file for the registry of deployments; None where it is withheld."""
    return None if "registry" in hide else ledger.registry(account, about, redact=hide.registry)


def declared(ledger: Ledger, names: Iterable[str], hide: Redaction) -> list[Declared]:
    """What left these data sets without differential privacy, each once."""
    if "other releases" in hide:
        return []
    entries = {each.number: each for name in dict.fromkeys(names) for each in ledger.declared(data=name)}
    return [each._replace(data=hide("data", each.data)) for _, each in sorted(entries.items())]
