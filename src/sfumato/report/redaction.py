"""What a report may leave out, and how it says so: a field that is withheld is named, never silently missing.

The guarantee itself cannot be withheld: a report without it tells nobody anything.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from .accounts.about import WITHHELD, known_fields

T = TypeVar("T")

# Topic -> the fields of the NIST checklist, and those of the registry file, that tell of it.
TOPICS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "access control": (("access control",), ("mechanisms",)),
    "actors": (("actors",), ()),
    "algorithm": (("algorithm",), ("mechanisms",)),
    "answer": ((), ()),
    "approvals": ((), ()),
    "bias": (("bias",), ()),
    "bounds given by": (("bounds given by",), ()),
    "contribution bounds": (("contribution bounds",), ()),
    "data": ((), ()),
    "data minimisation": (("data minimisation",), ()),
    "key": ((), ()),
    "library": (("library",), ("mechanisms",)),
    "other releases": (("other releases",), ("unprotected_quantities",)),
    "post-processing": (("post-processing",), ("post_processing",)),
    "purposes": (("purposes",), ()),
    "query": ((), ()),
    "query model": (("query model",), ("access_type",)),
    "registry": ((), ()),
    "security": (("security",), ("mechanisms",)),
    "trust": (("trust",), ("actors", "model_name")),
    "utility": (("utility",), ()),
}


class Redaction:
    """`hide("purposes", text)` is the text, or "withheld"."""

    def __init__(self, redact: Collection[str]) -> None:
        known_fields(redact, set(TOPICS))
        self.topics = tuple(sorted(set(redact)))

    def __call__(self, topic: str, value: T) -> T | str:
        return WITHHELD if topic in self.topics else value

    def __contains__(self, topic: str) -> bool:
        return topic in self.topics

    def any(self, *topics: str) -> bool:
        """Is one of them withheld?"""
        return not set(topics).isdisjoint(self.topics)

    @property
    def checklist(self) -> tuple[str, ...]:
        """The fields that the checklist leaves out."""
        return tuple(field for topic in self.topics for field in TOPICS[topic][0])

    @property
    def registry(self) -> tuple[str, ...]:
        """The fields that the registry file leaves out."""
        return tuple(dict.fromkeys(field for topic in self.topics for field in TOPICS[topic][1]))
