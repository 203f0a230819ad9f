"""Roles, what each of them may do, and how many persons an act takes. Who grants or approves may not spend."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ... import checks
from ...errors import ArgumentError

ROLES = (
    "data owner", "privacy officer", "budget administrator", "analyst", "ML engineer", "auditor", "service account"
)  # fmt: skip

DUTIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "spend": ("analyst", "ML engineer", "service account"),
        "grant": ("budget administrator",),  # open, lower, move, raise and close accounts
        "register": ("data owner",),  # data sets, blocks, copies
        "approve": ("privacy officer", "data owner"),
        "unlock": ("privacy officer",),
        "adopt": ("privacy officer",),  # another policy
        "declare": ("data owner", "privacy officer"),  # releases without DP, invariants
        "restore": ("privacy officer",),
        "read": ROLES,
    }
)
"""Which roles may do what. An auditor reads, and has no other role."""

APART = (("grant", "spend"), ("approve", "spend"))
"""Duties that no one person may have together."""

ACTS: Mapping[str, int] = MappingProxyType(
    {
        "raise": 2, "reset": 2, "weaken unit": 2, "without DP": 2, "invariant": 2, "adopt": 2, "restore": 2, "delta": 1
    }
)  # fmt: skip
"""How many persons must approve an act. A policy may ask for more, never for fewer: who alone could adopt a policy
could name two approvers."""

_MOST_APPROVALS = 20
_MOST = 2000  # people


def people(given: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Each person with their roles, in order; no one of them with duties that must be apart."""
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    if not isinstance(pairs, tuple | list) or len(pairs) > _MOST:
        raise checks.refuse("people", given, "a mapping of each person to their roles")
    found: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise checks.refuse("people", given, "a mapping of each person to their roles")
        name, roles = checks.label(pair[0], "people"), pair[1]
        if isinstance(roles, str) or not isinstance(roles, tuple | list) or not roles:
            raise checks.refuse(f"people {name!r}", roles, f"a list of roles out of {', '.join(ROLES)}")
        found[name] = tuple(
            role for role in ROLES if role in {checks.one_of(r, f"people {name!r}", ROLES) for r in roles}
        )
        alias = re.sub(r"\s+", " ", unicodedata.normalize("NFKC", name).casefold()).strip()
        if alias in seen:
            raise checks.refuse(
                "people", name, "each person once: this name differs from another only in how it is written"
            )
        seen.add(alias)
        _apart(name, found[name])
    return tuple(sorted(found.items()))


def _apart(name: str, roles: tuple[str, ...]) -> None:
    if "auditor" in roles and len(roles) > 1:
        raise ArgumentError(f"people {name!r}: an auditor only reads: give them no other role.")
    for one, other in APART:
        first, second = ([role for role in roles if role in DUTIES[duty]] for duty in (one, other))
        if first and second:
            raise ArgumentError(
                f"people {name!r}: as {first[0]} they may {one}, and as {second[0]} they may {other}: no one person "
                "may do both; give one of the roles to somebody else."
            )


def needed(given: Any) -> tuple[tuple[str, int], ...]:
    """Approvals per act, where they are more than `ACTS` says."""
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    allowed = f"a number of persons for each of {', '.join(ACTS)}"
    if not isinstance(pairs, tuple | list) or any(not isinstance(p, tuple | list) or len(p) != 2 for p in pairs):
        raise checks.refuse("needed", given, allowed)
    found: dict[str, int] = {}
    for act, number in pairs:
        checks.one_of(act, "needed", ACTS)
        if act in found:
            raise checks.refuse("needed", given, "each act once")
        found[act] = checks.whole(number, f"needed {act!r}", least=ACTS[act], most=_MOST_APPROVALS)
    return tuple((act, found[act]) for act in ACTS if found.get(act, ACTS[act]) > ACTS[act])
