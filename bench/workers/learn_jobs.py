"""How the workers of bench.learn answer: they stay alive, and do what each JSON line on stdin says (see learn_pipe).

Times are CPU seconds of the whole process for one step. Both sides build the same model from bench/learn_models.py, and
both time the ordinary step, in their own process and in turn with the private one.
"""

import gc
import json
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parent.parent))

import learn_models

Step = Callable[[], object]
MEMORY_STEPS = 3
LR = 0.01


def ordinary(name: str) -> Step:
    """A step of ordinary training."""
    model, (inputs, target) = learn_models.CASES[name].made()
    optimiser = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=LR)

    def step() -> None:
        optimiser.zero_grad()
        learn_models.losses(model(inputs), target).mean().backward()
        optimiser.step()

    return step


def mean_of(step: Step, least: float, clock: Callable[[], float] = time.process_time) -> float:
    """Seconds for one, by as many as take `least` seconds together."""
    start, done = clock(), 0
    while True:
        step()
        done += 1
        if (took := clock() - start) >= least:
            return took / done


class Server:
    """Steps by model and mode, made when they are first asked for."""

    def __init__(self, modes: Mapping[str, Callable[[str], Step]], **others: Callable[..., dict]) -> None:
        self._modes = {"ordinary": ordinary, **modes}
        self._others = others
        self._steps: dict[tuple[str, str], Step] = {}

    def round(self, model: str, mode: str, least: float) -> dict:
        """CPU seconds for a step, the mean over as many as take `least` seconds; the first call makes and warms it."""
        step = self._steps.get((model, mode))
        if step is None:
            step = self._steps[model, mode] = self._modes[mode](model)
            step()
        return {"seconds": mean_of(step, least)}

    def forget(self) -> dict:
        """Before another model."""
        self._steps.clear()
        gc.collect()
        return {}

    def memory(self, model: str, mode: str) -> dict:
        """Bytes at the peak above the start, model and data included; only a fresh process says it rightly."""
        _load_kernels()
        start = _reset_peak()
        step = self._modes[mode](model)
        for _ in range(MEMORY_STEPS):
            step()
        return {"peak": _peak() - start}

    def answer(self, *, do: str, **given: object) -> dict:
        try:
            return getattr(self, do, self._others.get(do))(**given)
        except Exception as problem:  # whatever a library may raise is an answer too
            return {"failed": f"{type(problem).__name__}: {str(problem).partition(chr(10))[0]}"[:160]}


def serve(server: Server) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not garble the answers
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(server.answer(**json.loads(line))), file=answers, flush=True)


def _load_kernels() -> None:
    """What torch loads once for all models is nobody's memory."""
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(8, 2))
    optimiser = torch.optim.SGD(model.parameters(), lr=LR)
    learn_models.losses(model(torch.randn(2, 1, 4, 4)), torch.tensor([0, 1])).mean().backward()
    optimiser.step()
    torch.normal(0.0, 1.0, (1000,))


def _reset_peak() -> int:
    """Resident bytes now; Linux counts the peak anew from here. (ru_maxrss would keep what the parent had.)"""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))
