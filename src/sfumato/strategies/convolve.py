"""Convolutions of whole numbers, exactly, and the inverse of a power series."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Floats, Vector, in_parts

_DIRECT = 2**24  # products that are added up one by one
# Primes below 2^32 that leave 1 modulo 2^22, so that transforms of up to 2^22 numbers exist, with a primitive root.
_PRIMES = ((4194304001, 3), (4253024257, 5))

Residues = NDArray[np.uint64]


def convolve_exactly(weights: NDArray[np.int64], values: Vector) -> Vector:
    """sum_j weights[j] values[i - j] for every i below len(values), in whole numbers. Weights are not negative."""
    size = values.size
    weights = weights[:size]

    def narrow(some: NDArray[np.int64]) -> NDArray[np.int64]:
        direct = size * weights.size <= _DIRECT
        return np.convolve(weights, some)[:size] if direct else _by_residues(weights, some)

    return in_parts(narrow, int(weights.sum()), values)


def _by_residues(weights: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """By transforms modulo two primes: whole numbers all the way, so there is no rounding error to bound.

    Every result is below 2^62 in size, and the product of the primes is above 2^63: the residues tell it (the Chinese
    remainder theorem). Residues are below 2^32, so that a product of two fits 64 bits.
    """
    size, length = values.size, 1 << (2 * values.size - 1).bit_length()
    if length > 2**22:
        raise ArithmeticError("too many numbers: the primes have no transform of this length")
    (one, _), (other, _) = _PRIMES
    low, high = (_cyclic(weights, values, length, prime, root)[:size] for prime, root in _PRIMES)
    # x = low + one * ((high - low)/one modulo other), which is from 0 to one * other - 1 < 2^64. (low < one < other.)
    p, q = np.uint64(one), np.uint64(other)
    residues = low + p * ((high + (q - low)) % q * np.uint64(pow(one, -1, other)) % q)
    # Numbers above the middle stand for negative ones; modulo 2^64, as int64 is.
    return np.where(residues > np.uint64(one * other // 2), residues - np.uint64(one * other), residues).view(np.int64)


def _cyclic(a: NDArray[np.int64], b: NDArray[np.int64], length: int, prime: int, root: int) -> Residues:
    """The cyclic convolution modulo a prime."""
    p, turn = np.uint64(prime), pow(root, (prime - 1) // length, prime)
    powers, back = (_powers(each, length // 2, prime) for each in (turn, pow(turn, -1, prime)))
    product = _forward(_residues(a, length, prime), powers, p) * _forward(_residues(b, length, prime), powers, p) % p
    return _backward(product, back, p) * np.uint64(pow(length, -1, prime)) % p


def _residues(values: NDArray[np.int64], length: int, prime: int) -> Residues:
    return np.append(values % prime, np.zeros(length - values.size, dtype=np.int64)).astype(np.uint64)


def _powers(base: int, count: int, prime: int) -> Residues:
    powers = np.ones(1, dtype=np.uint64)
    while powers.size < count:
        powers = np.append(powers, powers * np.uint64(pow(base, powers.size, prime)) % np.uint64(prime))
    return powers


def _forward(values: Residues, powers: Residues, p: Any) -> Residues:
    """The transform, in an order that `_backward` undoes: halves (u, v) become (u + v, (u - v) w^i), and so on."""
    half = values.size // 2
    while half:
        pairs, turns = values.reshape(-1, 2, half), powers[:: powers.size // half]
        u, v = pairs[:, 0], pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = _once(u + v, p), _modulo(_once(u + (p - v), p) * turns, p)
        half //= 2
    return values


def _backward(values: Residues, powers: Residues, p: Any) -> Residues:
    """`length` times what `_forward` was given, by the inverse powers."""
    half = 1
    while half < values.size:
        pairs, turns = values.reshape(-1, 2, half), powers[:: powers.size // half]
        u, v = pairs[:, 0], _modulo(pairs[:, 1] * turns, p)
        pairs[:, 0], pairs[:, 1] = _once(u + v, p), _once(u + (p - v), p)
        half *= 2
    return values


def _once(sums: Residues, p: Any) -> Residues:
    """Numbers from 0 to 2 p, less p where they reach it: what would be negative wraps to a huge number."""
    return np.minimum(sums, sums - p)


def _modulo(products: Residues, p: Any) -> Residues:
    """products % p; numpy divides by one number faster than it takes remainders."""
    return products - products // p * p


def convolve(weights: Floats, values: Floats) -> Floats:
    """The same in floats, along the last axis."""
    size = values.shape[-1]
    weights = weights[:size]
    if values.ndim == 1 and size * weights.size <= _DIRECT:
        return np.convolve(weights, values)[:size]
    length = 1 << (2 * size - 1).bit_length()
    product = np.fft.rfft(values, length, axis=-1) * np.fft.rfft(weights, length)
    return np.asarray(np.fft.irfft(product, length, axis=-1)[..., :size])


def inverse_series(weights: Floats, size: int) -> Floats:
    """The first coefficients of 1/(weights[0] + weights[1] x + ...), by Newton's steps g <- g (2 - weights g)."""
    series = np.array([1 / weights[0]])
    while series.size < size:
        longer = min(2 * series.size, size)
        padded = np.append(series, np.zeros(longer - series.size))
        rest = -convolve(weights, padded)
        rest[0] += 2.0
        series = convolve(rest, padded)
    return series
