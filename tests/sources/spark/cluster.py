"""A cluster of Spark for the tests: a master and two workers, each a process of its own, and a server of Spark Connect
on it. All of this machine, small, and gone when the tests are, however those end."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = "127.0.0.1"
_PATIENCE = 300
# Waits until the other end of its standard input is closed, which is when the tests are over or were killed.
_WATCH = """
import os, shutil, signal, sys
groups = [int(line) for line in sys.stdin]
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""
# A file is a task of its own, however small, so that there is a middle to be killed in.
_SETTINGS = """
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.driver.memory 512m
spark.executor.memory 512m
spark.executor.cores 1
spark.executor.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto
spark.driver.extraJavaOptions -Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto
spark.ui.enabled false
spark.sql.shuffle.partitions 4
spark.sql.files.openCostInBytes 1g
spark.sql.files.maxPartitionBytes 1m
spark.sql.catalogImplementation hive
spark.sql.warehouse.dir {folder}/warehouse
spark.hadoop.javax.jdo.option.ConnectionURL jdbc:derby:;databaseName={folder}/metastore;create=true
"""


class Cluster:
    """`environment` is what a driver needs to find it: its address stands in SFUMATO_TEST_SPARK."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="spark-"))
        self._harmed = False
        self._started: list[subprocess.Popen[bytes]] = []  # held, so that nobody else is given their numbers
        self._watch = subprocess.Popen(
            [sys.executable, "-c", _WATCH, str(self.folder)], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        atexit.register(self.close)
        (self.folder / "spark-defaults.conf").write_text(_SETTINGS.format(folder=self.folder))
        self.environment = {
            **os.environ, "SPARK_CONF_DIR": str(self.folder), "SPARK_LOCAL_IP": HERE, "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_LOCAL_DIRS": str(self.folder / "local"), "SPARK_WORKER_DIR": str(self.folder / "work"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }  # fmt: skip
        port, self._page = _free(), _free()
        self.environment["SFUMATO_TEST_SPARK"] = self._address = f"spark://{HERE}:{port}"
        words = ["--host", HERE, "--port", str(port), "--webui-port", str(self._page)]
        self._start("bin/spark-class", "org.apache.spark.deploy.master.Master", *words)
        _until(lambda: self._alive() == 0)
        self.workers = [self._worker(), self._worker()]
        _until(lambda: self._alive() == 2)

    def _worker(self) -> int:
        words = ["--host", HERE, "--cores", "1", "--memory", "600m", "--webui-port", "0", self._address]
        return self._start("bin/spark-class", "org.apache.spark.deploy.worker.Worker", *words)

    def renewed(self) -> Cluster:
        """With two workers again, whatever befell the ones before."""
        if not self._harmed:
            return self
        self._harmed = False
        for worker in self.workers:
            kill(worker)
        _until(lambda: self._alive() == 0)
        self.workers = [self._worker(), self._worker()]
        _until(lambda: self._alive() == 2)
        return self

    def connect_server(self) -> tuple[str, int]:
        """The address of a server of Spark Connect that is a driver of this cluster, and its process."""
        port = _free()
        more = ["--master", self._address, "--conf", f"spark.connect.grpc.binding.port={port}"]
        more += ["--conf", f"spark.connect.grpc.binding.address={HERE}"]
        started = self._start(
            "bin/spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", *more
        )
        _until(lambda: _answers(port))
        return f"sc://{HERE}:{port}", started

    def drive(self, module: str, *words: str, timeout: float = 600, **environment: str) -> Any:
        """What a driver of its own process says: it writes JSON. A process has one SparkContext, and the tests' is
        local."""
        self._harmed = self._harmed or any(str(worker) in words for worker in self.workers)
        ran = subprocess.run(
            [sys.executable, "-m", module, *words], env=self.environment | environment, timeout=timeout, check=False,
            capture_output=True, text=True, start_new_session=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        return json.loads(ran.stdout.splitlines()[-1])

    def _start(self, program: str, *words: str) -> int:
        place = importlib.util.find_spec("pyspark")
        assert place is not None and place.origin is not None
        started = subprocess.Popen(
            [str(Path(place.origin).parent / program), *words], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._started.append(started)
        assert self._watch.stdin is not None
        self._watch.stdin.write(f"{started.pid}\n")
        self._watch.stdin.flush()
        return started.pid

    def _alive(self) -> int:
        """How many workers the master knows to be there; -1 where there is no master yet."""
        with (
            contextlib.suppress(OSError, ValueError),
            urllib.request.urlopen(f"http://{HERE}:{self._page}/json/", timeout=5) as page,
        ):
            return int(json.load(page)["aliveworkers"])
        return -1

    def close(self) -> None:
        atexit.unregister(self.close)
        assert self._watch.stdin is not None
        self._watch.stdin.close()
        self._watch.wait(60)
        for started in self._started:
            started.wait(60)


def kill(worker: int) -> None:
    """At once, with the executors that it started."""
    with contextlib.suppress(OSError):
        os.killpg(worker, signal.SIGKILL)


def _free() -> int:
    with socket.socket() as opened:
        opened.bind((HERE, 0))
        return int(opened.getsockname()[1])


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HERE, port), timeout=1):
        return True
    return False


def _until(there: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not there():
        assert time.monotonic() < end, "Spark does not start"
        time.sleep(0.2)
