"""About how many rows of a table that is owned through a key lead to nobody: a query like any other, with a price."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..errors import PlanError
from ..owners import ownerships
from .ask import schema_and_unit, sql
from .plan import Sql
from .relations.bases import orphans_of

if TYPE_CHECKING:
    from ..units import Unit


def orphans(data: Any, table: str, *, unit: Unit | None = None, **options: Any) -> Sql:
    """The plan that counts the rows of a table that its key leads to nobody from, and that answers therefore leave out.

    >>> from sfumato import Schema, Unit, orphans, schema
    >>> orders = schema.Table({"id": schema.key(), "buyer": schema.key()}, unit="buyer")
    >>> items = schema.Table({"order": schema.key()}, owner="order -> orders.id")
    >>> shop = Schema({"orders": orders, "items": items})
    >>> orphans(shop, "items", unit=Unit("user:buyer"), epsilon=0.1, limits={"rows": 5}).text
    'SELECT COUNT(*) FROM "orphans of items"'

    data     the Private that it will run on, or a schema (then `unit` says whose presence is hidden)
    table    the table that is owned through a key
    options  as `sql` takes them: epsilon, limits, ... Limits are for all rows of one key

    Such rows come and go with nobody, so the count hides every unit. All rows of one key are hidden together besides,
    and a row without a key by itself: whose they were is not known.
    """
    schema, protects = schema_and_unit(data, unit)
    owned = ownerships(schema, protects).get(schema.table(table).name)
    if owned is None or owned.link is None:
        raise PlanError(f"table {table!r} is not owned through a key that is looked up: no row of it leads to nobody")
    name = exp.to_identifier(orphans_of(table), quoted=True).sql(dialect="duckdb")
    plan = sql(f"SELECT COUNT(*) AS rows FROM {name}", data, unit=unit, **options)
    assert isinstance(plan, Sql)  # one SELECT over one table
    return plan
