"""The groups that can occur: keys that hang together are listed together, by the engine, over public tables alone.

Keys over one use of a public table are listed as they stand in its rows; an equation between two uses (a join of public
tables) brings their rows together, and every fact that speaks of no other use narrows them. What does not hang together
is multiplied.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..sources.vocabulary import call
from .expressions import trees
from .keys import MOST, Key, combinations_in, label, literal, ordering, product, public_values, refuse_many
from .kinds import MANY_DAYS, SQL_TYPES
from .public_images import Image, PublicRows

if TYPE_CHECKING:
    from ..sources import Connection

_LONG = 50
_LOOKED_THROUGH = 4 * MOST
"""Combinations of the schema's lists that the engine goes through for those that conditions leave."""
_BETWEEN = ","


@dataclass(frozen=True)
class KeyBlock:
    """Keys that are listed together.

    places  of the keys among all
    uses    of public rows, by name; none where the keys are a list, or columns of one table
    facts   that hold for these
    """

    places: tuple[int, ...]
    uses: Mapping[str, PublicRows]
    facts: tuple[Image, ...] = ()

    @property
    def tables(self) -> list[str]:
        return sorted({name for use in self.uses.values() for name in use.tables})


def blocks(keys: Sequence[Key], facts: Sequence[Image]) -> list[KeyBlock]:
    """Which keys hang together. Every other one is alone, and so is one whose values somebody gave."""
    together: dict[Any, list[int]] = {}
    pictured: list[KeyBlock] = []
    for place, key in enumerate(keys):
        if key.image is not None:
            pictured.append(KeyBlock((place,), _reached(key.image, facts)))
            continue
        row = None if key.origin is None else key.typed.kind.row
        together.setdefault(place if row is None else (key.origin[0], row), []).append(place)  # type: ignore[index]
    within = {name for block in pictured for name in block.uses}
    for fact in facts:
        if fact.uses.keys() <= within:
            pictured.append(KeyBlock((), fact.uses, (fact,)))
    return [*_connected(pictured), *(KeyBlock(tuple(places), {}) for places in together.values())]


def _reached(image: Image, facts: Sequence[Image]) -> dict[str, PublicRows]:
    """The uses of a key, and those that equations lead to."""
    uses, size = dict(image.uses), -1
    while len(uses) > size:
        size = len(uses)
        for fact in facts:
            if fact.equates and not uses.keys().isdisjoint(fact.uses):
                uses |= fact.uses
    return uses


def _connected(parts: Sequence[KeyBlock]) -> list[KeyBlock]:
    """Parts that share a use are one block."""
    whole: list[KeyBlock] = []
    for part in parts:
        apart = [block for block in whole if block.uses.keys().isdisjoint(part.uses)]
        shared = [*(block for block in whole if block not in apart), part]
        uses = {name: use for block in shared for name, use in block.uses.items()}
        places = sorted(place for block in shared for place in block.places)
        whole = [*apart, KeyBlock(tuple(places), uses, tuple(fact for block in shared for fact in block.facts))]
    return whole


def listed(keys: Sequence[Key], facts: Sequence[Image], connection: Connection) -> list[tuple[Any, ...]]:
    """All groups: every combination of values that are given and of what public tables hold."""
    together = blocks(keys, facts)
    places = [place for block in together for place in block.places]
    order = sorted(range(len(places)), key=places.__getitem__)
    lists = [_rows(block, [keys[place] for place in block.places], connection) for block in together]
    rows = (tuple(itertools.chain.from_iterable(parts)) for parts in product(lists))
    return [tuple(row[at] for at in order) for row in rows]


def check_sizes(keys: Sequence[Key], facts: Sequence[Image]) -> None:
    """Refuse more groups than an answer has, as far as the schema tells. What conditions leave of its lists is told by
    the engine when the query is bound, unless the lists are too long to be looked through together."""
    if any(key.values is None for key in keys):
        return
    sizes = []
    for block in blocks(keys, facts):
        size = math.prod(len(keys[place].values or ()) for place in block.places)
        looked_through = combinations_in(block.uses) <= _LOOKED_THROUGH
        sizes.append(1 if block.facts and looked_through else size)
    refuse_many(sizes)


