"""Individual accounting of Gaussian releases, for study (Feldman and Zrnic 2021).

A release that sums bounded vectors and adds Gaussian noise of standard deviation clip * multiplier costs a unit whose
vector has norm n only (n/clip)^2 of the full rho = 1/(2 multiplier^2): what it moves the sum by is what it loses. A
unit takes part until its own total would pass its own bound, and is dropped from then on; the others go on.

Claim: the releases together are bound-zCDP between data sets that differ by one unit (added, removed or zeroed).
Sketch: to the removed unit every release is a Gaussian with its own shift, its total is at most the bound at every end,
and the rho filter's theorem applies to this pair (Feldman and Zrnic 2021, Theorem 4.5). What the others do depends on
their own data and on released sums only.

**Never charged.** Who is dropped, and what a unit has lost, is a function of its private data. These numbers may not be
published, shown to the analyst or paid from a ledger: this is no Event, and no ledger or filter takes it. What is
charged for such a run is its bound, as ZeroConcentrated(rho), fixed in advance; or the full rho of every release.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import checks, exact
from ..errors import ArgumentError

LABEL = "data-dependent: for study only, not publishable, never charged"

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class IndividualGaussians:
    """What each of `units` units has lost in a run of Gaussian releases, and who still takes part.

    >>> run = IndividualGaussians(units=3, rho=0.5)
    >>> run.release([1.0, 0.5, 0.0], clip=1, multiplier=2)
    array([ True,  True,  True])
    """

    label = LABEL

    def __init__(self, *, units: int, rho: Any) -> None:
        self.bound = checks.positive(rho, "rho")
        self.lost: Floats = np.zeros(checks.whole(units, "units"))
        self.active: Flags = np.ones(units, dtype=bool)
        self.releases = 0

    def release(self, norms: Any, *, clip: Any, multiplier: Any) -> Flags:
        """Charge one release to each unit by the norm of its vector (clipped); who takes part in it."""
        limit = exact.float_below(checks.positive(clip, "clip"))
        full = exact.float_above(1 / (2 * checks.positive(multiplier, "multiplier") ** 2))
        lengths = np.asarray(norms, dtype=np.float64)
        if lengths.shape != self.lost.shape or not np.all(lengths >= 0):
            raise ArgumentError("norms = ... is not allowed: give one norm of at least 0 for each unit.")
        cost = full * np.square(np.minimum(lengths, limit) / limit)
        after = self.lost + cost
        self.active = self.active & (after <= float(self.bound))
        self.lost = np.where(self.active, after, self.lost)
        self.releases += 1
        return self.active.copy()

    @property
    def rho(self) -> float:
        """The guarantee of the whole run: the bound, and what float64 sums of so many costs may be off."""
        return float(self.bound) * (1 + (self.releases + 8) * 2.0**-51)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.lost.size} units, bound rho = {float(self.bound):g}; {LABEL}>"
