"""Hypothesis draws the same examples in every run of `make test`; `make test-all` draws new ones each time, and twice
as many. Tests run side by side, so each keeps to one thread: two that wait for each other's threads take longer than
one. At its end a run says what each folder cost, and a run of everything fails where tests are missing."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from contextlib import suppress

import pytest
from hypothesis import settings

from tests.counting import Count
from tests.seconds import Seconds

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when numpy and torch are first imported, here and in children

# Hundreds of tests start a program of the library. Where no bytecode may be written, each would compile it anew, which
# costs more than what most of them try.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("fresh", deadline=None)
settings.load_profile(os.environ.get("SFUMATO_EXAMPLES", "steady"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background: what it starts must hear Ctrl-C
    with suppress(ValueError):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--dearest", type=int, default=0, metavar="N", help="name the N dearest files and tests")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Count(config))
    config.pluginmanager.register(Seconds())


@pytest.fixture(autouse=True)
def _queries_are_read_anew() -> None:
    """Whoever plants a fault in how queries are read must not be given what was read before, nor leave it behind."""
    if (front := sys.modules.get("sfumato.query.front")) is not None:
        front.forget()


@pytest.fixture(autouse=True, scope="module")
def _sessions_end_with_their_file() -> Generator[None, None, None]:
    """Those that tests of a file share."""
    yield
    if (databases := sys.modules.get("tests.query.databases")) is not None:
        databases.close_all()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is read in here stays until the end: nothing of it is garbage, now or whenever garbage is looked for."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """At the end it is garbage like all else: DuckDB's bindings complain of what they are not given back."""
    gc.unfreeze()
