"""Training files: read with line numbers, beside sfumato.yaml; of two ways to say a thing the file's own wins."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
import yaml

from sfumato.project import ProjectError
from sfumato.project.training import PUBLISHED, Training, json_schema, load_training
from tests.cli.clinic import YAML, make_clinic

FILE = """\
sfumato-training: 1
note: costs
account: training
privacy: {target_epsilon: 1/2, target_delta: 1e-7, sample_rate: 0.1, noise_multiplier: auto}
training:
  model: {name: mlp, hidden: [8, 4], activation: relu, seed: 3}
  features: age
  target: {column: cost, type: number, scaled: true}
  loss: huber
  optimizer: {name: Adam, lr: 1e-3, betas: [0.9, 0.999], amsgrad: true, foreach: false}
  epochs: 3
  clip: {rule: adaptive, quantile: 0.6, pace: 0.1, noise: 0.02}
  count: 0.1
  average: 0.99
  noise: fast
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clinic(tmp_path_factory.mktemp("training"), ledger=False)


def read(folder: Path, text: str) -> Training:
    (folder / "train.yaml").write_text(text, encoding="utf-8")
    return load_training(folder / "train.yaml")[1]


def test_a_file_says_it_all(folder: Path) -> None:
    found = read(folder, FILE)
    form = found.form
    assert (found.epsilon, found.delta, found.rate, found.norm) == (
        Fraction(1, 2), Fraction(1, 10**7), Fraction(1, 10), 1,
    )  # fmt: skip
    assert (found.multiplier, found.steps, found.note, found.account) == (None, None, "costs", "training")
    assert (form.model.hidden, form.model.activation, form.model.seed) == ([8, 4], "relu", 3)
    assert form.features == ["age"] and (form.target.column, form.target.scaled) == ("cost", True)
    settings = form.optimizer.model_extra
    assert settings == {"lr": 0.001, "betas": [0.9, 0.999], "amsgrad": True, "foreach": False}
    assert form.epochs == 3 and form.clip.quantile == Fraction(3, 5) and form.average == Fraction(99, 100)


def test_the_project_says_the_rest(folder: Path) -> None:
    _, found = load_training(folder / "sfumato.yaml")
    assert (found.epsilon, found.delta, found.norm) == (3, Fraction(1, 10**6), 1)
    assert found.form.batch_size == 200 and found.rate is None and found.steps is None
    assert load_training(folder)[1] == found, "the folder stands for its sfumato.yaml"
    own = read(folder, FILE.replace("target_epsilon: 1/2, ", "").replace("target_delta: 1e-7, ", ""))
    assert (own.epsilon, own.delta) == (3, Fraction(1, 10**6))


def test_the_file_goes_before_the_project(tmp_path: Path) -> None:
    text = YAML.replace("max_grad_norm: 1", "max_grad_norm: 1, noise_multiplier: 4, sample_rate: 0.5, steps: 9")
    text = text.replace("  batch_size: 200\n  epochs: 5\n", "")
    folder = make_clinic(tmp_path, text, ledger=False)
    _, usual = load_training(folder)
    assert (usual.multiplier, usual.rate, usual.steps) == (4, Fraction(1, 2), 9)
    own = read(folder, FILE)
    assert (own.multiplier, own.rate, own.steps) == (None, Fraction(1, 10), None), "auto is said, and epochs are"
    rate = FILE.replace(", sample_rate: 0.1, noise_multiplier: auto", "").replace("  epochs: 3\n", "  batch_size: 9\n")
    own = read(folder, rate)
    assert (own.multiplier, own.rate, own.steps, own.form.batch_size) == (4, None, 9, 9)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("epochs: 3", "epocs: 3", "train.yaml:11: training.epocs: there is no such field: did you mean epochs?"),
        ("note: costs", "notes: costs", "train.yaml:2: notes: there is no such field: did you mean note?"),
        ("sfumato-training: 1", "sfumato-training: 2", "train.yaml:1: sfumato-training: '2' is no version"),
        ("features: age", "features: [agee]", "train.yaml:7: training.features[0]: there is no column 'agee'"),
        ("epochs: 3", "batch_size: 9\n  epochs: 3", "train.yaml:11: training.batch_size: privacy says sample_rate"),
        ("sample_rate: 0.1", "sample_rate: 2", "train.yaml:4: privacy.sample_rate: it is no probability"),
        ("target_epsilon: 1/2", "secure_mode: false", "train.yaml:4: privacy.secure_mode: there is no such field"),
        ("  target: {column: cost, type: number, scaled: true}\n", "", "train.yaml:5: training: target is missing"),
    ],
)
def test_what_is_wrong_has_its_line(folder: Path, old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(ProjectError) as caught:
        read(folder, FILE.replace(old, new))
    assert told in str(caught.value)


def test_a_file_needs_its_project(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "train.yaml").write_text(FILE, encoding="utf-8")
    with pytest.raises(ProjectError, match="there is no project"):
        load_training(tmp_path / "train.yaml")
    project, found = load_training(tmp_path / "train.yaml", folder)
    assert project.name == "clinic" and found.folder == tmp_path


def test_its_schema_is_published() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == json_schema(), (
        "write it anew: sfumato schema training > src/sfumato/project/sfumato-training.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(json_schema())
    said = yaml.safe_load(FILE.replace("1e-", "1.0e-"))
    jsonschema.validate(said, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(said | {"surprise": 1}, json_schema())
