"""Strict sums: every record's gradient as whole numbers of steps, with a norm that is verified, added as whole numbers.

Claim: a record's part is a vector of whole numbers whose length is at most norm / step, checked on the very numbers
that are added; sums of whole numbers are exact. So the sensitivity is the clip norm itself, whatever the floats before
did. It costs the gradients of all records of a micro-batch in memory.
"""

from __future__ import annotations

import math

import torch

from .clipping import Clipping, coefficients
from .engine import ETA, Engine, Pass


def whole_sums(
    engine: Engine, done: Pass, weights: torch.Tensor, clipping: Clipping, norm: float, exponent: int
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """The sums in steps of 2^exponent, for each parameter, and the records' norms."""
    records = done.records
    present = [each for each in done.rules if each is not None]
    if not records or not present:
        zeros = [torch.zeros(each.shape, dtype=torch.float64) for each in engine.parameters]
        return zeros, torch.zeros(records)
    groups = clipping.groups(engine.names)
    with torch.no_grad():
        factors, norms = coefficients(clipping, norm, done.sizes(), groups, ETA)
        scale = math.ldexp(1.0, -exponent)
        shares = clipping.shares(max(groups) + 1)
        steps: list[torch.Tensor | None] = []
        squares = [torch.zeros(records, dtype=torch.float64) for _ in shares]
        for rule, group in zip(done.rules, groups, strict=True):
            if rule is None:
                steps.append(None)
                continue
            factor = (factors[group] * weights).double() * scale
            gradients = rule.by_record().double()
            whole = (gradients * factor.reshape(-1, *[1] * (gradients.dim() - 1))).trunc_()
            squares[group] += whole.square().reshape(records, -1).sum(1)
            steps.append(whole)
        # Squares of whole numbers below 2^26 are exact; their sum is off by far less than one part in 10^6.
        fits = [
            square * (1 + 1e-6) <= (norm * scale * share) ** 2 for square, share in zip(squares, shares, strict=True)
        ]
        out = []
        for parameter, step, group in zip(engine.parameters, steps, groups, strict=True):
            if step is None:
                out.append(torch.zeros(parameter.shape, dtype=torch.float64))
                continue
            fit = fits[group].reshape(-1, *[1] * (step.dim() - 1))
            out.append(torch.where(fit, step, 0.0).sum(0))
    return out, norms
