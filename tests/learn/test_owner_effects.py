"""The claims about operations beside the operations: torch's own samples of every operation, each argument owned along
each of its dimensions. Where an output is said to be record i's, no other record may move it."""

import itertools
import sys
import traceback
import types
import unittest
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch.utils._pytree import tree_flatten, tree_map  # noqa: E402

from sfumato.errors import PlanError  # noqa: E402
from sfumato.learn.layout import Layout  # noqa: E402
from sfumato.learn.owners import Mixed, OwnerWatch  # noqa: E402

SAMPLES = 5
EMPTY = ("empty_like", "new_empty", "new_empty_strided")  # what is in memory that nobody wrote to


def operations() -> Any:
    """torch's own list, whose module asks for a package that it does not need here."""
    stand_in = types.ModuleType("expecttest")
    stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
    before = sys.modules.setdefault("expecttest", stand_in)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.testing._internal.common_methods_invocations import op_db
    finally:
        if before is stand_in:
            sys.modules.pop("expecttest")
    return op_db


def outputs(made: Any) -> list[Any]:
    return [each for each in tree_flatten(made)[0] if isinstance(each, torch.Tensor)]


def run(operation: Any, sample: Any, own: Any, new: Any) -> Any:
    given = (sample.input, sample.args, sample.kwargs)
    first, args, options = tree_map(
        lambda each: new if each is own else each.detach().clone() if isinstance(each, torch.Tensor) else each, given
    )
    torch.manual_seed(0)
    return outputs(operation.op(first, *args, **options))


def owned(operation: Any, sample: Any, own: Any, dim: int) -> Any:
    """What it makes, and how records are said to lie in it; None where it refuses."""
    records, watch, new = own.shape[dim], OwnerWatch(), own.detach().clone().contiguous()
    watch.open((), records)
    watch.memory.assign(new, Layout(dim))
    try:
        made = run(operation, sample, own, new)
    except PlanError:
        return None
    except Exception as problem:  # a sample for another type, which torch itself refuses
        told = traceback.extract_tb(problem.__traceback__)[-1]
        assert "/sfumato/" not in told.filename or "func(*args, **kwargs)" in str(told.line), told
        return None
    finally:
        watch.close()
    return made, [watch.memory.owner(each) for each in made]


def moved(own: Any, dim: int, record: int) -> Any:
    new = own.detach().clone().contiguous()
    part = new.select(dim, record)
    if new.is_floating_point():
        part.mul_(0.5).add_(0.25)
    elif new.dtype == torch.bool:
        part.logical_not_()
    else:
        part.zero_()
    return new


def stray(made: Any, again: Any, owner: Any, records: int, record: int) -> bool:
    """Did a number move that is not this record's? Rounding aside: matrices are factored in blocks of memory."""
    if made.shape != again.shape:
        return True
    near = torch.isclose(made, again, rtol=1e-4, atol=1e-5, equal_nan=True)
    if owner is None:
        return not bool(near.all())
    shape = [-1 if place == owner.dim else 1 for place in range(made.dim())]
    mine = owner.owners(made.shape[owner.dim], records).reshape(shape) == record
    return bool((~near & ~mine.expand(made.shape)).any())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_claim_about_an_operation_is_true() -> None:
    false, claims = set(), dict[str, int]()
    for operation in operations():
        try:
            samples = list(itertools.islice(operation.sample_inputs("cpu", torch.float32), SAMPLES))
        except Exception:
            continue
        for sample in samples:
            for own in outputs((sample.input, sample.args, sample.kwargs)):
                if own.layout != torch.strided or own.numel() > 5000 or own.is_complex():
                    continue
                for dim in [dim for dim, size in enumerate(own.shape) if size > 1]:
                    told = owned(operation, sample, own, dim)
                    if told is None or all(isinstance(each, Mixed) for each in told[1]):
                        continue
                    for record in range(own.shape[dim]):
                        try:
                            again = run(operation, sample, own, moved(own, dim, record))
                        except Exception:
                            continue  # it refuses such numbers
                        for one, two, owner in zip(told[0], again, told[1], strict=True):
                            if isinstance(owner, Mixed):
                                continue
                            claims[operation.name] = claims.get(operation.name, 0) + 1
                            if stray(one, two, owner, own.shape[dim], record):
                                false.add((operation.name, dim))
    assert {name for name, _ in false} <= set(EMPTY), false
    assert len(claims) > 400 and sum(claims.values()) > 10_000
