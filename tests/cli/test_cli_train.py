"""`sfumato train`: quoted, paid step by step, written; asked again it is free."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

from sfumato.project import open_project
from tests.cli.clinic import YAML, make_clinic
from tests.cli.front import make_project, sfumato
from tests.cli.test_cli_run import entries

OWN = """\
import torch
from torch import nn


def make():
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))


def loss(output, target):
    return nn.functional.cross_entropy(output, target, reduction="none")


def number():
    return 3


def broken():
    raise ValueError("no such layer")
"""


def train(folder: Path, *words: str, file: str = "sfumato.yaml", code: int = 0) -> Any:
    ran = sfumato("train", file, "--json", *words, at=folder)
    assert ran.code == code, ran.err + ran.out
    return json.loads(ran.out)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_clinic(tmp_path_factory.mktemp("clinic"))


def test_a_training_from_quote_to_weights(folder: Path) -> None:
    quoted = train(folder, "--quote")
    assert (quoted["state"], quoted["fits"], quoted["due"], quoted["receipt"]) == ("quoted", True, None, None)
    assert quoted["forecast"]["seconds"] > 0 and quoted["forecast"]["bytes"] > 0
    assert quoted["epsilon"] <= 3 and quoted["steps"]["planned"] == 20 and quoted["steps"]["rate"] == 0.25
    assert not (folder / "model.pt").exists() and entries(folder, "hold", "draw") == []

    body = train(folder, "--note", "who comes back")
    rooms = [one["budget"][0]["room"] for one in (quoted, body)]
    assert rooms[0] is not None and rooms[0] == rooms[1], "as many more after it as the quote said"
    schema = json.loads(sfumato("schema", "train", at=folder).out)
    for each in (quoted, body):
        jsonschema.validate(each, schema)
    assert body["state"] == "trained" and body["plan"] == quoted["plan"] and body["steps"]["done"] == 20
    assert body["receipt"]["note"] == "who comes back" and body["receipt"]["grade"] == "exact"
    assert body["measured"]["records"] == 200 and 0 <= body["measured"]["accuracy"] <= 1
    assert [each["name"] for each in body["measured"]["groups"]] == ["east", "north", "west"]
    assert sum(each["records"] for each in body["measured"]["groups"]) == 200
    state = torch.load(folder / "model.pt", weights_only=True)
    assert {name: tuple(each.shape) for name, each in state.items()} == {"0.weight": (2, 5), "0.bias": (2,)}
    assert len(entries(folder, "hold")) == 1 and len(entries(folder, "draw")) == 20
    assert list(folder.glob("*.checkpoint*")) == [], "it has served its time"

    (folder / "model.pt").unlink()
    again = train(folder)
    assert again["state"] == "answered" and again["receipt"]["id"] == body["receipt"]["id"]
    assert again["forecast"] is None and again["budget"][0]["before"] == again["budget"][0]["used"]
    free = torch.load(folder / "model.pt", weights_only=True)
    assert all(torch.equal(each, free[name]) for name, each in state.items())
    assert len(entries(folder, "hold")) == 1
    assert "answered already" in train(folder, "--quote")["due"]


@pytest.mark.slow
def test_it_is_told_to_people(folder: Path) -> None:
    told = sfumato("train", "sfumato.yaml", "--account", "training", "--out", "told.pt", at=folder)
    assert told.code == 0 and told.err == "", told.err
    for part in (
        "accuracy  ",
        "on 200 public records",
        "price     epsilon = ",
        "hides     one row, present or absent",
        "model     logistic, 12 parameters, tells back from age, ward, cost",
        "steps     20 of about 200 units each",
        "exact grade",
        "receipt   entry ",
        "wrote     told.pt",
        "subgroup",
        "next      model.load_state_dict",
    ):
        assert part in told.out, told.out
    reported = sfumato("ledger", "report", "training", "--out", "training.html", at=folder)
    assert reported.code == 0, reported.err
    page = (folder / "training.html").read_text(encoding="utf-8")
    for part in ("tells back from age, ward, cost", "20 steps, each over units drawn at random, with probability 0.25",
                 "is clipped to 1, and Gaussian noise of ", "The answer is a model, which no page shows"):  # fmt: skip
        assert part in page, part
    assert "not told in words" not in page and "release_report(" not in page
    (folder / "longer.yaml").write_text(YAML.replace("epochs: 5", "epochs: 6"), encoding="utf-8")
    quote = sfumato("train", "longer.yaml", "--quote", at=folder)
    assert "forecast  about " in quote.out and "measured on made-up records" in quote.out
    assert "verdict   " in quote.out and quote.err == ""


def test_a_training_file_goes_before_the_project(folder: Path) -> None:
    text = """\
sfumato-training: 1
note: costs
account: training
privacy: {target_epsilon: 0.5, steps: 4}
training:
  model: {name: mlp, hidden: [3]}
  features: [age]
  target: {column: cost, scaled: true}
  loss: huber
  optimizer: {name: Adam, lr: 0.01, betas: [0.9, 0.99]}
  batch_size: 100
  clip: {rule: adaptive, quantile: 0.7}
  average: 0.9
  out: cost.pt
