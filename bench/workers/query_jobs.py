"""How the workers of private queries answer (see bench.peers): one job after another, timed on the wall.

A job is the whole of it as a user runs it, from the file to a table in Python; imports are left out. Before the clock
starts, the same is done once with the small table `warm`, so that code is loaded, a JVM is up and threads are there.
A grouped answer is {key: [count, distinct users, sum, mean]}, medians are {key: median}; keys are text in JSON.
"""

import json
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping


class OutOfTimeError(Exception):
    """The time is up, perhaps in the middle of a job."""


def serve(methods: Mapping[str, Callable[..., dict]]) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not garble the answer
    signal.signal(signal.SIGALRM, _out_of_time)
    warnings.simplefilter("ignore")
    jobs = json.load(sys.stdin)["jobs"]
    json.dump({"answers": [_answer(methods, **job) for job in jobs]}, answers)


def _answer(methods: Mapping, *, do: str, path: str, warm: str | None = None, limit: float = 0.0, **given) -> dict:
    try:
        signal.setitimer(signal.ITIMER_REAL, limit)
        if warm is not None:
            methods[do](path=warm, **given)
        start = time.perf_counter()
        found = methods[do](path=path, **given)
        seconds = time.perf_counter() - start
    except OutOfTimeError:
        return {"failed": f"not done within {limit:g} s"}
    except Exception as problem:  # whatever a library may raise is an answer too
        lines = str(problem).strip().splitlines()
        return {"failed": f"{type(problem).__name__}: {lines[0] if lines else ''}"[:200]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts it in KiB
    return {"seconds": seconds, "peak": peak, "table": {str(key): value for key, value in found.items()}}


def _out_of_time(*_: object) -> None:
    raise OutOfTimeError
