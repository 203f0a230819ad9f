"""What is wrong with a training is told before anything is paid, at its line of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.clinic import YAML, make_clinic
from tests.cli.front import broken_data, sfumato
from tests.cli.test_cli_run import entries


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clinic(tmp_path_factory.mktemp("clinic"))


@pytest.mark.parametrize(
    ("old", "new", "where", "told"),
    [
        ("model: logistic", "model: logistik", "19: training.model", "there is no model 'logistik'"),
        ("model: logistic", "model: cnn", "19: training.model", "a cnn reads images"),
        ("model: logistic", "model: {name: logistic, hidden: [3]}", "19: training.model", "hidden"),
        ("target: back", "target: {column: back, type: number}", "19: training.model", "the target is a number"),
        ("name: SGD", "name: SGT", "22: training.optimizer", "torch.optim"),
        ("momentum: 0.5", "momentun: 0.5", "22: training.optimizer", "momentun"),
        ("lr: 2", "lr: -1", "22: training.optimizer", "Invalid learning rate"),
        ("target: back", "target: back\n  loss: mse", "22: training.loss", "does not fit a target that is a class"),
        (
            "epochs: 5",
            "epochs: 5\n  clip: {rule: flat, quantile: 0.5}",
            "25: training.clip",
            "flat clipping has no quant",
        ),
        ("epochs: 5", "epochs: 5\n  clip: per-group", "25: training.clip", "weights is missing"),
        ("epochs: 5", "epochs: 5\n  sampling: fixed", "training", "replace"),
        ("epochs: 5", "epochs: 5\n  per_unit: 3", "25: training.per_unit", "1"),
        ("epochs: 5", "epochs: 5\n  strict: true\n  noise: fast", "training.strict", "fast noise"),
        ("batch_size: 200", "batch_size: 2000", "23: training.batch_size", "2000"),
        ("batch_size: 200\n", "\n", "18: training", "it is not said who takes part in a step"),
        ("  epochs: 5\n", "", "18: training", "it is not said how long to train"),
        ("target_epsilon: 3, ", "", "18: training", "it is not said how much to spend"),
        (", max_grad_norm: 1", "", "18: training", "it is not said how long gradients may be"),
        ("target_delta: 1e-6, ", "", "18: training", "it is not said at which delta"),
        ("max_grad_norm: 1", "max_grad_norm: 1, steps: 9", "24: training.epochs", "privacy says steps"),
        ("max_grad_norm: 1", "max_grad_norm: 1, noise_multiplier: 0.5", "14: privacy.noise_mult", "above target_eps"),
        ("rows: 800", "public: false", "training", "population is missing"),
        ("public.csv", "visits.csv", "25: training.public_test", "the project's own"),
        ("public.csv", "nowhere.csv", "25: training.public_test", "there is no file"),
        ("subgroup: ward", "subgroup: age", "26: training.subgroup", "subgroups are told by a category or a flag"),
    ],
)
def test_a_fault_has_its_line(folder: Path, old: str, new: str, where: str, told: str) -> None:
    assert old in YAML
    text = YAML.replace(old, new)
    if "rows" in old:
        text = text.replace("    public: false\n", "")
    (folder / "odd.yaml").write_text(text, encoding="utf-8")
    ran = sfumato("train", "odd.yaml", "--quote", at=folder)
    assert ran.code == 3 and ran.out == "", ran.err
    lines = ran.err.splitlines()
    assert where in lines[0] and told in ran.err, ran.err
    assert len(lines) == 3 and lines[1].startswith("  why  ") and lines[2].startswith("  fix  "), ran.err
    assert entries(folder, "hold", "draw", "spend") == []


def test_a_project_without_a_training_says_what_to_add(folder: Path) -> None:
    (folder / "bare.yaml").write_text(YAML.partition("training:\n  model")[0], encoding="utf-8")
    ran = sfumato("train", "bare.yaml", at=folder)
    assert ran.code == 3 and "it has no training section" in ran.err and "sfumato-training: 1" in ran.err
    ran = sfumato("train", "nowhere.yaml", at=folder)
    assert ran.code == 3 and "there is no nowhere.yaml" in ran.err


def test_files_that_cannot_be_written_are_refused_first(folder: Path) -> None:
    (folder / "old.pt").write_bytes(b"of another training")
    for words, told in (
        (("--out", "nowhere/model.pt"), "nothing was charged"),
        (("--out", "data/visits.csv"), "is a file of the project itself"),
        (("--checkpoint", "budget.ledger"), "is a file of the project itself"),
        (("--checkpoint", "data/public.csv"), "is a file that the training reads"),
        (("--out", "data/public.csv"), "is a file that the training reads"),
        (("--checkpoint", "old.pt"), "belongs to another training"),
        (("--out", "one.pt", "--checkpoint", "./one.pt"), "both go to one.pt"),
    ):
        ran = sfumato("train", "sfumato.yaml", *words, at=folder)
        assert ran.code == 3 and told in ran.err, ran.err
    assert entries(folder, "hold") == []


def test_fast_noise_needs_the_policy(folder: Path) -> None:
    (folder / "fast.yaml").write_text(YAML.replace("epochs: 5", "epochs: 1\n  noise: fast"), encoding="utf-8")
    ran = sfumato("train", "fast.yaml", at=folder)
    assert ran.code in (0, 6), ran.err
    if ran.code:
        assert "grade" in ran.err and entries(folder, "hold") == []
    else:
        assert "float grade" in ran.out


def test_without_torch_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.util import find_spec

    def none(name: str, *more: Any) -> Any:
        return None if name == "torch" else find_spec(name, *more)

    monkeypatch.setattr("sfumato.office.training.find_spec", none)
    ran = sfumato("train", "sfumato.yaml", "--quote", at=folder)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        "a package is not installed\n  why  torch is needed for this\n"
        "  fix  pip install '.[learn]' in a checkout of sfumato\n"
    )


def test_data_that_cannot_be_read_fails_without_a_word_about_it(tmp_path: Path) -> None:
    folder = make_clinic(tmp_path)
    with broken_data():
        ran = sfumato("train", "sfumato.yaml", at=folder)
    assert ran.code == 8 and "SECRET" not in ran.err + ran.out
    again = sfumato("train", "sfumato.yaml", at=folder)
    assert again.code == 4 and "--key" in again.err, again.err


def test_other_columns_than_the_schemas_are_refused_unpaid(tmp_path: Path) -> None:
    folder = make_clinic(tmp_path)
    (folder / "data" / "visits.csv").write_text("other,SECRET-4711\n1,2\n", encoding="utf-8")
    ran = sfumato("train", "sfumato.yaml", at=folder)
    assert ran.code == 3 and "no column" in ran.err and "SECRET" not in ran.err and not entries(folder, "hold")
