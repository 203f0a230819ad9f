"""The JSON Schema of plans of any kind, generated from the fields of their classes."""

from __future__ import annotations

import sys
from typing import Any

from ..bounds import Among, Between, Bounded
from ..plan import Plan
from ..strategies import Strategy, Workload
from .kinds import KIND, known_kinds, needed, own_fields, word_of

_PARENTS: dict[str, type[Any]] = {"plan": Plan, "query": Bounded, "strategy": Strategy, "workload": Workload}
_CODE = {"type": "string", "pattern": "^[A-Za-z_][\\w.]*:[A-Za-z_]\\w*$", "description": "module:function"}
_SIMPLE: dict[str, Any] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "bool": {"type": "boolean"},
    "Exact": {"type": ["number", "string"]},  # 0.1, 1/3, and of some plans a word
}
_OTHER_FORMS = ("sql", "sgd")


def with_kinds(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of plan.yaml, with a definition for every kind that sfumato brings along."""
    definitions = dict(schema["$defs"])
    common = definitions.pop("KindForm")
    words: dict[str, list[str]] = {}
    for parent, cls in _PARENTS.items():
        for word, kind in sorted(_shipped(cls).items()):
            definitions[f"{parent}-{word}"] = _kind(word, kind)
            words.setdefault(parent, []).append(word)
    for parent, names in words.items():
        definitions[parent] = {"type": "object", **_one_of(parent, names), "unevaluatedProperties": False}
    for condition in (Among, Between):
        definitions[word_of(condition)] = _kind(word_of(condition), condition) | {"unevaluatedProperties": False}
    short = [name for name, kind in _shipped(Bounded).items() if not any(map(needed, own_fields(kind).values()))]
    definitions["query"] = {"anyOf": [{"enum": sorted(short)}, definitions["query"]]}
    choice = _one_of("plan", words["plan"])
    definitions["release"] = {
        "description": "One release of any kind, with the fields of its plan.",
        "type": "object",
        **choice,
        "properties": choice["properties"] | {name: common["properties"][name] for name in ("name", "out", "alpha")},
        "required": ["name", KIND],
        "unevaluatedProperties": False,
    }
    of_kind, of_sql = {"$ref": "#/$defs/release"}, {"$ref": "#/$defs/QueryForm"}
    items = {"if": {"type": "object", "required": [KIND]}, "then": of_kind, "else": of_sql}
    releases = schema["properties"]["releases"] | {"items": items}
    return schema | {"$defs": definitions, "properties": schema["properties"] | {"releases": releases}}


def _shipped(parent: type[Any]) -> dict[str, type[Any]]:
    """Those that sfumato brings along: what a user registered is not the same everywhere."""
    return {
        word: kind
        for word, kind in known_kinds(parent).items()
        if getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
        and kind.__module__.startswith("sfumato.")
        and word not in _OTHER_FORMS
    }


def _one_of(parent: str, words: list[str]) -> dict[str, Any]:
    """A mapping whose `kind` says what else it holds."""
    return {
        "properties": {KIND: {"enum": words}},
        "required": [KIND],
        "allOf": [
            {"if": {"properties": {KIND: {"const": word}}}, "then": {"$ref": f"#/$defs/{parent}-{word}"}}
            for word in words
        ],
    }


def _kind(word: str, cls: type[Any]) -> dict[str, Any]:
    takes = own_fields(cls)
    about = (cls.__doc__ or "").partition("\n")[0]
    return {
        "description": about,
        "type": "object",
        "properties": {KIND: {"const": word}} | {name: _field(cls, name) for name in takes},
        "required": [KIND, *(name for name, field in takes.items() if needed(field))],
    }


def _field(cls: type[Any], name: str) -> Any:
    """What a field takes, as far as its annotation tells; the plan's own validators say the rest."""
    field = own_fields(cls)[name]
    if field.metadata.get("live"):
        return _CODE
    written = field.type if isinstance(field.type, str) else getattr(field.type, "__name__", str(field.type))
    return _annotated(written.removeprefix("checks.")) if isinstance(written, str) else {}


def _annotated(written: str) -> Any:
    if written in _SIMPLE:
        return _SIMPLE[written]
    if written.endswith(" | None"):
        return _annotated(written.removesuffix(" | None"))
    if written.startswith("Plan"):
        return {"$ref": "#/$defs/plan"}
    for parent in ("Strategy", "Workload"):
        if written == parent:
            return {"$ref": f"#/$defs/{parent.lower()}"}
    if written == "Bounded" or written in {cls.__name__ for cls in _shipped(Bounded).values()}:
        return {"$ref": "#/$defs/query"}
    if written.startswith("Mapping["):
        return {"type": "object"} | _inside("additionalProperties", written)
    if written.startswith("tuple["):
        return {"type": "array"} | _inside("items", written)
    return {}


def _inside(name: str, written: str) -> dict[str, Any]:
    """Of what a mapping or a list holds."""
    inner = written.partition("[")[2].removesuffix("]").removesuffix(", ...")
    inside = _annotated(inner.partition(", ")[2] if written.startswith("Mapping[") else inner)
    return {name: inside} if inside else {}
