"""A real MariaDB for the tests: a private process in a folder of its own, reached through a socket there, by no port.

It is started when somebody asks for it, once for the test process, and ends with it. Where there is none (the package
mariadb-server), the tests that ask for it are skipped.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql
import pytest

_SMALL = (
    "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0",
    "--skip-log-bin", "--performance-schema=OFF", "--key-buffer-size=1M", "--aria-pagecache-buffer-size=8M",
    # What an administrator may have set, and a release must not mind.
    "--sql-mode=STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,ONLY_FULL_GROUP_BY,NO_ZERO_DATE",
    "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", "--default-time-zone=+05:00",
)  # fmt: skip


@functools.cache
def socket() -> str:
    """The socket of the server."""
    server, maker = shutil.which("mariadbd"), shutil.which("mariadb-install-db")
    if server is None or maker is None:
        pytest.skip("needs MariaDB: apt-get install mariadb-server")
    folder = Path(tempfile.mkdtemp(prefix="mdb"))
    data, place = folder / "data", folder / "s"
    who = f"--user={folder.owner()}"
    made = [
        maker,
        "--no-defaults",
        f"--datadir={data}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        who,
    ]
    subprocess.run([*made, *_SMALL[:2]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    asked = [server, "--no-defaults", f"--datadir={data}", f"--socket={place}", "--skip-networking", who, *_SMALL]
    process = subprocess.Popen(asked, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end() -> None:
        process.kill()  # what it holds is thrown away
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    for _ in range(600):
        if place.exists():
            try:
                pymysql.connect(unix_socket=str(place), user="root").close()
                return str(place)
            except pymysql.err.OperationalError:
                pass
        time.sleep(0.1)
    raise TimeoutError("MariaDB does not start")


def opened(user: str = "root", database: str | None = None) -> Any:
    """A connection of PyMySQL."""
    return pymysql.connect(unix_socket=socket(), user=user, database=database, charset="utf8mb4", autocommit=True)


def run(*statements: str) -> Sequence[tuple[Any, ...]]:
    """Statements of the administrator, one after the other; the rows of the last."""
    connection = opened()
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())
    finally:
        connection.close()
