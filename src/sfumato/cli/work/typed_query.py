"""A query as it was typed: where its text comes from, and its options as numbers, columns and groups."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...query.comments import key_value
from ..problems import FILE, CommandError
from .numbers import exact

_LONGEST = 1_000_000  # characters of a query


@dataclass(frozen=True)
class TypedQuery:
    """What the command line says about a query; see `sfumato query --help`."""

    sql: str | None = None
    file: Path | None = None
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None
    accuracy: list[str] | None = None
    group_rows: str | None = None
    share: list[str] | None = None
    advice: str | None = None
    limit: list[str] | None = None
    bounds: list[str] | None = None
    keys: list[str] | None = None
    floor: bool = False
    unclip: bool = False
    alpha: float = 0.05
    dialect: str | None = None
    noise: str | None = None

    def text(self) -> str:
        """The query: from the argument, the file, or whatever is piped in."""
        if not 0 < self.alpha < 1:
            raise CommandError(
                "--alpha is not allowed",
                "it is the probability that an error bar does not hold",
                "give a number above 0 and below 1, such as 0.05",
            )
        if self.sql is not None and self.file is not None:
            raise CommandError("there are two queries", "one is typed, one is in --file", "give one of them")
        if self.file is not None:
            query = _of_file(self.file)
        elif self.sql is None or self.sql == "-":
            query = _of_stdin(self.sql)
        else:
            query = self.sql
            if len(query.split()) == 1 and Path(query).suffix.lower() == ".sql":
                raise CommandError(
                    "that is no query", "it looks like the name of a file", f"read it with --file {query}"
                )
        if not query.strip():
            raise CommandError(
                "there is no query", "its text is empty", 'write one, such as "SELECT COUNT(*) AS n FROM visits"'
            )
        return query.rstrip() if self.file is not None else query.strip()  # the same question, however it was typed

    def options(self) -> dict[str, Any]:
        """What `Project.plan` takes; only what was said."""
        options: dict[str, Any] = {
            name: exact(typed, f"--{name.replace('_', '-')}")
            for name in ("epsilon", "delta", "rho", "group_rows", "advice")
            if (typed := getattr(self, name)) is not None
        }
        if self.accuracy:
            options["accuracy"] = _accuracy(self.accuracy)
            options["alpha"] = self.alpha
        if self.share:
            options["shares"] = dict(_named(self.share, "--share", "total=2", exact))
        if self.limit:
            options["limits"] = "advise" if self.limit == ["advise"] else _limits(self.limit)
        if self.bounds:
            options["bounds"] = dict(_named(self.bounds, "--bounds", "cost=0:500", _interval))
        if self.keys:
            options["keys"] = dict(_named(self.keys, "--keys", "ward=east,west", _groups))
        for name in ("floor", "unclip"):
            if getattr(self, name):
                options[name] = True
        options |= {name: typed for name in ("dialect", "noise") if (typed := getattr(self, name)) is not None}
        return options


def _of_file(path: Path) -> str:
    try:
        if path.stat().st_size > 4 * _LONGEST:
            raise CommandError("the query is too long", f"{path.name} is no query", "give a file of SQL", FILE)
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise CommandError(
            "the query cannot be read", f"{path.name} is not UTF-8 text", "save the file as UTF-8", FILE
        ) from None


def _of_stdin(argument: str | None) -> str:
    if argument is None and sys.stdin.isatty():
        raise CommandError(
            "there is no query",
            "none was typed, and nothing is piped in",
            'give it in quotes, such as "SELECT COUNT(*) AS n FROM visits", with --file, or through a pipe',
        )
    try:
        query = sys.stdin.read(_LONGEST + 1)
    except UnicodeDecodeError:
        raise CommandError("the query cannot be read", "stdin is not UTF-8 text", "pipe in UTF-8") from None
    if len(query) > _LONGEST:  # its beginning may well be another query
        raise CommandError("the query is too long", "what is piped in is no query", "pipe in SQL")
    return query


def _named(pairs: list[str], option: str, example: str, read: Callable[[str, str], Any]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise _wrong(option, pair, f"write a name, = and a value, such as {option} {example}")
        if name.lower() in seen:
            raise _wrong(option, pair, f"say {name} once")
        seen.add(name.lower())
        yield name, read(value, option)


def _accuracy(pairs: list[str]) -> dict[str, Any]:
    """Half-widths by column; `rank.m=20` is of a quantile m, in rows of rank."""
    widths: dict[str, Any] = {}
    for name, value in _named(pairs, "--accuracy", "n=50", exact):
        column = name.removeprefix("rank.")
        if column.lower() in map(str.lower, widths):
            raise _wrong("--accuracy", f"{name}=...", f"say {column} once")
        widths[column] = value if column == name else {"rank": value}
    return widths


def _limits(pairs: list[str]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for name, value in _named(pairs, "--limit", "rows=8", exact):
        area, dot, column = name.partition(".")
        if dot and area == "reach" and column:
            limits.setdefault("reach", {})[column] = value
        else:
            limits[name] = value
    return limits


def _interval(text: str, option: str) -> tuple[Any, Any]:
    low, colon, high = text.partition(":")
    if not colon:
        raise _wrong(option, text, "give the lowest and the highest with a colon between, such as 0:500")
    return exact(low, option), exact(high, option)


def _groups(text: str, option: str) -> Any:
    """`select`, or values with commas between; a value that holds one stands in double quotes."""
    if text == "select":
        return text
    return [key_value(each.strip()) for each in next(csv.reader([text], skipinitialspace=True)) if each.strip()]


def _wrong(option: str, typed: str, fix: str) -> CommandError:
    shown = typed if len(typed) <= 40 else typed[:37] + "..."
    return CommandError(f"{option} is not understood", f"it says {shown!r}", fix)
