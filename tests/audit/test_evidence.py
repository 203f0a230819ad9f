"""The file of the worst pair and event: it is counted again, and never believed."""

from __future__ import annotations

import copy
import json
import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato import Unit, audit, bounds
from sfumato.audit import classifier, evidence, shipped, views
from sfumato.audit.outputs import OutputReading, grain
from sfumato.audit.results import Result
from sfumato.audit.telling import ViewEvent
from sfumato.errors import ArgumentError, SfumatoError
from sfumato.mechanisms import Laplace
from sfumato.noise import Noise, SeededBits
from sfumato_referee import mutants

_ROW = Unit()


@pytest.fixture(scope="module")
def broken() -> Result:
    return audit.check(mutants.HalfNoise(query=bounds.count(_ROW), epsilon=1), runs=4_000, bits=SeededBits(1))


def test_a_finding_is_reproduced_with_fresh_noise(broken: Result, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    broken.save(path)
    plan = mutants.HalfNoise(query=bounds.count(_ROW), epsilon=1)
    again = audit.reproduce(path, plan, runs=8_000, bits=SeededBits(7))
    assert again.broken
    assert again.epsilon == pytest.approx(broken.epsilon, abs=0.3)
    with pytest.raises(ArgumentError, match="plan is missing"):
        audit.reproduce(path)  # a planted bug is no record
    with pytest.raises(ArgumentError, match="another kind"):
        audit.reproduce(path, Laplace(query=bounds.count(_ROW), epsilon=1))


@pytest.mark.parametrize("name", ["Laplace", "Exponential", "TopK", "OptimalKeys"])
def test_a_plan_with_a_record_is_reproduced_from_the_file_alone(name: str, tmp_path: Path) -> None:
    found = audit.check(shipped.PLANS[name](), runs=100, bits=SeededBits(3))
    found.save(tmp_path / "found.json")
    assert found.hash == shipped.PLANS[name]().hash
    again = audit.reproduce(tmp_path / "found.json", runs=100, bits=SeededBits(4))
    assert not again.broken


def test_halved_noise_is_reproduced_by_the_same_noise(broken: Result) -> None:
    class Silent(Noise):
        def draw(self, law: Any, count: int) -> Any:
            return 0 * super().draw(law, count)

    plan = Laplace(query=bounds.count(_ROW), epsilon=1)
    found = audit.check(plan, runs=1_000, noise=Silent, bits=SeededBits(1))
    assert audit.reproduce(found.evidence, runs=1_000, noise=Silent, bits=SeededBits(2)).epsilon > 3
    assert not audit.reproduce(found.evidence, runs=1_000, bits=SeededBits(2)).broken


def test_the_runs_that_chose_an_event_are_not_counted_again() -> None:
    """The same seed, for the audit and for the second look: the same runs would find the same luck."""
    drawn: list[int] = []

    def run(_data: int, noise: Noise) -> float:
        drawn.append(int(noise._bits.words(1)[0]))
        return float(drawn[-1] % 7)

    found = audit.check_mechanism(run, [(0, 1)], 1.0, runs=50, bits=SeededBits(7))
    before, drawn = drawn, []
    audit.reproduce(found.evidence, run, runs=20, bits=SeededBits(7))
    assert len(drawn) >= 40 and not set(drawn[-40:]) & set(before)
    first = drawn[-40:]
    audit.reproduce(found.evidence, run, runs=20, bits=SeededBits(7))
    assert drawn[-40:] == first


def test_a_plan_is_held_to_its_price_and_not_to_what_a_file_says() -> None:
    found = audit.check(shipped.PLANS["Laplace"](), runs=1_000, bits=SeededBits(3))
    changed = {**found.evidence, "claims": [[0.0, 1e-3]]}
    again = audit.reproduce(changed, runs=1_000, bits=SeededBits(4))
    assert again.epsilon > 1e-3 and not again.broken


def test_code_of_ones_own_is_reproduced() -> None:
    def run(x: float, noise: Noise) -> float:
        return x + float(noise.integers(2, 1)[0])

    found = audit.check_mechanism(run, [(0.0, 1.0)], 0.5, runs=400, bits=SeededBits(1))
    assert found.broken
    assert audit.reproduce(found.evidence, run, runs=400, bits=SeededBits(2)).broken


def test_the_file_is_plain_json(broken: Result, tmp_path: Path) -> None:
    broken.save(tmp_path / "found.json")
    data = json.loads((tmp_path / "found.json").read_text())
    assert data["format"] == evidence.FORMAT
    assert data["kind"] == "HalfNoise"
    assert data["plan"] is None
    assert len(data["pair"]["tables"]) == len(data["counts"]) == len(data["runs"]) == 2


def _damages(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Every leaf and branch exchanged for things that do not belong there, or gone."""
    found = []

    def walk(path: tuple[Any, ...], value: Any) -> None:
        for strange in (None, "x", -1, [], 1e400, {"is": "unit/1"}):
            damaged = copy.deepcopy(data)
            at: Any = damaged
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = strange
            found.append(damaged)
        gone = copy.deepcopy(data)
        at = gone
        for step in path[:-1]:
            at = at[step]
        if isinstance(at, dict):
            del at[path[-1]]
            found.append(gone)
        if isinstance(value, dict):
            for key, item in value.items():
                walk((*path, key), item)

    for key, item in data.items():
        walk((key,), item)
    return found


@pytest.mark.parametrize("name", ["Laplace", "TopK"])
def test_a_damaged_file_is_refused_or_read_and_never_anything_else(name: str) -> None:
    found = audit.check(shipped.PLANS[name](), runs=60, bits=SeededBits(3))
    data = json.loads(json.dumps(found.evidence))
    refused = 0
    for damaged in _damages(data):
        try:
            audit.reproduce(damaged, runs=4, bits=SeededBits(1))
        except (SfumatoError, ValueError):
            refused += 1
    assert refused > 50


def test_files_that_are_no_evidence(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("", "[]", "{", "[" * 100_000, '{"format": "other/1"}', "\x00"):
        path.write_text(text)
        with pytest.raises(ArgumentError, match="source"):
            audit.reproduce(path)
    with pytest.raises((ArgumentError, ValueError), match="source"):
        audit.reproduce(3)


# ---------------------------------------------------------------------------------- views and readings


def _samples(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (3_000, 4)), rng.normal([1, 0, 0, 0.2], 1, (3_000, 4))


def test_every_view_survives_json() -> None:
    one, other = _samples(1)
    whole = np.rint(one), np.rint(other)
    trees = classifier.trained(one, other)
    assert trees is not None
    every = [*views.simple(list("abcd")), *views.fitted(one, other), *views.fitted(*whole), trees]
    assert {type(view).__name__ for view in every} == {"Mix", "Curves", "Cells", "Listed", "Trees"}
    for view in every:
        again = views.decode(json.loads(json.dumps(view.encode())), 4)
        assert np.array_equal(again.of(one), view.of(one))
        with pytest.raises((ValueError, KeyError, TypeError)):
            views.decode(view.encode() | {"form": "other"}, 4)
    event = ViewEvent(-1, 0.25)
    assert ViewEvent.decode(event.encode()) == event


def test_a_classifier_learns_a_product_of_columns() -> None:
    """Neither column tells anything by itself."""
    rng = np.random.default_rng(1)
    one = rng.normal(0, 1, (4_000, 2))
    other = rng.normal(0, 1, (4_000, 2))
    one[:, 1] = np.abs(one[:, 1]) * np.sign(one[:, 0])
    other[:, 1] = -np.abs(other[:, 1]) * np.sign(other[:, 0])
    trees = classifier.trained(one, other)
    assert trees is not None
    assert trees.of(one).mean() - trees.of(other).mean() > 3
    assert classifier.trained(np.ones((5, 2)), np.ones((5, 2))) is None


def test_a_reading_is_fixed_before_new_outputs_come() -> None:
    seen = [{"a": 1.5, "b": "x"}, {"a": 2.0}], [{"a": 1.0, "b": "y"}, {"a": 3.25, "b": "x"}]
    reading = OutputReading.fit(*seen)
    assert reading.names == [
        "output['a']",
        "output['b']",
        "(output['b'] is missing)",
        "(lowest bit of output['a'])",
    ]
    before = reading.of(seen[1])
    later = reading.of([*seen[1], {"a": 7, "b": "never seen", "c": 5}, {}, None, 3])
    assert np.array_equal(later[:2], before)
    assert later[2, :3].tolist() == [7, -1, 0]
    assert later[3, :3].tolist() == [0, 0, 1]
    again = OutputReading.decode(json.loads(json.dumps(reading.encode())))
    assert again == reading


def test_odd_outputs_are_read() -> None:
    odd = [math.inf, -math.inf, math.nan, 10**400, True, None, "text", b"x", [1, [2]], {"k": {"l": 1}}, 1j]
    reading = OutputReading.fit(odd, odd)
    assert np.isfinite(reading.of(odd)).all()


class _Series:
    """As pandas has them: labels, and cells."""

    def __init__(self, cells: dict[Any, Any]) -> None:
        self._cells = cells
        self.index = SimpleNamespace(is_unique=True)

    def items(self) -> Any:
        return self._cells.items()


class _Frame:
    def __init__(self, **columns: Any) -> None:
        self._columns = {name: _Series(dict(enumerate(cells))) for name, cells in columns.items()}

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    def __getitem__(self, name: str) -> _Series:
        return self._columns[name]

    def _repr_html_(self) -> str:
        return ""


class _Tensor:
    def __init__(self, *cells: float) -> None:
        self._cells = list(cells)

    def tolist(self) -> list[float]:
        return self._cells


@pytest.mark.parametrize(
    ("output", "names", "numbers"),
    [
        (_Series({"x": 1.0, "y": 2.0}), ["output['x']", "output['y']"], [1, 2]),
        (_Frame(a=[1.0, 3.0]), ["output['a'][0]", "output['a'][1]"], [1, 3]),
        (_Tensor(4.0, 5.0), ["output[0]", "output[1]"], [4, 5]),
        (complex(1, 2), ["output['real']", "output['imaginary']"], [1, 2]),
        (np.complex128(complex(1, 2)), ["output['real']", "output['imaginary']"], [1, 2]),
        (Decimal(3), ["output"], [3]),
        (Fraction(4), ["output"], [4]),
    ],
    ids=["series", "frame", "tensor", "complex", "numpy complex", "decimal", "fraction"],
)
def test_numbers_of_any_library_are_read_as_numbers(output: Any, names: list[str], numbers: list[float]) -> None:
    """As texts they would never come up twice, and an audit would see nothing."""
    reading = OutputReading.fit([output], [output])
    assert reading.names == names
    assert reading.of([output]).tolist() == [numbers]


def test_frames_and_series_of_pandas_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    for made in (
        pandas.DataFrame({"a": [1.0, 2.0]}),
        pandas.Series([1.0, 2.0]),
        pandas.Series([1.0, 2.0], index=["k", "k"]),
        pandas.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
    ):
        assert OutputReading.fit([made], [made]).of([made]).tolist() == [[1, 2]]


def test_the_lowest_bit() -> None:
    assert grain(np.array([1.0, 3.0, 0.5, 0.75, 6.0, -0.1])).tolist() == [0, 0, -1, -2, 1, -55]
