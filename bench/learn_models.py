"""The models on which private training is timed, with torch alone, so that every peer's interpreter can build them.

Sizes are those of the table that the bars were set by. A model's batch is its usual one on a small machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Case:
    """A model, and how to make a batch for it."""

    name: str
    build: Callable[[], nn.Module]
    batch: Callable[[], Batch]
    trainable: int

    def made(self) -> tuple[nn.Module, Batch]:
        """The model and one batch, the same every time."""
        torch.manual_seed(8)
        model, batch = self.build(), self.batch()
        found = sum(each.numel() for each in model.parameters() if each.requires_grad)
        assert found == self.trainable, f"{self.name}: {found} trainable parameters instead of {self.trainable}"
        return model, batch


def losses(output: Tensor, target: Tensor) -> Tensor:
    """One for each record."""
    return functional.cross_entropy(output, target, reduction="none")


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn(activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    """The network of Opacus' MNIST tutorial."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        activation(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        activation(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        activation(),
        nn.Linear(32, 10),
    )


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.GroupNorm(32, after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.GroupNorm(32, after)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.GroupNorm(32, after))

    def forward(self, x: Tensor) -> Tensor:
        inner = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


class ResNet18(nn.Module):
    """For 32 x 32 images: no pooling at the start, GroupNorm for BatchNorm."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.norm = nn.GroupNorm(32, 64)
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.blocks = nn.Sequential(*(Residual(a, b, 1 if a == b else 2) for a, b in pairwise(widths)))
        self.head = nn.Linear(512, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(functional.relu(self.norm(self.stem(x)))).mean(dim=(2, 3)))


class Adapted(nn.Module):
    """A frozen linear layer with a trainable product of two thin matrices beside it (LoRA, Hu et al. 2021)."""

    def __init__(self, frozen: nn.Linear, rank: int) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)
        nn.init.normal_(self.up.weight, std=0.02)  # zero would leave `down` without a gradient at first

    def forward(self, x: Tensor) -> Tensor:
        return self.frozen(x) + self.up(self.down(x))


class Layer(nn.Module):
    """Self-attention and two linear layers, each behind a norm."""

    def __init__(self, width: int, heads: int, wrap: Callable[[nn.Linear], nn.Module]) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.inner_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (wrap(nn.Linear(width, width)) for _ in range(4))
        self.widen, self.narrow = wrap(nn.Linear(width, 4 * width)), wrap(nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        seen = self.attention_norm(x)
        q, k, v = (self._split(part(seen)) for part in (self.query, self.key, self.value))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.widen(self.inner_norm(x))))

    def _split(self, x: Tensor) -> Tensor:
        records, length, width = x.shape
        return x.reshape(records, length, self.heads, width // self.heads).transpose(1, 2)


class Transformer(nn.Module):
    """An encoder over token ids, with the mean of the last layer to classify by."""

    def __init__(
        self,
        words: int = 10_000,
        width: int = 256,
        length: int = 128,
        layers: int = 4,
        wrap: Callable[[nn.Linear], nn.Module] = lambda linear: linear,
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, 4, wrap) for _ in range(layers)))
        self.head = nn.Linear(width, 2)

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1]).expand_as(ids).contiguous()  # ghost clipping of Opacus needs it contiguous
        return self.head(self.layers(self.words(ids) + self.places(places)).mean(dim=1))


def lora(rank: int = 8) -> nn.Module:
    """The transformer with everything frozen but its head and an adapter at each of its linear layers."""
    model = Transformer(wrap=lambda linear: Adapted(linear, rank))
    for name, each in model.named_parameters():
        each.requires_grad_("down" in name or "up" in name or name.startswith("head"))
    return model


class Recurrent(nn.Module):
    """An LSTM over token ids."""

    def __init__(self, words: int = 10_000, width: int = 64, hidden: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 2)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.lstm(self.words(ids))[0][:, -1])


def _numbers(records: int, *shape: int) -> Callable[[], Batch]:
    return lambda: (torch.randn(records, *shape), torch.randint(0, 10, (records,)))


def _words(records: int, length: int) -> Callable[[], Batch]:
    return lambda: (torch.randint(0, 10_000, (records, length)), torch.randint(0, 2, (records,)))


CASES = {
    case.name: case
    for case in (
        Case("mlp", mlp, _numbers(256, 784), 203_530),
        Case("cnn", cnn, _numbers(256, 1, 28, 28), 26_010),
        Case("resnet18gn", ResNet18, _numbers(32, 3, 32, 32), 11_173_962),
        Case("transformer", Transformer, _words(16, 128), 5_752_322),
        Case("lora", lora, _words(16, 128), 147_970),
        Case("lstm", Recurrent, _words(64, 50), 739_586),
    )
}
