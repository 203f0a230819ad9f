"""A list of releases in a file, plan.yaml: what each asks, what it may spend, and where its answer goes.

Paths are relative to the file. All that is wrong with it is told at once, with lines, before anything is priced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema

from ..plain_yaml import Bare
from ..plan import Plan
from ..query import Sql
from .checking import OF_KIND, OF_SQL, Form, filled
from .faults import Faults
from .fields import NUMBER_SCHEMA, Category, Number, Text, Truth, exact, said, shown, text
from .form import LimitsForm
from .kind_schema import with_kinds
from .kinds import KIND, Builder, known_kinds, own_fields
from .lines import Text as Written
from .lines import load
from .project import Project
from .published import schema_of

ENDINGS = (".csv", ".parquet", ".json")
PUBLISHED = Path(__file__).with_name("sfumato-plan.schema.json")
Place = tuple[str | int, ...]
_LONGEST = 200  # characters of a name
_LARGEST = 1_000_000  # bytes of a query


def _version(value: Any) -> int:
    if value != "1":
        raise said(f"{shown(value)} is no version of this form", "write sfumato-plan: 1")
    return 1


def _groups(value: Any) -> Any:
    """`select`, or the values of a list; what each of them means, `Category` says."""
    return text(value) if isinstance(value, str) else value


def _ends(value: Any) -> Any:
    if not isinstance(value, list) or len(value) != 2:
        raise said(f"{shown(value)} stands where two bounds are needed", "write [lowest, highest]")
    return value


def _half_width(value: Any) -> Any:
    """A number; of a quantile also {rank: 20}, in rows of rank."""
    if not isinstance(value, Mapping):
        return exact(value)
    if set(value) != {"rank"}:
        raise said("a half-width is a number", "write one, or {rank: 20} of a quantile, in rows of rank")
    return {"rank": exact(value["rank"])}


_HALF_WIDTH = {
    "anyOf": [
        NUMBER_SCHEMA,
        {"type": "object", "properties": {"rank": NUMBER_SCHEMA}, "required": ["rank"], "additionalProperties": False},
    ]
}


class QueryForm(Form):
    """One release."""

    name: Text = Field(description="its own in this list; reports and receipts bear it")
    sql: Text | None = Field(None, description="the query")
    file: Text | None = Field(None, description="instead: a file with the query, relative to this one")
    dialect: Text | None = Field(None, description="whose SQL the query is, such as postgres; DuckDB's if left out")
    out: Text | None = Field(None, description="where the answer is written: .csv, .parquet or .json")
    epsilon: Number = Field(None, description="what to spend; by default what sfumato.yaml says")
    delta: Number = Field(None, description="the delta beside it")
    rho: Number = Field(None, description="instead of epsilon")
    accuracy: dict[Text, Annotated[Any, BeforeValidator(_half_width), WithJsonSchema(_HALF_WIDTH)]] | None = Field(
        None, description="instead of epsilon: half-widths wanted, by column; of a quantile also {rank: 20}"
    )
    group_rows: Number = Field(
        None, description="about how many rows a group has; an accuracy of averages and quantiles needs it"
    )
    alpha: Number = Field(None, description="error bars hold with probability 1 - alpha; 0.05 by default")
    keys: (
        dict[
            Text,
            Annotated[
                list[Category] | str,
                BeforeValidator(_groups),
                WithJsonSchema({"anyOf": [{"const": "select"}, {"type": "array", "minItems": 1}]}),
            ],
        ]
        | None
    ) = Field(None, description="the groups of columns: [east, west]; or select, which chooses them privately")
    bounds: dict[Text, Annotated[list[Number], BeforeValidator(_ends)]] | None = Field(
        None, description="[lowest, highest] by column"
    )
    limits: LimitsForm | None = Field(None, description="how much one unit counts for at most: {rows: 8, keys: 3}")
    advise: Truth = Field(False, description="have the limits measured, although sfumato.yaml has some")
    shares: dict[Text, Number] | None = Field(None, description="weights of the columns' parts of the budget")
    advice: Number = Field(None, description="the adviser's part of the budget")
    noise: Text | None = Field(
        None, description="gaussian or laplace; by default the smaller one where there are no groups"
    )
    floor: Truth = Field(None, description="raise numbers below 0 to 0")
    unclip: Truth = Field(None, description="raise sums by what the limits are estimated to take")

    def options(self) -> dict[str, Any]:
        """As `Project.plan` takes them; what the file does not say is left out."""
        named = ("epsilon", "delta", "rho", "accuracy", "group_rows", "alpha", "keys", "shares", "advice")
        options = {name: getattr(self, name) for name in (*named, "floor", "unclip", "dialect", "noise")}
        options["bounds"] = None if self.bounds is None else {name: tuple(ends) for name, ends in self.bounds.items()}
        if self.advise:
            options["limits"] = "advise"
        elif self.limits is not None:
            options["limits"] = {name: getattr(self.limits, name) for name in self.limits.model_fields_set}
        return {name: value for name, value in options.items() if value is not None}


class KindForm(Form):
    """One release of any kind. Its other fields are those of the plan."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Text = Field(description="its own in this list; reports and receipts bear it")
    kind: Text = Field(description="the plan: laplace, gaussian, quantile, top-k, ...; its fields stand beside it")
    out: Text | None = Field(None, description="where the answer is written: .csv, .parquet or .json")
    alpha: Number = Field(None, description="error bars hold with probability 1 - alpha; 0.05 by default")

    def fields_written(self) -> dict[str, Any]:
        """The plan's own part of it; `alpha` where the plan has such a field, too."""
        shared = {"alpha"} & set(own_fields(known_kinds().get(self.kind, Sql)))
        written = {KIND: self.kind, **(self.model_extra or {})}
        return written | {name: Bare(str(getattr(self, name))) for name in shared if getattr(self, name) is not None}


