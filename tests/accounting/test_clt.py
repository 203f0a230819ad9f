"""The central-limit approximation: its published values, and that nothing takes it for a guarantee."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from typing import Any

import pytest

from sfumato import Budget, MemoryLedger, checks, record
from sfumato.accounting import clt, composition, pure
from sfumato.accounting.calibrate import calibrate
from sfumato.accounting.filters import Filter
from sfumato.accounting.interval import Interval
from sfumato.errors import SfumatoError, UnsupportedEventError
from sfumato.events import Event, Gaussian, Laplace, Poisson, Repeat, Sequence

MNIST = Fraction(256, 60000)


def sgd(rate: float | Fraction, multiplier: float, steps: int) -> Event:
    return Repeat(Poisson(Gaussian(multiplier=multiplier), rate), steps)


# Published with 15 * 60000/256 = 3515.625 steps and the like; events have whole steps, hence the tolerance.
PUBLISHED = [
    (sgd(MNIST, 1.3, 3516), 0.834382),
    (sgd(MNIST, 1.1, 14063), 2.324269),
    (sgd(MNIST, 0.7, 10547), 5.065910),
    (sgd(MNIST, 1.06, 4688), 1.341197),
    (sgd(MNIST, 0.638, 16406), 8.697156),
    (sgd(0.01, 4, 10_000), 0.942440),
    (sgd(0.01, 4, 40_000), 2.028367),
]
# What privacy loss certifies as a lower bound, or as the value, in the same settings: all larger.
TRUE = [0.864459, 2.381686, 5.639447, None, None, 0.9468, 2.0330]


@pytest.mark.parametrize(("event", "value"), PUBLISHED)
def test_published_values(event: Event, value: float) -> None:
    assert clt.epsilon(event, delta=1e-5).estimate == pytest.approx(value, rel=2e-4)


def test_published_mus() -> None:
    assert clt.mu(sgd(MNIST, 1.06, 4688)).estimate == pytest.approx(0.349948, rel=1e-4)
    assert clt.mu(sgd(MNIST, 0.638, 16406)).estimate == pytest.approx(1.784876, rel=1e-4)
    for mu, value in ((0.349948, 1.341197), (1.784876, 8.697156)):
        limit = Gaussian(multiplier=1 / Fraction(repr(mu)))
        assert clt.epsilon(limit, delta=1e-5).estimate == pytest.approx(value, abs=1e-5)


def test_it_understates() -> None:
    for (event, _), truth in zip(PUBLISHED, TRUE, strict=True):
        if truth is not None:
            assert clt.epsilon(event, delta=1e-5).estimate < truth


def test_delta_and_epsilon_belong_together() -> None:
    event = Sequence((sgd(0.01, 2, 500), Gaussian(multiplier=5)))
    for delta in (1e-12, 1e-5, 1e-2):
        epsilon = clt.epsilon(event, delta=delta).estimate
        assert clt.delta(event, epsilon=epsilon).estimate == pytest.approx(delta, rel=1e-6)
    assert clt.epsilon(event, delta=0.99).estimate == 0
    assert clt.epsilon(sgd(1, 2, 4), delta=1e-5).mu == pytest.approx(1.0)  # no sampling: the Gaussian itself


APPROXIMATION: Any = clt.epsilon(sgd(0.01, 4, 10_000), delta=1e-5)


def test_it_says_what_it_is() -> None:
    for text in (repr(APPROXIMATION), str(APPROXIMATION), f"{APPROXIMATION}"):
        assert "approximation, not a guarantee" in text and "0.94244" in text


def test_it_is_not_a_number_an_event_or_an_interval() -> None:
    assert not isinstance(APPROXIMATION, int | float | Fraction | Event | Interval | tuple)
    for use in (float, int, complex, round, math.ceil, math.sqrt, abs, operator.index, operator.neg, iter, len):
        with pytest.raises(TypeError):
            use(APPROXIMATION)
    for other in (1.0, APPROXIMATION):
        for use in (operator.add, operator.mul, operator.lt, operator.ge, operator.sub, max):
            with pytest.raises(TypeError):
                use(APPROXIMATION, other)  # type: ignore[operator]
    assert APPROXIMATION.estimate != APPROXIMATION
    with pytest.raises(AttributeError):
        APPROXIMATION.estimate = 0.1


def test_nothing_that_promises_or_spends_takes_it() -> None:
    for build in (
        lambda: Budget(epsilon=APPROXIMATION, delta=1e-5),
        lambda: Budget(rho=APPROXIMATION),
        lambda: Laplace(epsilon=APPROXIMATION),
        lambda: Gaussian(multiplier=APPROXIMATION),
        lambda: Repeat(APPROXIMATION, 2),
        lambda: Sequence((APPROXIMATION,)),
        lambda: Poisson(APPROXIMATION, 0.1),
        lambda: checks.epsilon(APPROXIMATION),
        lambda: checks.delta(APPROXIMATION),
    ):
        with pytest.raises((SfumatoError, TypeError)):
            build()
    account = Filter.of(Budget(epsilon=10, delta=1e-5))
    with pytest.raises((SfumatoError, TypeError, AttributeError)):
        account.spend(APPROXIMATION, Fraction(0))
    for price in (pure.epsilon, lambda event: composition.total(event, pure.epsilon)):
        with pytest.raises((SfumatoError, RecursionError)):
            price(APPROXIMATION)


def test_neither_calibration_nor_a_ledger_takes_it() -> None:
    with pytest.raises((SfumatoError, TypeError)):
        calibrate(lambda multiplier: clt.epsilon(sgd(0.01, multiplier, 100), delta=1e-5), epsilon=1, delta=1e-5)  # type: ignore[arg-type, return-value]
    with pytest.raises((SfumatoError, TypeError)):
        calibrate(lambda multiplier: sgd(0.01, multiplier, 100), epsilon=APPROXIMATION, delta=1e-5)
    with pytest.raises((SfumatoError, TypeError, AttributeError)):
        MemoryLedger({"a": APPROXIMATION})
    ledger = MemoryLedger({"a": Budget(epsilon=10, delta=1e-5)})
    with pytest.raises((SfumatoError, TypeError, AttributeError)):
        ledger.spend(("a",), APPROXIMATION, data="d", grade="exact", note="")
    with pytest.raises(SfumatoError):
        record.encode(APPROXIMATION)


def test_what_it_cannot_approximate_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="Laplace"):
        clt.epsilon(Repeat(Laplace(epsilon=1), 3), delta=1e-5)
    with pytest.raises(UnsupportedEventError, match="small"):
        clt.epsilon(sgd(0.1, 0.01, 10), delta=1e-5)
    for event in (sgd(1e-9, 1e6, 1), sgd(0.5, 0.05, 10**6), Gaussian(multiplier=1e-3)):
        for delta in (1e-100, 0.9):
            assert math.isfinite(clt.epsilon(event, delta=delta).estimate)
