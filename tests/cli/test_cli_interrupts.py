"""Ctrl-C is heard whenever it comes."""

from __future__ import annotations

import os
import signal
import time

import pytest

from sfumato.cli.interrupts import stoppable


class CleanedUp:
    """Ctrl-C comes while it is cleaned up: what is raised there goes nowhere."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.005)


def test_a_press_that_comes_while_something_is_cleaned_up_is_heard() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt), stoppable() as pressed:
            CleanedUp()
            for _ in range(200):
                time.sleep(0.01)
        assert pressed()
    finally:
        signal.signal(signal.SIGINT, before)
