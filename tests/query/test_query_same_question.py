"""The same question is the same plan, however it is typed; another question never is."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import (
    Budget,
    Curator,
    Limits,
    MemoryLedger,
    Private,
    Schema,
    Unit,
    record,
    schema,
    sequence,
    sql,
)
from sfumato.query.canonical import canonical, written
from sfumato.query.parsing import parsed
from sfumato.query.plan import Sql
from sfumato.schema import Table
from tests.effort import tries
from tests.query.fuzzing.queries import question
from tests.query.fuzzing.worlds import schema_of
from tests.query.still import answered

USER = Unit("user:user")
SCHEMA = Schema(
    {
        "visits": Table(
            {
                "user": schema.key(), "ward": schema.category(list("abc")), "drug": schema.category(["x", "Y"]),
                "cost": schema.real(0, 10), "n": schema.whole(0, 9), "ok": schema.flag(),
            },
            name="visits", unit="user",
        ),
        "wards": Table({"ward": schema.category(list("abc")), "beds": schema.whole(0, 9)}, name="wards", private=False),
    }
)  # fmt: skip
DATA = {
    "visits": pa.table(
        {
            "user": [1, 1, 2, 3, 3, 4, 5, 6], "ward": list("aabbcaac"), "drug": ["x", "Y"] * 4,
            "cost": [1.5, 2, 3, 9, 10, 4, 5, 2.5], "n": [0, 1, 2, 3, 4, 5, 6, 7], "ok": [True, False] * 4,
        }
    ),
    "wards": pa.table({"ward": list("abc"), "beds": [1, 5, 9]}),
}  # fmt: skip


def plan(text: str, **more: Any) -> Sql:
    return sql(text, SCHEMA, unit=USER, **{"epsilon": 1, "delta": 1e-6, "limits": {"rows": 2}, **more})


def curator() -> Curator:
    private = Private("visits", DATA, unit=USER, schema=SCHEMA)
    return Curator(private, MemoryLedger({"visits": Budget(epsilon=10, delta=1e-3)}))


FIRST = "SELECT ward, COUNT(*) AS n, SUM(cost) AS total FROM visits WHERE n > 1 AND ok GROUP BY ward"


@pytest.mark.parametrize(
    "text",
    [
        FIRST + ";",
        FIRST + " ; -- thanks",
        "/* again */ " + FIRST.replace(" ", "\n  "),
        FIRST.lower(),
        FIRST.upper(),
        FIRST.replace("n > 1 AND ok", "ok AND n > 1"),
        FIRST.replace("n > 1 AND ok", "((ok) AND ((1 < n)))"),
        FIRST.replace("n > 1 AND ok", "ok AND n > 1 AND ok"),
        FIRST.replace("AS n", "AS how_many").replace("AS total", '"Sum of cost"'),
        'SELECT "ward", COUNT(*), SUM("cost") FROM "visits" WHERE "n" > 1 AND "ok" GROUP BY "ward"',
        "SELECT v.ward, COUNT(*), SUM(v.cost) FROM visits AS v WHERE v.n > 1 AND v.ok GROUP BY v.ward",
        "SELECT Visits.Ward, COUNT(*), SUM(Visits.cost) FROM Visits WHERE Visits.n > 1 AND ok GROUP BY 1",
        "SELECT COUNT(*), ward AS w, SUM(cost) FROM visits WHERE n > 1 AND ok GROUP BY w",
        "SELECT ward, COUNT(*), SUM(cost) FROM visits WHERE n > 1 AND ok GROUP BY ALL",
        FIRST + " HAVING COUNT(*) > 3 ORDER BY total DESC LIMIT 2",
        "SELECT ward, SUM(cost) / COUNT(*) AS mean, COUNT(*) AS n FROM visits WHERE n > 1 AND ok GROUP BY ward",
    ],
)
def test_ways_to_write_one_question(text: str) -> None:
    made = plan(text)
    if "mean" in text:  # SUM comes first there, and the order of aggregates counts
        first = "SELECT ward, SUM(cost), COUNT(*) FROM visits WHERE n > 1 AND ok GROUP BY ward"
        assert made.hash == plan(first).hash
    else:
        assert made.hash == plan(FIRST).hash
    assert plan(made.text).hash == made.hash, "the one way leads to itself"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) FROM visits WHERE NOT n IN (1, 2)", "select count(*) from visits where n not in (2, 1, 1)"),
        ("SELECT COUNT(*) FROM visits WHERE n <> 2", "SELECT COUNT(*) FROM visits WHERE 2 != n"),
        ("SELECT COUNT(*) FROM visits WHERE cost - n = 2", "SELECT COUNT(*) FROM visits WHERE (2) = (cost) - (n)"),
        (
            "SELECT COUNT(*) FROM visits AS v JOIN wards AS w ON v.ward = w.ward WHERE w.beds > 2",
            "SELECT COUNT(*) FROM visits JOIN wards ON wards.ward = visits.ward WHERE 2 < wards.beds",
        ),
        (
            "SELECT COUNT(*) FROM (SELECT user, cost FROM visits) AS a WHERE a.cost > 1",
            "SELECT COUNT(*) FROM (SELECT v.user, v.cost FROM visits v) b WHERE cost > 1",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards AS w WHERE w.beds > 1)",
            "SELECT COUNT(*) FROM visits x WHERE x.ward IN (SELECT ward FROM wards AS y WHERE y.beds > 1)",
        ),
        (
            "SELECT AVG(cost) FILTER (WHERE ok AND n > 2) FROM visits",
            "SELECT avg(cost) filter (where n>2 and ok) FROM visits",
        ),
    ],
)  # fmt: skip
def test_pairs_that_are_one_question(one: str, other: str) -> None:
    assert plan(one).hash == plan(other).hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT COUNT(*) FROM visits WHERE drug = 'x'", "SELECT COUNT(*) FROM visits WHERE drug = 'X'"),
        ("SELECT COUNT(*) FROM visits WHERE drug = 'y' AND ok", "SELECT COUNT(*) FROM visits WHERE drug = 'Y' AND ok"),
        ("SELECT COUNT(*) FROM visits WHERE n - (2 - n) > 1", "SELECT COUNT(*) FROM visits WHERE n - 2 - n > 1"),
        (
            "SELECT COUNT(*) FROM visits WHERE ok AND (n > 1 OR n < 4)",
            "SELECT COUNT(*) FROM visits WHERE ok AND n > 1 OR n < 4",
        ),
        ("SELECT COUNT(*) FROM visits WHERE NOT (ok AND n > 1)", "SELECT COUNT(*) FROM visits WHERE NOT ok AND n > 1"),
        ("SELECT COUNT(*) FROM visits WHERE n < cost", "SELECT COUNT(*) FROM visits WHERE n > cost"),
        ("SELECT COUNT(*) FROM visits WHERE n <= 1", "SELECT COUNT(*) FROM visits WHERE n < 1"),
        ("SELECT COUNT(*) FROM visits", "SELECT COUNT(n) FROM visits"),
        ("SELECT SUM(cost) FROM visits", "SELECT SUM(cost), COUNT(*) FROM visits"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward", "SELECT ok, COUNT(*) FROM visits GROUP BY ok"),
        (
            "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.user = b.user WHERE a.n > 1",
            "SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.user = b.user WHERE b.n > 1",
        ),
        (
            "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = visits.ward)",
            "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM wards AS w WHERE w.ward = w.ward)",
        ),
    ],
)  # fmt: skip
def test_pairs_that_are_two_questions(one: str, other: str) -> None:
    assert plan(one).hash != plan(other).hash


@pytest.mark.parametrize(
    "more",
    [
        {"epsilon": 2}, {"delta": 1e-7}, {"limits": {"rows": 3}}, {"limits": None}, {"bounds": {"total": (0, 5)}},
        {"keys": {"ward": ["a"]}}, {"shares": {"n": 2}}, {"floor": True},
        {"limits": {"rows": 2, "reach": {"total": 5}}},
    ],
)  # fmt: skip
def test_another_price_or_another_option_is_another_plan(more: dict[str, Any]) -> None:
    assert plan(FIRST, **more).hash != plan(FIRST).hash


def test_options_are_the_same_by_whatever_name_and_in_a_comment_or_not() -> None:
    other = "-- sfumato: epsilon=1, delta=1e-6, rows=2, reach.t=5, bounds.t=0..8, shares.many=2, keys.w=a|b\n"
    other += "SELECT v.ward AS w, COUNT(*) AS many, SUM(v.cost) AS t FROM visits v WHERE v.ok AND v.n > 1 GROUP BY w"
    said = {"limits": {"rows": 2, "reach": {"total": 5}}, "bounds": {"total": (0, 8)}, "shares": {"n": 2}}
    named = plan(FIRST, keys={"ward": ["a", "b"]}, **said)
    assert sql(other, SCHEMA, unit=USER).hash == named.hash
    assert [row["total"] for row in answered(named, DATA).rows] == [5.0, 3.0]


def test_what_is_said_of_two_sums_that_would_become_one_leaves_the_query_as_it_is() -> None:
    text = "SELECT SUM(v.cost) AS a, SUM(cost) AS b FROM visits AS v"
    assert plan(text).as_written is not None
    assert plan(text, bounds={"a": (0, 1), "b": (0, 2)}).as_written is None


def test_the_stored_answer_is_free_and_shown_as_it_is_asked_for() -> None:
    asks = curator()
    first = asks.release(plan(FIRST))
    spent = asks.ledger.spent("visits")
    text = """
        select V.Ward as Station, count(*) as visits, sum(v.cost) as s
        from Visits V where V.ok and 1 < V.n group by Station having count(*) > -1000 order by visits desc limit 2;
    """
    quote = asks.quote(plan(text))
    assert quote.due is not None and "answered already" in quote.due
    again = asks.release(plan(text))
    assert asks.ledger.spent("visits") == spent and again.receipt == first.receipt
    rows = sorted(first.value.rows, key=lambda row: -row["n"])[:2]
    assert again.value.rows == [{"station": row["ward"], "visits": row["n"], "s": row["total"]} for row in rows]
    assert again.error(0.05).keys() == {"station", "visits", "s"}


def test_lists_know_the_same_question_too() -> None:
    asks = curator()
    part, other = plan(FIRST), plan(FIRST.upper() + ";")
    asks.prepay(sequence(a=part, b=plan("SELECT COUNT(*) AS n FROM visits")))
    spent = asks.ledger.spent("visits")
    asks.release(other)
    assert asks.ledger.spent("visits") == spent


def test_what_an_earlier_version_answered_is_still_answered() -> None:
    """It paid for the text word for word, with limits of 1 where nobody gave any."""
    text = "SELECT V.ward AS w, COUNT(DISTINCT V.user) AS people FROM visits V WHERE V.ok AND V.n > 1 GROUP BY w"
    old = Sql(text=text, schema=SCHEMA, protects=USER, epsilon=1, delta=1e-6, limits=Limits(rows=2, keys=1, values=1))
    asks = curator()
    stored = asks.release(old)
    spent = asks.ledger.spent("visits")
    now = plan(text)
    assert now.hash != old.hash and old in now.forms
    again = asks.release(now)
    assert asks.ledger.spent("visits") == spent and again.value.rows == stored.value.rows
    assert asks.quote(now).due is not None
    assert sequence(a=old) in sequence(a=now).forms


def test_how_an_answer_is_shown_is_no_part_of_the_plan() -> None:
    made = plan(FIRST + " ORDER BY total")
    again = record.parse(record.canonical(made))
    assert again == made and again.hash == made.hash and again.written is None
    assert b"ORDER BY" not in record.canonical(made)
    assert replace(made, epsilon=2).front.titles == ("ward", "n", "total")
    assert replace(made, text="SELECT COUNT(*) FROM visits").front.titles == ("COUNT(*)",)
    assert again.front.titles == ("ward", "COUNT(*)", "SUM(cost)")


# Random ways to write a random question.


@dataclass(frozen=True)
class Asked:
    """conditions: a tree of ("and" | "or" | "not", parts...), (left, operator, right) and names of flags."""

    keys: tuple[str, ...]
    aggregates: tuple[str, ...]
    condition: Any


_LEAF = st.one_of(
    st.tuples(st.sampled_from(["n", "cost"]), st.sampled_from(["<", "<=", ">", "=", "<>"]), st.sampled_from("1234")),
    st.tuples(st.just("n"), st.sampled_from(["<", "="]), st.just("cost")),
    st.tuples(st.just("drug"), st.just("="), st.sampled_from(["'x'", "'Y'", "'y'"])),
    st.tuples(st.just("ward"), st.just("in"), st.sampled_from([("'a'", "'b'"), ("'a'",), ("'c'", "'b'")])),
    st.tuples(st.just("cost - (n - 1)"), st.just(">"), st.sampled_from("12")),
    st.just("ok"),
)
_CONDITION = st.recursive(
    _LEAF,
    lambda inner: st.one_of(
        st.tuples(st.just("and"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("or"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=6,
)
_ASKED = st.builds(
    Asked,
    keys=st.lists(st.sampled_from(["ward", "drug", "ok"]), max_size=2, unique=True).map(tuple),
    aggregates=st.lists(
        st.sampled_from(["COUNT(*)", "SUM(cost)", "AVG(cost)", "COUNT(DISTINCT user)", "SUM(n + 1)", "MAX(n)"]),
        min_size=1,
        max_size=3,
        unique=True,
    ).map(tuple),
    condition=_CONDITION,
)
_MIRROR = {"<": ">", "<=": ">=", ">": "<", "=": "=", "<>": "<>"}
_COLUMNS = ("user", "ward", "drug", "cost", "n", "ok")


class Writer:
    """Writes a question in a random way."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.alias = self.draw.choice(["", "v", "T1", '"My visits"'])
        self.plain = seed == 0

    def text(self, asked: Asked) -> str:
        keys = [self.names(key) for key in asked.keys]
        outputs = [(text, f"k{place}") for place, text in enumerate(keys)]
        outputs += [(self.names(text), f"a{place}") for place, text in enumerate(asked.aggregates)]
        if not self.plain and self.draw.random() < 0.3:  # keys may stand anywhere
            outputs = outputs[len(keys) :] + outputs[: len(keys)]
        named = [f"{text} AS {self.draw.choice([name, name.upper(), 'z' + name])}" if self.chance() else text
                 for text, name in outputs]  # fmt: skip
        alias = f" {self.draw.choice(['AS ', ''])}{self.alias}" if self.alias else ""
        text = f"SELECT {', '.join(named)} FROM {self.names('visits')}{alias} WHERE {self.condition(asked.condition)}"
        text += f" GROUP BY {', '.join(keys)}" if keys else ""
        text += (
            self.draw.choice(["", " ORDER BY 1", " LIMIT 7", " HAVING COUNT(*) > -99"]) if self.can_have(asked) else ""
        )
        return self.spaced(self.cased(text)) + ("" if self.plain else self.draw.choice(["", ";", " ; ", "\n-- done"]))

    def can_have(self, asked: Asked) -> bool:
        return not self.plain and "COUNT(*)" in asked.aggregates

    def chance(self) -> bool:
        return not self.plain and self.draw.random() < 0.5

    def names(self, text: str) -> str:
        def one(match: re.Match[str]) -> str:
            name = match[0]
            if name not in (*_COLUMNS, "visits"):
                return name
            shown = f'"{name}"' if self.chance() else name
            return f"{self.alias or 'visits'}.{shown}" if name in _COLUMNS and self.chance() else shown

        return re.sub(r"[a-z]+", one, text)

    def condition(self, node: Any) -> str:
        inside = self._condition(node)
        return f"({inside})" if self.chance() else inside

    def _condition(self, node: Any) -> str:
        if isinstance(node, str):
            return self.names(node)
        if node[0] == "not":
            return f"NOT ({self.condition(node[1])})"
        if node[0] in ("and", "or"):
            parts = [f"({self.condition(each)})" for each in node[1]]
            if not self.plain:
                self.draw.shuffle(parts)
            return f" {node[0].upper()} ".join(parts)
        left, operator, right = node
        if operator == "in":
            values = list(right) + ([right[0]] if self.chance() else [])
            if not self.plain:
                self.draw.shuffle(values)
            return f"{self.names(left)} IN ({', '.join(values)})"
        sides = self.names(left), right if right.startswith("'") else self.names(right)
        if self.chance():
            sides, operator = sides[::-1], _MIRROR[operator]
        operator = "!=" if operator == "<>" and self.chance() else operator
        return f"{sides[0]} {operator} {sides[1]}"

    def cased(self, text: str) -> str:
        if self.plain:
            return text
        parts: Sequence[str] = re.split(r"('[^']*')", text)
        return "".join(
            each if each.startswith("'") else "".join(self.draw.choice([c.lower(), c.upper()]) for c in each)
            for each in parts
        )

    def spaced(self, text: str) -> str:
        if self.plain:
            return text
        blanks = [" ", "  ", "\n", " /* so */ ", "\t", " -- so\n"]
        parts = re.split(r"""('[^']*'|"[^"]*")""", text)
        return "".join(
            each if each[:1] in ("'", '"') else re.sub(" (?![bB][yY])", lambda _: self.draw.choice(blanks), each)
            for each in parts
        )


