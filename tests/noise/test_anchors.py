"""The certified normal tail from anchors: it encloses the truth, closely, and would not without each of its terms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.laws import RoundedGaussian
from sfumato.noise import anchors
from tests.noise import reference


def encloses(law: RoundedGaussian, k: int, bits: int) -> bool:
    found = anchors.enclose_tail(law, k, bits)
    assert found.bits == bits
    below, above = reference.scaled(reference.tail(law, k), bits)
    return found.lo <= below and above <= found.hi


def places(law: RoundedGaussian) -> list[int]:
    """Near and halfway between anchors, at the first steps, and where no anchors are any more."""
    at = np.concatenate([np.arange(0, 9.5, 1 / 32), [15.96, 16.02, 16.04, 17.0, 40.0]])
    return sorted({max(1, round(law.sigma * float(z)) + d) for z in at for d in (0, 1)})


@pytest.mark.parametrize("bits", [64, 127, 191])
@pytest.mark.parametrize("sigma", [0.3, 2.0, 700.1, 2.0**22, 1.7e8, 2.0**40])
def test_the_tail_is_enclosed_closely(sigma: float, bits: int) -> None:
    law = RoundedGaussian(sigma)
    for k in places(law)[:: 1 if bits == 127 else 5]:
        assert encloses(law, k, bits)
        found = anchors.enclose_tail(law, k, bits)
        assert found.hi - found.lo <= 4


def test_it_agrees_with_the_tail_of_the_law() -> None:
    law = RoundedGaussian(12_345.678)
    for k in np.linspace(1, 8 * law.sigma, 200).astype(int).tolist():
        mine, plain = anchors.enclose_tail(law, k, 127), law.enclose_tail(k, 127)
        assert mine.lo <= plain.hi and plain.lo <= mine.hi


@pytest.mark.parametrize("work", [80, 143, 207, 271])
def test_the_remainder_is_below_one_unit(work: int) -> None:
    m = anchors._terms(work)
    factorial = 1
    for j in range(2, m + 1):
        factorial *= j
    assert Fraction(1, 32) ** (2 * m + 2) / factorial < Fraction(1, 4) ** work


def test_a_missing_term_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    law = RoundedGaussian(2.0**20)
    halfway = [round(law.sigma * (z + 1 / 32)) for z in (0.0, 0.5, 1.0, 2.0, 4.0)]
    terms = anchors._terms
    monkeypatch.setattr(anchors, "_terms", lambda work: terms(work) - 4)
    anchors.forget()
    try:
        assert not all(encloses(law, k, 127) for k in halfway)
    finally:
        anchors.forget()
    monkeypatch.undo()
    assert all(encloses(law, k, 127) for k in halfway)
