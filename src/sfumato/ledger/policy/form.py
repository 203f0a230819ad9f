"""The form of a policy file: which keys there are, and what each takes. What they mean together, `Policy` checks."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import Annotated, Any

from ...plain_yaml import number
from .people import ACTS
from .text import imported, wrong

_CAUSES = {
    "missing": "it is missing: add it.",
    "bool_type": "give true or false.",
    "list_type": "give a list.",
    "dict_type": "give a mapping of names to values.",
    "model_type": "give a mapping of names to values.",
    "string_type": "give a text.",
}


def checked(data: Any) -> dict[str, Any]:
    """What a file says, with numbers in place of their texts; only the keys that it gives."""
    _, pydantic = imported()
    try:
        form = _form().model_validate(data)
    except pydantic.ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        if first["type"] == "strange_key":
            raise wrong((*first["loc"], first["ctx"]["key"]), first["msg"]) from None
        cause = _CAUSES.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise wrong(tuple(first["loc"]), cause) from None
    return dict(_given(form))


def _given(value: Any) -> Any:
    """Models as mappings of the keys that were given; a model's own dump would turn exact numbers into texts."""
    if hasattr(value, "model_fields_set"):
        return {name: _given(getattr(value, name)) for name in value.model_fields_set}
    if isinstance(value, dict):
        return {name: _given(item) for name, item in value.items()}
    return [_given(item) for item in value] if isinstance(value, list) else value


def _number(text: Any) -> Any:
    value = number(text)
    if value is None:
        raise ValueError("give a number such as 3, 0.1, 1e-7 or 1/3.")
    return value


def _whole(text: Any) -> Any:
    value = number(text)
    if value is None or value.denominator != 1:
        raise ValueError("give a whole number.")
    return int(value)


def _approvals(text: Any) -> Any:
    if text == "refuse":
        return None
    value = number(text)
    if value is None or value.denominator != 1:
        raise ValueError("give a whole number of persons, or refuse.")
    return int(value)


def _version(text: Any) -> Any:
    if text != "1":
        raise ValueError("this is not a version that is known here: write policy: 1.")
    return 1


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _unit(value: Any) -> Any:
    return {"of": value} if isinstance(value, str) else value


def _nearest(name: str, known: list[str]) -> str:
    """Words for a key that does not exist."""
    lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name[:100].lower().replace("-", "_"), lower, n=1, cutoff=0.5)
    meant = f"did you mean {lower[close[0]]!r}?" if close else f"give one of {', '.join(known)}."
    return f"there is no such key: {meant}"


def _maker(pydantic: Any) -> Any:
    """Makes a model out of its fields. A key that it does not know is refused with the nearest one that it does."""

    def known(cls: Any, data: Any) -> Any:
        for key in data if isinstance(data, dict) else ():
            if key not in cls.model_fields:
                words = _nearest(key, list(cls.model_fields))
                raise pydantic_core.PydanticCustomError("strange_key", "{words}", {"words": words, "key": key})
        return data

    import pydantic_core

    config = pydantic.ConfigDict(extra="forbid")
    known_keys = {"known": pydantic.model_validator(mode="before")(classmethod(known))}

    def model(name: str, **fields: tuple[Any, Any]) -> Any:
        return pydantic.create_model(name, __config__=config, __validators__=known_keys, **fields)

    return model


@lru_cache(maxsize=1)
def _form() -> Any:
    _, pydantic = imported()
    takes = pydantic.BeforeValidator
    exact: Any = Annotated[Any, takes(_number)]
    whole: Any = Annotated[Any, takes(_whole)]
    lists: Any = list
    named: Any = dict
    approvals = Annotated[Any, takes(_approvals)]
    texts = Annotated[list[str], takes(_one_or_more)]
    flag = pydantic.StrictBool
    model = _maker(pydantic)

    band = model("Band", above=(exact, ...), approvals=(approvals, ...))
    limit = model(
        "Limit", epsilon=(exact, None), delta=(exact, None), rho=(exact, None), shares=(named[str, exact], None),
        raisable=(flag, None),
    )  # fmt: skip
    unit = model("Unit", of=(str, ...), change=(str, None), group=(whole, None))
    account = model(
        "Account", parent=(str | None, None), level=(str, None), limit=(limit | None, None),
        unit=(Annotated[unit | None, takes(_unit)], None), rows=(whole, None), people=(texts, None),
        bands=(lists[band], None), mechanisms=(list[str], None),
    )  # fmt: skip
    alerts = model(
        "Alerts", spent=(lists[exact], None), burn=(exact | None, None), alike=(whole | None, None), days=(whole, None),
        failures=(whole, None), lock_after=(whole, None), log=(flag, None), terminal=(flag, None),
        webhook=(str | None, None), header=(str, None), secret=(str | None, None),
    )  # fmt: skip
    counts = dict.fromkeys((*ACTS, "days"), (whole, None))
    return model(
        "Policy", policy=(Annotated[Any, takes(_version)], ...), people=(named[str, texts], ...),
        accounts=(named[str, account], None), bands=(lists[band], None), approvals=(model("Approvals", **counts), None),
        delta_above=(str, None), mechanisms=(list[str], None), grades=(texts, None), purpose=(flag, None),
        overcommit=(flag, None), alerts=(alerts, None),
    )  # fmt: skip
