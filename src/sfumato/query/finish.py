"""From released numbers to the answer: formulas, the SELECT list, HAVING, ORDER BY and LIMIT. All of it is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from . import cell_words
from .advice import Advice, share_of_totals, wide_coordinate
from .aggregates import VOTES, Binned, Ranked, Statistic
from .design import Design
from .hints import Hints, loss
from .limits import Limits
from .outermost import text_of
from .quantiles import rank_error
from .refusal import QueryError
from .released import arranging, figures, images
from .released.answer import Answer, Output
from .released.evaluation import evaluate
from .released.figures import Bounds, Figure
from .released.mixtures import Floats, Spreads
from .released.values import Keys, Lists, Value, objects
from .running import ROWS, restored
from .words import counts_for

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
    spreads = {**design.spreads, **_wide_spreads(plan, advice)}
    keys = {key.name: _keys(key.typed.kind.type, raw["keys"][key.name]) for key in plan.front.keys}
    columns: dict[str, Value] = {**keys, **_columns(plan, advice, raw, size)}

    def names(node: exp.Expression) -> str | None:
        text = text_of(node)
        if text in plan.front.aggregates:
            return text
        return outermost.named.get(text)

    def value(node: exp.Expression) -> Value:
        return evaluate(node, columns, names, size)

    outputs: dict[str, Value] = {}
    for name, node in outermost.outputs:
        outputs[name] = _floored(value(node)) if plan.floor else value(node)
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
        Output(name, each, _shown(plan, node))
        for (name, node), each in zip(outermost.outputs, outputs.values(), strict=True)
    ]
    return Answer(shown, spreads, kept, notes(plan, design, advice, raw))


def _alias(node: exp.Expression, outputs: Mapping[str, Value]) -> str | None:
    name = node.name.lower() if isinstance(node, exp.Column) and not node.table else None
    return name if name in outputs else None


def _keys(kind: Any, values: Any) -> Keys:
    return Keys(objects([restored(each) for each in values]), kind)


def _wide(name: str) -> str:
    return f"total {name}"


def _wide_spreads(plan: Sql, advice: Advice | None) -> Spreads:
    """The noise of the totals that the adviser measured."""
    if advice is None or not advice.totals:
        return {}
    share = share_of_totals(plan)
    measures = {each.name: each for each in plan.questions.measures}
    made = {}
    for name, (reach, _) in advice.totals.items():
        each = wide_coordinate(plan.blur, measures.get(name, ROWS), reach, share)
        made[_wide(name)] = (plan.blur.law(each.steps), 2.0 ** (each.exponent - each.bits))
    return made


def _unclipped(plan: Sql, name: str, figure: Figure, advice: Advice | None, raw: Mapping[str, Any]) -> Figure:
    """Raised by what the limits took away: the total under wide limits over the sum of what was measured; as it is
    where that is within the noise."""
    if advice is None:
        return figure
    block = VOTES if name == VOTES else next((each for each in advice.totals if each != VOTES), "")
    measured = sum(raw["numbers"].get(block, ()))
    if block not in advice.totals or measured <= 0:
        return figure
    law, step = _wide_spreads(plan, advice)[_wide(block)]
    if advice.totals[block][1] <= measured + law.std * step:
        return figure
    size = figure.value.size
    wide = Figure(np.full(size, advice.totals[block][1]), {_wide(block): np.ones(size)})
    return figure * (wide / figures.constant(measured, size))


def _columns(plan: Sql, advice: Advice | None, raw: Mapping[str, Any], size: int) -> dict[str, Value]:
    """Every aggregate, by its text."""
    found = {name: figures.measured(name, numbers) for name, numbers in raw["numbers"].items()}
    if plan.unclip:
        found = {name: _unclipped(plan, name, each, advice, raw) for name, each in found.items()}
    found |= {name: figures.measured(name, numbers) for name, numbers in raw["distinct"].items()}
    columns: dict[str, Value] = {}
    for text, each in plan.front.aggregates.items():
        if isinstance(each, Statistic):
            columns[text] = each.formula(found)
        elif isinstance(each, Ranked):
            columns[text] = _quantiles(each, plan.questions.ranked[each.tree].chances, raw["ranked"][each.tree], size)
        elif isinstance(each, Binned):
            bars = np.array(raw["binned"][text], dtype=np.float64).reshape(size, len(each.edges) - 1)
            columns[text] = Lists(tuple(figures.measured(text, bars[:, i]) for i in range(bars.shape[1])))
        else:
            columns[text] = found[text]
    return columns


def _quantiles(asked: Ranked, chances: tuple[float, ...], raw: Mapping[str, Any], size: int) -> Value:
    parts = (np.array(raw[part], dtype=np.float64).reshape(size, len(chances)) for part in ("values", "lower", "upper"))
    value, low, high = parts
    doubt = np.array(raw["unreliable"], dtype=np.bool_)
    places = []
    for p in asked.chances:
        i = chances.index(p)
        band = _band(value[:, i], low[:, i], high[:, i])
        places.append(figures.given(f"{asked.tree} at {p}", value[:, i], band, doubt))
    return Lists(tuple(places)) if asked.listed else places[0]


def _band(value: Floats, low: Floats, high: Floats) -> Callable[[float], Bounds]:
    """The interval of a quantile, which was made for 95 %; for other confidences it is scaled."""

    def within(alpha: float) -> Bounds:
        wider = _deviations(alpha) / _deviations(_BAND)
        return value - wider * (value - low), value + wider * (high - value)

    return within


def _floored(value: Value) -> Value:
    """Nothing below 0, where people asked for that; `raw` keeps what it was."""
    if isinstance(value, Lists):
        return Lists(tuple(images.clip(each, 0.0) for each in value.places))
    return images.clip(value, 0.0) if isinstance(value, Figure) else value


def _shown(plan: Sql, node: exp.Expression) -> Any:
    """How a quantile of dates is written."""
    each = plan.front.aggregates.get(text_of(node))
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


def notes(plan: Sql, design: Design, advice: Advice | None, raw: Mapping[str, Any]) -> list[str]:
    """What was clipped, dropped and suppressed, as far as that may be known without spending."""
    lines = []
    unit = plan.unit.column or "row"
    if plan.front.units:
        lines.append(f"{counts_for(plan, design.limits)}; one that holds more is weighted down, not cut off")
    if advice is not None:
        lines += _losses(plan, advice, raw)
    elif plan.hints is not None:
        lines.append(expected_loss(plan, plan.hints))
    elif plan.front.units:
        lines.append("how much that lowers the sums is not known: limits=None lets the adviser measure it")
    if design.selects:
        votes = design.votes
        assert votes is not None
        least = design.threshold * 2.0**-votes.coordinate.bits
        lines.append(f"groups of fewer than about {least:.3g} {unit}s are left out; how many there are is private")
    if plan.front.keys:
        lines.append("rows without a group (NULL) are left out")
    if any(isinstance(each, Ranked) and each.end for each in plan.front.aggregates.values()):
        lines.append("MIN and MAX are read where ranks stand out from the noise: a little inside")
    return lines + cell_words.note(plan)


_UNSEEN = (
    "noise hid from the adviser how much units hold: sums may be far too low; give limits, or spend more on it (advice)"
)
_ANY = {"rows": "1", "keys": 1, "most_keys": 1, "values": 1, "reaches": {}, "totals": {}}


def _losses(plan: Sql, advice: Advice, raw: Mapping[str, Any]) -> Iterator[str]:
    spreads = _wide_spreads(plan, advice)
    unseen = {each.name for each in plan.questions.measures[:1]}
    for name, (_, total) in advice.totals.items():
        measured = sum(raw["numbers"].get(name, ()))
        if total <= 0 or not measured:
            continue
        unseen.discard(name)
        law, step = spreads[_wide(name)]
        what = "numbers of units" if name == VOTES else "sums"
        lost, doubt = 100 * (1 - measured / total), 100 * law.half_width(0.05) * step / total
        done = "; they were raised by that" if plan.unclip else "; unclip=True raises them by that"
        yield f"the limits lower {what} by about {max(lost, 0.0):.2g} % (± {doubt:.2g} %, and what noise hides){done}"
    if unseen:
        yield _UNSEEN


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


def told(plan: Sql, alpha: float) -> dict[str, float]:
    """The same for people, who must know that a quantile's is in rows."""
    ranked = {
        name
        for name, node in plan.front.outermost.outputs
        if isinstance(plan.front.aggregates.get(text_of(node)), Ranked)
    }
    return {
        f"{name} (in rows of rank)" if name in ranked else name: each for name, each in expected(plan, alpha).items()
    }


def expected(plan: Sql, alpha: float, limits: Limits | None = None) -> dict[str, float]:
    """Half-widths that are known before anything runs: of outputs that are one measured number, by name; of a quantile
    the number of rows by which its rank may be off."""
    design = plan.design(limits) if limits is not None else plan.fixed
    if design is None:
        return {}
    found: dict[str, float] = {}
    for name, node in plan.front.outermost.outputs:
        text = text_of(node)
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
