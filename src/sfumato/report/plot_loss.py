"""The law of a privacy loss, drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..accounting.loss import PrivacyLoss
from .axes import axes


def plot_loss(loss: PrivacyLoss, ax: Any = None) -> Any:
    """Density and atoms, on matplotlib axes; returns the axes."""
    ax = axes(ax)
    low, high = (float(loss.quantile(p)) for p in (1e-4, min(1 - 1e-4, 1 - loss.infinite)))
    if loss.pieces:
        x = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), 800)
        ax.plot(x, loss.pdf(x), label="density")
    if loss.atoms.size:
        ax.vlines(loss.atoms, 0.0, loss.masses, label="atoms")
    ax.set_xlabel("privacy loss")
    ax.set_ylabel("density, or mass of an atom")
    return ax
