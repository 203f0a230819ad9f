"""A zoo of small models: every layer that people use, each in a model of its own, with made-up records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional

RECORDS = 5
CLASSES = 3


def cross_entropy(output: Any, target: Any) -> Any:
    return functional.cross_entropy(output, target, reduction="none")


@dataclass(frozen=True)
class Case:
    """A model with inputs and targets that fit."""

    model: Any
    inputs: tuple[Any, ...]
    target: Any
    loss: Callable[[Any, Any], Any] = cross_entropy

    def double(self) -> Case:
        """The same in double precision: bounds of float errors are then far below what is compared."""
        wide = tuple(each.double() if each.is_floating_point() else each for each in self.inputs)
        target = self.target.double() if self.target.is_floating_point() else self.target
        return Case(self.model.double(), wide, target, self.loss)


class Written(nn.Module):
    """A model from a function of its parts."""

    def __init__(self, forward: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.written = forward

    def forward(self, *inputs: Any) -> Any:
        return self.written(self.parts, *inputs)


def labels(records: int = RECORDS) -> Any:
    return torch.randint(0, CLASSES, (records,))


def spread(model: nn.Module) -> nn.Module:
    """Parameters that begin at 0 or 1 are moved away from there: nothing hides behind them."""
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.3)
    return model


ZOO: dict[str, Callable[[], Case]] = {}


def case(name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    def keep(make: Callable[[], Case]) -> Callable[[], Case]:
        assert name not in ZOO
        ZOO[name] = make
        return make

    return keep


def of_rank(rank: int, *, bias: bool = True, wide: int = 6, records: int = RECORDS) -> Case:
    """Two linear layers on inputs with so many dimensions."""
    shape = (records, *[3, 4, 2][: rank - 2], wide)

    def forward(parts: Any, x: Any) -> Any:
        z = parts[1](torch.tanh(parts[0](x)))
        return z.flatten(1, -2).mean(1) if z.dim() > 2 else z

    model = Written(forward, nn.Linear(wide, 7, bias=bias), nn.Linear(7, CLASSES, bias=bias))
    return Case(model, (torch.randn(shape),), labels(records))


for _rank in (2, 3, 4, 5):
    for _bias in (True, False):
        ZOO[f"linear rank {_rank}{'' if _bias else ' without bias'}"] = lambda r=_rank, b=_bias: of_rank(r, bias=b)


@case("linear, wide and long: the gradient is never formed")
def _() -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x))).mean(1)  # noqa: E731
    return Case(Written(forward, nn.Linear(40, 50), nn.Linear(50, CLASSES)), (torch.randn(RECORDS, 3, 40),), labels())


@case("linear, the sequence first")
def _() -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x.transpose(0, 1).contiguous()))).mean(0)  # noqa: E731
    return Case(Written(forward, nn.Linear(6, 7), nn.Linear(7, CLASSES)), (torch.randn(RECORDS, 4, 6),), labels())


@case("linear, as many places as records, the sequence first")
def _() -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x.transpose(0, 1).contiguous()))).mean(0)  # noqa: E731
    return Case(Written(forward, nn.Linear(6, 7), nn.Linear(7, CLASSES)), (torch.randn(RECORDS, RECORDS, 6),), labels())


def convolved(dims: int, channels: int = 4, size: int = 7, **options: Any) -> Case:
    """One convolution between an input of so many dimensions and a head."""
    kind: Any = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)).flatten(2).square().mean(2))  # noqa: E731
    model = Written(forward, kind(channels, 8, options.pop("kernel_size", 3), **options), nn.Linear(8, CLASSES))
    return Case(model, (torch.randn(RECORDS, channels, *[size, size - 1, size - 2][:dims]),), labels())


for _dims in (1, 2, 3):
    for _options in (
        {}, {"bias": False}, {"groups": 2}, {"groups": 4, "bias": False}, {"stride": 2, "padding": 1},
        {"dilation": 2, "padding": 2}, {"padding": "same"}, {"padding": "same", "kernel_size": 2},
        {"padding": "valid"}, {"kernel_size": 1}, {"kernel_size": 1, "stride": 2, "groups": 2},
        {"padding": 1, "padding_mode": "circular"}, {"padding": 1, "padding_mode": "reflect"},
        {"padding": 2, "padding_mode": "replicate"}, {"padding": "same", "padding_mode": "circular", "dilation": 2},
    ):  # fmt: skip
        _said = ", ".join(f"{key} {value}" for key, value in _options.items()) or "plain"
        ZOO[f"conv{_dims}d {_said}"] = lambda d=_dims, o=_options: convolved(d, **o)


def transposed(dims: int, **options: Any) -> Case:
    kind: Any = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[dims - 1]
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)).flatten(2).square().mean(2))  # noqa: E731
    model = Written(forward, kind(4, 8, 3, **options), nn.Linear(8, CLASSES))
    return Case(model, (torch.randn(RECORDS, 4, *[4, 3, 3][:dims]),), labels())


for _dims in (1, 2, 3):
    for _options in ({}, {"stride": 2, "output_padding": 1, "groups": 2}, {"padding": 1, "dilation": 2, "bias": False}):
        _said = ", ".join(f"{key} {value}" for key, value in _options.items()) or "plain"
        ZOO[f"conv transpose {_dims}d {_said}"] = lambda d=_dims, o=_options: transposed(d, **o)


@case("conv2d over the frames of a record")
def _() -> Case:
    def forward(parts: Any, x: Any) -> Any:
        frames = torch.tanh(parts[0](x.flatten(0, 1).unsqueeze(1)))
        return parts[1](frames.flatten(1).reshape(len(x), x.shape[1], -1).mean(1))

    model = Written(forward, nn.Conv2d(1, 4, 3, stride=2), nn.Linear(16, CLASSES))
    return Case(model, (torch.randn(RECORDS, 3, 6, 6),), labels())


@case("conv2d used twice")
def _() -> Case:
    forward = lambda parts, x: parts[1](parts[0](torch.tanh(parts[0](x))).flatten(2).mean(2))  # noqa: E731
    model = Written(forward, nn.Conv2d(4, 4, 3, padding=1), nn.Linear(4, CLASSES))
    return Case(model, (torch.randn(RECORDS, 4, 6, 6),), labels())


def normed(layer: nn.Module, *shape: int) -> Case:
    def forward(parts: Any, x: Any) -> Any:
        z = parts[0](x)
        z = torch.tanh(z) if isinstance(layer, nn.PReLU) else functional.relu(z, inplace=True)
        return parts[1](z.flatten(1))

    wide = 1
    for each in shape:
        wide *= each
    model = spread(Written(forward, layer, nn.Linear(wide, CLASSES)))
    return Case(model, (torch.randn(RECORDS, *shape),), labels())


for _name, _layer, _shape in (
    ("layer norm", lambda: nn.LayerNorm(6), (4, 6)),
    ("layer norm of two dimensions", lambda: nn.LayerNorm((4, 6)), (3, 4, 6)),
    ("layer norm of whole records", lambda: nn.LayerNorm((4, 6)), (4, 6)),
    ("layer norm without bias", lambda: nn.LayerNorm(6, bias=False), (4, 6)),
    ("group norm", lambda: nn.GroupNorm(2, 4), (4, 5, 5)),
    ("group norm of vectors", lambda: nn.GroupNorm(2, 6), (6,)),
    ("group norm in three dimensions", lambda: nn.GroupNorm(1, 4), (4, 2, 3, 2)),
    ("instance norm 1d", lambda: nn.InstanceNorm1d(4, affine=True), (4, 6)),
    ("instance norm 2d", lambda: nn.InstanceNorm2d(4, affine=True), (4, 5, 5)),
    ("instance norm 3d", lambda: nn.InstanceNorm3d(2, affine=True), (2, 3, 3, 2)),
    ("rms norm", lambda: nn.RMSNorm(6), (4, 6)),
    ("prelu, one slope", lambda: nn.PReLU(), (4, 6)),
    ("prelu, a slope for each channel", lambda: nn.PReLU(4), (4, 6)),
):
    ZOO[_name] = lambda layer=_layer, shape=_shape: normed(layer(), *shape)


@case("local response norm and dropout at rate 0")
def _() -> Case:
    forward = lambda parts, x: parts[1](parts[0](x).flatten(1))  # noqa: E731
    first = nn.Sequential(nn.Conv2d(4, 4, 1), nn.LocalResponseNorm(2), nn.Dropout(0.0))
    return Case(Written(forward, first, nn.Linear(36, CLASSES)), (torch.randn(RECORDS, 4, 3, 3),), labels())


def ids(places: int = 6, rows: int = 9) -> Any:
    return torch.randint(0, rows, (RECORDS, places))


def looked_up(table: nn.Module, places: int = 6) -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)).mean(1))  # noqa: E731
    model = Written(forward, table, nn.Linear(5, CLASSES))
    return Case(model, (ids(places),), labels())


for _name, _table, _places in (
    ("embedding", lambda: nn.Embedding(9, 5), 6),
    ("embedding with a padding row", lambda: nn.Embedding(9, 5, padding_idx=2), 6),
    ("embedding, the last row is padding", lambda: nn.Embedding(9, 5, padding_idx=-1), 6),
    ("embedding of long records", lambda: nn.Embedding(9, 5), 30),
    ("embedding, sparse", lambda: nn.Embedding(9, 5, sparse=True), 6),
):
    ZOO[_name] = lambda table=_table, places=_places: looked_up(table(), places)


@case("embedding of one id for each record")
def _() -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)))  # noqa: E731
    return Case(
        Written(forward, nn.Embedding(9, 5), nn.Linear(5, CLASSES)), (torch.randint(0, 9, (RECORDS,)),), labels()
    )


@case("embedding looked up twice")
def _() -> Case:
    forward = lambda parts, x, y: parts[1](torch.tanh(parts[0](x) * parts[0](y)).mean(1))  # noqa: E731
    return Case(Written(forward, nn.Embedding(9, 5), nn.Linear(5, CLASSES)), (ids(), ids()), labels())


def bagged(mode: str, **options: Any) -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)))  # noqa: E731
    return Case(
        Written(forward, nn.EmbeddingBag(9, 5, mode=mode, **options), nn.Linear(5, CLASSES)), (ids(),), labels()
    )


for _mode in ("sum", "mean", "max"):
    ZOO[f"embedding bag, {_mode}"] = lambda mode=_mode: bagged(mode)
    ZOO[f"embedding bag, {_mode}, with padding"] = lambda mode=_mode: bagged(mode, padding_idx=3)


@case("embedding bag by offsets")
def _() -> Case:
    def forward(parts: Any, x: Any) -> Any:
        offsets = torch.arange(len(x)) * x.shape[1]
        return parts[1](torch.tanh(parts[0](x.flatten(), offsets)))

    return Case(Written(forward, nn.EmbeddingBag(9, 5, mode="mean"), nn.Linear(5, CLASSES)), (ids(),), labels())


@case("embedding bag with weights of its own")
def _() -> Case:
    forward = lambda parts, x, w: parts[1](torch.tanh(parts[0](x, per_sample_weights=w)))  # noqa: E731
    model = Written(forward, nn.EmbeddingBag(9, 5, mode="sum"), nn.Linear(5, CLASSES))
    return Case(model, (ids(), torch.rand(RECORDS, 6)), labels())


def positioned(shape: str) -> Case:
    """Position ids, made as people make them."""

    def forward(parts: Any, x: Any) -> Any:
        where = torch.arange(x.shape[1])
        if shape == "[1, T]":
            where = where[None]
        elif shape == "expanded":
            where = where[None].expand(len(x), -1)
        return parts[2](torch.tanh(parts[0](x) + parts[1](where)).mean(1))

    return Case(Written(forward, nn.Embedding(9, 5), nn.Embedding(6, 5), nn.Linear(5, CLASSES)), (ids(),), labels())


for _shape in ("[T]", "[1, T]", "expanded"):
    ZOO[f"position ids {_shape}"] = lambda shape=_shape: positioned(shape)


@case("positions through a layer of their own")
def _() -> Case:
    def forward(parts: Any, x: Any) -> Any:
        where = parts[3](parts[1](torch.arange(x.shape[1])))
        return parts[2](torch.tanh(parts[0](x) + where).mean(1))

    parts = (nn.Embedding(9, 5), nn.Embedding(6, 5), nn.Linear(5, CLASSES), nn.Linear(5, 5))
    return Case(Written(forward, *parts), (ids(),), labels())


@case("positions through the layer that records go through, too")
def _() -> Case:
    def forward(parts: Any, x: Any) -> Any:
        where = parts[3](parts[1](torch.arange(x.shape[1])))
        return parts[2](torch.tanh(parts[3](parts[0](x)) + where).mean(1))

    parts = (nn.Embedding(9, 5), nn.Embedding(6, 5), nn.Linear(5, CLASSES), nn.Linear(5, 5))
    return Case(Written(forward, *parts), (ids(),), labels())


def attended(kind: str, **options: Any) -> Case:
    first = options.get("batch_first", True)
    options.setdefault("batch_first", True)
    attention = nn.MultiheadAttention(8, 2, **options)
    key, value = options.get("kdim") or 8, options.get("vdim") or 8

    def forward(parts: Any, x: Any, k: Any, v: Any) -> Any:
        if kind == "self":
            k = v = x
        mask = torch.ones(x.shape[1], k.shape[1]).triu(1).bool() if kind == "masked" else None
        if not first:
            x, k, v = x.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
            k, v = (x, x) if kind == "self" else (k, v)
        made, _ = parts[0](x, k, v, attn_mask=mask, need_weights=kind == "weighed")
        return parts[1](made).mean(1 if first else 0)

    inputs = (torch.randn(RECORDS, 4, 8), torch.randn(RECORDS, 4, key), torch.randn(RECORDS, 4, value))
    return Case(spread(Written(forward, attention, nn.Linear(8, CLASSES))), inputs, labels())


for _kind in ("self", "cross", "masked", "weighed"):
    for _first in (True, False):
        ZOO[f"attention, {_kind}{'' if _first else ', the sequence first'}"] = lambda kind=_kind, first=_first: (
            attended(kind, batch_first=first)
        )
ZOO["attention, other widths"] = lambda: attended("cross", kdim=6, vdim=5)
ZOO["attention, learnt keys"] = lambda: attended("self", add_bias_kv=True)
ZOO["attention, a zero key, no bias"] = lambda: attended("cross", add_zero_attn=True, bias=False)


@case("attention with padding masked")
def _() -> Case:
    def forward(parts: Any, x: Any, lengths: Any) -> Any:
        hidden = torch.arange(x.shape[1]) >= lengths[:, None]
        made, _ = parts[0](x, x, x, key_padding_mask=hidden, need_weights=False)
        return parts[1](made).mean(1)

    model = Written(forward, nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, CLASSES))
    return Case(model, (torch.randn(RECORDS, 4, 8), torch.randint(1, 5, (RECORDS,))), labels())


def encoded(**options: Any) -> Case:
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, **options)
    forward = lambda parts, x: parts[1](parts[0](x)).mean(1)  # noqa: E731
    return Case(Written(forward, layer, nn.Linear(8, CLASSES)), (torch.randn(RECORDS, 4, 8),), labels())


ZOO["transformer encoder layer"] = encoded
ZOO["transformer encoder layer, norm first, gelu"] = lambda: encoded(norm_first=True, activation="gelu")


@case("transformer decoder layer")
def _() -> Case:
    layer = nn.TransformerDecoderLayer(8, 2, 12, dropout=0.0, batch_first=True)
    forward = lambda parts, x, m: parts[1](parts[0](x, m)).mean(1)  # noqa: E731
    model = Written(forward, layer, nn.Linear(8, CLASSES))
    return Case(model, (torch.randn(RECORDS, 4, 8), torch.randn(RECORDS, 3, 8)), labels())


class LanguageModel(nn.Module):
    """Words in and out with one table."""

    def __init__(self, words: int = 9, wide: int = 5) -> None:
        super().__init__()
        self.words = nn.Embedding(words, wide)
        self.body = nn.Linear(wide, wide)
        self.out = nn.Linear(wide, words, bias=False)
        self.out.weight = self.words.weight

    def forward(self, x: Any) -> Any:
        return self.out(torch.tanh(self.body(self.words(x)))).transpose(1, 2)


@case("a language model with tied words")
def _() -> Case:
    target = torch.randint(0, 9, (RECORDS, 6))
    target[0, :4] = -100  # ignored by the loss
    return Case(LanguageModel(), (ids(),), target)


@case("functional.linear on another module's weight")
def _() -> Case:
    forward = lambda parts, x: parts[1](functional.linear(torch.tanh(parts[0](x)), parts[0].weight))  # noqa: E731
    return Case(Written(forward, nn.Linear(6, 6), nn.Linear(6, CLASSES)), (torch.randn(RECORDS, 6),), labels())


@case("functional.linear on the transposed weight")
def _() -> Case:
    forward = lambda parts, x: parts[1](functional.linear(torch.tanh(parts[0](x)), parts[0].weight.t()))  # noqa: E731
    return Case(Written(forward, nn.Linear(6, 4), nn.Linear(6, CLASSES)), (torch.randn(RECORDS, 3, 6),), labels(),
                lambda o, t: cross_entropy(o.mean(1), t))  # fmt: skip


@case("a layer used twice")
def _() -> Case:
    forward = lambda parts, x: parts[1](parts[0](torch.tanh(parts[0](x))))  # noqa: E731
    return Case(Written(forward, nn.Linear(6, 6), nn.Linear(6, CLASSES)), (torch.randn(RECORDS, 6),), labels())


class Own(nn.Module):
    """Parameters of its own, used as people use them."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, 1, 6))
        self.where = nn.Parameter(torch.randn(1, 5, 6))
        self.scale = nn.Parameter(torch.randn(6))
        self.weight = nn.Parameter(torch.randn(6, 6))
        self.heat = nn.Parameter(torch.tensor(0.5))
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: Any) -> Any:
        x = torch.cat([self.start.expand(len(x), -1, -1), x], 1) + self.where
        x = torch.tanh((x * self.scale - self.scale) @ self.weight)
        x = torch.einsum("btd,de->bte", x, self.weight) / self.heat.exp()
        return self.head(x.mean(1))


