"""Noise of zero: what is left is the data's own part. Never for a release."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..laws import Law
from ..noise import Noise


class Silent(Noise):
    """Coins and seats as always, and noise of zero."""

    def draw(self, law: Law, count: int) -> NDArray[Any]:
        return np.zeros(count, dtype=np.int64)
