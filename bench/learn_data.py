"""MNIST and UCI Adult as tensors, read from a folder that holds `mnist/` and `adult/`.

Nothing is learnt from the data here: scales, categories and bins are public constants, so that a record's features
depend on this record only.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

MEAN, SPREAD = 0.1307, 0.3081  # of MNIST's pixels, as published with it


@dataclass(frozen=True)
class Split:
    """Records to train on, and others to test on."""

    train: Tensor
    train_labels: Tensor
    test: Tensor
    test_labels: Tensor

    def first(self, train: int, test: int) -> Split:
        """Of the training records only: the first ones to train on, the next ones to test on."""
        end = train + test
        return Split(self.train[:train], self.train_labels[:train], self.train[train:end], self.train_labels[train:end])


def mnist(folder: Path) -> Split:
    """Digits of shape [n, 1, 28, 28], pixels between 0 and 1."""
    found = [_idx(folder / "mnist" / f"{part}.gz") for part in _MNIST_FILES]
    images, labels, test_images, test_labels = found
    return Split(_pixels(images), labels.long(), _pixels(test_images), test_labels.long())


_MNIST_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def _idx(path: Path) -> Tensor:
    content = bytearray(gzip.decompress(path.read_bytes()))
    sizes = [int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(content[3])]
    return torch.frombuffer(content, dtype=torch.uint8, offset=4 + 4 * len(sizes)).reshape(sizes)


def _pixels(images: Tensor) -> Tensor:
    return images.unsqueeze(1).float() / 255


# Adult: the categories stand in the data set's own description, the bins are round figures.

_CATEGORIES = {
    1: "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    5: "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent Married-AF-spouse",
    6: "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
    7: "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    8: "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    9: "Female Male",
    13: "United-States",  # and anywhere else
}
_BINS = {
    0: (20, 25, 30, 35, 40, 45, 50, 55, 60, 65),
    4: tuple(range(2, 17)),
    10: (1, 3000, 5000, 7000, 10000, 20000),
    11: (1, 1500, 1800, 1950, 2200),
    12: (20, 30, 36, 41, 46, 51, 60),
}
GROUPS = len(_CATEGORIES) + len(_BINS)
ADULT_TRAIN = 24_000


def adult(folder: Path) -> Split:
    """Zeros and ones: one of each group for a category or a bin; the label is an income above 50 000."""
    rows = [line.split(", ") for line in (folder / "adult" / "adult.data").read_text().splitlines() if line.strip()]
    groups = [_category(rows, column, text.split()) for column, text in _CATEGORIES.items()]
    groups += [_binned(rows, column, edges) for column, edges in _BINS.items()]
    features = torch.cat(groups, dim=1)
    labels = torch.tensor([int(row[14].startswith(">50K")) for row in rows])
    cut = ADULT_TRAIN
    return Split(features[:cut], labels[:cut], features[cut:], labels[cut:])


def _category(rows: list[list[str]], column: int, known: list[str]) -> Tensor:
    places = {name: place for place, name in enumerate(known)}
    found = torch.tensor([places.get(row[column], len(known)) for row in rows])
    return torch.nn.functional.one_hot(found, len(known) + 1).float()


def _binned(rows: list[list[str]], column: int, edges: tuple[int, ...]) -> Tensor:
    values = torch.tensor([float(row[column]) for row in rows])
    found = torch.bucketize(values, torch.tensor(edges, dtype=torch.float32), right=True)
    return torch.nn.functional.one_hot(found, len(edges) + 1).float()