"""
    (folder / "cost.yaml").write_text(text, encoding="utf-8")
    body = train(folder, file="cost.yaml")
    assert body["epsilon"] <= 0.5 and body["steps"]["planned"] == 4 and body["receipt"]["note"] == "costs"
    assert body["measured"] is None and any("public_test" in line for line in body["next"])
    assert "training" in body["receipt"]["accounts"] and (folder / "cost.pt").exists()
    elsewhere = folder / "deep"
    elsewhere.mkdir()
    (elsewhere / "cost.yaml").write_text(text, encoding="utf-8")
    assert train(folder, "-C", ".", file="deep/cost.yaml")["state"] == "answered"
    assert (elsewhere / "cost.pt").exists()


def test_too_dear_is_refused_before_anything_is_held(folder: Path) -> None:
    before = len(entries(folder, "hold"))
    (folder / "dear.yaml").write_text(YAML.replace("target_epsilon: 3", "target_epsilon: 30"), encoding="utf-8")
    quoted = train(folder, "--quote", file="dear.yaml", code=5)
    assert not quoted["fits"] and quoted["budget"][0]["fits"] is False
    told = sfumato("train", "dear.yaml", at=folder)
    assert told.code == 5 and "the budget of clinic is short; nothing was charged" in told.err
    assert "lower target_epsilon" in told.err and len(entries(folder, "hold")) == before


@pytest.mark.slow
def test_code_of_ones_own_is_imported_and_that_is_said(tmp_path: Path) -> None:
    text = YAML.replace("model: logistic", "model: net:make\n  loss: net:loss").replace("epochs: 5", "epochs: 1")
    folder = make_clinic(tmp_path, text)
    (folder / "net.py").write_text(OWN, encoding="utf-8")
    ran = sfumato("train", "sfumato.yaml", at=folder)
    assert ran.code == 0, ran.err
    assert "net.py" in ran.err and "it is your code, and no part of the guarantee" in ran.err
    assert "code      net:make, a file of your own" in ran.out
    assert set(torch.load(folder / "model.pt", weights_only=True)) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert train(folder)["state"] == "answered", "the first weights are the same in every process"
    for name, told in (
        ("net:number", "the function gives a int, which is no model"),
        ("net:broken", "net.py fails: ValueError: no such layer"),
        ("net:missing", "net.py has no function 'missing'"),
        ("other:make", "there is no file 'other.py' in the folder of sfumato.yaml"),
        ("../net:make", "is no function of a file"),
    ):
        (folder / "sfumato.yaml").write_text(text.replace("net:make", f'"{name}"'), encoding="utf-8")
        ran = sfumato("train", "sfumato.yaml", "--quote", at=folder)
        assert ran.code == 3 and told in ran.err and "sfumato.yaml:19: training.model" in ran.err, ran.err


def test_images_in_parquet_train_a_cnn(tmp_path: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    head, _, tail = YAML.partition("      age:")
    text = (
        head.replace("visits.csv", "digits.parquet")
        + (
            "      image: {type: tensor, shape: [1, 8, 8], lower: 0, upper: 1}\n"
            "      label: {type: category, values: [0, 1]}\n"
        )
        + tail[tail.index("ledger:") :]
    )
    text = text.replace("model: logistic", "model: {name: cnn, hidden: [4]}").replace("[age, ward, cost]", "image")
    text = text.replace("target: back", "target: label").replace("public.csv", "public.parquet")
    text = text.replace("  subgroup: ward\n", "  subgroup: label\n").replace("epochs: 5", "epochs: 1/2")
    folder = make_clinic(tmp_path, text)
    for name, count in (("digits", 800), ("public", 60)):
        label = np.arange(count) % 2
        image = np.full((count, 64), 0.25) + 0.5 * label[:, None]
        cells = pa.FixedSizeListArray.from_arrays(pa.array(image.reshape(-1), pa.float32()), 64)
        parquet.write_table(pa.table({"image": cells, "label": label}), folder / "data" / f"{name}.parquet")
    body = train(folder)
    assert body["state"] == "trained" and body["measured"]["records"] == 60
    assert body["model"]["parameters"] == 4 * 9 + 4 + 4 * 16 * 2 + 2


def test_where_it_stands_is_the_ledgers_to_say(folder: Path) -> None:
    """The report of the account names the training; the ledger verifies."""
    train(folder)  # for nothing, where it was trained before
    with open_project(folder).ledger(read_only=True) as ledger:
        assert ledger.verify().ok
        assert "answered" in {each.state for each in ledger.releases(account="clinic")}


def test_users_with_many_rows_beside_a_public_table(tmp_path: Path) -> None:
    """The unit is a user, and the project has a public table, too."""
    folder = make_project(tmp_path)
    (folder / "train.yaml").write_text(
        """\
sfumato-training: 1
account: training
privacy: {target_epsilon: 0.9, max_grad_norm: 1, steps: 5}
training:
  model: linear
  features: [ward, day]
  target: {column: cost, scaled: true}
  population: 400
  batch_size: 80
  per_unit: 2
  noise: exact
  strict: true
""",
        encoding="utf-8",
    )
    body = train(folder, file="train.yaml")
    assert body["hides"].startswith("everything one patient ever contributed") and body["steps"]["rate"] == 0.2
    assert body["steps"]["margin"] == 0 and body["model"]["parameters"] == 5
    told = sfumato("train", "train.yaml", at=folder)
    assert "trained before: free" in told.out and "to 1\n" in told.out
