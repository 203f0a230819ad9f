"""Every kind of plan that the package ships, audited: seconds of work here, twenty behind `make test-all`.

An honest plan is called broken with chance at most 1e-6, whatever the time allows; a slow machine looks less hard.
"""

from __future__ import annotations

from typing import Any

import pytest

from sfumato import audit
from sfumato.audit import shipped
from sfumato.audit.results import Result
from tests.effort import LONG_TO_CHECK

NAMES = sorted(shipped.PLANS)
_QUICK, _LONG = 0.005, 0.5  # minutes for each
# The others `check_plan` looks at in tests/rules/test_kind_rules.py, as closely; SqlStages takes long here, too.
_HERE = {*LONG_TO_CHECK, "Gaussian", "Laplace", "Sequence", "Sql"} - {"SqlStages"}


def _audited(name: str, minutes: float) -> Result:
    found: Result = audit.check(shipped.PLANS[name](), minutes=minutes)
    assert not found.broken, str(found)
    assert found.curve and found.found and found.claim > 0
    return found


@pytest.mark.parametrize(
    "name", [name if name in _HERE else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_no_event_proves_more_than_is_paid_for(name: str) -> None:
    _audited(name, _QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_event_proves_more_than_is_paid_for_however_long_one_looks(name: str, record_property: Any) -> None:
    found = _audited(name, _LONG)
    record_property("shown over claim", found.epsilon / found.claim)
