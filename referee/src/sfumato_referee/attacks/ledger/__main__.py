"""A process of an attack: `python -m sfumato_referee.attacks.ledger WORKER WORD...`."""

import sys
import warnings
from collections.abc import Callable

from . import interrupting, later, racing, refused, releasing

WORKERS: dict[str, Callable[..., None]] = {
    "interrupting": interrupting.main,
    "later": later.main,
    "racing": racing.main,
    "refused": refused.main,
    "releasing": releasing.main,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what a person would be warned of is nothing here
    WORKERS[sys.argv[1]](*sys.argv[2:])
