"""Errors say what is in the way, what to do about it, and what it is called, as fields: nobody reads that in their
text."""

from __future__ import annotations

import pickle

import pytest

from sfumato import checks, errors
from sfumato.errors import ArgumentError, BudgetError, DataError, PolicyError, SfumatoError
from sfumato.query.refusal import QueryError


def kinds(of: type[SfumatoError] = SfumatoError) -> list[type[SfumatoError]]:
    return [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, of)]


def test_every_kind_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in kinds()]
    assert len(codes) > 9 and len(set(codes)) == len(codes)


@pytest.mark.parametrize(
    ("text", "cause", "fix", "argument"),
    [
        ("the ledger is closed", "the ledger is closed", None, None),
        ("it is closed: open it.", "it is closed", "open it", None),
        ("'a' protects [user: row]: open another", "'a' protects [user: row]", "open another", None),
        ("rate is missing: give rate=0.1.", "rate is missing", "give rate=0.1", "rate"),
        ("two lines\nof text: no fix", "two lines\nof text: no fix", None, None),
        ("", "", None, None),
    ],
)  # fmt: skip
def test_a_text_of_the_house_is_taken_apart_when_the_error_is_made(
    text: str, cause: str, fix: str | None, argument: str | None
) -> None:
    error = BudgetError(text)
    assert (str(error), error.cause, error.fix, error.argument) == (text, cause, fix, argument)
    assert error.code == "budget"


def test_what_is_said_is_not_read_from_the_text() -> None:
    error = ArgumentError("a: b: c.", cause="a: b", fix="c", code="odd", argument="a")
    assert (str(error), error.cause, error.fix, error.code, error.argument) == ("a: b: c.", "a: b", "c", "odd", "a")
    assert ArgumentError("a: b").code == "argument"


def test_a_refused_argument_is_named() -> None:
    error = checks.refuse("epsilon", -1, "a number: above 0")
    assert str(error) == "epsilon = -1 is not allowed: give a number: above 0."
    assert (error.cause, error.fix) == ("epsilon = -1 is not allowed", "give a number: above 0")
    assert (error.argument, error.code) == ("epsilon", "value")


def test_policies_and_queries_and_failures_have_their_own() -> None:
    policy = PolicyError("above 1: it needs 2", act="act")
    assert (policy.cause, policy.fix, policy.act) == ("above 1: it needs 2", None, "act")
    query = QueryError("no bounds.", "give bounds")
    assert (query.cause, query.fix, str(query)) == ("no bounds.", "give bounds", "no bounds.\nInstead: give bounds")
    failed = DataError()
    assert str(failed) == DataError.TEXT == f"{failed.cause} {failed.fix}"


def test_an_error_is_made_anew_without_its_frames() -> None:
    try:
        raise PolicyError("no: never", act="act", code="odd")
    except PolicyError as problem:
        again = problem.anew()
    assert again.__traceback__ is None and type(again) is PolicyError
    assert (str(again), again.act, again.code, again.cause) == ("no: never", "act", "odd", "no: never")
    copy = pickle.loads(pickle.dumps(again))
    assert (str(copy), copy.act, copy.code, copy.cause) == ("no: never", "act", "odd", "no: never")
