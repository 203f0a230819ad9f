"""What the fields of a form take: a word without quotes means what its field says that it means.

YAML readers differ on words without quotes: 'no' is a boolean to some, 1e-6 a text to others, 2026-01-01 a date. Here a
field for numbers reads exact numbers, one for texts takes what is written, and what others would read as something else
is asked to stand in quotes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from ..plain_yaml import Bare, number

_TRUTHS = frozenset(
    word for base in ("yes", "no", "on", "off", "true", "false") for word in (base, base.title(), base.upper())
)
_NOTHING = ("", "~", "null", "Null", "NULL")
_RESOLVER: Any = yaml.SafeLoader("")  # knows what other readers take a word for
_LIKE_NUMBER = re.compile(r"[-+]?(0o[0-7]+|\.?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|[0-9]+/[0-9]+)")
_TAKEN = {"bool": "true or false", "null": "nothing", "timestamp": "a date"}
NUMBER_SCHEMA = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[0-9]+/[0-9]+$"}]}


def said(cause: str, fix: str) -> PydanticCustomError:
    """The error of a field, in words of ours."""
    return PydanticCustomError("said", "{cause}", {"cause": cause, "fix": fix})


def shown(value: Any) -> str:
    """What somebody wrote, as a message quotes it."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "nothing" if isinstance(value, Bare) and value in _NOTHING else repr(str(value)[:60])


def text(value: Any) -> str:
    """A text. A word that other readers take for true, false or nothing must stand in quotes."""
    if not isinstance(value, str):
        raise said(f"{shown(value)} stands where a text is needed", "write one text")
    if isinstance(value, Bare):
        if value in _NOTHING:
            raise said("there is nothing here", "write a text, or leave the line out")
        if value == "<<":
            raise said("this is a merge (<<)", "write it out")
        if value in _TRUTHS:
            raise said(
                f"{str(value)!r} without quotes means true or false to YAML",
                f'write "{value}", in quotes, for the text',
            )
    return str(value)


def exact(value: Any) -> Any:
    """A number as it is written: 0.1 is one tenth."""
    written = number(value) if isinstance(value, Bare) else None
    if written is None:
        quoted = isinstance(value, str) and not isinstance(value, Bare) and number(value) is not None
        fix = "leave the quotes out" if quoted else "write one such as 3, 0.1, 1e-7 or 1/3"
        raise said(f"{shown(value)} stands where a number is needed", fix)
    return written


def whole(value: Any) -> Any:
    """A whole number."""
    written = number(value) if isinstance(value, Bare) else None
    if written is None or written.denominator != 1:
        raise said(f"{shown(value)} stands where a whole number is needed", "write one such as 8")
    return int(written)


def truth(value: Any) -> Any:
    if not isinstance(value, Bare) or value not in ("true", "false"):
        raise said(f"{shown(value)} stands where true or false is needed", "write true or false")
    return value == "true"


def scalar(value: Any) -> Any:
    """Anything but a list or a mapping; what it means, the form decides when it knows more."""
    if not isinstance(value, str) or (isinstance(value, Bare) and value in _NOTHING):
        raise said(f"{shown(value)} stands where a value is needed", "write one, or leave the line out")
    return value


def category(value: Any) -> Any:
    """A value of a category column: a text, a whole number, true or false."""
    if not isinstance(value, str):
        raise said(f"{shown(value)} stands where a value is needed", "write a text or a whole number")
    if not isinstance(value, Bare):
        return value
    if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value):
        return int(value)
    if value in ("true", "false"):
        return value == "true"
    taken = _RESOLVER.resolve(yaml.ScalarNode, str(value), (True, False)).rpartition(":")[2]
    if _LIKE_NUMBER.fullmatch(value) or taken != "str":
        word = _TAKEN.get(taken, "a number")
        raise said(
            f"{str(value)[:60]!r} without quotes means {word} to YAML", f'write "{value}" in quotes for the text'
        )
    return str(value)


Text = Annotated[str, BeforeValidator(text)]
Number = Annotated[Any, BeforeValidator(exact), WithJsonSchema(NUMBER_SCHEMA)]
Whole = Annotated[Any, BeforeValidator(whole), WithJsonSchema({"type": "integer"})]
Truth = Annotated[Any, BeforeValidator(truth), WithJsonSchema({"type": "boolean"})]
Scalar = Annotated[Any, BeforeValidator(scalar), WithJsonSchema({"type": ["number", "string", "boolean"]})]
Category = Annotated[Any, BeforeValidator(category), WithJsonSchema({"type": ["string", "integer", "boolean"]})]
