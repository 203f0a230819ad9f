"""What a query does, in plain words with the numbers used."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from . import ranks
from .aggregates import VOTES
from .candidates import KeyBlock, blocks
from .finish import expected, expected_loss
from .limits import Limits
from .words import counts_for, limits_in_words

if TYPE_CHECKING:
    from .design import Design
    from .plan import Sql


SPARED = "delta was not needed: Laplace noise is smaller here (noise='gaussian' may take less of an account)"


def steps(plan: Sql) -> list[str]:
    """One line per step."""
    front, unit = plan.front, plan.unit.column or "row"
    lines = [f"read the rows: each belongs to one {unit}, through every join and subquery"]
    lines += [f"in {table} the column {column} names the {unit}" for table, column in plan.other_names.items()]
    lines += [f"in {table} {words}" for table, words in plan.paths.items()]
    lines += _groups(plan)
    lines += [SPARED] * plan.spares_delta
    if plan.advises:
        share = f"{100 * float(plan.advice):.3g} %"
        lines.append(f"spend {share} of the budget on how much units hold, and on what the limits chosen by it cut")
        how = f"hold every number of a {unit} at" if front.reading.single else f"weigh every {unit} down to"
        lines.append(f"{how} those limits, add up whole numbers exactly, and add {plan.blur.kind} noise")
        return [*lines, *_statements(plan)]
    design = plan.fixed or plan.design(plan.limits or Limits())
    if plan.measures_cuts:
        share = f"{100 * float(plan.advice):.3g} %"
        lines.append(f"spend {share} of the budget on what the limits cut, and raise the numbers by it")
    if front.units:
        if front.reading.single:
            lines.append(f"hold every number of a {unit}'s one row at its reach: {limits_in_words(plan, design)}")
        else:
            lines.append(f"weigh every {unit}, by 1 or less: {counts_for(plan, design.limits)}; no row is dropped")
    if plan.hints is not None:
        lines.append(expected_loss(plan, plan.hints))
    lines += _noise(plan, design)
    lines += [f"{name}: ± {width:.4g} at 95 %" for name, width in ranks.named(plan, expected(plan, 0.05)).items()]
    return [*lines, *_statements(plan)]


def _statements(plan: Sql) -> list[str]:
    """What the engine is asked, word for word; with the adviser, but for the limits that it will choose."""
    like = ", with the chosen limits in place of 1" if plan.advises else ""
    return [f"run, for {name}{like}:\n{textwrap.indent(text, '      ')}" for name, text in plan.statements().items()]


def _groups(plan: Sql) -> list[str]:
    lines = []
    for block in blocks(plan.front.keys, plan.front.reading.facts):
        key, names = plan.front.keys[block.places[0]], ", ".join(plan.front.keys[place].name for place in block.places)
        if block.uses and (len(block.places) > 1 or block.facts or not (key.values or key.origin)):
            lines.append(f"group by {names}: {_as_they_occur(block)}")
        elif len(block.places) > 1 and key.origin is not None:
            lines.append(f"group by {names}: as they occur together in the public table {key.origin[0]}")
        elif key.values is not None:
            lines.append(f"group by {key.name}: {len(key.values)} public values; those without rows appear, too")
        elif key.origin is not None:
            lines.append(f"group by {key.name}: the values of the public table {key.origin[0]}")
        else:
            lines.append(f"group by {key.name}: which values there are is private")
    if plan.fixed is not None and plan.fixed.selects:
        votes = plan.fixed.votes
        assert votes is not None
        least = plan.fixed.threshold * 2.0**-votes.coordinate.bits
        lines.append(
            f"show the groups whose noisy number of units reaches {least:.4g}; a group of one unit alone stays out but "
            f"for probability {float(plan.blur.key_delta):.3g}"
        )
    return lines


def _as_they_occur(block: KeyBlock) -> str:
    many = len(block.places) > 1
    tables = f"the public table{'s' if len(block.tables) > 1 else ''} {' and '.join(block.tables)}"
    narrowed = any(len(fact.uses) == 1 or not fact.equates for fact in block.facts)
    where = ", where the query's conditions hold" if narrowed else ""
    if not block.tables:
        return f"what it makes of the values that the schema lists{where}"
    return f"as they occur{' together' if many else ''} in {tables}{where}"


def _noise(plan: Sql, design: Design) -> list[str]:
    lines = []
    every = [*design.sums, *([design.votes.coordinate] if design.votes else [])]
    every += [design.distinct(name) for name in design.questions.distinct]
    every += [design.counted(name) for name in (*design.questions.ranked, *design.questions.binned)]
    for each in every:
        what = "units of each group" if each.measure.name == VOTES else each.measure.title
        law, step = design.law(each), 2.0 ** (each.exponent - each.bits)
        lines.append(
            f"add up {what} (reach {float(each.reach):.4g} for one unit; {100 * float(each.share):.3g} % of "
            f"the budget) and add {plan.blur.kind} noise of standard deviation {law.std * step:.4g}"
        )
    return lines