def _known(asked: Asked) -> Asked:
    """As it is told apart: operands are sets."""

    def plain(node: Any) -> Any:
        if isinstance(node, str):
            return node
        if node[0] == "not":
            return ("not", plain(node[1]))
        if node[0] in ("and", "or"):
            parts: set[Any] = set()
            for each in map(plain, node[1]):
                parts |= each[1] if each[0] == node[0] else {each}
            return (node[0], frozenset(parts)) if len(parts) > 1 else parts.pop()
        return (node[0], node[1], frozenset(node[2])) if node[1] == "in" else node

    return replace(asked, condition=plain(asked.condition))


@settings(max_examples=tries(20, of=40))
@given(_ASKED, st.integers(1, 10**9))
def test_any_way_to_write_a_question_is_the_same(asked: Asked, seed: int) -> None:
    one, other = plan(Writer(0).text(asked)), plan(Writer(seed).text(asked))
    assert one.as_written is not None and other.as_written is not None
    assert one.hash == other.hash


@settings(max_examples=tries(12, of=25))
@given(_ASKED, _ASKED, st.integers(1, 10**9))
def test_different_questions_never_are(asked: Asked, other: Asked, seed: int) -> None:
    """Each part of the one is put into the other."""
    first = plan(Writer(seed).text(asked)).hash
    edits = [replace(asked, keys=other.keys), replace(asked, aggregates=other.aggregates)]
    edits += [replace(asked, condition=other.condition), replace(asked, condition=("not", asked.condition))]
    for edited in edits:
        same = _known(edited) == _known(asked)
        assert (first == plan(Writer(seed + 1).text(edited)).hash) == same


