"""The form of a column: its type decides which other fields it needs, and what their words mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ..column_kinds import DROP, KINDS
from .checking import Form
from .fields import Category, Scalar, Truth, Whole, category, exact, said, text, truth


@dataclass(frozen=True)
class _Written:
    """How the words of a kind of column are read, and what its bounds are, for who left them out."""

    read: Callable[[Any], Any]
    bounds: str = ""


_NO_LOOKING = "written without looking at the data"
WRITTEN: dict[str, _Written] = {
    "real": _Written(exact, f"a number that no value is below or above, {_NO_LOOKING}"),
    "whole": _Written(exact, f"a whole number that no value is below or above, {_NO_LOOKING}"),
    "category": _Written(category),
    "flag": _Written(truth),
    "key": _Written(str),
    "date": _Written(str, "a day such as 2026-01-31"),
    "moment": _Written(str, "a moment such as 2026-01-31T12:00:00"),
    "tensor": _Written(exact, f"a number that none in an array is below or above, {_NO_LOOKING}"),
}
_SPANS = [word for word in WRITTEN if KINDS[word].has_bounds]


class ColumnForm(Form):
    """One column: its type alone, or a mapping."""

    short: ClassVar[str] = "type"

    type: Annotated[
        Literal["key", "category", "flag", "real", "whole", "date", "moment", "tensor"], BeforeValidator(text)
    ] = Field(description="key, category, flag, real, whole, date, moment or tensor")
    lower: Scalar = Field(None, description="the lower bound; values below it are raised to it")
    upper: Scalar = Field(None, description="the upper bound; values above it are lowered to it")
    values: list[Category] | None = Field(None, description="the public values of a category column")
    nulls: Scalar = Field(DROP, description="drop, or the value that stands in for a NULL")
    constant: Truth = Field(False, description="every row of one unit holds the same value here")
    decimals: Whole | None = Field(
        None, description="of a real column of decimal numbers, such as money: how many digits stand after the point"
    )
    shape: list[Whole] | None = Field(None, description="of a tensor column: the sides of one row's array, [1, 28, 28]")
    whole: Truth = Field(False, description="of a tensor column: whole numbers, such as token ids")

    @model_validator(mode="after")
    def _of_its_type(self) -> ColumnForm:
        given, kind = self.model_fields_set, KINDS[self.type]
        bounds = [name for name in ("lower", "upper") if name in given]
        if kind.has_bounds and len(bounds) < 2:
            missing = " and ".join(name for name in ("lower", "upper") if name not in given)
            verb = "are" if "and" in missing else "is"
            cause = f"{missing} {verb} missing; a {self.type} column needs lower and upper"
            raise said(cause, f"add {missing}: {WRITTEN[self.type].bounds}")
        if kind.is_array:
            self._of_arrays()
        elif given & {"shape", "whole"}:
            name = min(given & {"shape", "whole"})
            raise said(f"a {self.type} column has no {name}", f"leave {name} out, or write type: tensor")
        if not kind.has_decimals and "decimals" in given:
            raise said(f"a {self.type} column has no decimals", "leave decimals out, or write type: real")
        if not kind.has_bounds and bounds:
            raise said(f"a {self.type} column has no {bounds[0]}", f"leave {bounds[0]} out, or change the type")
        if kind.has_categories and not self.values:
            raise said("values is missing; a category column needs its public values", "add values: [one, another]")
        values = self.values or []
        if len({type(value) for value in values}) > 1:
            raise said("values mixes texts, whole numbers and truths", "put quotes around all of them, or none")
        if len(set(values)) < len(values):
            twice = next(value for number, value in enumerate(values) if value in values[:number])
            raise said(f"{str(twice)[:60]!r} is given twice in values", "give each value once")
        if not kind.has_categories and self.values is not None:
            raise said(f"a {self.type} column has no values", "leave values out, or write type: category")
        return self

    def _of_arrays(self) -> None:
        if not self.shape:
            raise said(
                "shape is missing; a tensor column needs it", "add shape: [1, 28, 28], the sides of one row's array"
            )
        if odd := sorted(self.model_fields_set & {"nulls", "constant"}):
            raise said(
                f"a tensor column has no {odd[0]}", f"leave {odd[0]} out: a row without its array counts for nothing"
            )

    def read(self, name: str) -> Any:
        """What the word of `lower`, `upper` or `nulls` means in a column of this type."""
        value = getattr(self, name)
        return str(value) if name == "nulls" and value == DROP else WRITTEN[self.type].read(value)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Editors are told, too, which fields a type needs."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        here = handler.resolve_ref_schema(schema)
        full = here["anyOf"][1]
        here["anyOf"] = [{"enum": ["key", "flag"]}, full]
        full["allOf"] = [
            _needs(_SPANS, ["lower", "upper"]),
            _needs(["category"], ["values"]),
            _needs(["tensor"], ["shape"]),
        ]
        return schema


def _needs(types: list[str], names: list[str]) -> dict[str, Any]:
    return {"if": {"properties": {"type": {"enum": types}}}, "then": {"required": names}}
