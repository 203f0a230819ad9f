"""YAML without its traps: texts stay as they are written, every key is given once, and every value knows its line.

PyYAML only cuts the text into nodes here; it constructs nothing. Aliases, tags and deep nesting are refused, so no
small file can become a large value. What a word without quotes means (a number, a date, a text) is for whoever knows
which field it stands in; so it comes as a `Bare` text, and one in quotes as a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from .errors import SfumatoError

_DEEPEST = 12
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9_]{0,399})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_PARTS = re.compile(r"([1-9][0-9]{0,399}|0)/([1-9][0-9]{0,399})")

Path = tuple[str | int, ...]


class Bare(str):
    """A text without quotes."""

    __slots__ = ()


class YamlError(SfumatoError):
    """A text that is not read: what is wrong, how to mend it, and where that is."""

    def __init__(self, cause: str, fix: str, *, line: int | None = None, path: Path | None = None) -> None:
        super().__init__(f"{cause}: {fix}", cause=cause, fix=fix)
        self.line, self.path = line, path


@dataclass(frozen=True)
class Lined:
    """What a text says: mappings, lists and texts; and the line of every place in it."""

    value: Any
    lines: Mapping[Path, int]

    def nearest(self, path: Path) -> Path:
        """The place itself, or the nearest one above it that the text has."""
        while path not in self.lines:
            path = path[:-1]
        return path

    def at(self, path: Path) -> Any:
        """What stands at a place; None where there is no such place."""
        if path not in self.lines:
            return None
        value = self.value
        for part in path:
            value = value[part]
        return value

    def line(self, path: Path) -> int:
        return self.lines[self.nearest(path)]


class _Place(NamedTuple):
    path: Path
    lines: dict[Path, int]

    def inside(self, part: str | int, line: int) -> _Place:
        path = (*self.path, part)
        self.lines[path] = line
        return _Place(path, self.lines)


def where(path: Path) -> str:
    """A place in the text: accounts.patients.limit.epsilon."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = str(part) if re.fullmatch(r"[\w @-]+", part) else repr(str(part))
            text += f".{shown}" if text else shown
    place = text or "the file"
    return place if len(place) <= 200 else place[:197] + "..."


def read(text: str) -> Lined:
    """What a text says. Needs PyYAML."""
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        try:
            _refuse_strange(text, yaml)
            node = loader.get_single_node()
        finally:
            loader.dispose()
        lines: dict[Path, int] = {(): 1}
        return Lined(_value(node, _Place((), lines), yaml), lines)
    except yaml.YAMLError as problem:
        raise _not_yaml(text, problem) from None
    except (ValueError, OverflowError):  # an escape that stands for no character
        raise YamlError("this is not YAML", "correct the escapes (\\) in quoted texts") from None


def _not_yaml(text: str, problem: Any) -> YamlError:
    mark, position = getattr(problem, "problem_mark", None), getattr(problem, "position", None)
    line = mark.line + 1 if mark is not None else None
    if isinstance(position, int):
        return YamlError("this is not YAML", "take the character out that is not text", line=_line(text, position))
    if "'\\t'" in str(getattr(problem, "problem", "")):
        return YamlError("this is not YAML: a tab stands where only spaces may", "indent with spaces", line=line)
    if getattr(problem, "context", "") == "expected a single document in the stream":
        return YamlError("this is a second document", "keep one, without --- lines", line=line)
    if "an alias" in str(getattr(problem, "context", "")) or "an anchor" in str(getattr(problem, "context", "")):
        return _reference(line)
    begun = getattr(problem, "context_mark", None)
    within = f", in what begins on line {begun.line + 1}" if begun is not None and begun.line + 1 != line else ""
    return YamlError(f"this is not YAML{within}", "correct its indentation, quotes and brackets", line=line)


def _reference(line: int | None) -> YamlError:
    return YamlError("this is an anchor or alias (& or *)", "write it out, or put the text in quotes", line=line)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _refuse_strange(text: str, yaml: Any) -> None:
    """Before anything is built: aliases, tags and depth, read off the stream of events."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _reference(line)
        if getattr(event, "tag", None) is not None:
            raise YamlError("this is a tag (!)", "leave it out, or put the text in quotes", line=line)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise YamlError("this is nested deeper than anything that is asked for", "make it flatter", line=line)


def _value(node: Any, place: _Place, yaml: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, item in node.value:
            key, line = _key(key_node, place, yaml), key_node.start_mark.line + 1
            if key in mapping:
                before = place.lines[(*place.path, key)]
                raise YamlError(
                    f"{key!r} is given twice, on line {before} and again on line {line}",
                    "keep one of them",
                    line=line,
                    path=(*place.path, str(key)),
                )
            mapping[key] = _value(item, place.inside(str(key), line), yaml)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        numbered = enumerate(node.value)
        return [_value(item, place.inside(number, item.start_mark.line + 1), yaml) for number, item in numbered]
    return Bare("") if node is None else _text(node, place)


def _key(node: Any, place: _Place, yaml: Any) -> str:
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        line = node.start_mark.line + 1
        raise YamlError("the name before the colon is missing, or not a text", "give one", line=line, path=place.path)
    return _text(node, place)


def _text(node: Any, place: _Place) -> str:
    if any("\ud800" <= sign <= "\udfff" for sign in node.value):  # halves of characters cannot be printed or stored
        line = node.start_mark.line + 1
        raise YamlError("this is half a character", "write it whole", line=line, path=place.path)
    return Bare(node.value) if node.style is None else str(node.value)


def number(text: Any) -> Fraction | None:
    """An exact number as it is written: 3, 0.1, 1e-7, 1/3, 1_000_000; None for anything else."""
    if not isinstance(text, str):
        return None
    if _PARTS.fullmatch(text):
        return Fraction(text)
    if _NUMBER.fullmatch(text) and "__" not in text and "_." not in text and not text.endswith("_"):
        bare = text.replace("_", "")
        return Fraction(bare) if abs(Decimal(bare).adjusted()) <= 400 else None
    return None
