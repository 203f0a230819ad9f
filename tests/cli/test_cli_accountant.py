"""`sfumato epsilon`, `calibrate` and `explain`, held against figures of papers and of other libraries."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.events import Gaussian, Poisson, Repeat
from sfumato.project import open_project
from tests.cli.counting_house import refused, told
from tests.cli.front import YAML, make_project, sfumato

TRAINS = YAML.replace(
    "privacy: {target_epsilon: 0.5, target_delta: 1e-7}",
    "privacy: {target_epsilon: 1, target_delta: 1e-5, noise_multiplier: auto, sample_rate: 0.01, steps: 1000}",
)


@pytest.mark.parametrize(
    ("options", "figure"),
    [
        # DP-SGD on MNIST, the settings of the TensorFlow Privacy tutorial, priced by privacy-loss distributions
        ("--gaussian 1.3 --rate 256/60000 --steps 3515 --delta 1e-5", 0.864459),
        ("--gaussian 1.1 --rate 256/60000 --steps 14063 --delta 1e-5", 2.381686),
        # Balle and Wang 2018: the exact curve of Gaussian noise, mu = 2 and mu = 1/2
        ("--gaussian 0.5 --delta 1e-5", 9.997256),
        ("--gaussian 2 --delta 1e-5", 1.993091),
        # Canonne, Kamath and Steinke 2020: rho to (epsilon, delta); the Census of 2020 published 17.14
        ("--rho 293764/114921 --delta 1e-10", 17.143551),
        ("--rho 0.5 --delta 1e-6", 5.221534),
        # dp-accounting 0.6.0, 100 times Laplace of scale 10
        ("--laplace 0.1 --steps 100 --delta 1e-6", 4.692667),
        ("--laplace 0.1 --steps 100", 10),
    ],
)
def test_epsilon_prices_what_others_published(options: str, figure: float, tmp_path: Path) -> None:
    found = told("epsilon", *options.split(), at=tmp_path)
    low, high = found["epsilon"]["lower"], found["epsilon"]["upper"]
    assert low <= figure * (1 + 1e-5) and high == pytest.approx(figure, rel=2e-4)
    shown = sfumato("epsilon", *options.split(), at=tmp_path)
    assert f"{high:.6g}" in shown.out and "odds" in shown.out and shown.err == ""


def test_epsilon_reads_an_event_as_the_ledger_writes_it(tmp_path: Path) -> None:
    first = told("epsilon", "--gaussian", "1.1", "--rate", "0.01", "--steps", "10", "--delta", "1e-6", at=tmp_path)
    (tmp_path / "event.json").write_text(json.dumps(first["event"]))
    again = told("epsilon", "--event", "event.json", "--delta", "1e-6", at=tmp_path)
    piped = told("epsilon", "--event", "-", "--delta", "1e-6", at=tmp_path, stdin=json.dumps(first["event"]))
    assert first["epsilon"] == again["epsilon"] == piped["epsilon"]


def test_neighbours_that_replace_cost_more(tmp_path: Path) -> None:
    one = told("epsilon", "--gaussian", "2", "--delta", "1e-6", at=tmp_path)
    two = told("epsilon", "--gaussian", "2", "--delta", "1e-6", "--relation", "replace", at=tmp_path)
    assert (one["relation"], two["relation"]) == ("add-remove", "replace")
    assert "secret" in two["sentences"][1] and "in the data" in one["sentences"][1]


def test_accountants_side_by_side_never_undercut_the_tight_one(tmp_path: Path) -> None:
    options = ["--gaussian", "4", "--rate", "0.01", "--steps", "10000", "--delta", "1e-5"]  # Abadi et al. 2016
    options.append("--compare")
    found = told("epsilon", *options, at=tmp_path)
    rows = {row["method"]: row for row in found["accountants"]}
    assert rows["privacy loss"]["epsilon"] == pytest.approx(0.946999, rel=2e-4)
    assert rows["moments accountant"]["epsilon"] == pytest.approx(1.258575, rel=2e-3)
    sound = [row["epsilon"] for row in found["accountants"] if row["guarantee"]]
    assert sound == sorted(sound) and min(sound) >= found["epsilon"]["lower"]
    assert rows["central limit"]["guarantee"] is False
    assert rows["central limit"]["epsilon"] < found["epsilon"]["lower"]  # which is why it is none
    assert "not a guarantee" in sfumato("epsilon", *options, at=tmp_path).out


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ("", 2, "nothing to price"),
        ("--gaussian 1 --laplace 1 --delta 1e-6", 2, "--gaussian and --laplace"),
        ("--gaussian 1", 2, "--delta 1e-6"),
        ("--gaussian one --delta 1e-6", 2, "--gaussian is no number"),
        ("--gaussian 1/0 --delta 1e-6", 2, "--gaussian is no number"),
        ("--gaussian nan --delta 1e-6", 2, "--gaussian is no number"),
        ("--gaussian 1e999 --delta 1e-6", 2, "--gaussian is too large"),
        ("--gaussian 1e200 --delta 1e-6", 2, "multiplier"),
        ("--gaussian -1 --delta 1e-6", 2, "multiplier"),
        ("--gaussian 1 --delta 2", 2, "delta"),
        ("--gaussian 1 --delta 1e-6 --rate 1.5", 2, "rate"),
        ("--gaussian 1 --delta 1e-6 --relation friends", 2, "relation"),
        ("--gaussian 1 --delta 1e-6 --rate 0.1 --relation replace", 2, "replace"),
        ("--laplace 1 --compare", 2, "--delta 1e-6"),
        ("--event nowhere.json --delta 1e-6", 3, "cannot be read"),
        ("--event bad.json --delta 1e-6", 3, "no event"),
        ("--event deep.json --delta 1e-6", 3, "no event"),
        ("--event folder --delta 1e-6", 3, "cannot be read"),
        ("--event good.json --delta 1e-6 --steps 3", 2, "--event stands alone"),
    ],
)
def test_what_cannot_be_priced_says_why(options: str, code: int, says: str, tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text('{"is": "gaussian/1", "multiplier": 1}')
    (tmp_path / "bad.json").write_text('{"is": "gaussian/1", "multiplier": -1}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "folder").mkdir()
    assert says in refused("epsilon", *options.split(), at=tmp_path, code=code).err


@pytest.mark.parametrize(
    ("options", "figure"),
    [
        ("gaussian --epsilon 1 --delta 1e-5", 3.730632),  # Balle and Wang 2018
        ("--epsilon 8 --delta 1e-5", 0.600229),
        ("laplace --steps 20 --epsilon 1 --delta 1e-4", 13.550326),  # dp-accounting's own test: 13.6
        ("laplace --epsilon 0.5", 2),
        ("gaussian --rate 0.01 --epsilon 1 --delta 1e-5", 0.6737929468),  # dp-accounting's own test
        ("gaussian --rho 0.5", 1),
    ],
)
def test_calibrate_finds_the_least_noise(options: str, figure: float, tmp_path: Path) -> None:
    found = told("calibrate", *options.split(), at=tmp_path)
    assert found["parameter"] == pytest.approx(figure, rel=3e-4)
    shown = sfumato("calibrate", *options.split(), "--sensitivity", "3", at=tmp_path)
    assert f"{3 * found['parameter']:.6g} in the answer's own numbers" in shown.out


def test_the_most_steps_are_the_most(tmp_path: Path) -> None:
    around = ["--gaussian", "1.1", "--rate", "0.01"]
    found = told("calibrate", "steps", *around, "--epsilon", "3", "--delta", "1e-5", at=tmp_path)
    steps = int(found["parameter"])
    prices = [
        told("epsilon", *around, "--steps", str(each), "--delta", "1e-5", at=tmp_path)["epsilon"]
        for each in (steps, steps + 1)
    ]
    assert prices[0]["upper"] <= 3 < prices[1]["upper"] * (1 + 1e-4)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", "there is no target"),
        ("noise --epsilon 1", "gaussian, laplace, steps"),
        ("--epsilon 1", "needs a delta"),
        ("--epsilon 1 --rho 1", "more than one target"),
        ("--epsilon 1 --delta 1e-6 --gaussian 2", "is what is looked for"),
        ("steps --epsilon 1 --delta 1e-6", "one noise must be fixed"),
        ("steps --gaussian 1 --laplace 1 --epsilon 1 --delta 1e-6", "one noise must be fixed"),
        ("steps --gaussian 1 --steps 3 --epsilon 1 --delta 1e-6", "leave it out"),
        ("steps --gaussian 1 --epsilon 1 --delta 1e-6 --sensitivity 2", "leave it out"),
        ("--epsilon x --delta 1e-6", "--epsilon is no number"),
    ],
)
def test_what_cannot_be_calibrated_says_why(options: str, says: str, tmp_path: Path) -> None:
    assert says in refused("calibrate", *options.split(), at=tmp_path, code=2).err


def test_a_target_out_of_reach_says_so(tmp_path: Path) -> None:
    ran = refused("calibrate", "steps", "--gaussian", "1", "--epsilon", "1", "--delta", "1e-6", at=tmp_path, code=5)
    assert "no number of steps is within epsilon = 1" in ran.err


def test_a_project_says_what_the_options_do_not(tmp_path: Path) -> None:
    make_project(tmp_path, text=TRAINS)
    noise = told("calibrate", "-C", ".", at=tmp_path)
    assert noise["event"]["times"] == 1000 and noise["target"] == "epsilon = 1 at delta = 1e-05"
    price = told("epsilon", "-C", ".", "--gaussian", str(noise["parameter"]), at=tmp_path)
    assert price["epsilon"]["upper"] == pytest.approx(1, rel=1e-3) and price["delta"] == 1e-5
    assert told("calibrate", "-C", ".", "--steps", "4000", at=tmp_path)["parameter"] > noise["parameter"]
    fixed = told("calibrate", "steps", "-C", ".", "--gaussian", str(noise["parameter"]), at=tmp_path)
    assert fixed["parameter"] >= 1000
    ran = refused("epsilon", "-C", ".", at=tmp_path, code=3)
    assert "sfumato.yaml:" in ran.err and "calibrate" in ran.err


def test_an_account_takes_what_was_calibrated_for_it(tmp_path: Path) -> None:
    make_project(tmp_path, text=TRAINS)
    found = told("calibrate", "--account", "training", "-C", ".", at=tmp_path)
    assert found["epsilon"] is None and "training" in found["target"]
    with open_project(tmp_path).ledger(read_only=True) as ledger:
        room = ledger.room("training")
        made = Repeat(Poisson(Gaussian(multiplier=found["parameter"]), 0.01), 1000)
        less = Repeat(Poisson(Gaussian(multiplier=found["parameter"] * 0.99), 0.01), 1000)
        assert room.fits(made, Fraction(1, 10**5)) and not room.fits(less, Fraction(1, 10**5))
    both = refused("calibrate", "--account", "training", "--epsilon", "1", at=tmp_path, code=2)
    assert "more than one target" in both.err
    assert "there is no account" in refused("calibrate", "--account", "nobody", at=tmp_path, code=5).err


def test_explain_says_it_in_odds_and_attackers(tmp_path: Path) -> None:
    found = told("explain", "3", "--delta", "1e-6", at=tmp_path)
    assert found["factor"] == pytest.approx(20.0855, rel=1e-5) and found["raised"] == pytest.approx(0.952574, rel=1e-5)
    shares = [each["false_positive"] for each in found["attackers"]]
    assert shares == [0.001, 0.01, 0.05, 0.1] and found["deployments"] is None
    shown = sfumato("explain", "3", "--delta", "1e-6", at=tmp_path).out
    assert "factor of at most e^3 = 20.09" in shown and "20.09 %" in shown and "--compare-deployments" in shown
    assert "weak" in sfumato("explain", "30", at=tmp_path).out
    assert "without the secret" in sfumato("explain", "1", "--relation", "replace", at=tmp_path).out
    one = told("explain", "1", "--rates", "0.25", "--prior", "0.01", at=tmp_path)
    assert len(one["attackers"]) == 1 and one["raised"] == pytest.approx(0.02673, rel=1e-3)


def test_explain_sets_it_beside_deployments_without_ranking_them(tmp_path: Path) -> None:
    found = told("explain", "3", "--delta", "1e-6", "--compare-deployments", at=tmp_path)
    sizes = [each["epsilon"] for each in found["deployments"]]
    assert sizes == sorted(sizes) and 17.14 in sizes and all(each["differs"] for each in found["deployments"])
    shown = sfumato("explain", "3", "--delta", "1e-6", "--compare-deployments", at=tmp_path)
    lines = shown.out.splitlines()
    own = next(number for number, line in enumerate(lines) if "-> this one" in line)
    assert float(lines[own - 1].split()[0]) <= 3 <= float(lines[own + 1].split()[0])
    assert "another unit" in shown.out and shown.err == ""  # told once, not as warnings
    for size in ("0.001", "9999"):  # at either end
        assert "-> this one" in sfumato("explain", size, "--compare-deployments", at=tmp_path).out


@pytest.mark.parametrize("size", ["0", "-1", "1e7", "inf", "three"])
def test_what_is_no_epsilon_is_refused(size: str, tmp_path: Path) -> None:
    refused("explain", "--delta", "1e-6", "--", size, at=tmp_path, code=2)


def test_no_project_is_needed_and_none_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "sfumato.yaml").write_text("this: is not a project")
    assert sfumato("epsilon", "--laplace", "1", at=tmp_path).code == 0
    assert refused("calibrate", "-C", "nowhere", at=tmp_path, code=3).err
