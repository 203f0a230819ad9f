"""Peer accountants as oracles, with the truth as the judge. `python -m bench.golden` regenerates the files.

A peer's lower end must not lie above our upper end, nor its upper end below our lower end; and no peer may be tighter.
Where a peer is wrong it is named below, and a test proves it.
"""

import json
import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

from sfumato import events, record
from sfumato.accounting import pld
from sfumato.accounting.interval import Interval
from sfumato.errors import UnsupportedEventError
from tests.golden import truth

HERE = Path(__file__).parent
ACCURACY = 5e-4
"""How wide our intervals are if nothing is asked."""
FINE = 1e-4
"""How much looser than a peer we may be, relative and absolute, when accuracy is asked."""


def golden(name: str) -> dict:
    return json.loads((HERE / f"accounting_{name}.json").read_text())


def words(event: events.Event) -> str:
    """Short enough to read in a list of tests."""
    if isinstance(event, events.Repeat):
        return f"{event.times}x{words(event.event)}"
    if isinstance(event, events.Poisson):
        return f"{float(event.rate):.4g}*{words(event.event)}"
    if isinstance(event, events.Sequence):
        return "+".join(map(words, event.events))
    numbers = (getattr(event, name, None) for name in ("multiplier", "epsilon", "variance"))
    return type(event).__name__ + ",".join(f"{float(number):g}" for number in numbers if number is not None)


def name(row: dict) -> str:
    return f"{words(record.decode(row['event'], events.Event))} at {row['delta']:g}"


SAMPLED = golden("sampled_gaussian")["rows"]
OTHERS = golden("mechanisms")["rows"]
ROWS = {name(row): row for row in (*SAMPLED, *OTHERS)}
THEOREMS = golden("theorems")

# Neither peer bounds the round-off of its Fourier transforms: at deltas near it an end may lie on the wrong side.
WRONG = {
    "1000x0.001*Gaussian0.7 at 1e-12": ("pld", "upper"),
    "1000x0.5*Gaussian20 at 1e-12": ("pld", "upper"),
    "100xDiscreteGaussian400 at 1e-12": ("pld", "upper"),
    "10000xPure0.1 at 1e-12": ("pld", "upper"),
    "1000xLaplace0.01 at 1e-12": ("pld", "lower"),
    "4xDiscreteGaussian4 at 1e-09": ("pld", "lower"),  # 21.9020687722; the sum in forty digits is 21.9020679909
    "100000xGaussian100 at 1e-12": ("prv", "lower"),
}


def right(row: dict, peer: str, end: str) -> list[float]:
    """The peer's end, unless it has none or a wrong one."""
    wrong = WRONG.get(name(row)) == (peer, end)
    return [row[peer][end]] if end in row.get(peer, {}) and not wrong else []


@cache
def _price(key: str, accuracy: float | None) -> Interval:
    row = ROWS[key]
    asked = {} if accuracy is None else {"accuracy": accuracy}
    return pld.epsilon(record.decode(row["event"], events.Event), Fraction(repr(row["delta"])), **asked)


def price(row: dict, accuracy: float | None = None) -> Interval:
    return _price(name(row), accuracy)


@cache
def true(key: str) -> float | None:
    """None where no way to the truth is known, or none that is fast."""
    event, delta = record.decode(ROWS[key]["event"], events.Event), ROWS[key]["delta"]
    times = event.times if isinstance(event, events.Repeat) else 1
    single = event.event if isinstance(event, events.Repeat) else event
    rate = 1.0
    if isinstance(single, events.Poisson):
        rate, single = float(single.rate), single.event
    if isinstance(single, events.Gaussian):
        settles = times == 1 or rate >= 0.5 or (times >= 100 and rate * times >= (1 if rate >= 1e-3 else 5))
        return truth.sampled_gaussian(rate, float(single.multiplier), times, delta) if settles else None
    if isinstance(single, events.Laplace) and rate == 1 and times >= 100:
        return truth.laplace(float(single.epsilon), times, delta)
    if isinstance(single, events.DiscreteGaussian):
        shift = math.isqrt(single.shift_squared)
        return truth.discrete_gaussian(math.sqrt(single.variance), shift, times, delta)
    return truth.pure(float(single.epsilon), times, delta) if isinstance(single, events.Pure) else None


