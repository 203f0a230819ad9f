"""JSON for frozen values, by registered name and version.

A record is a frozen dataclass with a name such as "gaussian/1". What a name means never changes: a new meaning is a
new version. Reading refuses names it does not know; nothing is ever read by import path or pickle.

Every JSON object carries its kind under "is", so a stored file explains itself:
    {"is": "gaussian/1", "multiplier": {"is": "exact", "value": "3/2"}, ...}
"""

from __future__ import annotations

import base64
import dis
import hashlib
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from fractions import Fraction
from functools import singledispatch
from types import CodeType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .errors import ArgumentError, RecordError

T = TypeVar("T")
C = TypeVar("C", bound=type)

_KINDS: dict[str, type] = {}
_TEXT, _HASH = "_record_text", "_record_hash"  # what a kept record remembers of itself
_quoted = json.encoder.encode_basestring_ascii


class _Part(NamedTuple):
    """A field in the text of a record: its name, and is it live?"""

    start: str
    name: str
    live: bool


class _Form(NamedTuple):
    """How a record is written: its fields in the order of their names, which are those before "is", and those after.

    Commas stand on the side of "is", which is always written: so any field can be left out.
    """

    before: tuple[_Part, ...]
    kind: str
    after: tuple[_Part, ...]
    kept: bool
    later: Mapping[str, Any]


_FORMS: dict[type, _Form] = {}
_BUILT_IN = ("exact", "array", "map", "live")
_PLAIN: tuple[Any, ...] = (
    str,
    int,
    float,
    Fraction,
    tuple,
    list,
    Mapping,
    np.ndarray,
    np.generic,
)  # what is written as what it holds


def is_frozen(cls: type) -> bool:
    """Is the class a frozen dataclass?"""
    return bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))


def record(name: str, *, kept: bool = False) -> Callable[[C], C]:
    """Register a frozen dataclass under `name` ("word/version").

    kept  all its fields are values that never change, all the way down: its text and its hash are worked out once
    """

    def register(cls: C) -> C:
        word, _, version = name.partition("/")
        if not word or not version.isdigit() or not is_frozen(cls) or name in _KINDS:
            raise TypeError(f"{cls.__name__}: a record is a frozen dataclass with a fresh name like 'word/1'")
        _KINDS[name] = cls
        type.__setattr__(cls, "kind", name)
        if (form := _form(cls, kept)) is not None:
            _FORMS[cls] = form
        if kept:
            type.__setattr__(cls, "__hash__", _remembered(cls.__hash__))  # type: ignore[arg-type]
            type.__setattr__(cls, "__getstate__", _unremembered)
        return cls

    return register


def _form(cls: type, kept: bool) -> _Form | None:
    """None for what only `encode` can write: what counts as a number, text or mapping, and fields that come and go."""
    if issubclass(cls, _PLAIN) or not all(f.init for f in fields(cls) if f.metadata.get("live")):
        return None
    written = sorted((f for f in fields(cls) if f.init and not f.metadata.get("shown")), key=lambda f: f.name)
    parts = [_Part(f"{_quoted(f.name)}:", f.name, bool(f.metadata.get("live"))) for f in written]
    before = tuple(part for part in parts if part.name < "is")
    after = tuple(part._replace(start=f",{part.start}") for part in parts if part.name > "is")
    later = {f.name: f.default for f in fields(cls) if f.metadata.get("later")}
    return _Form(before, f'"is":{_quoted(cls.kind)}', after, kept, later)  # type: ignore[attr-defined]


def _remembered(hash_of: Callable[[Any], int]) -> Callable[[Any], int]:
    def remembered(self: Any) -> int:
        stored = self.__dict__.get(_HASH)
        if stored is None:
            stored = hash_of(self)
            object.__setattr__(self, _HASH, stored)
        return int(stored)

    return remembered


def _unremembered(self: Any) -> dict[str, Any]:
    """What is pickled and copied: hashes of texts differ from process to process."""
    return {name: value for name, value in self.__dict__.items() if name not in (_TEXT, _HASH)}


def moved(value: T, **changes: Any) -> T:
    """`dataclasses.replace`, for a record that checks nothing at birth, at a fraction of the cost."""
    after = object.__new__(type(value))
    inside = after.__dict__
    inside.update(value.__dict__)
    inside.pop(_TEXT, None)
    inside.pop(_HASH, None)
    inside.update(changes)
    return after


def kinds(parent: type[T]) -> dict[str, type[T]]:
    """The registered records that are a `parent`, by name."""
    return {name: cls for name, cls in _KINDS.items() if issubclass(cls, parent)}


LIVE = {"live": True}
"""Metadata of a field whose value has no JSON (a callable, a model); its fingerprint goes into the JSON instead."""


SHOWN = {"shown": True}
"""Metadata of a field that is no part of what a record means, only of how it is shown: it is in no JSON, no hash."""


