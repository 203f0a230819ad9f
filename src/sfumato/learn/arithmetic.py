"""How far float arithmetic can be off: the standard model, and nothing hoped for.

In float arithmetic of unit roundoff u a sum of n terms, added in any order, is off by at most gamma(n) times the sum of
their sizes, gamma(n) = n u / (1 - n u); a product adds one more to n (Higham 2002, sections 3.1 and 4.2). It holds for
every blocking, vector width and number of threads, with and without fused multiply-add. (It would not hold for Strassen
or Winograd forms; the products here are asked of BLAS and of direct convolutions, which use neither.)

Underflow: a product that is too small for the type loses at most TINY, even where small numbers are flushed to 0. Sums
lose nothing.
"""

from __future__ import annotations

from functools import cache

import torch

TINY = 2.0**-126  # the smallest normal number of float32
FLOOR = 2.0**-105  # for each number in a squared length: more than TINY / gamma, so that it covers products of lengths


def roundoff(kind: torch.dtype) -> float:
    return float(torch.finfo(kind).eps) / 2


@cache
def gamma(terms: int, kind: torch.dtype) -> float:
    """The relative error of a sum of so many rounded terms, at most."""
    share = (terms + 2) * roundoff(kind)
    if share >= 0.5:
        raise ValueError("too many terms for this float type")
    return share / (1 - share)


def run(records: int, places: int) -> int:
    """How many rows one product adds up, for so many records with so many rows each; the products are then added to one
    another, so a term passes through few additions.

    The weights of records are cut where gamma(depth) K > h C / norm, h = eta / (2 records), K being the norm without
    cancellation: the more records, the shorter the run must be, and all the more where places of a record may cancel.
    """
    most = 65536 if places == 1 else 32768
    return max(64, min(256 if places == 1 else 512, most // max(records, 1)))


def depth(rows: int, length: int) -> int:
    """How many additions a term passes through, at most, if runs of that length are added up."""
    return min(rows, length) + -(-rows // length)


@cache
def constant(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def squared(norms: torch.Tensor, terms: int, floor: float) -> torch.Tensor:
    """The squares of computed norms, in double precision, rounded up for sums of so many terms, and for underflow."""
    wide = norms.double()
    return torch.addcmul(constant(floor), wide, wide, value=1 + gamma(2 * terms + 8, norms.dtype))
