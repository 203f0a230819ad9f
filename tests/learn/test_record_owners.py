"""Whose numbers are whose: every way to move or to mix records inside a batch is found, whatever the weights are; what
works within each record passes."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from sfumato.errors import PlanError  # noqa: E402
from sfumato.learn import recurrent  # noqa: E402
from sfumato.learn.layout import Layout  # noqa: E402
from sfumato.learn.owners import OwnerWatch  # noqa: E402
from sfumato.learn.owners.memory import Memory, Mixed, lies  # noqa: E402
from tests.learn import models  # noqa: E402

N = 6


def score(x: Any) -> Any:
    """A router that is still 0: everybody ties, and a sort that is stable leaves everybody where they are."""
    return (x @ torch.zeros(4, 1)).squeeze(1)


def kept_in_numpy(x: Any) -> Any:
    return x - torch.from_numpy(x.numpy().mean(0))


def without_a_graph(x: Any) -> Any:
    with torch.no_grad():
        return x - x.mean(0)


def put_at(x: Any) -> Any:
    out = torch.zeros(N, 4)
    out[score(x).argsort(stable=True)] = x
    return out


def added_at(x: Any) -> Any:
    return torch.zeros(N, 4).index_add(0, score(x).argsort(stable=True), x)


def scattered(x: Any) -> Any:
    return torch.zeros(N, 4).scatter(0, score(x).argsort(stable=True)[:, None].expand(N, 4), x)


def swapped(x: Any) -> Any:
    y = x.clone()
    y.data = x.flip(0)
    return y


def written_across(x: Any) -> Any:
    y = torch.empty(4, N)
    y.copy_(x.t())
    return y.view(N, 4)


def pairs(x: Any) -> Any:
    return x.view(N // 2, 2, 4).flip(1).reshape(N, 4)


MIXES: dict[str, Callable[[Any], Any]] = {
    "sorted by a router": lambda x: x[score(x).argsort(stable=True)],
    "sorted, and sorted back": lambda x: x[score(x).argsort(stable=True)][score(x).argsort(stable=True).argsort()],
    "gathered by a router": lambda x: x.gather(0, score(x).argsort(stable=True)[:, None].expand(N, 4)),
    "selected by a router": lambda x: x.index_select(0, score(x).argsort(stable=True)),
    "written where a router says": put_at,
    "added where a router says": added_at,
    "scattered where a router says": scattered,
    "taken along": lambda x: torch.take_along_dim(x, score(x).argsort(stable=True)[:, None], 0),
    "the best of all": lambda x: x + score(x).topk(1).values,
    "a public permutation": lambda x: x[torch.tensor([1, 0, 2, 3, 4, 5])],
    "a random permutation": lambda x: x[torch.randperm(N)],
    "sorted by itself": lambda x: x.sort(0).values,
    "rolled": lambda x: x.roll(1, 0),
    "rolled flat": lambda x: x.roll(1),
    "turned round": lambda x: x.flip(0),
    "slices glued": lambda x: torch.cat([x[1:], x[:1]]),
    "neighbours": lambda x: x[1:] - x[:-1],
    "one for all": lambda x: x[0].expand(N, 4),
    "every other one": lambda x: x[::2].repeat(2, 1),
    "in pairs": pairs,
    "another shape": lambda x: x.reshape(4, N).t(),
    "strides by hand": lambda x: x.as_strided((N, 4), (1, N)),
    "written across": written_across,
    "memory exchanged": swapped,
    "an average": lambda x: x - x.mean(0),
    "an average of everything": lambda x: x / x.abs().max(),
    "an average without a graph": without_a_graph,
    "a detached average": lambda x: x - x.detach().mean(0),
    "a sum so far": lambda x: x.cumsum(0),
    "softmax over the batch": lambda x: x.softmax(0),
    "attention between records": lambda x: torch.softmax(x @ x.t(), 1) @ x,
    "the norm of the batch": lambda x: functional.batch_norm(x, None, None, training=True),
    "channels that are records": lambda x: functional.conv1d(x[None], torch.ones(N, N, 1))[0],
    "resized": lambda x: functional.interpolate(x.t()[None], size=N)[0].t(),
    "under vmap": lambda x: torch.vmap(lambda column: column - column.mean(), in_dims=1, out_dims=1)(x),
    "who is above everybody's": lambda x: torch.where((x > 0).any(0), x, -x),
    "distances between records": lambda x: torch.cdist(x, x)[:, :4],
    "looked up in each other": lambda x: functional.embedding(torch.arange(N).flip(0), x),
}
LEAVES: dict[str, Callable[[Any], Any]] = {
    "a branch": lambda x: x if x.sum() > 0 else -x,
    "a number": lambda x: x * float(x[0, 0]),
    "an item": lambda x: x * x.sum().item(),
    "a list": lambda x: x * x.tolist()[0][0],
    "an array": kept_in_numpy,
    "a mask": lambda x: x[x[:, 0] > -100],
    "a place": lambda x: x[(x[:, 0] > -100).nonzero()[:, 0]],
    "chosen ones": lambda x: x.masked_select(x > -100).view(N, 4),
    "those that differ": lambda x: x + x.unique()[0],
    "equal or not": lambda x: x * (2 if torch.equal(x, x.flip(0)) else 1),
    "a list of numbers": lambda x: x + torch.tensor([x[0, 0], x[1, 0], x[2, 0], x[3, 0]]),
    "a text": lambda x: x * len(repr(x)),
    "where to split": lambda x: x * len(torch.tensor_split(torch.arange(6), (x[:, 0] > 0).long())[0]),
    "as many classes as there are": lambda x: functional.one_hot((x[:, 0] > 0).long()).float() @ torch.ones(2, 4),
}
APART: dict[str, Callable[[Any], Any]] = {
    "the last step of each": lambda x: x.view(N, 2, 2)[torch.arange(N), (x[:, 0] > 0).long()].repeat(1, 2),
    "sorted within": lambda x: x.sort(1).values,
    "gathered within": lambda x: x.gather(1, x.argsort(1)),
    "experts of each record": lambda x: (x[:, :2].softmax(1)[:, :, None] * torch.stack([x, x.tanh()], 1)).sum(1),
    "two views of a record": lambda x: torch.mul(*torch.cat([x, 2 * x]).chunk(2)),
    "time first and back": lambda x: x.view(N, 2, 2).transpose(0, 1).reshape(2 * N, 2).view(2, N, 2).transpose(0, 1)
    .flatten(1),
    "columns by index": lambda x: x[:, torch.tensor([3, 2, 1, 0])],
    "columns by mask": lambda x: functional.pad(x[:, torch.tensor([True, False, True, True])], (0, 1)),
    "a mask that fills": lambda x: x.clone().masked_fill_(x < 0, 0.0),
    "rows of a table": lambda x: torch.ones(10, 4)[x[:, 0].abs().long().clamp(0, 9)],
    "one of some classes": lambda x: functional.one_hot((x[:, 0] > 0).long(), 4).float(),
    "under vmap": lambda x: torch.vmap(lambda row: row - row.mean())(x),
    "products of one's own": lambda x: torch.einsum("nij,njk->nik", x.view(N, 2, 2), x.view(N, 2, 2)).flatten(1),
    "waves": lambda x: torch.fft.rfft(x, dim=1).abs().repeat(1, 2)[:, :4],
    "a number for the log": lambda x: (x.detach().mean(), x)[1],
    "distances to public points": lambda x: torch.cdist(x, torch.ones(4, 4)),
}  # fmt: skip


def written_in_place(x: Any) -> Any:
    out = torch.zeros(N, 2, 4)
    out[torch.arange(N), (x[:, 0] > 0).long()] = x
    out[:, torch.tensor([1])] += x[:, None]
    for column in range(4):
        out[:, 0, column] = x[:, 3 - column]
    out[out < 0] = 0
    return out.sum(1)


APART["written in place"] = written_in_place


def watched(work: Callable[[Any], Any], watch: OwnerWatch | None = None) -> Any:
    """The losses of a small model behind it, watched."""
    torch.manual_seed(3)
    x, y, head = torch.randn(N, 4), torch.randint(0, 3, (N,)), nn.Linear(4, 3)
    watch = watch or OwnerWatch()
    with watch.over((x, y), N):
        losses = functional.cross_entropy(head(work(x))[:N], y[: len(work(x))], reduction="none")
    return watch.settle(losses)


@pytest.mark.parametrize("name", MIXES)
def test_records_that_move_or_meet_are_found(name: str) -> None:
    with pytest.raises(PlanError, match="mixes records, or moves them"):
        watched(MIXES[name])


@pytest.mark.parametrize("name", LEAVES)
def test_records_decide_nothing(name: str) -> None:
    with pytest.raises(PlanError, match="lets the records decide"):
        watched(LEAVES[name])


@pytest.mark.parametrize("name", APART)
def test_what_works_within_each_record_passes(name: str) -> None:
    assert watched(APART[name])


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", [*models.ZOO, *models.RECURRENT])
def test_ordinary_models_pass(name: str) -> None:
    case = {**models.ZOO, **models.RECURRENT}[name]()
    watch = OwnerWatch()
    with recurrent.recorded(case.model), watch.over((*case.inputs, case.target), models.RECORDS):
        losses = case.loss(case.model(*case.inputs), case.target)
        losses = losses.flatten(1).mean(1) if losses.dim() > 1 else losses
    assert watch.settle(losses)


def test_operations_without_a_rule_are_refused_by_name() -> None:
    with pytest.raises(PlanError, match="histc is an operation whose effect on records is not known"):
        watched(lambda x: x + x.histc(4))
    with pytest.raises(PlanError, match="cannot be followed"):
        watched(lambda x: x.to_sparse().to_dense())


def test_nothing_of_records_is_written_into_what_stays() -> None:
    kept = torch.zeros(4)

    def running(x: Any) -> Any:
        kept.mul_(0.9).add_(0.1 * x.mean(0))
        return x

    with pytest.raises(PlanError, match="outlives the pass"):
        watched(running)
    counts = torch.zeros(1)
    assert watched(lambda x: (counts.add_(1), x)[1]), "what depends on no record may be"


def test_what_was_kept_from_an_earlier_pass_mixes_steps() -> None:
    seen: list[Any] = []

    def remembering(x: Any) -> Any:
        seen.append(x.detach() * 2)
        return x + seen[0]

    watch = OwnerWatch()
    assert watched(remembering, watch), "in its own pass it is everybody's own"
    with pytest.raises(PlanError, match="an earlier pass"):
        watched(remembering, watch)


def test_a_watch_in_a_loop_of_ones_own_lets_numbers_out() -> None:
    loose = OwnerWatch(strict=False)
    assert watched(lambda x: (x.mean().item(), x)[1], loose)
    with pytest.raises(PlanError, match="mixes records"):
        watched(MIXES["sorted by a router"], loose)


def test_a_watch_ends_with_its_pass_and_is_a_threads_own() -> None:
    with pytest.raises(ValueError, match="of the model"):
        watched(lambda x: (_ for _ in ()).throw(ValueError("of the model")))
    assert torch.randn(3).sum().item() is not None
    told: list[Any] = []
    watch = OwnerWatch()
    x = torch.randn(N, 4)
    with watch.over((x,), N):
        other = threading.Thread(target=lambda: told.append(watched(APART["sorted within"])))
        other.start()
        other.join()
        made = x * 2
    assert told and watch.settle(made) and len(watch.trace) == 1


def test_where_records_lie_in_a_view_is_read_from_its_strides() -> None:
    """Beside the owners of every single number, by hand, for every view of a block and many blocks."""
    memory = Memory()
    for shape, dim in (((N, 3, 2), 0), ((3, N, 2), 1), ((2, 3, N), 2), ((2 * N, 3), 0)):
        block = torch.zeros(shape)
        owners = torch.arange(shape[dim]) // (shape[dim] // N) % N
        owners = owners.reshape([-1 if place == dim else 1 for place in range(len(shape))]).expand(shape).contiguous()
        memory.begin(N, ())
        memory.assign(block, Layout(dim))
        views: list[Callable[[Any], Any]] = [
            lambda t: t, lambda t: t.transpose(0, 1), lambda t: t.flatten(), lambda t: t.flatten(0, 1),
            lambda t: t[1:], lambda t: t[..., 1:], lambda t: t[..., 0], lambda t: t[0], lambda t: t[::2],
            lambda t: t[:, 1:], lambda t: t.unsqueeze(1).expand(-1, 4, *t.shape[1:]), lambda t: t.mT,
            lambda t: t.unfold(0, 2, 1), lambda t: t.diagonal(0, 0, 1), lambda t: t.view(-1, 2, 3), lambda t: t[2:4],
            lambda t: t.view(N, -1), lambda t: t.view(-1, N), lambda t: t.view(2, N, -1), lambda t: t.view(-1, 2 * N),
        ]  # fmt: skip
        for view in views:
            part, mine = view(block), view(owners)
            told = memory.owner(part)
            if isinstance(told, Mixed) or not part.numel():
                continue
            assert told is not None
            expected = told.owners(part.shape[told.dim], N)
            expected = expected.reshape([-1 if place == told.dim else 1 for place in range(part.dim())])
            assert torch.equal(mine, expected.expand(mine.shape)), (shape, dim, part.shape)
        assert memory.owner(block) == Layout(dim) and isinstance(memory.owner(block.select(dim, 0)), Mixed)
    assert lies(8, N, 0, (N, 2), (2, 1), 4) == Layout(0)
    assert isinstance(lies(8, N, 8, (N, 2), (2, 1), 4), Mixed), "it begins with the second record"