LATER = {"later": True}
"""Metadata of a field that a record got after it was first stored. It is not written while it holds its default, so
that what was stored before keeps its text and its hash."""


@singledispatch
def fingerprint(value: Any) -> str:
    """SHA-256 that stands for a live value. Areas register their own types (a torch model: tree, shapes, weights)."""
    if callable(value):
        return _callable_fingerprint(value)
    raise ArgumentError(f"a {type(value).__name__} has no fingerprint: register one with record.fingerprint.register")


def _callable_fingerprint(function: Any, seen: tuple[Any, ...] = ()) -> str:
    """The source, and whatever it reads from around it: defaults, closure and globals.

    The byte code stands for what was typed at a prompt, and tells apart lambdas that share a line.
    """
    if not inspect.isfunction(function):
        raise ArgumentError("a live callable is a Python function (def or lambda): its source is hashed")
    code = function.__code__
    try:
        source: Any = inspect.getsource(code)  # of the code, so that a wrapper is not mistaken for what it wraps
    except (OSError, TypeError):
        source = None
    if source is None or function.__name__ == "<lambda>":
        source = [source, _code(code)]
    around = {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    around |= {name: function.__globals__[name] for name in _globals_read(code) if name in function.__globals__}
    seen = (*seen, function)
    body = {
        "source": source,
        "around": {name: _captured(name, value, seen) for name, value in sorted(around.items())},
        "defaults": [_captured("a default", value, seen) for value in function.__defaults__ or ()],
        "named": {name: _captured(name, value, seen) for name, value in (function.__kwdefaults__ or {}).items()},
    }
    return hashlib.sha256(canonical(body)).hexdigest()


def _code(code: CodeType) -> list[Any]:
    constants = [_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), list(code.co_varnames), constants]


