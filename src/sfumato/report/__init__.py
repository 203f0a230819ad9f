"""What the numbers mean: explanations, deployments to compare with, plots."""

from __future__ import annotations

from .deployments import DEPLOYMENTS, Deployment, place
from .explain import explain
from .plots import plot_epsilon, plot_tradeoff

__all__ = ["DEPLOYMENTS", "Deployment", "explain", "place", "plot_epsilon", "plot_tradeoff"]