SOME = [  # hundreds of thousands of steps take seconds each
    pytest.param(row, marks=[pytest.mark.slow] if name(row).startswith(("100000x", "1000000x")) else [], id=name(row))
    for row in ROWS.values()
]


@pytest.mark.parametrize("row", SOME)
def test_no_peer_contradicts_us(row):
    found = price(row)
    assert 0 <= found.lower <= found.upper < math.inf
    assert all(found.upper >= lower - 1e-9 for peer in ("pld", "prv") for lower in right(row, peer, "lower"))
    peers = ("pld", "prv", "rdp", "opacus_rdp")
    assert all(found.lower <= upper + 1e-9 for peer in peers for upper in right(row, peer, "upper"))


@pytest.mark.parametrize("row", ROWS.values(), ids=name)
def test_the_truth_lies_in_our_interval(row):
    value = true(name(row))
    if value is not None:
        found = price(row)
        assert found.lower * (1 - 1e-8) - 1e-9 <= value <= found.upper * (1 + 1e-8) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("row", SAMPLED, ids=name)
def test_renyi_is_never_tighter(row):
    assert all(price(row).upper <= row[peer]["upper"] + 1e-9 for peer in ("rdp", "opacus_rdp"))


@pytest.mark.parametrize("row", SOME)
def test_no_peer_is_tighter_by_more_than_our_accuracy(row):
    for theirs in right(row, "pld", "upper"):
        assert price(row).upper <= theirs + ACCURACY * max(1.0, theirs)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS.values(), ids=name)
def test_no_peer_is_tighter_when_more_is_asked(row):
    for theirs in right(row, "pld", "upper"):
        allowed = theirs * (1 + FINE) + FINE
        assert price(row).upper <= allowed or price(row, FINE / 2).upper <= allowed


@pytest.mark.parametrize("key", WRONG)
def test_where_a_peer_is_wrong(key):
    peer, end = WRONG[key]
    value, theirs = true(key), ROWS[key][peer][end]
    assert theirs < value - 5e-7 if end == "upper" else theirs > value + 5e-7


@pytest.mark.parametrize("case", THEOREMS["optimal_composition"], ids=lambda case: f"{case['times']}x{case['epsilon']}")
def test_optimal_composition(case):
    """dp-accounting knows only the epsilons two steps apart: ours lies in the gap below its answer."""
    own = {"delta": case["delta_each"]} if case["delta_each"] else {}
    kind = events.Approximate if own else events.Pure
    event = events.Repeat(kind(epsilon=case["epsilon"], **own), case["times"])
    if "failed" in case:  # no epsilon is enough
        with pytest.raises(UnsupportedEventError):
            pld.epsilon(event, Fraction(repr(case["delta"])))
        return
    found = pld.epsilon(event, Fraction(repr(case["delta"])))
    assert found.upper <= case["upper"] + 1e-9
    assert found.lower >= case["upper"] - 2 * case["epsilon"] - 1e-9


def family(case: dict, parameter: float) -> events.Event:
    if case["law"] == "laplace":
        single: events.Event = events.Laplace(epsilon=1 / Fraction(repr(parameter)))
    elif case["law"] == "discrete_laplace":  # the parameter is the decay
        single = events.DiscreteLaplace(epsilon=parameter, shift=1)
    else:
        gaussian = events.Gaussian(multiplier=Fraction(repr(parameter)) / case.get("sensitivity", 1))
        single = events.Poisson(gaussian, case["rate"]) if "rate" in case else gaussian
    return single if case["times"] == 1 else events.Repeat(single, case["times"])


@pytest.mark.parametrize("case", THEOREMS["smallest"], ids=lambda case: f"{case['times']}x{case['law']}")
def test_the_least_noise_that_dp_accounting_finds(case):
    """It meets its target by our price too, and 1 % less noise does not."""
    delta = Fraction(repr(case["delta"]))
    less = 1.01 if case["law"] == "discrete_laplace" else 0.99
    enough = pld.epsilon(family(case, case["parameter"]), delta)
    assert enough.lower <= case["epsilon"] + 1e-6
    assert pld.epsilon(family(case, case["parameter"] * less), delta).upper > case["epsilon"]
