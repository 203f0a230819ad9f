"""The privacy hazards that NIST SP 800-226 puts in boxes, which of them apply, and what is done about each.

After the initial public draft (December 2023), in our words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ... import kinds, record
from ...ledger.policy.policy import AccountRule
from ...plan import Plan
from .findings import Findings


class Hazard(NamedTuple):
    number: int
    text: str
    control: str


Applies = Callable[[Findings], bool]
Control = Callable[[Findings], str]


def _always(_: Findings) -> bool:
    return True


def _large(found: Findings) -> bool:
    limit = found.statement.largest
    return limit is not None and limit.epsilon is not None and limit.epsilon > 1


def _delta(found: Findings) -> bool:
    limit = found.statement.largest
    return limit is not None and bool(limit.delta)


def _rows(found: Findings) -> bool:
    return any("one row" in unit for unit in found.units) or "one row" in (found.statement.unit or "")


def _brought(box: int) -> Applies:
    """Did a plan of a kind that brings it along run? A kind says so itself; one that is not known here brings none."""

    def applies(found: Findings) -> bool:
        kinds.load()
        known = record.kinds(Plan)  # type: ignore[type-abstract]
        return any(name in known and box in known[name].boxes for name in found.mechanisms)

    return applies


def _clipped(found: Findings) -> bool:
    return any(" is clamped to " in bound for bound in found.bounds)


def _policy(words: str) -> Control:
    return lambda found: words if found.policy else _NO_POLICY


_NO_POLICY = "none: no policy was adopted"


def _bands(found: Findings) -> str:
    if found.policy is None:
        return _NO_POLICY
    banded = found.policy.bands or any(rule.bands for rule in _rules(found))
    return "the policy's bands" if banded else "none: the policy has no bands"


def _small_delta(found: Findings) -> str:
    if found.policy is None:
        return _NO_POLICY
    counted = any(rule.rows is not None for rule in _rules(found))
    return "native currencies; the policy's rule for delta" if counted else "native currencies"


def _rules(found: Findings) -> list[AccountRule]:
    """What the policy says of the account and of those above it."""
    assert found.policy is not None
    named = (found.statement.account, *found.above)
    return [rule for name in named if (rule := found.policy.account(name)) is not None]


def _noise(found: Findings) -> str:
    noise = "exact noise on a grid" if set(found.grades) == {"exact"} else "noise of the grades told above"
    noise += " (float grade: secure_noise = false)" if "float" in found.grades else ""
    return f"{noise}; paid before data is opened"


_BOXES: tuple[tuple[int, str, str | Control, Applies], ...] = (
    (1, "a large epsilon may mean little", _bands, _large),
    (2, "delta allows rare failures without bound", _small_delta, _delta),
    (3, "what the unit does not capture is not protected", "the unit is mandatory and told in words", _always),
    (4, "protecting rows does not protect people", "none: the unit is a row, as told above", _rows),
    (5, "epsilons at different deltas do not compare", "one delta per account", lambda found: len(found.deltas) > 1),
    (6, "different units do not compare", "an account has one unit", lambda found: len(found.units) > 1),
    (7, "a large delta flatters a converted epsilon", "delta is fixed with the account's limit", _delta),
    (8, "other releases are not covered", "the ledger's register of releases without DP", _always),
    (9, "home-made mechanisms fail", "every plan has a registered name; they are listed above", _always),
    (10, "small groups suffer most from noise", "error bars where a plan has them", _always),
    (11, "cosmetic fixes hide noise", "tidying reads the paid answer alone", _brought(11)),
    (12, "clipping biases", "bounds are in the plan and listed above", _clipped),
    (13, "bounding contributions takes more noise", "computed from the plan's limits", lambda found: not _rows(found)),
    (14, "bins must not come from the data", "given in the plan, or selected and paid for", _brought(14)),
    (16, "synthetic data without DP can be attacked", "it is made from paid answers", _brought(16)),
    (19, "analysts may be malicious", "one filter for adaptive choice; repeated failures lock", _always),
    (20, "trust assumptions must hold", "told above, if stated", _always),
    (21, "implementations leak", _noise, _always),
    (22, "a breach voids everything", "out of the ledger's reach: told above, if stated", _always),
    (23, "access control can fail", _policy("roles and separation of duties"), _always),
    (24, "DP is no reason to collect", "out of the ledger's reach: told above, if stated", _always),
)


def hazards(found: Findings) -> tuple[Hazard, ...]:
    return tuple(
        Hazard(number, text, control if isinstance(control, str) else control(found))
        for number, text, control, applies in _BOXES
        if applies(found)
    )
