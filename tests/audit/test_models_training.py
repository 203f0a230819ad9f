"""Audits of real trainings, small ones: what a canary shows, and who is refused. Noise is seeded throughout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import torch

from sfumato import learn, schema
from sfumato.audit import models
from sfumato.audit.models import ModelAudit, gradients, inputs, lira, membership, plotting, watching
from sfumato.audit.silent import Silent
from sfumato.errors import ArgumentError, SfumatoError
from sfumato.learn.stepping import Stepper
from sfumato.noise import Noise, SeededBits
from sfumato.schema import Schema
from sfumato.units import Unit
from sfumato_referee.attacks.training_membership import NoNoiseNoClip
from sfumato_referee.attacks.training_one_run import TenthOfTheNoise
from sfumato_referee.mutants.training import TwiceTheNorm

WIDTH, PEOPLE = 12, 40
ROW = Unit()


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with watching.on_one_thread():
        yield


class Described:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.schema = Schema.of(
            x=schema.tensor((WIDTH,), -1, 1), y=schema.category(["no", "yes"]), who=schema.key(), rows=PEOPLE
        )


@lru_cache(maxsize=16)
def plan(epsilon: float = 8, *, rate: Any = 1, steps: int = 2, unit: Unit = ROW, lr: float = 0.1, **more: Any) -> Any:
    model = torch.nn.Linear(WIDTH, 2, bias=False)
    torch.nn.init.zeros_(model.weight)
    how = {"rate": rate} if "batch_size" not in more else {}
    return learn.sgd(
        model, torch.nn.functional.cross_entropy, data=Described(unit), inputs="x", target="y", clip=0.5,
        epsilon=epsilon, delta=1e-5, steps=steps, micro=128,
        optimiser=learn.optimiser("SGD", lr=lr), **how, **more,
    )  # fmt: skip


def people(many: int = PEOPLE) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (many, WIDTH)).astype(np.float32)
    x[:, WIDTH // 2 :] = 0
    return {"x": x, "y": np.where(x[:, 0] > 0, "yes", "no"), "who": np.arange(many)}


def seeded(seed: int = 1) -> Noise:
    return Noise(SeededBits(seed))


class SilentStepper(Stepper):
    def __init__(self, plan: Any, rows: Any, noise: Noise, model: torch.nn.Module) -> None:
        super().__init__(plan, rows, Silent(noise._bits), model)


# Gradient canaries


@lru_cache(maxsize=1)
def shown() -> ModelAudit:
    return models.one_run(plan(), people(), canaries=400, noise=seeded())  # type: ignore[no-any-return]


def test_one_training_shows_much_of_epsilon_and_no_more_than_all() -> None:
    found = shown()
    assert 1 < found.epsilon < found.claim == pytest.approx(8, abs=1e-3)
    assert not found.broken and found.refuted is False
    assert found.epsilon < found.gaussian < found.claim


def test_a_tenth_of_the_noise_is_seen_in_one_training() -> None:
    found = models.one_run(plan(1), people(), canaries=400, noise=seeded(), stepper=TenthOfTheNoise)
    assert found.broken and found.epsilon > 1


def test_twice_the_clip_norm_is_seen_in_one_training() -> None:
    """It shows more than the honest step does, though not yet more than was paid for."""
    found = models.one_run(plan(), people(), canaries=400, noise=seeded(), stepper=TwiceTheNorm, guesses=200)
    assert found.epsilon > shown().epsilon


def test_a_canary_counts_for_the_clip_norm_and_nobody_else_touches_its_weight() -> None:
    wide = gradients.with_canaries(plan(), PEOPLE, 50)
    coins = np.arange(50) % 3 == 0
    rows = watching.rows_of(wide, gradients._columns(plan(), people(), 50, coins))
    steps: list[Any] = []
    watching.trained(wide, rows, seeded(), stepper=SilentStepper, see=steps.append)
    names = [name for name, _ in wide.model.original.named_parameters()]
    for step in steps:
        seen = step.gradients[names.index("canaries.weight")].double().numpy().ravel() * wide.divisor / step.norm
        assert seen[0] == 0 and np.all(seen[1:][~coins] == 0)
        assert np.all(seen[1:][coins] <= 1 + float(wide.eta)) and np.all(seen[1:][coins] >= 0.98)


def test_canaries_leave_the_model_alone() -> None:
    wide = gradients.with_canaries(plan(), PEOPLE, 20)
    states = []
    for coins in (np.zeros(20, dtype=bool), np.ones(20, dtype=bool)):
        rows = watching.rows_of(wide, gradients._columns(plan(), people(), 20, coins))
        model = watching.trained(wide, rows, seeded(), stepper=SilentStepper)
        states.append(model.state_dict()["model.weight"].numpy())
    assert np.abs(states[0]).max() > 1e-3
    np.testing.assert_allclose(states[0], states[1], atol=1e-4)


def test_the_price_is_the_plan_s_own() -> None:
    wide = gradients.with_canaries(plan(), PEOPLE, 100)
    assert wide.event == plan().event and wide.multiplier == plan().multiplier


def test_sampled_steps() -> None:
    found = models.one_run(plan(rate=0.5, steps=3), people(), canaries=300, noise=seeded(), guesses=[60])
    assert 0.2 < found.epsilon < found.claim and not found.broken


def test_units_that_are_replaced() -> None:
    """A canary is always there, with one sign or the other."""
    swapped = plan(unit=Unit(change="replace"), sampling="fixed", batch_size=20, steps=3)
    found = models.one_run(swapped, people(), canaries=300, noise=seeded(2), guesses=[60])
    assert found.epsilon > 0 and not found.broken
    silent = models.one_run(swapped, people(), canaries=300, noise=seeded(2), guesses=[20], stepper=SilentStepper)
    assert silent.counted[0].correct == 20


def test_many_runs() -> None:
    found = gradients.many_runs(plan(), people(), trainings=24, noise=seeded())
    silent = gradients.many_runs(plan(), people(), trainings=24, noise=seeded(), stepper=SilentStepper)
    assert found.epsilon <= silent.epsilon < 8
    assert (silent.inside, silent.outside) in ((1, 0), (0, 1)) and silent.mu > 0


@pytest.mark.parametrize("change", ["zero-out"])
def test_units_that_are_zeroed_out_are_refused(change: Any) -> None:
    zeroed = replace(plan(), protects=Unit(change=change))
    with pytest.raises(SfumatoError, match="replaced"):
        models.one_run(zeroed, people(), canaries=10)


def test_users_are_refused() -> None:
    users = plan(unit=Unit(of="user:who"), population=PEOPLE)
    for run in (
        lambda: models.one_run(users, people(), canaries=10),
        lambda: inputs.one_run(users, people(), canaries=people(5)),
    ):
        with pytest.raises(SfumatoError, match="row"):
            run()


def test_data_that_lacks_a_column_is_refused_by_name() -> None:
    for run in (
        lambda: models.one_run(plan(), {"x": people()["x"]}, canaries=10),
        lambda: inputs.one_run(plan(), people(), canaries={"x": people()["x"]}),
    ):
        with pytest.raises(SfumatoError, match="'y'"):
            run()


def test_what_a_newcomer_gets_wrong_is_refused_before_anything_is_trained() -> None:
    never: Any = lambda *_: pytest.fail("it was trained")  # noqa: E731
    data, short, flat = people(20), people(20) | {"y": people(5)["y"]}, people(20) | {"x": people(20)["y"]}
    runs: dict[str, Any] = {
        "one_run": lambda data, **more: models.one_run(plan(), data, stepper=never, **{"canaries": 10, **more}),
        "many_runs": lambda data, **more: models.gradients.many_runs(plan(), data, stepper=never, **more),
        "inputs": lambda data, **more: inputs.one_run(plan(), people(5), canaries=data, stepper=never, **more),
        "membership": lambda data, **more: membership.loss_threshold(plan(), data, stepper=never, **more),
        "lira": lambda data, **more: lira.audit(plan(), data, stepper=never, **more),
    }
    for name, run in runs.items():
        for wrong in (None, 5, "people.csv", {}, short, flat, {"x": 1, "y": 2, "who": 3}):
            with pytest.raises(ArgumentError, match=r"data|canaries|pool"):
                run(wrong)
        wrongly: list[dict[str, Any]] = [{"confidence": 95}, {"noise": 7}]
        wrongly += [] if name == "many_runs" else [{"guesses": 0}]
        for more in wrongly:
            with pytest.raises(ArgumentError, match=next(iter(more))):
                run(data, **more)
    with pytest.raises(ArgumentError, match="stepper"):
        models.one_run(plan(), data, canaries=10, stepper=None)
    for what in (None, "x", torch.nn.Linear(2, 2)):
        with pytest.raises(ArgumentError, match="plan"):
            models.one_run(what, data, canaries=10)


@pytest.mark.parametrize(
    ("shape", "places"), [((4,), [4]), ((4,), [-1]), ((4,), [0.5]), ((4,), 3), ((4,), "x"), (4, [0]), ((), [0])]
)
def test_lone_inputs_that_cannot_be_made(shape: Any, places: Any) -> None:
    with pytest.raises(ArgumentError, match=r"shape|places"):
        inputs.lone(shape, places)
    assert inputs.lone((4,), []).shape == (0, 4)


@pytest.mark.parametrize("classes", [None, [], ["no"], ["a", "b"], "noyes"])
def test_labels_that_are_not_listed_are_not_told(classes: Any) -> None:
    with pytest.raises(ArgumentError, match="classes") as found:
        inputs.mislabelled(people(5), "y", classes)
    assert "yes" not in str(found.value).replace("noyes", "")
    with pytest.raises(ArgumentError, match="columns"):
        inputs.mislabelled(people(5), "z", ["no", "yes"])


def test_pictures_of_what_is_no_audit() -> None:
    nothing: Any = 5
    for draw in (plotting.roc_svg, plotting.plot_roc, plotting.plot_bounds):
        with pytest.raises(ArgumentError, match="audit"):
            draw(nothing)
    with pytest.raises(ArgumentError, match="least"):
        plotting.roc_svg(shown(), least=0)


# Black box


def odd() -> dict[str, Any]:
    """Inputs that no person has, in the coordinates that all people leave at 0."""
    places = np.arange(WIDTH // 2, WIDTH)
    return {"x": inputs.lone((WIDTH,), places), "y": np.where(places % 2, "no", "yes"), "who": places}


def test_the_finished_model_shows_odd_records() -> None:
    """Without noise the loss falls for those that were in, and for no other."""
    held = inputs.Pool(plan(steps=8, lr=2.0), people(), odd())
    for coins in (np.arange(6) < 3, np.arange(6) % 2 == 0):
        after = held.losses(held.trained(coins, seeded(), stepper=SilentStepper))
        drop = held.losses(plan(steps=8, lr=2.0).model.loaded_as_is()) - after
        assert np.all(drop[coins] > 0.01) and np.all(np.abs(drop[~coins]) < 1e-6)


def test_a_black_box_audit_of_odd_records() -> None:
    for score in ("drop", "loss"):
        found = inputs.one_run(plan(steps=8, lr=2.0), people(), canaries=odd(), noise=seeded(4), score=score)
        assert not found.broken and found.canaries == 6
    with pytest.raises(SfumatoError, match="score"):
        inputs.one_run(plan(), people(), canaries=odd(), score="looks")  # type: ignore[arg-type]


def test_lone_inputs_and_wrong_labels() -> None:
    assert inputs.lone((2, 2), [0, 3], level=0.5).reshape(2, 4).tolist() == [[0.5, 0, 0, 0], [0, 0, 0, 0.5]]
    given = {"y": np.arange(300) % 3, "x": np.arange(300)}
    moved = inputs.mislabelled(given, "y", [0, 1, 2], seeded())
    assert np.all(moved["y"] != given["y"]) and set(moved["y"]) == {0, 1, 2} and moved["x"] is given["x"]


# Membership


def test_the_loss_tells_members_of_a_bare_training() -> None:
    pool = {**people(80), "y": np.array(["no", "yes"])[np.arange(80) % 2]}
    pool["x"] = np.random.default_rng(1).uniform(-1, 1, (80, WIDTH)).astype(np.float32)
    bare = membership.loss_threshold(plan(steps=8), pool, noise=seeded(), stepper=NoNoiseNoClip)
    assert bare.figures["advantage (Yeom et al. 2018)"] > 0
    assert not membership.loss_threshold(plan(steps=8), pool, noise=seeded()).broken


def test_shadow_models_tell_members_by_their_own_fits() -> None:
    """Records differ in how hard they are, and by more than membership moves them: the loss alone is blind."""
    rng = np.random.default_rng(2)
    hard = rng.normal(size=200) * 10

    def made(many: int) -> tuple[Any, Any]:
        coins = rng.random((many, 200)) < 0.5
        return hard + 2 * coins + rng.normal(size=(many, 200)), coins

    (seen, coins), (asked, secret) = made(64), made(8)
    for fits in lira.FITS:
        scores = lira.scores_of(seen, coins, asked, fits=fits)
        high = scores > np.median(scores)
        assert np.mean(high == secret.reshape(-1)) > 0.75
    assert abs(np.mean((asked > np.median(asked)).reshape(-1) == secret.reshape(-1)) - 0.5) < 0.1


def test_confidence_is_scaled() -> None:
    p = np.array([0.01, 0.5, 0.99])
    np.testing.assert_allclose(lira.scaled(-np.log(p)), np.log(p / (1 - p)))
    assert np.isfinite(lira.scaled(np.array([0.0, 1e6]))).all()


def test_few_shadow_models_share_a_spread() -> None:
    found = lira.audit(plan(), people(30), shadows=4, targets=2, noise=seeded())
    assert found.canaries == 60 and not found.broken and found.figures["targets"] == 2


# Pictures


def test_plots_show_what_is_ruled_out() -> None:
    ax = models.plot_roc(shown())
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert any("epsilon = 8" in each.get_text() for each in ax.get_legend().get_texts())
    bars = plotting.plot_bounds([shown(), shown()])
    assert [each.get_width() for each in bars.patches] == [shown().epsilon] * 2


def test_a_picture_of_bounds_reads_from_the_top_and_nothing_lies_on_a_claim() -> None:
    found = [shown(), replace(shown(), way="b", epsilon=0.0), replace(shown(), way="c", epsilon=9.0)]
    ax = plotting.plot_bounds(found)
    assert ax.yaxis_inverted() and [each.get_text() for each in ax.get_yticklabels()] == [each.way for each in found]
    assert [each.get_text() for each in ax.texts] == [f"{each.epsilon:.3g}" for each in found], "0 is told, too"
    assert found[2].broken and ax.patches[2].get_edgecolor() != ax.patches[0].get_edgecolor()
    ax.figure.canvas.draw()
    legend, plot = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.y1 <= plot.y0, "the legend lies below"
    with pytest.raises(ArgumentError, match="ax"):
        plotting.plot_bounds(found, ax="mine")


def test_a_drawing_for_a_page() -> None:
    loud = replace(shown(), way="<script>")
    drawing = plotting.roc_svg(loud)
    assert drawing.startswith("<svg") and "<script>" not in drawing and "&lt;script&gt;" in drawing
    data = plotting.roc_data(loud)
    assert data["seen"][-1] == (1.0, 1.0) and data["allowed"][-1] == (1.0, 1.0)
    assert all(0 < each <= 1 for pair in data["seen"] + data["allowed"] for each in pair)
    for text in (">0.001<", ">1<", "the attack", "ruled out by epsilon = 8", "guessing", "false-positive rate"):
        assert text in drawing, text
    assert "0.05" not in plotting.roc_svg(loud, least=0.05), "ticks are decades"


@pytest.mark.parametrize(("name", "value"), [("cut", "x"), ("cut", float("nan")), ("curve", 3), ("figures", 3)])
def test_wrong_arguments_of_a_judgement(name: str, value: Any) -> None:
    with pytest.raises(ArgumentError, match=f"^{name} = "):
        judge: Any = models.judged
        judge([1.0, 2.0, 3.0], [True, False, True], way="x", claim=1, delta=1e-5, **{name: value})
