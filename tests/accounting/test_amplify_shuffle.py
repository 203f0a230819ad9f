"""Shuffling: against published figures, against enumeration of all reports, and at the ends of its range."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting.amplify import binomial, shuffle
from sfumato.accounting.amplify.clones import Clones
from sfumato.errors import ArgumentError
from sfumato.events import Laplace, Pure, RandomizedResponse, Shuffled


def pure(local: float, users: int) -> Shuffled:
    return Shuffled(Pure(epsilon=local, relation="replace"), users)


def response(local: float, categories: int, users: int) -> Shuffled:
    return Shuffled(RandomizedResponse(epsilon=local, categories=categories, relation="replace"), users)


# (users, local epsilon, delta, the clone pair to six digits, the closed form)
PUBLISHED = [
    (10**5, 4, 1e-6, 0.169770, 0.534634),
    (10**4, 1, 1e-6, 0.053005, 0.214026),
    (10**3, 1, 1e-5, 0.154047, 0.531987),
]


@pytest.mark.parametrize(("users", "local", "delta", "exact", "textbook"), PUBLISHED)
def test_published_figures(users: int, local: float, delta: float, exact: float, textbook: float) -> None:
    found = shuffle.clones(local=local, users=users, delta=delta)
    assert found.lower == pytest.approx(exact, abs=6e-7)
    assert found.upper == pytest.approx(exact, abs=6e-7)
    assert found.width < 1e-4 * exact
    assert shuffle.epsilon(pure(local, users), delta).upper == found.upper
    assert shuffle.closed_form(local=local, users=users, delta=delta) == pytest.approx(textbook, abs=6e-7)


def test_the_range_of_another_implementation() -> None:
    assert 0.1675386 <= shuffle.epsilon(pure(4, 10**5), 1e-6).upper <= 0.1727906


def test_a_hundred_thousand_users() -> None:
    assert shuffle.closed_form(local=1, users=10**5, delta=1e-6) == pytest.approx(0.07255, abs=6e-6)
    assert shuffle.epsilon(pure(1, 10**5), 1e-6).upper == pytest.approx(0.01528, abs=6e-6)
    assert shuffle.epsilon(response(1, 2, 10**5), 1e-6).upper == pytest.approx(0.01243, abs=6e-6)


def test_the_withdrawn_clone_probability_is_for_randomized_response_only() -> None:
    strong = 2 / (math.e + 1)
    assert shuffle.clones(local=1, users=10**5, delta=1e-6, clone=strong).upper == pytest.approx(0.01243, abs=6e-6)
    assert shuffle.epsilon(pure(1, 10**5), 1e-6).upper > 0.0152
    assert shuffle.epsilon(Shuffled(Laplace(epsilon=1, relation="replace"), 10**5), 1e-6).upper > 0.0152


def hockey_stick(p: dict[tuple[int, ...], float], q: dict[tuple[int, ...], float], epsilon: float) -> float:
    return sum(max(0.0, p.get(key, 0.0) - math.exp(epsilon) * q.get(key, 0.0)) for key in p)


def shuffled_law(rows: list[np.ndarray]) -> dict[tuple[int, ...], float]:
    """The law of the counts of each report, one row of probabilities per user."""
    law: dict[tuple[int, ...], float] = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        after: dict[tuple[int, ...], float] = {}
        for counts, chance in law.items():
            for report, share in enumerate(row):
                key = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                after[key] = after.get(key, 0.0) + chance * share
        law = after
    return law


def worst(channel: np.ndarray, users: int, epsilon: float) -> float:
    """The largest delta over all data of the others and all pairs of values: by enumeration."""
    values = range(len(channel))
    found = 0.0
    for others in product(values, repeat=users - 1):
        if list(others) != sorted(others):
            continue
        laws = [shuffled_law([channel[x], *(channel[y] for y in others)]) for x in values]
        found = max(found, *(hockey_stick(p, q, epsilon) for p in laws for q in laws))
    return found


def keep_or_exchange(local: float, categories: int) -> np.ndarray:
    table = np.ones((categories, categories)) + np.eye(categories) * math.expm1(local)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(("categories", "most"), [(2, 7), (3, 5), (4, 4)])
@pytest.mark.parametrize("local", [0.3, 1.0, 3.0])
def test_no_data_of_a_few_users_beats_the_bound(categories: int, most: int, local: float) -> None:
    channel = keep_or_exchange(local, categories)
    for users in range(1, most):
        for epsilon in (0.0, 0.1 * local, 0.5 * local, 0.9 * local):
            true = worst(channel, users, epsilon)
            special = shuffle.delta(response(local, categories, users), epsilon)
            general = shuffle.delta(pure(local, users), epsilon)
            assert special.lower <= true * (1 + 1e-8) + 1e-15
            assert true <= special.upper * (1 + 1e-9) + 1e-15
            assert special.upper <= general.upper * (1 + 1e-8) + 1e-15


@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    st.integers(1, 3),
    st.floats(0.1, 4),
    st.lists(st.integers(0, 1), min_size=9, max_size=9),
    st.sampled_from([0.0, 0.1, 0.5, 0.9]),
)
def test_any_local_channel_stays_under_the_general_bound(
    users: int, local: float, numbers: list[int], share: float
) -> None:
    """Columns of numbers within a factor e^(local/2) of each other; after normalising rows the factor is e^local."""
    channel = np.exp(local / 2 * np.array(numbers).reshape(3, 3))
    channel /= channel.sum(axis=1, keepdims=True)
    epsilon = share * local
    assert worst(channel, users, epsilon) <= shuffle.delta(pure(local, users), epsilon).upper * (1 + 1e-9) + 1e-12


def pair_delta(local: float, users: int, clone: float, epsilon: float) -> float:
    """The clone pair by its definition, with high precision: a sum over all clones and all zeros among them."""
    m, c, e = mpmath.exp(local), mpmath.mpf(clone), mpmath.exp(epsilon)
    right = m / (m + 1)
    total = mpmath.mpf(0)
    for clones in range(users):
        chance = mpmath.binomial(users - 1, clones) * c**clones * (1 - c) ** (users - 1 - clones)
        for zeros in range(clones + 2):
            before = mpmath.binomial(clones, zeros - 1) if zeros else 0
            same = mpmath.binomial(clones, zeros)
            p, q = (right * before + (1 - right) * same), ((1 - right) * before + right * same)
            total += chance * mpmath.mpf(2) ** -clones * max(mpmath.mpf(0), p - e * q)
    return float(total)


@pytest.mark.parametrize("users", [1, 2, 7, 25])
@pytest.mark.parametrize(("local", "clone"), [(0.01, 0.9), (1, 0.4), (4, 0.02), (20, 1e-8), (60, 1e-20)])
def test_the_pair_by_its_definition(users: int, local: float, clone: float) -> None:
    with mpmath.workdps(60):
        for share in (0.0, 0.2, 0.7, 0.999):
            true = pair_delta(local, users, clone, share * local)
            found = Clones(local, users, clone).delta(share * local)
            assert found.lower <= true * (1 + 1e-13) <= found.upper * (1 + 2e-13)
            assert found.width <= 1e-6 * found.upper + 1e-30


def test_blocks_bracket_the_single_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Clones(2, 20000, math.exp(-2)).epsilon(1e-7)
    assert whole.width < 1e-8
    monkeypatch.setattr("sfumato.accounting.amplify.clones._BLOCKS", 50)
    coarse = Clones(2, 20000, math.exp(-2)).epsilon(1e-7)
    assert coarse.lower < whole.lower
    assert whole.upper < coarse.upper
    assert coarse.width < 0.05 * coarse.upper


@settings(derandomize=True, deadline=None, max_examples=12)
@given(st.integers(1, 10**6), st.floats(1e-3, 12), st.floats(-30, -1), st.integers(2, 50))
def test_monotone_and_ordered(users: int, local: float, log_delta: float, categories: int) -> None:
    delta = Fraction(math.exp(log_delta))
    here = shuffle.epsilon(pure(local, users), delta)
    assert 0 <= here.lower <= here.upper <= math.nextafter(local, math.inf)  # a float is the decimal it prints as
    assert here.upper <= shuffle.closed_form(local=local, users=users, delta=delta)
    near = 1 + 1e-4  # blocks differ a little in how well they fit
    assert shuffle.epsilon(pure(local, 2 * users), delta).upper <= here.upper * near
    assert shuffle.epsilon(pure(local, users), delta / 2).upper >= here.upper / near
    assert shuffle.epsilon(pure(1.1 * local, users), delta).upper >= here.upper / near
    special = shuffle.epsilon(response(local, categories, users), delta)
    assert 0 <= special.lower <= special.upper <= here.upper


@pytest.mark.parametrize("local", [1e-9, 1e-3, 10, 36, 99, 101, 1e4])
@pytest.mark.parametrize("users", [1, 2, 10**9, 2**53])
@pytest.mark.parametrize("delta", ["1e-100", "0.9"])
def test_the_ends_of_the_range(local: float, users: int, delta: str) -> None:
    for event in (pure(local, users), response(local, 1000, users)):
        found = shuffle.epsilon(event, Fraction(delta))
        assert 0 <= found.lower <= found.upper <= local
        for epsilon in (0, local / 2, local, 2 * local):
            chance = shuffle.delta(event, epsilon)
            assert 0 <= chance.lower <= chance.upper <= 1


@pytest.mark.parametrize("event", [pure(4, 10**5), response(1, 2, 3000), response(5, 9, 500), pure(1, 1), pure(3, 2)])
def test_the_atoms_dominate(event: Shuffled) -> None:
    p, q, outside = shuffle.pair(event)
    assert p.sum() + outside == pytest.approx(1, abs=1e-9)
    assert q.sum() + outside == pytest.approx(1, abs=1e-9)
    assert 0 <= outside < 1e-11
    assert np.all(np.diff(p / (p + q)) > 0)
    for delta in (1e-3, 1e-6):
        epsilon = shuffle.epsilon(event, delta)
        from_atoms = np.maximum(p - math.exp(epsilon.upper) * q, 0).sum() + outside
        assert from_atoms == pytest.approx(delta, rel=2e-2)
        mirrored = np.maximum(q - math.exp(epsilon.upper) * p, 0).sum() + outside
        assert mirrored == pytest.approx(from_atoms, rel=1e-6)


def test_epsilon_and_delta_agree() -> None:
    event = pure(2, 5000)
    epsilon = shuffle.epsilon(event, 1e-6)
    assert shuffle.delta(event, epsilon.upper).upper == pytest.approx(1e-6, rel=1e-3)
    assert shuffle.delta(event, epsilon.lower).lower == pytest.approx(1e-6, rel=1e-3)


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a Shuffled event"):
        shuffle.epsilon(Pure(epsilon=1, relation="replace"), 1e-6)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="clone"):
        shuffle.clones(local=1, users=10, delta=1e-6, clone=1.5)
    with pytest.raises(ArgumentError, match="epsilon"):
        shuffle.delta(pure(1, 10), -1)


@pytest.mark.parametrize("trials", [1, 2, 17, 1234, 10**5, 10**9])
@pytest.mark.parametrize("chance", [0.5, 0.3, 1e-6])
def test_binomial_digits(trials: int, chance: float) -> None:
    spread = math.sqrt(trials * chance * (1 - chance))
    with mpmath.workdps(40):
        p = mpmath.mpf(chance)
        for far in (3, 8, 15):
            k = min(trials, math.ceil(trials * chance + far * spread))
            log_mass = mpmath.loggamma(trials + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(trials - k + 1)
            term = mpmath.exp(log_mass + k * mpmath.log(p) + (trials - k) * mpmath.log1p(-p))
            if term < 1e-280:
                continue
            assert float(binomial.mass(k, trials, chance) / term) == pytest.approx(1, abs=binomial.SLACK / 3)
            if spread > 2000:
                continue
            tail, j, each = term, k, term
            while each > tail * mpmath.mpf(10) ** -25 and j < trials:
                each *= p / (1 - p) * (trials - j) / (j + 1)
                tail, j = tail + each, j + 1
            assert float(binomial.at_least(k, trials, chance) / tail) == pytest.approx(1, abs=binomial.SLACK / 3)
            true = k * (1 - p) * term - (mpmath.mpf(k - 0.25) - trials * p) * tail
            low, high = binomial.excess(k - 0.25, trials, chance)
            assert low <= true <= high
