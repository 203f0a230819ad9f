"""YAML without its traps: texts stay texts, numbers stay as they are written, and every key is given once.

PyYAML only cuts the text into nodes here; it constructs nothing. Aliases, tags and deep nesting are refused, so no
small file can become a large value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ...errors import ArgumentError, LedgerError

_DEEPEST = 12
_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9_]{0,399})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")
_PARTS = re.compile(r"([1-9][0-9]{0,399}|0)/([1-9][0-9]{0,399})")

Path = tuple[str | int, ...]


def imported() -> tuple[Any, Any]:
    """PyYAML and pydantic, on first use."""
    try:
        import pydantic
        import yaml
    except ImportError:
        raise LedgerError(
            "policy files need the packages pydantic and PyYAML: install sfumato[policy], with pip install "
            "'sfumato[policy]'"
        ) from None
    return yaml, pydantic


def where(path: Path) -> str:
    """A place in the file: accounts.patients.limit.epsilon."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            shown = part if re.fullmatch(r"[\w @-]+", part) else repr(part)
            text += f".{shown}" if text else shown
    return text or "the file"


def wrong(path: Path, cause: str) -> ArgumentError:
    """The error for one place; the caller raises it."""
    place = where(path)
    return ArgumentError(f"policy: {place if len(place) <= 200 else place[:197] + '...'}: {cause}")


def read(text: str) -> Any:
    """The text as mappings, lists, texts, booleans and None. Numbers are texts still."""
    yaml, _ = imported()
    try:
        loader = yaml.SafeLoader(text)
        try:
            _refuse_strange(text, yaml)
            node = loader.get_single_node()
        finally:
            loader.dispose()
        return _value(node, (), yaml)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        line = f" near line {mark.line + 1}" if mark is not None else ""
        raise ArgumentError(f"policy: this is not YAML{line}: correct its indentation, quotes and brackets.") from None


def _refuse_strange(text: str, yaml: Any) -> None:
    """Before anything is built: aliases, tags and depth, read off the stream of events."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ArgumentError(f"policy: line {line} uses an anchor or alias (& or *): write it out.")
        if getattr(event, "tag", None) is not None:
            raise ArgumentError(f"policy: line {line} uses a tag (!): leave it out; values are read as they are meant.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise ArgumentError(f"policy: line {line} is nested deeper than any policy: make it flatter.")


def _value(node: Any, path: Path, yaml: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key_node, item in node.value:
            key = _key(key_node, path, yaml)
            if key in found:
                line = key_node.start_mark.line + 1
                raise wrong((*path, key), f"this key is given twice, again on line {line}: keep one of them.")
            found[key] = _value(item, (*path, key), yaml)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, number), yaml) for number, item in enumerate(node.value)]
    if node is None or (node.style is None and node.value in ("", "~", "null")):
        return None
    if node.style is None and node.value in ("true", "false"):
        return node.value == "true"
    return node.value


def _key(node: Any, path: Path, yaml: Any) -> str:
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise wrong(path, f"a key on line {node.start_mark.line + 1} is not a text: give each entry a name.")
    return str(node.value)


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


def text_of(value: Fraction | int) -> str:
    """The shortest exact text that `number` reads back."""
    exact = Fraction(value)
    twos, fives, rest = 0, 0, exact.denominator
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    if rest > 1 or places > 40:
        return str(exact)
    digits = exact.numerator * 10**places // exact.denominator
    if places <= 4 or len(str(abs(digits))) > 3:
        figures = tuple(map(int, str(abs(digits))))
        return format(Decimal((int(digits < 0), figures, -places)), "f")
    return f"{digits}e-{places}"


def write(value: Any) -> str:
    """YAML of mappings, lists, texts, numbers and booleans, which `read` reads back."""
    imported()
    import yaml

    class Plain(yaml.SafeDumper):
        """Writes a value that comes twice twice: `read` refuses references."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def exact(dumper: Any, data: Fraction) -> Any:
        text = text_of(data)
        return dumper.represent_scalar(dumper.resolve(yaml.ScalarNode, text, (True, False)), text)

    Plain.add_representer(Fraction, exact)
    return str(yaml.dump(value, Dumper=Plain, sort_keys=False, allow_unicode=True, width=110))


def flat(value: Any, path: Path = ()) -> Iterator[tuple[str, str]]:
    """Every place with its value, as texts."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(item, (*path, key))
        if not value:
            yield where(path), "nothing"
    elif isinstance(value, list):
        yield where(path), "; ".join(_shown(item) for item in value) or "none"
    else:
        yield where(path), _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(item)}" for key, item in value.items())
    if value is None or isinstance(value, bool):
        return "none" if value is None else "yes" if value else "no"
    return text_of(value) if isinstance(value, Fraction | int) else str(value)