ZOO["parameters of its own"] = lambda: Case(Own(), (torch.randn(RECORDS, 4, 6),), labels())


@case("bilinear")
def _() -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(parts[0](x)), x)  # noqa: E731
    model = Written(forward, nn.Linear(6, 5), nn.Bilinear(5, 6, CLASSES))
    return Case(model, (torch.randn(RECORDS, 6),), labels())


class Adapter(nn.Module):
    """A frozen layer, and two thin ones beside it (LoRA). The second begins at 0."""

    def __init__(self, wide: int, rank: int = 2) -> None:
        super().__init__()
        self.base = nn.Linear(wide, wide).requires_grad_(False)
        self.down = nn.Linear(wide, rank, bias=False)
        self.up = nn.Linear(rank, wide, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.up(self.down(x))


@case("adapters only")
def _() -> Case:
    forward = lambda parts, x: parts[2](torch.tanh(parts[1](torch.tanh(parts[0](x)))).mean(1))  # noqa: E731
    model = Written(forward, Adapter(6), Adapter(6), nn.Linear(6, CLASSES).requires_grad_(False))
    nn.init.normal_(model.parts[1].up.weight)  # type: ignore[union-attr,arg-type]
    return Case(model, (torch.randn(RECORDS, 4, 6),), labels())


@case("biases only")
def _() -> Case:
    made = convolved(2)
    for name, each in made.model.named_parameters():
        each.requires_grad_(name.endswith("bias"))
    return made


@case("a scale only")
def _() -> Case:
    made = normed(nn.LayerNorm(6), 4, 6)
    for name, each in made.model.named_parameters():
        each.requires_grad_(name == "parts.0.weight")
    return made


@case("the first layer frozen")
def _() -> Case:
    made = of_rank(3)
    made.model.parts[0].requires_grad_(False)
    return made


@case("the last layer frozen")
def _() -> Case:
    made = of_rank(3)
    made.model.parts[1].requires_grad_(False)
    return made


class Keywords(nn.Module):
    """Inputs by keyword inside the model, activations in place."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({"first": nn.Linear(6, 7), "second": nn.Linear(7, CLASSES)})

    def forward(self, x: Any) -> Any:
        z = self.inner["first"](input=x)
        z.relu_()
        return self.inner["second"](input=functional.dropout(z, 0.0))


ZOO["inputs by keyword, activations in place"] = lambda: Case(Keywords(), (torch.randn(RECORDS, 6),), labels())


@case("weight norm")
def _() -> Case:
    made = of_rank(3)
    torch.nn.utils.parametrizations.weight_norm(made.model.parts[0])
    return made


@case("cells by hand")
def _() -> Case:
    forward = lambda parts, x: parts[2](parts[0](x[:, 1], parts[0](x[:, 0])) + parts[1](x[:, 2])[0])  # noqa: E731
    model = Written(forward, nn.GRUCell(6, 5), nn.LSTMCell(6, 5), nn.Linear(5, CLASSES))
    return Case(model, (torch.randn(RECORDS, 3, 6),), labels())


@case("a number to learn, squared loss")
def _() -> Case:
    model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1), nn.Flatten(0))
    return Case(model, (torch.randn(RECORDS, 6),), torch.randn(RECORDS), lambda o, t: (o - t) ** 2)


@case("weights that are made of weights: standardised, glued, multiplied")
def _() -> Case:
    def forward(parts: Any, x: Any) -> Any:
        w = parts[0].weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-3)
        z = torch.tanh(functional.conv2d(x, w, parts[0].bias, padding=1)).flatten(2).square().mean(2)
        glued = torch.cat([parts[1].weight, parts[2].weight @ parts[3].weight])
        return parts[4](torch.tanh(functional.linear(z, glued)))

    parts = (nn.Conv2d(4, 6, 3), nn.Linear(6, 3), nn.Linear(2, 4), nn.Linear(6, 2), nn.Linear(7, CLASSES))
    return Case(Written(forward, *parts), (torch.randn(RECORDS, 4, 5, 5),), labels())


@case("attention by hand, from one projection")
def _() -> Case:
    def forward(parts: Any, x: Any) -> Any:
        q, k, v = (each.unflatten(2, (2, 4)).transpose(1, 2) for each in parts[0](x).chunk(3, 2))
        z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return parts[1](z.transpose(1, 2).flatten(2)).mean(1)

    return Case(Written(forward, nn.Linear(8, 24), nn.Linear(8, CLASSES)), (torch.randn(RECORDS, 4, 8),), labels())


class Turned(nn.Module):
    """A linear layer whose weight lies the other way round."""

    def __init__(self, wide: int, high: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(wide, high)), nn.Parameter(torch.randn(high))

    def forward(self, x: Any) -> Any:
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


ZOO["linear layers the other way round"] = lambda: Case(
    Written(lambda parts, x: parts[1](torch.tanh(parts[0](x))).mean(1), Turned(6, 5), Turned(5, CLASSES)),
    (torch.randn(RECORDS, 4, 6),),
    labels(),
)


@case("a weight of three dimensions, by einsum and bmm")
def _() -> Case:
    model = Own()
    model.heads = nn.Parameter(torch.randn(2, 6, 3))
    model.mixed = nn.Parameter(torch.randn(2, 3, 4))

    def forward(parts: Any, x: Any) -> Any:
        z = torch.tanh(torch.einsum("btd,hdk->bhtk", x, parts[0].heads))
        z = torch.bmm(z.transpose(0, 1).flatten(1, 2), parts[0].mixed).unflatten(1, (len(x), -1))
        return parts[1](torch.tanh(z).sum((0, 2)))

    return Case(Written(forward, model, nn.Linear(4, CLASSES)), (torch.randn(RECORDS, 4, 6),), labels())


@case("a pull towards 0 in the loss")
def _() -> Case:
    made = of_rank(2)
    return Case(made.model, made.inputs, made.target,
                lambda o, t: cross_entropy(o, t) + 0.1 * made.model.parts[0].weight.square().sum())  # fmt: skip


@case("a loss with a gradient in it")
def _() -> Case:
    class Penalised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(6, 5), nn.Linear(5, 1)

        def forward(self, x: Any) -> Any:
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = self.two(torch.tanh(self.one(x)))
                (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            return y[:, 0] + (slope.norm(dim=1) - 1) ** 2

    return Case(Penalised(), (torch.randn(RECORDS, 6),), torch.randn(RECORDS), lambda o, t: (o - t) ** 2)


class Doubled(torch.autograd.Function):
    """Somebody's own operation, with a parameter in it and no batched form."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return 2 * x * weight

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, weight = ctx.saved_tensors
        return 2 * grads[0] * weight, (2 * grads[0] * x).sum(0)


@case("an operation of one's own")
def _() -> Case:
    forward = lambda parts, x: parts[1](torch.tanh(Doubled.apply(x, parts[0].scale)))  # noqa: E731
    return Case(Written(forward, Own(), nn.Linear(6, CLASSES)), (torch.randn(RECORDS, 6),), labels())


@case("activations computed again in the backward pass")
def _() -> Case:
    def forward(parts: Any, x: Any) -> Any:
        z = torch.utils.checkpoint.checkpoint(lambda x: torch.tanh(parts[0](x)), x, use_reentrant=False)
        return parts[1](z).mean(1)

    return Case(Written(forward, nn.Linear(6, 5), nn.Linear(5, CLASSES)), (torch.randn(RECORDS, 4, 6),), labels())


def recurrent(kind: Any, **options: Any) -> Case:
    first = options.setdefault("batch_first", True)

    def forward(parts: Any, x: Any) -> Any:
        made, _ = parts[0](x if first else x.transpose(0, 1))
        return parts[1](made).mean(1 if first else 0)

    wide = 5 * (2 if options.get("bidirectional") else 1)
    return Case(
        Written(forward, kind(6, 5, **options), nn.Linear(wide, CLASSES)), (torch.randn(RECORDS, 4, 6),), labels()
    )


RECURRENT: dict[str, Callable[[], Case]] = {}
for _kind in (nn.RNN, nn.LSTM, nn.GRU):
    for _options in ({}, {"batch_first": False}, {"num_layers": 2, "bidirectional": True}, {"bias": False}):
        _said = ", ".join(f"{key} {value}" for key, value in _options.items()) or "plain"
        RECURRENT[f"{_kind.__name__} {_said}"] = lambda kind=_kind, o=_options: recurrent(kind, **o)
