"""How the accounting workers answer (see bench.peers): one job after another, timed, and failures told as text.

CPU time only, imports left out. A job that asks for it is done once before the clock starts, so that lazily loaded
code, FFT plans and first touches of memory are paid by nobody.
"""

import json
import math
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping


class OutOfTimeError(Exception):
    """The time is up, perhaps in the middle of a job."""


def serve(methods: Mapping[str, Callable[..., dict]], forget: Callable[[], object] = lambda: None) -> None:
    """Answer the jobs on stdin; `forget` drops what a method remembers of an earlier call."""
    answers, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not garble the answer
    signal.signal(signal.SIGALRM, _out_of_time)
    warnings.simplefilter("ignore")
    jobs = json.load(sys.stdin)["jobs"]
    json.dump({"answers": [_answer(methods, forget, **job) for job in jobs]}, answers, allow_nan=False)


def _answer(methods: Mapping, forget: Callable, *, do: str, warm: bool = False, limit: float = 0.0, **given) -> dict:
    """The limit is in seconds on the wall: a timer on the CPU would make Linux count CPU time in whole ticks."""
    try:
        signal.setitimer(signal.ITIMER_REAL, limit)
        for _ in range(2 if warm else 1):
            forget()
            start = time.process_time()
            found = methods[do](**given)
            seconds = time.process_time() - start
        signal.setitimer(signal.ITIMER_REAL, 0)
    except OutOfTimeError:
        return {"failed": f"not done within {limit:g} s"}
    except Exception as problem:  # whatever a library may raise is an answer too
        signal.setitimer(signal.ITIMER_REAL, 0)
        return {"failed": f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"[:160]}
    odd = {name: value for name, value in found.items() if value is None or not math.isfinite(value)}
    if odd:
        return {"failed": ", ".join(f"{name} is {value}" for name, value in odd.items())}
    return {name: float(value) for name, value in found.items()} | {"seconds": seconds}  # a library's own types too


def _out_of_time(*_: object) -> None:
    raise OutOfTimeError
