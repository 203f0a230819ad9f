"""The bar of a training: step, epsilon so far, loss on public data, time left. All of it is public."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn

from ..telling import screen


def words(progress: Any, last: dict[str, Any]) -> str:
    """What stands behind the bar. Measures are taken now and then: in between the last ones are shown."""
    for name in ("epsilon", "loss", "accuracy"):
        if getattr(progress, name) is not None:
            last[name] = getattr(progress, name)
    parts = [f"step {progress.step}/{progress.steps}"]
    parts += [f"epsilon {last['epsilon']:.3g}"] if "epsilon" in last else []
    parts += [f"loss {last['loss']:.4g}"] if "loss" in last else []
    parts += [f"accuracy {last['accuracy']:.1%}"] if "accuracy" in last else []
    if progress.seconds is not None:
        from ...learn.forecasting import duration

        parts.append(f"{duration(progress.seconds)} left" if progress.seconds >= 1 else "nearly done")
    return "  ".join(parts)


@contextmanager
def training_bar(steps: int) -> Iterator[Callable[[Any], None] | None]:
    """What is to be called with each Progress; None where there is no terminal. It is called while data is open, so
    nothing that goes wrong with the terminal may end the training."""
    console = screen(errors=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield None
        return
    last: dict[str, Any] = {}
    shown = Progress(BarColumn(20), TextColumn("{task.description}"), console=console, transient=True)
    task = shown.add_task("", total=steps)

    def tell(progress: Any) -> None:
        with suppress(Exception):
            shown.update(task, completed=progress.step, description=console.sign(words(progress, last)))

    with shown:
        yield tell
