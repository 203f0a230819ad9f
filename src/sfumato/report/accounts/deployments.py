"""A file for the DP Deployments Registry: a draft that the ledger fills in as far as its entries go."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from ... import checks
from ...ledger.stores.base import Store
from . import yaml_text
from .about import UNKNOWN, About, known_fields
from .findings import Findings, counted, findings, flavour, roles
from .statement import digits_above


def registry(store: Store, account: str, about: About | None = None, *, redact: Collection[str] = ()) -> str:
    """A draft for the DP Deployments Registry, as YAML text in its own words and order, tiers 1 to 3."""
    if about is not None:
        checks.instance(about, About, "about", "an About(...), or leave it out")
    found, told = findings(store, account), about or About()
    body = _registry(found, told)
    if about is None:
        body["deployment"]["model"]["model_name"] = UNKNOWN  # nobody has said who holds the data
    known_fields(redact, set(_paths(body)))
    return yaml_text.dump(_without(body, redact))


def _registry(found: Findings, about: About) -> dict[str, Any]:
    now = found.statement
    limit = now.largest
    parameters: dict[str, float] = {}
    if limit is not None and limit.rho is not None:
        parameters = {"rho": float(digits_above(limit.rho))}
    elif limit is not None:
        parameters = {"epsilon": float(digits_above(limit.epsilon))}
        parameters |= {"delta": float(digits_above(limit.delta))} if limit.delta else {}
    unprotected = "\n".join(f"- {_one_line(each.of)}: {_one_line(each.text)}" for each in found.declared)
    beside = "\n".join(
        f"- {each.label}: " + (f"epsilon = {each.epsilon:.6g}" if each.epsilon is not None else f"{each.reason}")
        for each in now.beside
    )
    name = about.name or now.account
    many = "Many releases" if found.releases > 1 else "One release" if found.releases else UNKNOWN
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "deployment",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "product": {
                "name": name,
                "data_curators": list(about.curators) or [UNKNOWN],
                "intended_use": about.intended_use or UNKNOWN,
                "data_product_type": about.product_type or UNKNOWN,
                "data_product_region": about.region or UNKNOWN,
                "description": about.description or UNKNOWN,
                "publication_date": about.publication_date or UNKNOWN,
                "data_product_sector": about.sector or UNKNOWN,
            },
            "dp_flavor": {
                "name": flavour(found),
                "data_domain": about.data_domain or UNKNOWN,
                "unprotected_quantities": unprotected or "None entered in the ledger's register.",
            },
            "privacy_loss": {
                "privacy_unit": now.protects or UNKNOWN,
                "privacy_unit_description": f"Neighbours differ by: {now.protects or UNKNOWN}",
                "privacy_parameters": parameters,
                "privacy_parameters_description": (
                    now.guarantee + (f"\nBeside it, not the guarantee:\n{beside}" if beside else "")
                ),
            },
            "model": {
                "model_name": about.model,
                "actors": about.trust or UNKNOWN,
                "release_type": many,
                "release_type_description": _period(found),
                "data_source_type": _either(about.changing, "Dynamic", "Static"),
                "access_type": _either(about.asked, "Interactive", "Non-interactive"),
                "access_type_description": _analysts(found),
            },
            "accounting": {
                "post_processing": about.postprocessing or UNKNOWN,
                "composition": (
                    UNKNOWN if limit is None else "Privacy filter: the limit holds for adaptively chosen releases."
                ),
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": about.preprocessing or UNKNOWN,
                "mechanisms": "\n".join(
                    [
                        f"- Mechanisms: {counted(found.mechanisms)}",
                        f"- Library: {counted(found.libraries)}",
                        f"- Noise: {counted(found.grades)}; bits: {counted(found.randomness)}",
                        f"- Access: {_one_line(about.access or roles(found))}",
                        f"- Security: {_one_line(about.security or UNKNOWN)}",
                    ]
                ),
                "justification": about.justification or UNKNOWN,
            },
            "resources": {
                "sources": about.sources or f"Ledger entry {now.number}, hash {now.hash}",
                "registry_authors": list(about.authors) or [UNKNOWN],
            },
        },
    }


def _period(found: Findings) -> str:
    if not found.releases:
        return "None yet." if found.statement.largest is not None else UNKNOWN
    return (
        f"{found.releases} releases from {(found.first or '?')[:10]} to {(found.last or '?')[:10]}, one budget for all."
    )


def _analysts(found: Findings) -> str:
    """Whoever reads more than one account's releases is outside what this account alone says."""
    now = found.statement
    if now.largest is None:
        return UNKNOWN
    if now.level not in ("team", "project", "person", "block"):
        return "One account pays for all analysts together: no assumption that they do not collude."
    over = f"; the accounts above it ({', '.join(found.above)}) count them all" if found.above else ""
    return f"This account counts its own releases, not those that others pay for{over}."


def _either(fact: bool | None, yes: str, no: str) -> str:
    return UNKNOWN if fact is None else yes if fact else no


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _paths(body: Mapping[str, Any]) -> list[str]:
    """Every field by its name."""
    found = []
    for name, item in body.items():
        found.append(name)
        found += _paths(item) if isinstance(item, Mapping) else []
    return found


def _without(body: Mapping[str, Any], redact: Collection[str]) -> dict[str, Any]:
    return {
        name: _without(item, redact) if isinstance(item, Mapping) else item
        for name, item in body.items()
        if name not in redact
    }