@pytest.mark.parametrize(
    "condition",
    [
        "(ok OR n = cost) AND (ok OR n = cost)",
        "NOT ((ok OR n = 1) AND (ok OR n = 1))",
        "((ok AND n = 1) OR (ok AND n = 1))",
    ],
)
def test_what_is_said_twice_is_written_once(condition: str) -> None:
    text = f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"
    once = plan(text)
    assert once.as_written is not None and written(canonical(parsed(once.text))) == once.text
    assert repr(answered(once, DATA).rows) == repr(answered(once.as_written, DATA).rows)


def test_a_chain_of_hundreds_is_ordered_at_once() -> None:
    """Term by term it would be written n^2 / 2 times, and in a fuzz that took minutes."""
    terms = [f"n = {number}" for number in range(300)]
    one, other = (" OR ".join(order) for order in (terms, reversed(terms)))
    ordered = [written(canonical(parsed(f"SELECT COUNT(*) AS n FROM visits WHERE {text}"))) for text in (one, other)]
    assert ordered[0] == ordered[1] and ordered[0].count(" OR ") == 299


@settings(max_examples=tries(20, of=40))
@given(_ASKED, st.integers(1, 10**9))
def test_the_one_way_says_what_was_written(asked: Asked, seed: int) -> None:
    """Without noise, both forms have the same answer."""
    made = plan(Writer(seed).text(asked))
    assert made.as_written is not None
    assert repr(answered(made, DATA).rows) == repr(answered(made.as_written, DATA).rows)


def test_random_queries_of_all_kinds_are_written_in_one_way_that_is_stable() -> None:
    """Of the generator of the fuzz tests: joins, subqueries, windows, unions, functions of all kinds."""
    forms, seeds = 0, tries(25, of=60)
    for seed in range(seeds):
        asked = question(seed, users=True)
        law = {"noise": "gaussian"} if asked.options.get("delta") else {}  # that of the form of before
        try:
            made = sql(
                asked.text, schema_of(random.Random(seed), True), unit=Unit("user:patient"), **law, **asked.options
            )
        except Exception:
            continue
        if made.as_written is not None:
            forms += 1
            assert written(canonical(parsed(made.text))) == made.text
            assert made.event == made.as_written.event
    assert forms > seeds * 50 / 60
