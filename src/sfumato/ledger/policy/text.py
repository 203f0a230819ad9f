"""The text of a policy, read and written: texts stay texts, and numbers stay as they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ... import plain_yaml
from ...errors import ArgumentError, LedgerError, install_line
from ...plain_yaml import Bare, Path, YamlError, where


def imported() -> tuple[Any, Any]:
    """PyYAML and pydantic, on first use."""
    try:
        import pydantic
        import yaml
    except ImportError:
        raise LedgerError(f"policy files need the packages pydantic and PyYAML: {install_line('policy')}") from None
    return yaml, pydantic


def wrong(path: Path, cause: str) -> ArgumentError:
    """The error for one place; the caller raises it."""
    return ArgumentError(f"policy: {where(path)}: {cause}")


def read(text: str) -> Any:
    """The text as mappings, lists, texts, booleans and None. Numbers are texts still."""
    imported()
    try:
        return _plain(plain_yaml.read(text).value)
    except YamlError as problem:
        if problem.path is not None:
            raise wrong(problem.path, str(problem)) from None
        line = "" if problem.line is None else f"line {problem.line}: "
        raise ArgumentError(f"policy: {line}{problem}.") from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Bare) and value in ("", "~", "null"):
        return None
    return value == "true" if isinstance(value, Bare) and value in ("true", "false") else str(value)


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
