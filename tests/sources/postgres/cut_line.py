"""A line to a PostgreSQL server that breaks: it carries everything to and fro, until the answer to a release's
statement has come so far."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

_NAME = ".s.PGSQL.5432"


class CutLine:
    """after  so many bytes of the answer pass; None for all of them"""

    def __init__(self, place: str, folder: Path, after: int | None) -> None:
        [there] = parse_qs(urlsplit(place).query)["host"]
        self.place = place.replace(there, str(folder))
        self.cut = False
        self._there, self._after = f"{there}/{_NAME}", after
        self._open = socket.socket(socket.AF_UNIX)
        self._open.bind(f"{folder}/{_NAME}")
        self._open.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, server = self._open.accept()[0], socket.socket(socket.AF_UNIX)
                threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        left: int | None = None
        with client, server, contextlib.suppress(OSError):
            server.connect(self._there)
            while left is None or left > 0:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    if source is client and b"COPY (" in data and self._after is not None:
                        left = self._after
                    if source is server and left is not None:
                        data, left = data[:left], left - len(data)
                    (server if source is client else client).sendall(data)
            self.cut = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
