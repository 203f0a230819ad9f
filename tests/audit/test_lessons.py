"""The attacks of the lessons work on what was published without privacy, and fail on ours within the bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sfumato.audit.lessons import LESSONS, census, game, homogeneity, linkage, questions, ratings, subset_sums
from sfumato_referee.attacks import without_privacy

NAMES = list(LESSONS)


@pytest.mark.parametrize("name", NAMES)
def test_ours_withstands_within_the_bound_and_bare_numbers_do_not(name: str) -> None:
    lesson = LESSONS[name]()
    assert lesson.epsilon == 1
    assert lesson.allowed == pytest.approx(math.e / (1 + math.e))
    assert game.Score(40, 39).beats(lesson.allowed, 1e-4)  # so that the next line can fail at all
    assert not lesson.play(40).beats(lesson.allowed, 1e-4)
    bare = lesson.play(60, protected=False)  # one in a hundred is lost by averaging
    assert bare.share > 0.9
    assert bare.beats(lesson.allowed, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_ours_withstands_many_rounds(name: str) -> None:
    lesson = LESSONS[name]()
    assert not lesson.play(2_000).beats(lesson.allowed, 1e-9)


@pytest.mark.parametrize("name", ["census", "linkage", "ratings", "homogeneity"])
def test_as_attacks(name: str) -> None:
    assert not without_privacy.attack(name, rounds=50).broken
    assert without_privacy.control(name).broken


@pytest.mark.parametrize("name", NAMES)
def test_a_lesson_tells_its_story_with_its_figures(name: str) -> None:
    lesson = LESSONS[name]()
    text = lesson.tell(4)
    for part in (lesson.title, lesson.source, lesson.story, lesson.moral, "73.1 %"):
        assert part in text


def test_what_an_attacker_may_win() -> None:
    assert game.allowed(0) == 0.5
    assert game.allowed(0, 1) == 1
    assert game.allowed(1, 1e-2) == pytest.approx((math.e + 0.01) / (1 + math.e))
    # randomised response attains it: the bound is tight
    keep = math.exp(2) / (1 + math.exp(2))
    assert game.allowed(2) == pytest.approx(keep)


def test_a_score_is_judged_by_exact_counts() -> None:
    score = game.Score(100, 90)
    low = stats.beta.ppf(1e-6, 90, 11)
    assert score.beats(float(low) - 1e-9, 1e-6)
    assert not score.beats(float(low) + 1e-9, 1e-6)
    assert not game.Score(100, 100).beats(1.0, 0.5)


def test_a_player_who_sees_the_coin_always_wins_and_who_sees_nothing_does_not() -> None:
    assert game.play(lambda coin: coin, bool, 50).right == 50
    assert not game.play(lambda coin: None, lambda seen: True, 300).beats(0.7, 1e-9)


# The attacks themselves


def test_the_block_is_rebuilt_and_is_the_only_one() -> None:
    people, alone = census.rebuilt(census.tables(census.PEOPLE))
    assert sorted(people) == sorted(census.PEOPLE)
    assert alone


def test_a_solver_that_is_told_less_says_that_others_fit() -> None:
    lines = [line for line in census.tables(census.PEOPLE) if line.ages == (0, census.OLDEST)]
    people, alone = census.rebuilt(lines)
    assert len(people) == len(census.PEOPLE)
    assert not alone


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_whatever_the_solver_finds_fits_the_tables(seed: int) -> None:
    draw = np.random.default_rng(seed)
    people: Any = tuple(
        (int(draw.integers(0, 96)), str(draw.choice(census.SEXES)), str(draw.choice(census.GROUPS))) for _ in range(9)
    )
    lines = census.tables(people)
    found, alone = census.rebuilt(lines)
    assert census.tables(tuple(found)) == lines
    assert not alone or sorted(found) == sorted(people)


def test_matches_are_by_all_three_columns() -> None:
    claimed, right = linkage.matched()
    assert right <= claimed <= linkage.PATIENTS
    assert right > 0.6 * linkage.PATIENTS
    assert right > 0.95 * claimed


def test_who_is_sure_is_right() -> None:
    sure, right = ratings.identified()
    assert right > 0.9 * sure > 0


def test_groups_are_k_anonymous_and_cover_everybody_once() -> None:
    made = homogeneity.groups()
    assert min(map(len, made)) >= homogeneity.K
    assert sorted(np.concatenate(made).tolist()) == list(range(homogeneity.PEOPLE))
    assert homogeneity.without().figures["known for sure"] > 0.05


def test_least_squares_finds_bits_until_one_budget_pays_for_all_questions() -> None:
    shares = subset_sums.without().figures
    assert shares["answers off by up to 2"] == 1
    assert shares["Laplace noise of epsilon 1 for each question"] > 0.95
    # Steinke, Nasr, Jagielski 2023: right guesses are stochastically below Binomial(people, e / (1 + e))
    most = stats.binom.isf(1e-9, subset_sums.PEOPLE, math.e / (1 + math.e)) / subset_sums.PEOPLE
    assert shares["ours, epsilon 1 for all questions"] <= most


def test_two_counts_differ_by_one_person() -> None:
    assert questions._counted(True)[0] - questions._counted(True)[1] == 1
    assert questions._counted(False)[0] - questions._counted(False)[1] == 0
