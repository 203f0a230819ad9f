"""Where a Spark is, and a session of it that is ours alone: what somebody registered or set in another has no say.

The address may hold a token, so it stands in an environment variable or a file, and a plan, a ledger or a message names
that alone. Nothing that Spark says is passed on: its texts quote cells.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import ArgumentError, PlanError, install_line
from ..schema import Table
from .base import Connection, Source
from .session import Settings

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_OLDEST = 4
_OWN = "spark.sql."
# Of a session that somebody handed over: how it likes to run, which changes no answer.
_TAKEN_OVER = (
    "spark.sql.shuffle.partitions", "spark.sql.files.maxPartitionBytes", "spark.sql.autoBroadcastJoinThreshold",
)  # fmt: skip
# What is left as the cluster has it: where its catalogues are, and how it likes to run.
_LEFT = (
    "catalog.", "catalogImplementation", "defaultCatalog", "extensions", "hive.metastore", "shuffle.", "adaptive.",
    "files.max", "files.open", "files.min", "autoBroadcastJoinThreshold", "warehouse.dir", "artifact.", "streaming.",
)  # fmt: skip
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # no statement of ours can raise; should one be wrong, it fails and does not wrap
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.cbo.enabled": "false",
    # What a file says of the cells in it, beside their types, decides nothing; nor do names of folders.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.parquet.mergeSchema": "false",
    # A moment before 1582 in an old file is read as it is written, and does not raise.
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    # What the parser remembers of texts grows with each that is new, for as long as the driver runs: some 5 kB a state.
    "spark.sql.parser.manageParserCaches": "true",
    "spark.sql.parser.parserDfaCacheFlushThreshold": "20000",
}


@dataclass(frozen=True)
class SparkPlace:
    """A Spark: the name of an environment variable or the path of a file that holds its address, or a SparkSession of
    this process. It opens sessions."""

    place: Any

    home: ClassVar[str] = "spark_session"
    opens: ClassVar[Callable[..., Connection]]
    """The session, which says so itself: it knows the tables, and they know their place."""

    def __post_init__(self) -> None:
        if is_session(self.place):
            return
        if not isinstance(self.place, str | Path) or not str(self.place) or _is_address(str(self.place)):
            raise ArgumentError(  # what was given may be the address itself, with a token, and is not shown
                "address is not allowed: give a SparkSession, or the name of an environment variable or the path of a "
                "file that holds the address (sc://..., spark://..., local[4]), not the address itself",
                argument="address",
            )
        object.__setattr__(self, "place", str(self.place))

    def __repr__(self) -> str:
        return f"<Spark of {self._shown}>"

    def __call__(
        self,
        tables: Mapping[str, tuple[Table, Source]],
        settings: Settings,
        only: Mapping[str, tuple[str, Sequence[str]]],
        unread: Collection[str],
    ) -> Connection:
        return type(self).opens(tables, settings, only, unread, place=self)

    def session(self) -> Any:
        """A new session, set up for us. Whoever asks for it closes it."""
        theirs = self.place if is_session(self.place) else None
        address, opened, settings = "" if theirs is not None else self._address(), None, dict(_SETTINGS)
        sql = _pyspark()
        with contextlib.suppress(Exception):
            if theirs is not None:
                opened = theirs.newSession()
                settings |= {name: theirs.conf.get(name) for name in _TAKEN_OVER}
            elif address.startswith("sc://"):
                opened = sql.SparkSession.builder.remote(address).create()
            else:
                opened = _context(sql, address).newSession()
        if opened is None:  # outside the handlers, so that Spark's words are not the context
            raise PlanError(
                f"the Spark {self._of} is not reached: see that it runs, that this process has no other SparkContext, "
                "and that Java and the address are right"
            )
        version = "0"
        with contextlib.suppress(Exception):
            version = str(opened.version)
            if int(version.partition(".")[0]) >= _OLDEST:
                _set_up(opened, settings)
                return opened
        close(opened)
        if 0 < int(version.partition(".")[0]) < _OLDEST:
            raise PlanError(f"this is Spark {version}: use 4.0 or later")
        raise PlanError(f"the Spark {self._of} does not take our settings")

    @property
    def _of(self) -> str:
        return "whose session was handed over" if is_session(self.place) else f"whose address stands in {self._shown}"

    @property
    def _shown(self) -> str:
        if is_session(self.place):
            return "a session"
        return repr(self.place) if _VARIABLE.fullmatch(self.place) else f"the file {Path(self.place).name!r}"

    def _address(self) -> str:
        if _VARIABLE.fullmatch(self.place):
            address = os.environ.get(self.place, "").strip()
            if not address:
                raise PlanError(
                    f"the environment variable {self.place!r} holds no address: set it to sc://..., spark://... or "
                    "local[4]"
                )
            return address
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if address := Path(self.place).read_text(encoding="utf-8").strip():
                return address
        raise PlanError(f"the file {Path(self.place).name!r} holds no address: write sc://... or spark://... into it")


def is_session(thing: Any) -> bool:
    """Is it a SparkSession? Asks its type only."""
    return is_of_spark(thing, "SparkSession")


def is_of_spark(thing: Any, name: str) -> bool:
    """Is it of this class of pyspark, or of one that comes from it?"""
    return any(kind.__module__.startswith("pyspark.") and kind.__name__ == name for kind in type(thing).__mro__)


def _is_address(text: str) -> bool:
    return "://" in text or text.startswith("local[") or text in ("local", "yarn")


def _pyspark() -> Any:
    try:
        with warnings.catch_warnings():  # of versions of pandas, through which nothing of ours goes
            warnings.simplefilter("ignore")
            return importlib.import_module("pyspark.sql")
    except ImportError:
        raise PlanError(f"tables in Spark need pyspark: {install_line('spark')}") from None


def _context(sql: Any, address: str) -> Any:
    """The one context that a process has; another cluster's than the address says is not taken for it."""
    opened = sql.SparkSession.builder.master(address).config("spark.ui.showConsoleProgress", "false").getOrCreate()
    if opened.sparkContext.master != address:
        raise ConnectionError
    return opened


def _set_up(opened: Any, settings: Mapping[str, str]) -> None:
    """Everything that a statement's meaning may hang on is as Spark has it by itself, or as we say."""
    everything = opened.conf.getAll
    for name in everything() if callable(everything) else everything:
        if name.startswith(_OWN) and not name.removeprefix(_OWN).startswith(_LEFT):
            with contextlib.suppress(Exception):  # what no session can change
                opened.conf.unset(name)
    for name, value in settings.items():
        opened.conf.set(name, value)


def is_remote(opened: Any) -> bool:
    """Is it a session of Spark Connect?"""
    return "connect" in type(opened).__module__


def close(opened: Any) -> None:
    """End a session of ours on a server; one of this process just ends."""
    if is_remote(opened):
        with contextlib.suppress(Exception):
            opened.client.release_session()
