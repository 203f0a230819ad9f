"""YAML as text, for files that people edit: mappings, lists, numbers and quoted strings, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dump(value: Mapping[str, Any]) -> str:
    return "\n".join(_lines(value, 0)) + "\n"


def _lines(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for name, item in value.items():
        if isinstance(item, Mapping) and item:
            yield f"{pad}{name}:"
            yield from _lines(item, depth + 1)
        elif isinstance(item, tuple | list) and item:
            yield f"{pad}{name}:"
            yield from (f"{pad}  - {_scalar(each)}" for each in item)
        elif isinstance(item, str) and "\n" in item and _is_plain(item):
            yield f"{pad}{name}: |-"
            yield from (f"{pad}  {line}" for line in item.split("\n"))
        else:
            yield f"{pad}{name}: {_scalar(item)}"


def _is_plain(text: str) -> bool:
    """May it stand as a block? Every line is printable, none is blank at an end or begins with a space."""
    return all(line and line == line.strip() and line.isprintable() for line in text.split("\n"))


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):  # YAML wants a dot in a mantissa: 1e-06 would be read as text
        text = repr(value)
        return text if "e" not in text or "." in text else text.replace("e", ".0e")
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, tuple | list):
        return "[]"
    return '"' + "".join(_letter(letter) for letter in str(value)) + '"'


def _letter(letter: str) -> str:
    if letter in _SHORT:
        return _SHORT[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
