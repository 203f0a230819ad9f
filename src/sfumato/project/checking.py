"""A form is filled in, or all that is wrong with it is told at once, each with its line and in words of ours."""

from __future__ import annotations

import difflib
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ..plain_yaml import Path
from .lines import Text
from .problems import Fault, faulty

_MOST = 12  # names that a message lists

OF_SQL, OF_KIND = "<sql>", "<kind>"
"""Which form a release of a list has: no part of its place in the file."""

F = TypeVar("F", bound="Form")

_KINDS = {
    "list_type": ("a list is needed here", "write [one, another], or one line with a dash for each"),
    "dict_type": ("a mapping is needed here", "write a line 'name: value' for each"),
    "model_type": ("a mapping is needed here", "write a line 'name: value' for each"),
    "string_type": ("a text is needed here", "write one"),
}


class Form(BaseModel):
    """The parent of all forms: fields that it does not know are refused.

    short  the field that one word in place of the whole mapping stands for, where there is one
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    short: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, value: Any) -> Any:
        return {cls.short: value} if cls.short and isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        if cls.short:
            here = handler.resolve_ref_schema(schema)
            full = dict(here)
            here.clear()
            here |= {"anyOf": [full["properties"][cls.short], full]}
        return schema


def filled(form: type[F], text: Text) -> F:
    """The form that a file fills in."""
    if text.value == "":
        first = next(field.alias or name for name, field in form.model_fields.items())
        raise text.wrong((), "the file is empty", f"begin it with the line {first}: 1")
    try:
        return form.model_validate(text.value)
    except ValidationError as problem:
        problems = problem.errors(include_url=False, include_input=False)
    faults = [_fault(form, text, each) for each in problems]
    # A field that is missing because its name has a slip is told once, at the slip.
    slips = {(fault.place.rpartition(".")[0], fault.fix) for fault in faults}
    raise faulty(text.file, [each for each in faults if _slip(each) not in slips])


def _slip(fault: Fault) -> tuple[str, str] | None:
    name, _, missing = fault.cause.partition(" ")
    return (fault.place, f"did you mean {name}?") if missing == "is missing" else None


def _fault(form: type[Form], text: Text, problem: Any) -> Fault:
    path: Path = tuple(part for part in problem["loc"] if part not in ("[key]", OF_SQL, OF_KIND))
    if problem["type"] == "missing":
        model = _model(form, path[:-1])
        field = None if model is None else model.model_fields.get(str(path[-1]))
        about = "" if field is None or field.description is None else f": {field.description}"
        return text.fault(path[:-1], f"{path[-1]} is missing", f"add {path[-1]}{about}")
    if problem["type"] == "extra_forbidden":
        return text.fault(path, "there is no such field", meant(str(path[-1]), _known(form, path[:-1])))
    if problem["type"] == "said":
        return text.fault(path, problem["ctx"]["cause"], problem["ctx"]["fix"])
    if problem["type"] == "literal_error":
        allowed = problem["ctx"]["expected"].replace("'", "")
        return text.fault(path, "this word is not known here", f"write {allowed}")
    cause, fix = _KINDS.get(problem["type"], ("this cannot be read", "write it as docs/project-file.md shows"))
    return text.fault(path, cause, fix)


def meant(name: str, names: list[str]) -> str:
    """The nearest name that there is, or all of them."""
    lower = {each.lower(): each for each in names}
    close = difflib.get_close_matches(name[:100].lower().replace("-", "_"), lower, n=1, cutoff=0.5)
    if close:
        return f"did you mean {lower[close[0]]}?"
    return f"give one of {', '.join(names[:_MOST])}" + (", ..." if len(names) > _MOST else "")


def _known(form: type[Form], path: Path) -> list[str]:
    model = _model(form, path)
    return [] if model is None else [field.alias or name for name, field in model.model_fields.items()]


def _model(form: type[Form], path: Path) -> type[Form] | None:
    """The form that stands at a place."""
    here: Any = form
    for part in path:
        if isinstance(here, type) and issubclass(here, Form):
            field = here.model_fields.get(str(part))
            here = None if field is None else _inner(field.annotation)
        else:  # a mapping or a list: all that it holds is of one form
            here = _inner((get_args(here) or (None,))[-1])
    return here if isinstance(here, type) and issubclass(here, Form) else None


def _inner(annotation: Any) -> Any:
    """Without what stands around it: Annotated[...], or None as the other choice."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return _inner(get_args(annotation)[0])
    return annotation
