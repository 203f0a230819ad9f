"""What only the organisation knows of its releases, and the words that every disclosure shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from ... import checks
from .findings import UNKNOWN, Findings

_MOST = 20  # names in a list, the most frequent first

_FLAVOURS = {"rho": "Zero-concentrated DP", "pure": "Pure DP", "approximate": "Approximate DP"}


@dataclass(frozen=True, kw_only=True)
class About:
    """What only the organisation can say. Every field may be left out.

    model     "Central", "Local", "Shuffle" or "Federated"
    trust     whom subjects, curator and readers have to trust, and why
    changing  does new data come in over time?
    asked     do analysts ask questions of their own, or is a product published?
    """

    name: str | None = None
    curators: tuple[str, ...] = ()
    intended_use: str | None = None
    product_type: str | None = None
    region: str | None = None
    sector: str | None = None
    description: str | None = None
    publication_date: str | None = None
    model: str = "Central"
    trust: str | None = None
    changing: bool | None = None
    asked: bool | None = None
    data_domain: str | None = None
    preprocessing: str | None = None
    postprocessing: str | None = None
    utility: str | None = None
    bias: str | None = None
    security: str | None = None
    access: str | None = None
    minimisation: str | None = None
    justification: str | None = None
    bounds_by: str | None = None
    authors: tuple[str, ...] = ()
    sources: str | None = None

    def __post_init__(self) -> None:
        checks.one_of(self.model, "model", ("Central", "Local", "Shuffle", "Federated"))


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


def known_fields(redact: Collection[str], names: set[str]) -> None:
    """A slip in a name would publish what was to be left out."""
    if not isinstance(redact, tuple | list | set | frozenset) or not all(isinstance(each, str) for each in redact):
        raise checks.refuse("redact", redact, f"a list of fields out of {', '.join(sorted(names))}")
    if strange := sorted(set(redact) - names):
        raise checks.refuse("redact", strange[0], f"a list of fields out of {', '.join(sorted(names))}")