def _globals_read(code: CodeType) -> set[str]:
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return names.union(*(_globals_read(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _captured(name: str, value: Any, seen: tuple[Any, ...]) -> Any:
    if value in seen if callable(value) else False:  # a function that calls itself
        return "itself"
    if isinstance(value, ModuleType):
        return ["module", value.__name__]
    if isinstance(value, type):
        return ["class", value.__module__, value.__qualname__]
    if inspect.isfunction(value):
        home = value.__module__.partition(".")[0]
        return ["own", value.__qualname__] if home == __package__ else _callable_fingerprint(value, seen)
    if inspect.isbuiltin(value):
        return ["builtin", value.__name__]
    try:
        return encode(value)
    except RecordError:
        raise ArgumentError(
            f"a live callable reads {name!r}, a {type(value).__name__} without JSON, so the plan's hash would not tell "
            "when it changes: use plain values or registered records"
        ) from None


def encode(value: Any) -> Any:
    """The JSON form of a record, or of the plain values records are made of."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, np.generic) and type(value.item()) in (bool, int, float, str):
        return encode(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError("nan and infinity have no JSON here")
        return value
    if isinstance(value, Fraction):
        return {"is": "exact", "value": str(value)}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {"is": "map", "items": [[encode(key), encode(item)] for key, item in value.items()]}
    if type(value) in _KINDS.values():
        body: dict[str, Any] = {"is": type(value).kind}
        for f in fields(value):
            item = getattr(value, f.name)
            if f.metadata.get("live") and item is not None:
                body[f.name] = {"is": "live", "fingerprint": fingerprint(item)}
            elif f.init and not f.metadata.get("shown") and not (f.metadata.get("later") and item == f.default):
                body[f.name] = encode(item)
        return body
    raise RecordError(f"a {type(value).__name__} has no JSON: use a registered record or plain values")


def _encode_array(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.kind in "US":
        return {"is": "array", "dtype": "str", "shape": list(array.shape), "data": array.ravel().astype(str).tolist()}
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RecordError(f"an array of {array.dtype} has no JSON")
    plain = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    data = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"is": "array", "dtype": plain.dtype.str, "shape": list(array.shape), "data": data}


def decode(data: Any, expected: type[T] | None = None) -> Any:
    """Rebuild a value from its JSON. `expected` refuses anything that is not of that type."""
    value = _decode(data)
    if expected is not None and not isinstance(value, expected):
        raise RecordError(f"expected a {expected.__name__}, read a {type(value).__name__}")
    return value


def _decode(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_decode(item) for item in data)
    if not isinstance(data, dict):
        return data
    kind = data.get("is")
    if kind in _BUILT_IN:
        return _decode_built_in(kind, data)
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise RecordError(f"unknown kind {kind!r}: this version of sfumato cannot read it; a newer one may")
    return _decode_record(cls, data)


def _decode_built_in(kind: str, data: dict[str, Any]) -> Any:
    try:
        if kind == "exact":
            return _decode_exact(data["value"])
        if kind == "map":
            return {_decode(key): _decode(item) for key, item in data["items"]}
        if kind == "array":
            return _decode_array(data["dtype"], data["shape"], data["data"])
    except RecordError:
        raise
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        raise RecordError(f"a stored {kind!r} is malformed") from problem
    raise RecordError("a live field cannot be rebuilt from JSON: only its fingerprint was stored")


def _decode_exact(text: Any) -> Fraction:
    """Only as it is written: "1/2", never "0.5" or "1e999999999"."""
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?", text):
        raise RecordError("a stored exact number is malformed")
    value = Fraction(text)
    if str(value) != text:
        raise RecordError("a stored exact number is not in lowest terms")
    return value


def _decode_array(dtype: Any, shape: Any, data: Any) -> np.ndarray[Any, Any]:
    if dtype == "str":
        if not all(isinstance(item, str) for item in data):
            raise RecordError("a stored array of texts holds something else")
        return np.array(data, dtype=str).reshape(shape)
    if not isinstance(dtype, str) or not re.fullmatch(r"[<|][biuf][1248]", dtype):
        raise RecordError("a stored array is of no type that is written here")
    raw = np.frombuffer(base64.b64decode(data, validate=True), dtype=np.dtype(dtype))
    return raw.reshape(shape).copy()


def _decode_record(cls: type, data: dict[str, Any]) -> Any:
    own = {f.name: f for f in fields(cls) if f.init and not f.metadata.get("shown")}
    items = {name: item for name, item in data.items() if name != "is"}
    if strange := sorted(set(items) - set(own)):
        raise RecordError(f"{data['is']!r} has no field {strange[0]!r}")
    for name, f in own.items():
        if name not in items and f.default is MISSING and f.default_factory is MISSING:
            raise RecordError(f"{data['is']!r} lacks its field {name!r}")
    try:
        return cls(**{name: _decode(item) for name, item in items.items()})
    except RecordError:
        raise
    except (ValueError, TypeError) as problem:
        raise RecordError(f"{data['is']!r} does not validate: {problem}") from problem


def canonical(value: Any) -> bytes:
    """The one byte string of a value: what is hashed, stored and compared. `encode`, with sorted keys and no spaces."""
    return _text(value).encode("ascii")


def _text(value: Any) -> str:
    """The JSON of `encode(value)`, written at once: a ledger writes thousands of them per second."""
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(value)
    if type(value) in _FORMS:
        return _record_text(value)
    if isinstance(value, Mapping):
        return _mapping_text(value)
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _record_text(value: Any) -> str:
    form = _FORMS[type(value)]
    if form.kept and (text_before := value.__dict__.get(_TEXT)) is not None:
        return str(text_before)
    before, after, later = form.before, form.after, form.later
    if later:
        left_out = {name for name, default in later.items() if getattr(value, name) == default}
        before = tuple([part for part in before if part.name not in left_out])
        after = tuple([part for part in after if part.name not in left_out])
    first = "".join([f"{start}{_field_text(getattr(value, name), live)}," for start, name, live in before])
    last = "".join([start + _field_text(getattr(value, name), live) for start, name, live in after])
    text = f"{{{first}{form.kind}{last}}}"
    if form.kept:
        object.__setattr__(value, _TEXT, text)
    return text


def _field_text(item: Any, live: bool) -> str:
    return _text(item) if not live or item is None else f'{{"fingerprint":{_quoted(fingerprint(item))},"is":"live"}}'


_EXACT: dict[int, tuple[Fraction, str]] = {}  # limits and prices are the same objects from one entry to the next
_MOST_EXACT = 4096


def _exact_text(value: Fraction) -> str:
    cached = _EXACT.get(id(value))
    if cached is not None and cached[0] is value:  # the cache holds the number, so no other one has its id
        return cached[1]
    text = f'{{"is":"exact","value":"{value}"}}'
    if len(_EXACT) >= _MOST_EXACT:
        _EXACT.clear()
    _EXACT[id(value)] = value, text
    return text


def _sequence_text(value: Any) -> str:
    return "[" + ",".join([_text(item) for item in value]) + "]"


def _mapping_text(value: Mapping[Any, Any]) -> str:
    items = ",".join([f"[{_text(key)},{_text(item)}]" for key, item in value.items()])
    return f'{{"is":"map","items":[{items}]}}'


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda value: "null",
    bool: lambda value: "true" if value else "false",
    str: lambda value: _quoted(value),
    int: int.__repr__,
    float: lambda value: float.__repr__(value) if math.isfinite(value) else json.dumps(encode(value)),
    Fraction: lambda value: _exact_text(value),
    tuple: _sequence_text,
    list: _sequence_text,
    dict: _mapping_text,
}


def parse(text: bytes | str, expected: type[T] | None = None) -> Any:
    """Read what `canonical` wrote."""
    try:
        return decode(json.loads(text, parse_constant=_refuse_constant), expected)
    except RecordError:
        raise
    except (TypeError, ValueError, RecursionError) as problem:  # a damaged page gives no text at all
        raise RecordError("not JSON that was written here") from problem


def _refuse_constant(name: str) -> None:
    raise RecordError(f"{name} has no JSON here")


def digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()