def _rows(block: KeyBlock, keys: Sequence[Key], connection: Connection) -> list[tuple[Any, ...]]:
    """The values of one key, or the different rows of several; none with a NULL."""
    if len(keys) == 1 and keys[0].values is not None and not block.facts:
        return [(value,) for value in keys[0].values]
    table = connection.run(statement(block, keys) if block.uses else _of_table(keys))
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return sorted((row for row in rows if None not in row), key=lambda row: tuple(map(ordering, row)))


def _of_table(keys: Sequence[Key]) -> exp.Query:
    origins = [key.origin for key in keys if key.origin is not None]
    names = [exp.column(column, quoted=True) for _, column in origins]
    return exp.select(*names).distinct().from_(exp.to_table(origins[0][0], quoted=True))


def statement(block: KeyBlock, keys: Sequence[Key]) -> exp.Query:
    """What the engine is asked: no private table stands in it."""
    short = {name: f"u{place}" for place, name in enumerate(block.uses)}
    sources = [_source(name, use).subquery(short[name]) for name, use in block.uses.items()]
    tree = exp.Select().distinct().from_(sources[0])
    for source in sources[1:]:
        tree.append("joins", exp.Join(this=source, kind="CROSS"))
    images = [key.image for key in keys if key.image is not None]
    shown = [exp.alias_(_renamed(image.tree, short), f"k{place}", quoted=True) for place, image in enumerate(images)]
    tests = [exp.Paren(this=_renamed(fact.tree, short)) for fact in block.facts]
    return tree.select(*shown).where(*tests)


def _renamed(tree: exp.Expression, short: Mapping[str, str]) -> exp.Expression:
    around = exp.Paren(this=tree.copy())
    for column in around.find_all(exp.Column):
        column.set("table", exp.to_identifier(short[column.table], quoted=True))
    renamed: exp.Expression = around.this.pop()
    return renamed


def _source(name: str, use: PublicRows) -> exp.Query:
    """The rows of a use, with one of NULLs where there may be none."""
    if use.tree is None:
        return _list(name, use)
    return _or_nothing(use.tree.copy()) if use.missing else use.tree.copy()


def _list(name: str, use: PublicRows) -> exp.Query:
    """The values that the schema lists; a long list goes to the engine as one text, taken apart there."""
    kind, column = use.listed, name.rpartition("#")[2]
    assert kind is not None
    values = public_values(kind, MANY_DAYS) or ()
    if kind.values is None and len(values) > _LONG:
        text = trees.text(_BETWEEN.join(map(label, values)))
        word = "wholes_of" if kind.is_whole else "texts_of"
        parts = exp.Select().select(exp.alias_(call(word, text, trees.text(_BETWEEN)), "value"))
        rows: exp.Expression = parts.subquery("_list")
        value: exp.Expression = exp.column("value", table="_list")
        value = value if kind.is_whole else trees.read_or_null(value, "DATE")
    else:
        rows = exp.Values(
            expressions=[exp.Tuple(expressions=[literal(each)]) for each in values]
            or [exp.Tuple(expressions=[exp.Null()])],
            alias=exp.TableAlias(this=exp.to_identifier("_list"), columns=[exp.to_identifier("value")]),
        )
        value = exp.cast(exp.column("value", table="_list"), SQL_TYPES[kind.type])
    tree = exp.Select().from_(rows).select(exp.alias_(value, column, quoted=True))
    return _or_nothing(tree) if use.missing or kind.nullable else tree


def _or_nothing(rows: exp.Query) -> exp.Query:
    nothing = exp.Select().select(*(exp.Null() for _ in rows.named_selects))
    return exp.Union(this=rows, expression=nothing, distinct=False)
