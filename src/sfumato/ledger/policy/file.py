"""A policy as a YAML file under version control. `load_policy` reads one, `dump_policy` writes it, `compare` says what
changed between two in words, so that whoever approves a policy sees what they approve.

Numbers are read as they are written: 0.1 is one tenth. pydantic and PyYAML are needed only to read and write files; a
policy in a ledger is a record, and needs neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ... import checks, plain_yaml
from ...accounting.budget import Budget, default_shares
from ...errors import ArgumentError
from ...units import Unit
from . import text as policy_text
from .form import checked
from .parts import AccountRule, AlertRule, Band
from .people import ACTS
from .policy import Policy

T = TypeVar("T")

_LARGEST = 200_000  # characters of a file
_CALLED = {"needed": "approvals", "approval_days": "approvals", "protects": "unit"}  # and those of another name
_SAME = ("delta_above", "mechanisms", "grades", "purpose", "overcommit")  # fields that a file calls by the same name


def load_policy(path: str | Path) -> Policy:
    """Read a policy from a YAML file."""
    checks.path(path, "path")
    try:
        with Path(path).open("rb") as file:
            data = file.read(4 * _LARGEST + 4)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeEncodeError):
        raise ArgumentError("the policy file cannot be read: give the path of a YAML file that exists.") from None
    except UnicodeDecodeError:
        raise ArgumentError("the policy file is not text in UTF-8: save it as UTF-8.") from None
    return parse_policy(text)


def parse_policy(text: str) -> Policy:
    """Read a policy from the text of a YAML file. Errors name the place in the file, the cause and the fix."""
    if not isinstance(text, str) or len(text) > _LARGEST:
        raise ArgumentError(f"policy: give a text of at most {_LARGEST} characters.")
    form = checked(policy_text.read(text))
    given = {name: form[name] for name in _SAME if name in form}
    approvals = dict(form.get("approvals", {}))
    if "days" in approvals:
        given["approval_days"] = approvals.pop("days")
    given |= {"people": form["people"], "needed": approvals, "bands": _bands(form, ())}
    given["accounts"] = tuple(_account(name, body) for name, body in form.get("accounts", {}).items())
    if "alerts" in form:
        given["alerts"] = _made(("alerts",), lambda: AlertRule(**form["alerts"]), form["alerts"])
    return _made((), lambda: Policy(**given), form)


def _account(name: str, body: dict[str, Any]) -> AccountRule:
    path = ("accounts", name)
    given = {key: item for key, item in body.items() if key not in ("limit", "unit", "bands")}
    given["bands"] = _bands(body, path)
    if body.get("limit") is not None:
        given["limit"] = _made((*path, "limit"), lambda: Budget(**body["limit"]), body["limit"])
    if body.get("unit") is not None:
        unit = body["unit"] if isinstance(body["unit"], dict) else {"of": body["unit"]}
        given["protects"] = _made((*path, "unit"), lambda: Unit(**unit), unit)
    return _made(path, lambda: AccountRule(name=name, **given), body)


def _bands(body: dict[str, Any], path: plain_yaml.Path) -> tuple[Band, ...]:
    bands = enumerate(body.get("bands", ()))
    return tuple(_made((*path, "bands", number), partial(Band, **band), band) for number, band in bands)


def _made(path: plain_yaml.Path, make: Callable[[], T], body: dict[str, Any]) -> T:
    """What the record itself refuses is told with its place in the file."""
    try:
        return make()
    except ArgumentError as problem:
        raise policy_text.wrong((*path, *_place(str(problem), body)), str(problem)) from None


def _place(problem: str, body: dict[str, Any]) -> tuple[str, ...]:
    """Which part of it the record speaks of: "epsilon = ...", "rows of 'patients' = ...", "people 'ana': ..."."""
    named = re.match(r"([a-z_]+)(?: of '[^']*')?(?: '([^']*)')?(?: = |: )", problem)
    if named is None:
        return ()
    field = _CALLED.get(named.group(1), named.group(1))
    if field not in body:
        return ()
    inner = body[field]
    return (field, named.group(2)) if isinstance(inner, dict) and named.group(2) in inner else (field,)


def dump_policy(policy: Policy) -> str:
    """The policy as a YAML file, which `parse_policy` reads back as the same policy."""
    return policy_text.write(_plain(policy))


def compare(old: Policy | None, new: Policy) -> tuple[str, ...]:
    """What changed from one policy to another, place by place; nothing where they are the same."""
    was = {} if old is None else dict(policy_text.flat(_plain(old)))
    now = dict(policy_text.flat(_plain(new)))
    changes = []
    for place in sorted({**was, **now}):
        if place not in was:
            changes.append(f"{place}: new, {now[place]}")
        elif place not in now:
            changes.append(f"{place}: gone, was {was[place]}")
        elif was[place] != now[place]:
            changes.append(f"{place}: {was[place]} -> {now[place]}")
    return tuple(changes)


def _plain(policy: Policy) -> dict[str, Any]:
    """The policy as a file says it, with every default written out."""
    checks.instance(policy, Policy, "policy", "a Policy, such as load_policy('policy.yaml')")
    return {
        "policy": 1,
        "people": {name: list(roles) for name, roles in policy.people},
        "accounts": {rule.name: _plain_account(rule) for rule in policy.accounts},
        "bands": _plain_bands(policy.bands),
        "approvals": {**{act: policy.approvals(act) for act in ACTS}, "days": policy.approval_days},
        **{name: _listed(getattr(policy, name)) for name in _SAME},
        "alerts": {f.name: _listed(getattr(policy.alerts, f.name)) for f in fields(AlertRule)},
    }


def _plain_account(rule: AccountRule) -> dict[str, Any]:
    body: dict[str, Any] = {name: getattr(rule, name) for name in ("parent", "level", "rows")}
    if rule.protects is not None:
        body["unit"] = {f.name: getattr(rule.protects, f.name) for f in fields(Unit)}
    body["limit"] = None if rule.limit is None else _plain_limit(rule.limit)
    body |= {"people": list(rule.people), "bands": _plain_bands(rule.bands), "mechanisms": list(rule.mechanisms)}
    return {name: item for name, item in body.items() if item not in (None, "", [])}


def _plain_limit(limit: Budget) -> dict[str, Any]:
    chosen = bool(limit.shares) and limit.shares != default_shares(limit.epsilon, limit.delta)
    body = {
        "epsilon": limit.epsilon,
        "delta": limit.delta or None,
        "rho": limit.rho,
        "shares": dict(limit.shares) if chosen else None,
        "raisable": limit.raisable or None,
    }
    return {name: item for name, item in body.items() if item is not None}


def _plain_bands(bands: tuple[Band, ...]) -> list[dict[str, Any]]:
    return [{"above": b.above, "approvals": "refuse" if b.approvals is None else b.approvals} for b in bands]


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
