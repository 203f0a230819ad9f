"""A list of releases, looked at before it is paid: how exact each would be, and each on made-up rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ..plan import Plan
from ..project.plans import ListedRelease
from ..project.project import Project
from ..release import Release
from .asking import RehearseDocument, expected, rehearsed
from .documents import AccountDocument, Document, Expected, Part
from .lists import ListOrder, PriceDocument, Status, quoted_list
from .watch import SILENT, Watch


@dataclass(frozen=True, kw_only=True)
class QuotedRelease(Part):
    """One release of the list: what it would cost alone, and how exact it would be."""

    name: str
    status: Status
    plan: str
    price: str
    hides: str
    alpha: float
    errors: list[Expected]


@dataclass(frozen=True, kw_only=True)
class QuotesDocument(Document):
    """What a list would cost.

    price  of what would have to be paid; null where nothing would
    fits   would the ledger accept it now?
    """

    document: Literal["quotes/1"] = "quotes/1"
    project: str
    plan: str
    price: PriceDocument | None
    fits: bool
    releases: list[QuotedRelease]
    budget: list[AccountDocument]
    alert: str | None


@dataclass(frozen=True, kw_only=True)
class RehearsedRelease(Part):
    """One release of the list, on made-up rows."""

    name: str
    answer: RehearseDocument


@dataclass(frozen=True, kw_only=True)
class RehearsalsDocument(Document):
    """A list on made-up rows: it says nothing about the data, and was free."""

    document: Literal["rehearsals/1"] = "rehearsals/1"
    project: str
    plan: str
    made_up: Literal[True] = True
    releases: list[RehearsedRelease]


def quotes(project: Project, order: ListOrder) -> QuotesDocument:
    """Price a list, and say how exact its answers would be. Charges nothing, reads no data."""
    offer = quoted_list(project, order)
    return QuotesDocument(
        project=offer.project,
        plan=offer.plan,
        price=offer.price,
        fits=offer.fits,
        releases=[
            QuotedRelease(
                name=release.name,
                status=release.status,
                plan=release.plan,
                price=release.price,
                hides=plan.hides,
                alpha=listed.alpha,
                errors=expected(plan, listed.alpha, listed.options.get("group_rows")),
            )
            for release, (listed, plan) in zip(offer.releases, order.plans, strict=True)
        ],
        budget=offer.budget,
        alert=offer.alert,
    )


def rehearsals(
    project: Project, order: ListOrder, *, rows: int | None = None, watch: Watch = SILENT
) -> tuple[RehearsalsDocument, list[Release]]:
    """Run each release of a list on made-up rows. The ledger is not asked, and need not be there."""

    def one(listed: ListedRelease, plan: Plan[Any, Any]) -> tuple[RehearsedRelease, Release]:
        document, release = rehearsed(project, plan, alpha=listed.alpha, rows=rows, watch=watch)
        return RehearsedRelease(name=listed.name, answer=document), release

    results = [one(listed, plan) for listed, plan in order.plans]
    document = RehearsalsDocument(
        project=project.name, plan=str(order.file), releases=[release for release, _ in results]
    )
    return document, [release for _, release in results]
