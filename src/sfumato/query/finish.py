"""From released numbers to the answer: formulas, the SELECT list, HAVING, ORDER BY and LIMIT. All of it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from ..owners import LEFT_OUT
from . import cell_words
from .advice import COUNTED, Advice
from .aggregates import Binned, Ranked, Statistic
from .design import Design
from .hints import Hints, loss
from .limits import Limits
from .quantiles import rank_error
from .raised import doubts, exposed_names, lifted_bars, raised, title
from .refusal import QueryError
from .released import arranging, figures, images
from .released.answer import Answer, Output
from .released.evaluation import evaluate
from .released.figures import Bounds, Figure
from .released.mixtures import Floats
from .released.values import Keys, Lists, Value, objects
from .running import restored
from .words import limits_in_words

if TYPE_CHECKING:
    from .plan import Sql

_NORMAL = NormalDist()
_BAND = 0.05


def _deviations(alpha: float) -> float:
    return -_NORMAL.inv_cdf(alpha / 2)


def answer(plan: Sql, raw: Mapping[str, Any]) -> Answer:
    """The table that the SELECT asked for."""
    outermost, size = plan.front.outermost, int(raw["groups"])
    advice = None if raw.get("limits") is None else Advice.read(raw["limits"])
    design = plan.fixed if advice is None else plan.design(advice.limits, advice.reaches)
    assert design is not None
    spreads = {**design.spreads, **doubts(plan.questions)}
    keys = {key.name: _keys(key.typed.kind.type, raw["keys"][key.name]) for key in plan.front.keys}
    columns: dict[str, Value] = {**keys, **aggregate_columns(plan, design, advice, raw, size, raises=True)}
    measured: dict[str, Value] = {**keys, **aggregate_columns(plan, design, advice, raw, size, raises=False)}
    names = outermost.name_of

    def value(node: exp.Expression) -> Value:
        return evaluate(node, columns, names, size)

    outputs: dict[str, Value] = {}
    for name, node in outermost.outputs:
        outputs[name] = floored(value(node)) if plan.floor else value(node)
    kept = np.arange(size)

    def later(node: exp.Expression) -> Value:
        """HAVING and ORDER BY may also speak of names in the SELECT list."""
        known = {**outputs, **columns}
        return evaluate(node, known, lambda each: names(each) or _alias(each, outputs), size)

    having, order = outermost.select.args.get("having"), outermost.select.args.get("order")
    held = arranging.having(later(having.this), having) if having is not None else np.ones(size, dtype=np.bool_)
    kept = arranging.order_by(order, outputs, later, list(keys.values()), size)
    kept = kept[held[kept]][arranging.shown(outermost.select)]
    shown = [
        Output(name, each, _shown(plan, node), _bias(each, evaluate(node, measured, names, size)))
        for (name, node), each in zip(outermost.outputs, outputs.values(), strict=True)
    ]
    return Answer(shown, spreads, kept, notes(plan, design, advice, raw, shown))


def _bias(value: Value, measured: Value) -> tuple[Floats | None, ...]:
    """By how much each figure was raised (None: not known), before anything was clipped."""
    if isinstance(value, Lists) and isinstance(measured, Lists):
        return tuple(_lift(one, two) for one, two in zip(value.places, measured.places, strict=True))
    return (_lift(value, measured),) if isinstance(value, Figure) and isinstance(measured, Figure) else ()


def _lift(one: Figure, two: Figure) -> Floats | None:
    if np.any(one.above) or np.any(one.below):
        return None
    high, low = (each.value if each.raw is None else each.raw for each in (one, two))
    return np.asarray(high - low)


def _alias(node: exp.Expression, outputs: Mapping[str, Value]) -> str | None:
    name = node.name.lower() if isinstance(node, exp.Column) and not node.table else None
    return name if name in outputs else None


def _keys(kind: Any, values: Any) -> Keys:
    return Keys(objects([restored(each) for each in values]), kind)


def aggregate_columns(
    plan: Sql, design: Design, advice: Advice | None, raw: Mapping[str, Any], size: int, *, raises: bool
) -> dict[str, Value]:
    """Every aggregate, by its text; raised by what limits cut, or as it was measured."""
    if raises:
        found = raised(plan, design, advice, raw)
    else:
        found = {name: figures.measured(name, each) for name, each in (raw["numbers"] | raw["distinct"]).items()}
    columns: dict[str, Value] = {}
    for text, each in plan.front.aggregates.items():
        if isinstance(each, Statistic):
            columns[text] = each.formula(found)
        elif isinstance(each, Ranked):
            chances = plan.questions.ranked[each.tree].chances
            columns[text] = _quantiles(plan, advice, each, chances, raw["ranked"][each.tree], size)
        elif isinstance(each, Binned):
            bars = np.array(raw["binned"][text], dtype=np.float64).reshape(size, len(each.edges) - 1)
            if raises and plan.layout.rows:
                columns[text] = Lists(tuple(lifted_bars(bars, text, advice, design.spreads)))
            else:
                columns[text] = Lists(tuple(figures.measured(text, bars[:, i]) for i in range(bars.shape[1])))
        else:
            columns[text] = found[text]
    return columns


def _quantiles(
    plan: Sql, advice: Advice | None, asked: Ranked, chances: tuple[float, ...], raw: Mapping[str, Any], size: int
) -> Value:
    """Their intervals take in the rows that limits cut, where it is known how many those are."""
    unknown = plan.layout.rows and (advice is None or COUNTED not in advice.cuts)
    parts = (np.array(raw[part], dtype=np.float64).reshape(size, len(chances)) for part in ("values", "lower", "upper"))
    value, low, high = parts
    doubt = np.array(raw["unreliable"], dtype=np.bool_)
    places = []
    for p in asked.chances:
        i = chances.index(p)
        band = _band(value[:, i], low[:, i], high[:, i])
        place = figures.given(f"{asked.tree} at {p}", value[:, i], band, doubt)
        places.append(replace(place, above=unknown, below=unknown))
    return Lists(tuple(places)) if asked.listed else places[0]


def _band(value: Floats, low: Floats, high: Floats) -> Callable[[float], Bounds]:
    """The interval of a quantile, which was made for 95 %; for other confidences it is scaled."""

    def within(alpha: float) -> Bounds:
        wider = _deviations(alpha) / _deviations(_BAND)
        return value - wider * (value - low), value + wider * (high - value)

    return within


def floored(value: Value) -> Value:
    """Nothing below 0, where people asked for that; `raw` keeps what it was."""
    if isinstance(value, Lists):
        return Lists(tuple(images.clip(each, 0.0) for each in value.places))
    return images.clip(value, 0.0) if isinstance(value, Figure) else value


def _shown(plan: Sql, node: exp.Expression) -> Any:
    """How a quantile of dates is written."""
    each = plan.front.aggregates.get(plan.front.outermost.name_of(node) or "")
    if not isinstance(each, Ranked) or each.leaves.type == "real":
        return None
    leaves = each.leaves
    return lambda number: _item(leaves.shown(np.array([number]))[0])


def _item(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def expected_loss(plan: Sql, hints: Hints) -> str:
    """What the limits take, if the hints are right."""
    assert plan.limits is not None
    return f"by the hints, that takes about {100 * loss(plan, hints, plan.limits):.2g} % of all rows away"


def notes(
    plan: Sql, design: Design, advice: Advice | None, raw: Mapping[str, Any], shown: Sequence[Output] = ()
) -> list[str]:
    """What was clipped, dropped and suppressed, as far as that may be known without spending."""
    lines = []
    unit = plan.unit.column or "row"
    if plan.front.units:
        lines.append(limits_in_words(plan, design))
    if advice is not None:
        lines += _losses(plan, advice, raw)
    elif plan.hints is not None:
        lines.append(f"{expected_loss(plan, plan.hints)}; the intervals do not rely on that")
    elif exposed_names(plan):
        lines.append(f"{UNKNOWN}{_sides(shown)}; {_KNOW}")
    if design.selects:
        votes = design.votes
        assert votes is not None
        least = design.threshold * 2.0**-votes.coordinate.bits
        lines.append(f"groups of fewer than about {least:.3g} {unit}s are left out; how many there are is private")
    if plan.front.keys:
        lines.append("rows without a group (NULL) are left out")
    if owned := [table for table, words in plan.paths.items() if LEFT_OUT in words]:
        lines.append(f"rows of {' and '.join(owned)} whose key leads to nobody are left out; {_ORPHANS}")
    if any(isinstance(each, Ranked) and each.end for each in plan.front.aggregates.values()):
        lines.append("MIN and MAX are read where ranks stand out from the noise: a little inside")
    return lines + cell_words.note(plan)


_ORPHANS = "orphans(data, table) tells about how many, for a price"
UNKNOWN = "what that cuts from the numbers is not known"
_KNOW = "limits='advise' lets the adviser choose limits and measure it, unclip=True measures it for these"
_UNSEEN = "noise hid from the adviser how much units hold, so what limits cut from {} is not known; spend more"
_ANY = {"rows": "1", "keys": 1, "most_keys": 1, "values": 1, "reaches": {}, "cuts": {}}


_SIDES = {(True, False): "at least", (False, True): "at most", (True, True): "off to either side"}


def _sides(shown: Sequence[Output]) -> str:
    """On which side of the numbers the truth may lie; by name, where that is not the same for all."""
    names: dict[tuple[bool, bool], list[str]] = {}
    for output in shown:
        places = output.value.places if isinstance(output.value, Lists) else (output.value,)
        figures = [each for each in places if isinstance(each, Figure)]
        side = any(np.any(each.above) for each in figures), any(np.any(each.below) for each in figures)
        if any(side):
            names.setdefault(side, []).append(output.name)
    said = [_side(names[side], side, alone=len(names) == 1) for side in _SIDES if side in names]
    return f", so {', '.join(said)}" if said else ""


def _side(names: list[str], side: tuple[bool, bool], *, alone: bool) -> str:
    """n is at least what it says; m and q may be off to either side; they are, where there are no others."""
    who = "they" if alone else " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    if all(side):
        return f"{who} may be {_SIDES[side]}"
    one = not alone and len(names) == 1
    return f"{who} {'is' if one else 'are'} {_SIDES[side]} what {'it says' if one else 'they say'}"


def _percent(share: float) -> str:
    return f"{share:.2g}" if abs(share) < 99.5 else f"{share:.0f}"


def _losses(plan: Sql, advice: Advice, raw: Mapping[str, Any]) -> Iterator[str]:
    """What limits cut from each measured number, in shares of what it holds."""
    measures = {each.name: each for each in plan.questions.measures}
    unseen = []
    for name in exposed_names(plan):
        cut = advice.cuts.get(name)
        what = title(plan, name)
        if cut is None:
            unseen.append(what)
            continue
        if (name in measures and measures[name].signed) or (advice.unweighted and not cut.doubt):
            continue
        held = abs(sum({**raw["numbers"], **raw["distinct"]}.get(name, ()))) + cut.loss
        if name != COUNTED and held > 0:
            share, doubt = 100 * cut.loss / held, 100 * 1.96 * cut.doubt / held
            so = "others may have brought" if name in plan.questions.distinct else "the number was raised by that"
            cut_share = f"{_percent(share)} % (± {_percent(doubt)} %)"
            yield f"limits cut about {cut_share} from {what}: {so}, and intervals cover the rest"
    if unseen:
        yield _UNSEEN.format(", ".join(unseen))


def check(plan: Sql) -> None:
    """Refuse a SELECT list, HAVING or ORDER BY that cannot be computed from released numbers."""
    try:
        answer(plan, _made_up(plan))
    except QueryError as problem:
        raise problem.within(plan.text) from None


def _made_up(plan: Sql) -> dict[str, Any]:
    """Numbers for one group that nobody measured."""
    one: dict[str, Any] = {
        "whole": 1,
        "real": 1.0,
        "flag": True,
        "date": {"date": "2000-01-01"},
        "moment": {"moment": "2000-01-01"},
    }
    questions = plan.questions
    numbers = [*(each.name for each in questions.measures), *(["units"] if questions.votes else [])]
    band = {name: [[0.0] * len(each.chances)] for name, each in questions.ranked.items()}
    ranked = {name: {"values": each, "lower": each, "upper": each, "unreliable": [True]} for name, each in band.items()}
    return {
        "groups": 1,
        "keys": {key.name: [one.get(key.typed.kind.type, "a")] for key in plan.front.keys},
        "numbers": {name: [1.0] for name in numbers},
        "distinct": {name: [1.0] for name in questions.distinct},
        "ranked": ranked,
        "binned": {name: [[0.0] * (len(each.edges) - 1)] for name, each in questions.binned.items()},
        "limits": None if plan.fixed is not None else _ANY,
    }


def expected(plan: Sql, alpha: float, limits: Limits | None = None) -> dict[str, float]:
    """Half-widths of noise that are known before anything runs: of outputs that are one measured number, by name; of a
    quantile the number of rows by which its rank may be off."""
    given = limits or plan.limits
    design = plan.fixed if given is None else plan.design(given)
    if design is None:
        return {}
    found: dict[str, float] = {}
    for name, node in plan.front.outermost.outputs:
        text = plan.front.outermost.name_of(node) or ""
        each = plan.front.aggregates.get(text)
        if isinstance(each, Statistic):
            made = each.formula({name: figures.measured(name, np.zeros(1)) for name in design.spreads})
            if made.exact and made.linear:
                found[name] = float(made.half_width(design.spreads, alpha)[0])
        elif isinstance(each, Ranked):
            count = design.counted(each.tree)
            found[name] = max(
                rank_error(each.leaves, design.law(count), p, step=2.0**-count.bits, alpha=alpha) for p in each.chances
            )
        elif each is not None:
            law, step = design.spreads[text]
            found[name] = (law.half_width(alpha) + 0.5) * step
    return found
