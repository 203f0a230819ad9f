"""Opacus' private step in its four modes, and its training on digits, by its own interpreter (see learn_jobs.py)."""

import sys
from pathlib import Path

import learn_jobs
import torch
from learn_jobs import LR, Step, learn_models
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from torch import nn

sys.path.append(str(Path(__file__).resolve().parent.parent))

import learn_data

MODES = ("hooks", "functorch", "ew", "ghost")


def private(name: str, mode: str) -> Step:
    """One batch, again and again: clip, noise, SGD."""
    model, (inputs, target) = learn_models.CASES[name].made()
    model = ModuleValidator.fix(model) if name == "lstm" else model  # the copy of the LSTM that Opacus needs
    model.train()
    optimiser = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=LR)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, target), batch_size=len(target))
    criterion = nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=model,
        optimizer=optimiser,
        criterion=criterion,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode=mode,
    )
    model, optimiser, criterion = (made[0], made[1], made[2]) if mode == "ghost" else (made[0], made[1], criterion)

    def step() -> None:
        optimiser.zero_grad()
        criterion(model(inputs), target).backward()
        optimiser.step()

    return step


def train(folder: str, network: str, epsilon: float, lr: float, epochs: int, seed: int) -> dict:
    """Accuracy on the first digits, with the settings that the bars were measured by."""
    digits = learn_data.mnist(Path(folder)).first(4000, 1000)
    torch.manual_seed(seed)
    model = learn_models.cnn(nn.Tanh) if network == "cnn" else nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    records = torch.utils.data.TensorDataset(_scaled(digits.train), digits.train_labels)
    model, optimiser, loader = PrivacyEngine(accountant="prv").make_private_with_epsilon(
        module=model,
        optimizer=optimiser,
        data_loader=torch.utils.data.DataLoader(records, batch_size=512),
        target_epsilon=epsilon,
        target_delta=1e-5,
        epochs=epochs,
        max_grad_norm=0.1,
    )
    for _ in range(epochs):
        for images, labels in loader:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimiser.step()
    with torch.no_grad():
        right = model(_scaled(digits.test)).argmax(1) == digits.test_labels
    return {"accuracy": 100 * float(right.float().mean())}


def _scaled(images: torch.Tensor) -> torch.Tensor:
    return (images - learn_data.MEAN) / learn_data.SPREAD


if __name__ == "__main__":
    modes = {mode: lambda name, mode=mode: private(name, mode) for mode in MODES}
    learn_jobs.serve(learn_jobs.Server(modes, train=train))
