"""Numbers in ClickHouse: doubles are those of IEEE 754, and whole numbers wrap around in silence where they overflow,
which the compiler proves that they do not. Sums are made in 128 bits. No function here raises.

Results without a sign (of counts, sizes, remainders) are given one, as they have no type in common with others.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from ..errors import PlanError
from .base import needed
from .inferred_types import INTEGERS, kind_of
from .lowering import type_of
from .mariadb_numbers import SPANS
from .sql_texts import number_in, type_kept, with_number, writer

written = writer("clickhouse")

TO_INTEGER = {"INT128": "toInt128", **dict.fromkeys(INTEGERS, "toInt64")}


def double_text(number: float) -> str:
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "-inf" if number < 0 else "inf"
    if number == 0:
        return "toFloat64('-0.0')" if math.copysign(1, number) < 0 else "0."
    return repr(float(number))


def quoted_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def refusal(word: str, of: str) -> PlanError:
    return PlanError(f"ClickHouse has no word for {word!r} of {of}: the statement is not run there")


def double(node: Any) -> Any:
    if kind_of(node) == "DOUBLE":
        return node
    number = number_in(node)
    if number is not None:
        return type_kept(with_number(written(double_text(number)), number), "DOUBLE")
    return written("toFloat64(v_x)", x=node)


def moment(node: Any) -> Any:
    return node if kind_of(node) == "TIMESTAMP" else written("toDateTime64(v_x, 6, 'UTC')", x=node)


def _added(node: Any, sign: str) -> Any:
    kinds = [kind_of(node.this), kind_of(node.expression)]
    if "INTERVAL" in kinds:
        first, second = (node.this, node.expression) if kinds[1] == "INTERVAL" else (node.expression, node.this)
        return written(f"v_a {sign} v_b", a=moment(first), b=second)
    if kind_of(node) == "DOUBLE":
        return written(f"v_a {sign} v_b", a=double(node.this), b=double(node.expression))
    if kinds == ["DATE", "DATE"]:
        return written("dateDiff('day', v_b, v_a)", a=node.this, b=node.expression)
    if "DATE" in kinds:
        day, days = (node.this, node.expression) if kinds[0] == "DATE" else (node.expression, node.this)
        function = "addDays" if sign == "+" else "subtractDays"
        text = f"CASE WHEN v_n BETWEEN -3700000 AND 3700000 THEN {function}(v_d, toInt64(v_n)) END"
        return written(text, d=day, n=days)
    if kind_of(node) is None:
        raise refusal("sum_of_two", "values of unknown types")
    return _whole(node, f"v_a {sign} v_b")


def _whole(node: Any, text: str) -> Any:
    """Of whole numbers: in 64 bits with a sign, or in 128."""
    function = TO_INTEGER.get(kind_of(node) or "")
    sides = (node.this, node.expression)
    if function is None:  # decimals
        return written(text, a=sides[0], b=sides[1])
    return written(text, a=written(f"{function}(v_x)", x=sides[0]), b=written(f"{function}(v_x)", x=sides[1]))


def sum_of_two(node: Any) -> Any:
    return _added(node, "+")


def difference(node: Any) -> Any:
    return _added(node, "-")


def negative(node: Any) -> Any:
    number = number_in(node.this)
    function = TO_INTEGER.get(kind_of(node.this) or "")
    text = "-v_x" if function is None else f"-{function}(v_x)"
    return with_number(written(text, x=node.this), None if number is None else -number)


def product(node: Any) -> Any:
    if kind_of(node) is None:
        raise refusal("product", "values of unknown types")
    if kind_of(node) == "DOUBLE":
        return written("v_a * v_b", a=double(node.this), b=double(node.expression))
    return _whole(node, "v_a * v_b")


def quotient(node: Any) -> Any:
    return written("v_a / v_b", a=double(node.this), b=double(node.expression))


def whole_quotient(node: Any) -> Any:
    function = TO_INTEGER.get(kind_of(node) or "")
    if function is None:
        raise refusal("whole_quotient", "values that are no integers")
    return written(f"intDivOrNull({function}(v_a), {function}(v_b))", a=node.this, b=node.expression)


def remainder(node: Any) -> Any:
    kind = kind_of(node)
    function = TO_INTEGER.get(kind or "")
    if function is None:  # that of doubles is computed by a quotient that was rounded
        raise refusal("remainder", "doubles")
    return written(f"{function}(moduloOrNull({function}(v_a), {function}(v_b)))", a=node.this, b=node.expression)


def shifted_right(node: Any) -> Any:
    function = TO_INTEGER.get(kind_of(node.this) or "", "toInt64")
    return written(f"bitShiftRight({function}(v_a), v_b)", a=node.this, b=node.expression)


def bits_of_both(node: Any) -> Any:
    function = TO_INTEGER.get(kind_of(node.this) or "", "toInt64")
    return written(f"bitAnd({function}(v_a), {function}(v_b))", a=node.this, b=node.expression)


def size(node: Any) -> Any:
    function = TO_INTEGER.get(kind_of(node.this) or "")
    return written("abs(v_x)" if function is None else f"{function}(abs(v_x))", x=node.this)


_ROUNDED = "trunc(v_x + sign(v_x) * 0.49999999999999994)"


def rounded(node: Any) -> Any:
    """Halves away from 0, of doubles and of whole numbers."""
    places = int(number_in(node.args["decimals"]) or 0) if node.args.get("decimals") else 0
    kind, x = kind_of(node), node.this
    if kind in INTEGERS:
        if places >= 0:
            return x
        unit = f"toInt128({10**-places})"
        low, high = SPANS["BIGINT"]
        whole = f"intDiv(toInt128(v_x) + sign(v_x) * intDiv({unit}, 2), {unit}) * {unit}"
        return written(f"toInt64(least(greatest({whole}, toInt128({low})), toInt128({high})))", x=x)
    if kind != "DOUBLE":
        raise refusal("rounded", "decimals")
    if places == 0:
        return written(_ROUNDED, x=x)
    power = double_text(10.0 ** abs(places))
    if places > 0:
        whole = _ROUNDED.replace("v_x", f"(v_x * {power})")
        return written(f"CASE WHEN isFinite(v_x * {power}) THEN {whole} / {power} ELSE v_x END", x=x)
    whole = _ROUNDED.replace("v_x", f"(v_x / {power})")
    return written(f"{whole} * {power}", x=x)


def cast(node: Any) -> Any:
    """A cast that cannot fail."""
    x, to = node.this, type_of(node.to)
    kind, number, bare = kind_of(x), number_in(x), x.unnest()
    text = bare.name if isinstance(bare, needed("sqlglot").exp.Literal) and bare.is_string else None
    if to == "DOUBLE":
        number = float(text) if text is not None else number
        if number is not None:
            return with_number(written(double_text(number)), number)
        return x if kind == "DOUBLE" else written("toFloat64(v_x)", x=x)
    if to == "VARCHAR":
        return _text_of(x, kind)
    if to == "BOOLEAN":
        return x if kind in ("BOOLEAN", None) else written("(v_x <> 0)", x=x)
    if to == "DATE":
        return x if kind == "DATE" else written("toDate32(v_x)", x=x)
    if to == "TIMESTAMP":
        return moment(x)
    if to == "DECIMAL":
        return written(f"CAST(v_x AS Nullable(Decimal({_digits(node.to)})))", x=x)
    if kind == "DOUBLE":
        return nearest(x, node.to)
    return with_number(written(f"{TO_INTEGER[to]}(v_x)", x=x), number if text is None else float(text))


def _text_of(x: Any, kind: str | None) -> Any:
    if kind == "VARCHAR":
        return x
    if kind == "BOOLEAN":
        return written("CASE WHEN v_x THEN 'true' WHEN NOT v_x THEN 'false' END", x=x)
    if kind == "TIMESTAMP":
        return written("TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM toString(v_x)))", x=x)
    if isinstance(x.unnest(), needed("sqlglot").exp.Null):
        return written("CAST(NULL AS Nullable(String))")
    return written("toString(v_x)", x=x)


def _digits(to: Any) -> str:
    return ", ".join([size.name for size in to.expressions] or ["38", "0"])


def to_integer(number: str, kind: str) -> str:
    """A whole DOUBLE as an integer, NULL where it is none of 64 bits, or of 128. The server may compute a branch that a
    CASE does not take, and its other casts raise for NaN."""
    return f"accurateCastOrNull({number}, '{'Int128' if kind == 'INT128' else 'Int64'}')"


def nearest(x: Any, to: Any) -> Any:
    return written(to_integer("roundBankers(v_x)", type_of(to)), x=double(x))


def nearest_or_null(x: Any, to: Any) -> Any:
    kind = type_of(to)
    number = to_integer("roundBankers(v_x)", kind)
    if kind == "BIGINT":
        return written(number, x=double(x))
    low, high = SPANS[kind]
    fits = f"roundBankers(v_x) BETWEEN {double_text(low)} AND {double_text(high)}"
    if kind == "INT128":
        fits = f"abs(v_x) < {double_text(-float(low))}"
    return written(f"CASE WHEN {fits} THEN {number} END", x=double(x))


def narrowed_or_null(x: Any, to: Any) -> Any:
    kind = type_of(to)
    if kind == "INT128":
        return written("toInt128(v_x)", x=x)
    low, high = SPANS[kind]
    inside = f"toInt128(v_x) BETWEEN toInt128('{low}') AND toInt128('{high}')"
    return written(f"CASE WHEN {inside} THEN toInt64(v_x) END", x=x)


def whole_or_null(x: Any) -> Any:
    """A decimal is one of at most 38 digits, which 128 bits hold."""
    if kind_of(x) == "DECIMAL":
        low, high = SPANS["BIGINT"]
        inside = f"toInt128(v_x) BETWEEN toInt128('{low}') AND toInt128('{high}')"
        return written(f"CASE WHEN trunc(v_x) = v_x AND {inside} THEN toInt64(toInt128(v_x)) END", x=x)
    return written(f"CASE WHEN trunc(v_x) = v_x THEN {to_integer('v_x', 'BIGINT')} END", x=x)


def _shortened(x: Any, width: int, places: int) -> Any:
    """A decimal of other digits, compared where 38 before the point and 38 behind it fit: beyond, comparisons raise."""
    number, most = f"round(toDecimal256(v_x, 38), {places})", Decimal(10**width - 1).scaleb(-places)
    top = f"toDecimal256('{most:f}', 38)"
    cut = f"CAST(least(greatest({number}, -{top}), {top}) AS Nullable(Decimal({width}, {places})))"
    return written(f"CASE WHEN abs({number}) <= {top} THEN {cut} END", x=x)


def decimal_or_null(x: Any, to: Any) -> Any:
    """Of a DOUBLE as DuckDB reads one: what it writes in few digits is what it means, 1.005 as 1.01."""
    width, places = (int(size.name) for size in to.expressions)
    own = f"Decimal({width}, {places})"
    kind = kind_of(x)
    if kind in (*INTEGERS, "INT128"):
        most = 10 ** (width - places) - 1
        cut = f"least(greatest(toInt128(v_x), toInt128('-{most}')), toInt128('{most}'))"
        fits = f"toInt128(v_x) BETWEEN toInt128('-{most}') AND toInt128('{most}')"
        return written(f"CASE WHEN {fits} THEN CAST(toDecimal128({cut}, 0) AS Nullable({own})) END", x=x)
    if kind == "DECIMAL":
        return _shortened(x, width, places)
    if kind not in (None, "DOUBLE"):
        raise refusal("decimal_or_null", "values of this type")
    scaled = f"(v_x * {double_text(10.0**places)})"
    near = f"({scaled} + sign({scaled}) * 1e-9)" if places else scaled
    whole = f"roundBankers({near})" if places else _ROUNDED.replace("v_x", near)
    # Cut to the digits before it is cast: casts of others raise, also in a branch that is not taken.
    most = f"toInt128('{10**width - 1}')"
    digits = f"least(greatest({to_integer(whole, 'INT128')}, -{most}), {most})"
    unit = f"toDecimal128('{Decimal(1).scaleb(-places):f}', {places})"
    number = f"CAST(toDecimal128({digits}, 0) * {unit} AS Nullable({own}))"
    return written(f"CASE WHEN abs({whole}) < {double_text(10.0**width)} THEN {number} END", x=double(x))