def _which(value: Any) -> str:
    return OF_KIND if isinstance(value, dict) and KIND in value else OF_SQL


class PlanForm(Form):
    """A list of releases, priced as one."""

    sfumato_plan: Annotated[Any, BeforeValidator(_version), WithJsonSchema({"const": 1})] = Field(
        alias="sfumato-plan", description="1, the version of this form"
    )
    note: Text = Field("", description="what it is for: receipts and reports bear it")
    account: Text | None = Field(None, description="the account that pays beside the data set's own")
    releases: list[
        Annotated[
            Annotated[QueryForm, Tag(OF_SQL)] | Annotated[KindForm, Tag(OF_KIND)],
            Discriminator(_which),
        ]
    ] = Field(description="one query or more, each with a name")


@dataclass(frozen=True, kw_only=True)
class ListedRelease:
    """One release of a list, not yet built.

    text   the query; `path` and `line` are its place in the file
    ready  of any other kind: the plan itself
    out    the whole path of the answer's file
    """

    name: str
    text: str
    options: Mapping[str, Any]
    out: Path | None
    alpha: float
    path: tuple[str | int, ...]
    line: int
    ready: Plan[Any, Any] | None = None

    def plan(self, project: Project) -> Plan[Any, Any]:
        return project.plan(self.text, **self.options) if self.ready is None else self.ready


@dataclass(frozen=True, kw_only=True)
class ReleaseList:
    """What plan.yaml says, checked as far as that is possible without building queries.

    code  functions of the user's own that it names, and that were imported
    """

    file: Path
    note: str
    account: str | None
    releases: tuple[ListedRelease, ...]
    text: Written
    code: tuple[str, ...] = ()


def load_plan(path: str | Path, project: Project) -> ReleaseList:
    """Read a list of releases for a project. Raises ProjectError with the lines of all that is wrong."""
    file = Path(path)
    written = load(file)
    form = filled(PlanForm, written)
    faults = Faults(written)
    if not form.releases:
        faults.add(("releases",), "there is no release in the list", "add one, with a name and sql")
    _unlike(faults, form, project, file.parent)
    builder = Builder(project.schema, project.unit, file, faults)
    listed = [_listed(faults, builder, release, file, number) for number, release in enumerate(form.releases)]
    faults.raise_any()
    code = tuple(dict.fromkeys(builder.code))
    return ReleaseList(file=file, note=form.note, account=form.account, releases=tuple(listed), text=written, code=code)


