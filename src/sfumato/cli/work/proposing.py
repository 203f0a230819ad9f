"""What a column probably is, by its name and its declared type alone: a proposal that a person confirms.

The table below is read from the top; the first line whose words occur in the name decides.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import Literal, get_args

from .table_looks import DeclaredColumn

Kind = Literal["key", "category", "real", "whole", "flag", "date", "moment", "out"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SURE = 2
"""How likely a column names the unit whose name says so."""
BOUNDED = ("real", "whole", "date", "moment")

_THIS_YEAR = datetime.date.today().year  # a proposal may know the calendar; releases never do
_DAYS = ("2020-01-01", f"{_THIS_YEAR}-12-31")
_LIVES = ("1900-01-01", f"{_THIS_YEAR}-12-31")


@dataclass(frozen=True)
class ColumnDraft:
    """One column as sfumato.yaml will have it; "out" stays out of it.

    lower    bounds as text; None where nobody has said
    values   the categories; empty where nobody has said
    unit     how likely it names the unit: SURE by its name, 1 perhaps, 0 not
    why      why it is proposed
    decimals where it is declared DECIMAL: how many digits stand after the point
    """

    name: str
    kind: Kind
    lower: str | None = None
    upper: str | None = None
    values: tuple[str, ...] = ()
    unit: int = 0
    why: str = ""
    decimals: int | None = None

    @property
    def missing(self) -> bool:
        """Does it still need bounds or categories?"""
        if self.kind == "category":
            return not self.values
        return self.kind in BOUNDED and (self.lower is None or self.upper is None)


@dataclass(frozen=True)
class _Rule:
    words: str
    kind: Kind
    why: str
    lower: str | None = None
    upper: str | None = None


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PEOPLE = _set(
    "patient user customer client person member employee subject household student pupil account respondent "
    "participant donor citizen resident device driver passenger guest voter taxpayer tenant worker player "
    "subscriber beneficiary applicant victim ssn nhs mrn"
)
_NAMING = _set("id ids key no nr number num code uuid guid identifier")

_RULES = (
    _Rule("email mail phone telephone mobile address street surname firstname lastname forename fullname", "out",
          "names a person: of no use in statistics"),
    _Rule("note notes comment comments text description remark remarks message title", "out", "free text"),
    _Rule("is has was had can flag active deleted smoker deceased alive married insured", "flag", "yes or no"),
    _Rule("dob birthdate birthday birthdates", "date", "a birthday", *_LIVES),
    _Rule("timestamp datetime moment", "moment", "a moment", *_DAYS),
    _Rule("date day", "date", "a date", *_DAYS),
    _Rule("age", "whole", "an age in years", "0", "120"),
    _Rule("year born birthyear yob", "whole", "a year", "1900", str(_THIS_YEAR)),
    _Rule("month", "whole", "a month", "1", "12"),
    _Rule("week", "whole", "a week", "1", "53"),
    _Rule("hour", "whole", "an hour of the day", "0", "23"),
    _Rule("percent percentage pct", "real", "a percentage", "0", "100"),
    _Rule("share ratio fraction probability proportion", "real", "a share", "0", "1"),
    _Rule("bmi", "real", "a body mass index", "10", "80"),
    _Rule("lat latitude", "real", "a latitude", "-90", "90"),
    _Rule("lon lng longitude", "real", "a longitude", "-180", "180"),
    _Rule("count quantity qty visits children siblings items orders clicks views days nights minutes seconds hours "
          "stay beds", "whole", "a number of things"),
    _Rule("amount cost costs price income salary revenue fee fees payment spend spent balance charge charges total sum "
          "turnover tax wage wages premium rent discount profit loan debt", "real", "an amount"),
    _Rule("value score rating measure measurement result dose dosage distance length size speed duration pressure "
          "temperature temp weight height width depth area volume rate glucose cholesterol pulse", "real",
          "a measurement"),
    _Rule("zip zipcode postcode postal plz", "key", "too many different values to list"),
    _Rule("sex gender ward state region country county city province district department dept status type category "
          "class group kind colour color level grade diagnosis race ethnicity marital education language channel "
          "product brand drug sector branch team season weekday blood shift site school job occupation "
          "profession floor", "category", "one of a few values"),
    _Rule("time", "moment", "a moment", *_DAYS),
    _Rule("name", "out", "names a person: of no use in statistics"),
)  # fmt: skip


def propose(column: DeclaredColumn) -> ColumnDraft:
    """What this column probably is."""
    words = _words(column.name)
    proposal = _by_name(column.name, words)
    return replace(_declared(proposal, column.type), decimals=_decimals(column.type)) if column.type else proposal


def _by_name(name: str, words: list[str]) -> ColumnDraft:
    distinct = set(words)
    if distinct & _PEOPLE and distinct <= _PEOPLE | _NAMING:
        return ColumnDraft(name, "key", unit=SURE, why="names a person")
    if words and words[-1] in ("id", "uuid", "guid", "identifier"):
        return ColumnDraft(name, "key", unit=1, why="names something")
    if len(words) > 1 and words[-1] == "at":
        return ColumnDraft(name, "moment", *_DAYS, why="a moment")
    for rule in _RULES:
        if distinct & _set(rule.words):
            return ColumnDraft(name, rule.kind, rule.lower, rule.upper, why=rule.why)
    return ColumnDraft(name, "key", why="its name says nothing about it")


def _declared(proposal: ColumnDraft, type_: str) -> ColumnDraft:
    """The declared type decides where it says more than the name."""
    kind = _kind_of(type_)
    if kind is None or kind == proposal.kind or proposal.kind == "out":
        return proposal
    why = f"declared {type_.lower()}"
    if kind in ("out", "flag"):
        return ColumnDraft(proposal.name, kind, why=why)
    if kind in ("date", "moment"):
        lower, upper = (proposal.lower, proposal.upper) if proposal.kind in ("date", "moment") else _DAYS
        return ColumnDraft(proposal.name, kind, lower, upper, why=why)
    if kind == "key" or (proposal.kind in ("key", "category") and proposal.why != "its name says nothing about it"):
        return proposal  # text can hold anything, and numbers are names as often as amounts
    if proposal.kind in ("real", "whole"):
        return replace(proposal, kind=kind)
    return ColumnDraft(proposal.name, kind, why=why)


def _decimals(type_: str) -> int | None:
    """The places of DECIMAL(15, 2) and its like."""
    scaled = re.fullmatch(r"(decimal\d*|numeric)\(\d+,\s*(\d+)\)", type_.lower())
    return int(scaled[2]) if scaled is not None else None


def _kind_of(type_: str) -> Kind | None:
    word = type_.lower()
    if word.startswith(
        ("list", "struct", "map", "large_list", "fixed_size_list", "blob", "binary", "large_binary")
    ) or (word.endswith("]") and not word.startswith(("timestamp", "date", "dictionary"))):
        return "out"
    if word.startswith("bool"):
        return "flag"
    if word.startswith("date"):
        return "date"
    if word.startswith("timestamp"):
        return "moment"
    if re.fullmatch(r"u?((tiny|small|big|huge)int|integer|int\d*)", word):
        return "whole"
    if word.startswith(("float", "double", "halffloat", "real", "decimal", "numeric")):
        return "real"
    return "key" if word.startswith(("varchar", "string", "large_string", "uuid", "enum", "dictionary")) else None


def _words(name: str) -> list[str]:
    """patientId, patient_id and "Patient ID" have the same words."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.findall(r"[^\W\d_]+", apart)]
