"""What only the organisation knows of its releases, and the words that every disclosure shares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ... import checks

UNKNOWN = "not stated"
WITHHELD = "withheld"


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


def known_fields(redact: Collection[str], names: set[str]) -> None:
    """A slip in a name would publish what was to be left out."""
    if not isinstance(redact, tuple | list | set | frozenset) or not all(isinstance(each, str) for each in redact):
        raise checks.refuse("redact", redact, f"a list of fields out of {', '.join(sorted(names))}")
    if strange := sorted(set(redact) - names):
        raise checks.refuse("redact", strange[0], f"a list of fields out of {', '.join(sorted(names))}")
