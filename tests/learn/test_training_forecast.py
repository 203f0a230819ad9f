"""What a training will take: from made-up records alone, with weights and random streams left as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import sfumato as sf
from sfumato import learn, schema
from sfumato.errors import ArgumentError
from sfumato.learn.forecasting import Forecast, duration, size

TABLE = sf.Schema.of(x=schema.tensor((6,), -1, 1), y=schema.category([0, 1]), rows=400)


class Untouchable:
    """Data that nobody may look at."""

    unit = sf.Unit()
    schema = TABLE


def plan(**more: Any) -> Any:
    given = {"batch_size": 40, "steps": 7, "clip": 1, "multiplier": 1, "delta": 1e-5, **more}
    model = nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.5), nn.Linear(4, 2))
    return learn.sgd(model, functional.cross_entropy, data=Untouchable(), inputs="x", target="y", **given)


@pytest.mark.parametrize("more", [{}, {"noise": "fast"}, {"strict": True}, {"average": 0.9, "steps": 3}])
def test_a_forecast_reads_no_data_and_moves_nothing(more: dict[str, Any]) -> None:
    made = plan(**more)
    before = {name: each.clone() for name, each in made.model.original.state_dict().items()}
    stream = torch.get_rng_state()
    found = learn.forecast(made)
    assert isinstance(found, Forecast) and found.step > 0 and found.bytes > 0
    assert found.seconds == pytest.approx(found.step * made.times)
    assert torch.equal(torch.get_rng_state(), stream), "dropout drew from a stream of its own"
    assert all(torch.equal(each, before[name]) for name, each in made.model.original.state_dict().items())


def test_memory_grows_with_what_is_kept() -> None:
    plain, strict = learn.forecast(plan()).bytes, learn.forecast(plan(strict=True)).bytes
    adam = learn.forecast(plan(optimiser=learn.optimiser("Adam", lr=0.1))).bytes
    assert strict > plain and adam > plain


def test_a_quote_tells_it_once_measured() -> None:
    rows = {"x": np.zeros((400, 6), dtype=np.float32), "y": np.zeros(400, dtype=np.int64)}
    private = sf.Private("rows", rows, unit=sf.Unit(), schema=TABLE)
    curator = sf.Curator(private, sf.MemoryLedger({"rows": sf.Budget(epsilon=9, delta=1e-4)}))
    made = plan()
    quote = curator.quote(made)
    text = str(quote)
    assert "time      about " in text and "7 steps of " in text and "memory    about " in text
    assert str(quote) == text, "it is measured once"
    assert made.watched().expected_work() == made.expected_work()
    assert "memory" in quote._repr_html_()


def test_other_plans_say_nothing_of_it() -> None:
    count = sf.mechanisms.Laplace(query=sf.bounds.count(sf.Unit()), epsilon=1)
    assert count.expected_work() == {}
    with pytest.raises(ArgumentError, match="plan"):
        learn.forecast(count)  # type: ignore[arg-type]


def test_times_and_sizes_as_people_say_them() -> None:
    assert [duration(each) for each in (0.00123, 0.5, 1.24, 34, 200, 9000)] == [
        "1.2 ms", "500 ms", "1.2 s", "34 s", "3 min", "2.5 h",
    ]  # fmt: skip
    assert [size(each) for each in (12, 3400, 255_000, 19_000_000, 3 * 10**9)] == [
        "12 bytes", "3.4 KB", "255 KB", "19 MB", "3 GB",
    ]  # fmt: skip