def _listed(faults: Faults, builder: Builder, form: QueryForm | KindForm, file: Path, number: int) -> ListedRelease:
    place: Place = ("releases", number)
    text, options, ready, source_field = "", {}, None, KIND
    if isinstance(form, KindForm):
        ready = builder.plan(place, form.fields_written())
    else:
        text, options = _query(faults, form, file.parent, number) or "", form.options()
        source_field = "sql" if form.sql is not None else "file"
    return ListedRelease(
        name=form.name,
        text=text,
        options=options,
        out=None if form.out is None else file.parent / form.out,
        alpha=float(form.alpha if form.alpha is not None else Fraction(1, 20)),
        path=place,
        line=faults.line((*place, source_field)),
        ready=ready,
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of plan.yaml, for editors."""
    return with_kinds(schema_of(PlanForm, "plan.yaml"))


def _unlike(faults: Faults, form: PlanForm, project: Project, folder: Path) -> None:
    """Names and files are each one release's own."""
    names: dict[str, int] = {}
    outs: dict[Path, str] = {}
    for number, release in enumerate(form.releases):
        place = ("releases", number)
        if not release.name.strip() or len(release.name) > _LONGEST or not release.name.isprintable():
            faults.add((*place, "name"), "this is no name", f"write one of 1 to {_LONGEST} letters")
        elif names.setdefault(release.name, number) != number:
            faults.add((*place, "name"), f"{release.name!r} is the name of two releases", "give each its own")
        if (
            release.out is not None
            and (out := _inside(faults, release.out, folder, project, (*place, "out"))) is not None
        ):
            if out in outs:
                faults.add((*place, "out"), f"{outs[out]!r} is written to the same file", "give each its own")
            outs[out] = release.name
        if release.alpha is not None and not 0 < release.alpha < 1:
            faults.add((*place, "alpha"), "this is no probability", "write one above 0 and below 1, such as 0.05")
        if isinstance(release, QueryForm) and release.advise and release.limits is not None:
            faults.add((*place, "advise"), "limits are given, so there is nothing to measure", "give one of the two")


def _inside(faults: Faults, out: str, folder: Path, project: Project, place: tuple[str | int, ...]) -> Path | None:
    """The whole path, of a file in the project's folder that is none of the project's own."""
    try:
        path, home = (folder / out).resolve(), project.folder.resolve()
        strange = "\0" in out or path.is_dir()
    except (OSError, ValueError, RuntimeError):  # too long, or links in a circle
        strange, path, home = True, folder, folder
    if path.suffix.lower() not in ENDINGS:
        faults.add(place, f"{out[:80]!r} has no ending that is known", f"end it in {', '.join(ENDINGS)}")
    elif strange:
        faults.add(place, f"{out[:80]!r} is no path of a file", "write one such as out/by_ward.csv")
    elif not path.is_relative_to(home):
        faults.add(place, f"{out[:80]!r} leads out of the project's folder", "write one such as out/by_ward.csv")
    elif project.lives_by(path):
        faults.add(place, f"{out[:80]!r} is a file of the project itself", "write another name")
    else:
        return path
    return None


def _query(faults: Faults, form: QueryForm, folder: Path, number: int) -> str | None:
    """The text of the query, from the list or from its file."""
    place: tuple[str | int, ...] = ("releases", number)
    if (form.sql is None) == (form.file is None):
        cause = "there is no query" if form.sql is None else "there are two queries"
        faults.add(place, cause, "give sql, or the file that holds it")
        return None
    if form.sql is not None:
        if not form.sql.strip():
            faults.add((*place, "sql"), "there is no query", "write one")
        return form.sql
    try:
        with (folder / str(form.file)).open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        if len(data) > _LARGEST or not data.strip():
            faults.add((*place, "file"), "this file holds no query", "name one that does")
        return data.decode("utf-8-sig")
    except (OSError, ValueError):
        faults.add((*place, "file"), f"{str(form.file)[:80]!r} cannot be read as text", "correct the path")
        return None
