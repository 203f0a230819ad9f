"""Scattering features of images: a fixed wavelet transform, in which nothing is learnt and nothing is private.

Two layers of Morlet wavelets (Oyallon and Mallat 2015) at two scales and eight angles, each followed by a modulus and a
blur: 1 + 16 + 64 = 81 channels of 7 x 7 for a digit of 28 x 28. Under private training a linear model on them beats a
network that must learn its filters through the noise (Tramer and Boneh 2021). Normalised over groups of channels within
one image, so a record's features depend on that record only and all have the same length.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

ANGLES = 8
CHANNELS = 1 + 2 * ANGLES + ANGLES * ANGLES
EDGE = 4  # pixels of the image's mirror around it, a multiple of the last stride
STRIDE = 4


class Scattering:
    """The transform of square images of `side` pixels."""

    def __init__(self, side: int = 28) -> None:
        self.side = side
        padded = side + 2 * EDGE
        self.fine = _bank(padded, scale=0)
        self.coarse = _bank(padded, scale=1)
        self.blur = _blur(padded, stride=STRIDE)
        self.half_blur = _blur(padded, stride=STRIDE, step=2)

    def __call__(self, images: Tensor) -> Tensor:
        """[n, 1, side, side] to [n, 81, side/4, side/4]."""
        padded = torch.nn.functional.pad(images, (EDGE,) * 4, mode="reflect")[:, 0]
        seen = torch.fft.fft2(padded)[:, None]
        first = torch.fft.ifft2(seen * self.fine).abs()
        second = torch.fft.ifft2(_fold(seen * self.coarse)).abs()
        again = torch.fft.fft2(first)[:, :, None] * self.coarse
        third = torch.fft.ifft2(_fold(again)).abs().flatten(1, 2)
        return torch.cat(
            (
                self._blurred(padded[:, None], self.blur),
                self._blurred(first, self.blur),
                self._blurred(second, self.half_blur),
                self._blurred(third, self.half_blur),
            ),
            dim=1,
        )

    @staticmethod
    def _blurred(images: Tensor, blur: Tensor) -> Tensor:
        return blur @ images @ blur.T


def features(images: Tensor, groups: int = 27, block: int = 500) -> Tensor:
    """Normalised scattering features, [n, 81, 7, 7]: mean 0 and variance 1 in each group of channels of an image."""
    scatter = Scattering(images.shape[-1])
    return torch.cat([torch.nn.functional.group_norm(scatter(part), groups, eps=1e-5) for part in images.split(block)])


def _bank(size: int, scale: int) -> Tensor:
    """Fourier transforms of the Morlet wavelets of one scale, one per angle."""
    spread, frequency, slant = 0.8 * 2**scale, 0.75 * math.pi / 2**scale, 4 / ANGLES
    waves = []
    for turn in range(ANGLES):
        angle = math.pi * turn / ANGLES
        wave = _gabor(size, spread, frequency, angle, slant)
        hill = _gabor(size, spread, 0.0, angle, slant)
        waves.append(torch.fft.fft2(wave - hill * (wave.sum() / hill.sum())))  # no answer to a constant image
    return torch.stack(waves).real.contiguous()  # a wavelet that is its own mirrored conjugate has a real transform


def _gabor(size: int, spread: float, frequency: float, angle: float, slant: float) -> Tensor:
    """A wave under a hill, made periodic."""
    total = torch.zeros(size, size, dtype=torch.complex64)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            y = _centred(size)[:, None] + down * size
            x = _centred(size)[None, :] + right * size
            along = x * math.cos(angle) + y * math.sin(angle)
            across = -x * math.sin(angle) + y * math.cos(angle)
            hill = torch.exp(-(along**2 + (slant * across) ** 2) / (2 * spread**2))
            total += torch.polar(hill, frequency * along)
    return total * (slant / (2 * math.pi * spread**2))


def _centred(size: int) -> Tensor:
    places = torch.arange(size, dtype=torch.float32)
    return torch.where(places >= size / 2, places - size, places)


def _fold(transform: Tensor) -> Tensor:
    """The Fourier transform of every second pixel."""
    half = transform.shape[-1] // 2
    rows = transform[..., :half, :] + transform[..., half:, :]
    return (rows[..., :half] + rows[..., half:]) / 4


def _blur(size: int, stride: int, step: int = 1) -> Tensor:
    """A Gaussian blur read at every `stride`-th pixel inside the edge, of an image given at every `step`-th pixel."""
    spread = 0.8 * 2
    wanted = torch.arange(EDGE, size - EDGE, stride, dtype=torch.float32)
    given = torch.arange(0, size, step, dtype=torch.float32)
    apart = (wanted[:, None] - given[None, :]).abs()
    apart = torch.minimum(apart, size - apart)
    weights = torch.exp(-(apart**2) / (2 * spread**2))
    return weights / weights.sum(dim=1, keepdim=True)
