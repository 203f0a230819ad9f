"""How many go through the model at once: from made-up records, within memory, with small float errors."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from sfumato.errors import ArgumentError
from sfumato.learn import sizing
from sfumato.learn.engine import Engine
from sfumato.learn.sizing import kept_bytes, micro_batch, share_for
from tests.learn.tiny import Line, plan_for, times


def engine_of(model: torch.nn.Module, width: int) -> Engine:
    return Engine(model, times, examples=((torch.linspace(-1, 1, 4 * width).reshape(4, width),), torch.ones(4)))


def deep(width: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, 1), torch.nn.Flatten(0)
    )


def test_a_micro_batch_is_a_power_of_two_no_larger_than_needed() -> None:
    for expected in (1, 3, 20, 10_000):
        size = micro_batch(engine_of(Line(3), 3), expected).micro
        assert size & (size - 1) == 0 and size <= max(1, expected) and size <= 256


def test_memory_bounds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(deep(64), 64)
    each = kept_bytes(engine)
    assert each >= 64 * 4, "the graph keeps an input at least"
    monkeypatch.setattr(sizing, "_MEMORY", 16 * each)
    assert micro_batch(engine, 256).micro == 16
    monkeypatch.setattr(sizing, "_MEMORY", 1)
    assert micro_batch(engine, 256).micro == 1


def test_what_is_asked_for_is_taken() -> None:
    sized = micro_batch(engine_of(Line(3), 3), 8, wanted=5)
    assert sized.micro == 5 and 0 < sized.eta <= Fraction(1, 8)
    for asked in (0, -1, 2**17):
        with pytest.raises(ArgumentError, match="micro"):
            micro_batch(engine_of(Line(3), 3), 8, wanted=asked)


def test_the_share_for_float_errors_grows_with_the_batch() -> None:
    engine = engine_of(deep(16), 16)
    shares = [share_for(engine, size) for size in (2, 32, 256)]
    assert shares == sorted(shares) and all(Fraction(1, 1024) <= each <= Fraction(1, 8) for each in shares)


def test_sizes_come_from_public_things() -> None:
    """Twice the same, and nothing of it from torch's global generator."""
    engines = [engine_of(deep(16), 16) for _ in range(2)]
    state = torch.random.get_rng_state()
    first, second = (micro_batch(engine, 64) for engine in engines)
    assert torch.equal(state, torch.random.get_rng_state()) and first.micro == second.micro
    plan = plan_for()
    assert plan.sampling.slots % plan.micro == 0
