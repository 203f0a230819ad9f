"""Options in the comments of a query: -- sfumato: epsilon=1, delta=1e-6, rows=10, bounds.days=0..30, keys.ward=A|B"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from sqlglot.tokens import Tokenizer

from ..errors import ArgumentError
from .dialects.pasting import ALIASES

_MARK = "sfumato:"
_NUMBERS = ("epsilon", "delta", "rho", "group_rows", "advice")
_LIMITS = ("rows", "keys", "most_keys", "values")
_RANGE = re.compile(r"^(-?[\d.eE+-]+)\.\.(-?[\d.eE+-]+)$")


def options_in(text: str, dialect: str | None = None) -> dict[str, Any]:
    """The options that the comments of a query hold, as `sql` takes them."""
    found: dict[str, Any] = {}
    for comment in _comments(text, dialect):
        head, _, rest = comment.strip().partition(_MARK)
        if head or not rest:
            continue
        for part in rest.split(","):
            name, equals, value = (each.strip() for each in part.partition("="))
            if not equals or not name or not value:
                raise _wrong(part)
            _put(found, name.lower(), value, part)
    return found


def _comments(text: str, dialect: str | None) -> list[str]:
    """Comments as the dialect has them. Where only a comment says which that is, it is looked for in words that most
    dialects share, and then by whoever reads the text without stumbling over quotes."""
    if _MARK not in text:
        return []
    words = re.search(r"\bdialect\s*=\s*(\w+)", text)
    for name in (dialect, words[1].lower() if words else None, "duckdb"):
        with suppress(Exception):  # what is not SQL is refused when the query is read
            if name is not None:
                tokens = Tokenizer(dialect=ALIASES.get(name.lower(), name.lower())).tokenize(text)
                return [comment for token in tokens for comment in token.comments]
    return []


def _put(found: dict[str, Any], name: str, value: str, part: str) -> None:
    area, _, column = name.partition(".")
    if name in _NUMBERS:
        placed, key, made = found, name, _number(value, part)
    elif name in ("floor", "unclip", "dialect", "noise"):
        placed, key, made = found, name, _truth(value, part) if name in ("floor", "unclip") else value
    elif name in _LIMITS:
        placed, key, made = found.setdefault("limits", {}), name, _number(value, part)
    elif area in ("accuracy", "shares") and column:
        placed, key, made = found.setdefault(area, {}), column, _number(value, part)
    elif area == "rank" and column:
        placed, key, made = found.setdefault("accuracy", {}), column, {"rank": _number(value, part)}
    elif area == "reach" and column:
        limits = found.setdefault("limits", {})
        placed, key, made = limits.setdefault("reach", {}), column, _number(value, part)
    elif area == "bounds" and column:
        ends = _RANGE.match(value)
        if ends is None:
            raise _wrong(part)
        placed, key, made = found.setdefault("bounds", {}), column, tuple(_number(each, part) for each in ends.groups())
    elif area == "keys" and column:
        listed = "select" if value == "select" else [key_value(each.strip()) for each in value.split("|")]
        placed, key, made = found.setdefault("keys", {}), column, listed
    else:
        raise _wrong(part)
    if key in placed:
        raise ArgumentError(f"the option {name} stands twice in the comments of the query: say it once.")
    placed[key] = made


def _number(value: str, part: str) -> Any:
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        raise _wrong(part) from None


def _truth(value: str, part: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise _wrong(part)
    return value.lower() == "true"


def key_value(value: str) -> Any:
    return int(value) if re.fullmatch(r"-?\d{1,18}", value) else value.strip("'\"")


def _wrong(part: str) -> ArgumentError:
    return ArgumentError(
        f"the option {part.strip()!r} in a comment of the query is not known: write name=value pairs such as "
        "-- sfumato: epsilon=1, delta=1e-6, rows=10, bounds.days=0..30, keys.ward=A|B, accuracy.n=5"
    )
