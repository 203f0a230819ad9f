"""Workers that stay alive and take turns: one JSON line in, one JSON line out."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from . import peers


class Worker:
    """A process of the peer's interpreter, or of ours where `peer` is None, that answers until it is closed."""

    def __init__(self, script: str, peer: str | None = None) -> None:
        if peer is not None and not peers.ready(peer):
            raise peers.PeerMissingError(peer)
        self.script = script
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [Path(sys.executable) if peer is None else peers.python(peer), peers.WORKERS / f"{script}.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=peers.environment(ours=peer is None),
        )

    def ask(self, do: str, **given: object) -> dict:
        """The answer; it holds "failed" where a library refused."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **given}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._errors.seek(0)
            raise peers.PeerFailedError(f"{self.script} broke off\n" + "\n".join(self._errors.read().splitlines()[-5:]))
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
