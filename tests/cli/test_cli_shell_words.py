"""What a command says names options, commands and fields, never Python; and what the library says names Python.

The texts are collected from the code: whoever adds one that tells Python's words of a fix has to say here what they
are in the shell (`cli/shell_words.py`), or that no command comes to it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato
from sfumato.cli.problems import problem_of
from sfumato.cli.shell_words import CAUSES, Place, fix_of, in_shell
from sfumato.errors import ArgumentError, BudgetError, LedgerError, PlanError, PolicyError
from sfumato.ledger.policy.approvals import Act
from sfumato.query.refusal import QueryError
from tests.cli.front import YAML, make_project
from tests.cli.front import sfumato as run_command

ROOT = Path(sfumato.__file__).parent
PYTHON = re.compile(
    r"\b[a-z_]+=(?:None|True|False|[{\[(]|['\"]|\.\.\.)"  # limits=None, bounds={...}, unit='x', note=...
    r"|\b[a-z_]+=(?=[\s,;:.]|$)"  # give unit=, or
    r"|\b(?:sf|ledger|curator|learn|error|mechanisms|audit|events|schema|bounds|query)\.[a-z_]+"
    r"|\b(?:Unit|Table|Schema|Limits|Budget|Private|About|FileAnchor|Features|Target|Audited)\("
    r"|\b[a-z_]+\(\.\.\.\)"
    r"|\baccept_restore\b"
)
# Rooms whose texts a command can come to. Models and losses of people's own (most of learn) are Python.
ROOMS = (
    "query", "ledger", "project", "sources", "owners.py", "schema.py", "units.py", "private.py", "curator.py",
    "held.py", "plan.py", "errors.py", "checks.py", "accounting/filters.py", "accounting/budget.py",
    "learn/features.py", "learn/front.py", "report",
)  # fmt: skip
NO_COMMAND = (
    # Arguments of a wrong type, which only a program can give.
    "such as sf.mechanisms.Laplace(...)", "such as mechanisms.Laplace(...)", "such as sf.sequence(...)",
    "a list of releases: sequence(...)", "such as Budget(epsilon=1", "such as open_ledger(...)", "an About(...)",
    "such as FileAnchor(path)", "a store: open a ledger by its path with sf.open_ledger", "a store; ledger.verify()",
    "a Unit, such as Unit()", "a Schema, such as Schema.of", "such as Table({", "'visits': Table(...)", "timedelta(",
    "what a PolicyError names as `error.act`", "Limits(rows=..., keys=...), or None", "what curator.release(plan)",
    "what audit.", "at least one Audited(", "audits such as audit.", "or an Anchor",
    # Work that no command does: sessions, loops, blocks, copies under other names, plans made of plans.
    "curator.session", "curator.supervise", "use curator.release(plan)", "made by reserve(...)", "use sequence(...)",
    "events.Repeat(", "same_as=", "ledger.open_block", "give data=", "declare it with schema.tensor",
    "comparable=True", "make a plan of it, with sf.sql", "release_report(..., release=...)",
    # The name of the door itself, where commands have their own words (see CAUSES and PolicyError.act).
    "create=True", "ledger.register(...)", "ledger.change_owners(...)", "ask with name = ledger.ask",
    "say it in note=", "curator.rehearse(plan)", "give the parent= that it",
    # Told to both, each in their words.
    "note=... in Python", "open the ledger with principal=...",
    # A comment of the query is written alike everywhere.
    "in a comment of the query is not known",
)  # fmt: skip


def texts() -> Iterator[tuple[str, str]]:
    """Every text of these rooms that is no docstring, with its place; what is filled in is a name."""
    for room in ROOMS:
        path = ROOT / room
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            passed = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    passed |= {id(part) for part in node.values}
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", "".join(map(_part, node.values))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node.value


def _part(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    return "'cost'" if part.conversion == ord("r") else "cost"


def told() -> list[tuple[str, str]]:
    return [(at, text) for at, text in texts() if " " in text.strip() and PYTHON.search(text)]


@pytest.mark.parametrize("place", ["options", "file"])
def test_no_text_that_a_command_comes_to_tells_python(place: Place) -> None:
    left = []
    for at, text in told():
        if any(part in text for part in NO_COMMAND) or _is_code(text):
            continue
        if PYTHON.search(in_shell(text, place)):
            left.append(f"{at}: {in_shell(text, place)}")
    assert not left, "\n".join(left)


def _is_code(text: str) -> bool:
    """SQL, HTML and the forms of files, which are no sentences about Python."""
    return bool(re.search(r"SELECT |CAST\(|<\w+ |^ *\w+ = |^ width=", text))


def test_the_collection_sees_what_it_should() -> None:
    found = [text for _, text in told()]
    for part in (
        "bounds={'cost': (lowest, highest)}",
        "limits='advise'",
        "unclip=True",
        "accept_restore",
        "Unit('user:cost')",
    ):
        assert any(part in text for text in found), part
    every = [text for _, text in texts()]
    unused = [part for part in NO_COMMAND if not any(part in text for text in every)]
    assert not unused, unused


def test_words_that_no_text_holds_any_more_are_gone() -> None:
    every = {text for _, text in texts()} | {"at-work"}
    assert [cause.code for cause in CAUSES if cause.code not in every] == []


@pytest.mark.parametrize(
    ("python", "options", "file"),
    [
        ("bounds={'n': (0, 10)}", "--bounds n=0:10", "bounds: {n: [0, 10]}"),
        ("bounds={'n': (lowest, highest)}", "--bounds n=LOWEST:HIGHEST", "bounds: {n: [LOWEST, HIGHEST]}"),
        (
            "use bounds: bounds={name of the column: (lowest, highest)}",
            "use bounds: --bounds COLUMN=LOWEST:HIGHEST",
            "use bounds: bounds: {COLUMN: [LOWEST, HIGHEST]}",
        ),
        ("limits='advise' lets the adviser", "--limit advise lets the adviser", "advise: true lets the adviser"),
        ("Give limits={'rows': 10}.", "Give --limit rows=10.", "Give limits: {rows: 10}."),
        ("; unclip=True raises", "; --unclip raises", "; unclip: true raises"),
        ("(keys={'column': 'select'})", "(--keys COLUMN=select)", "(keys: {COLUMN: select})"),
        ("protect Unit('user:p')", "protect unit: user:p (in sfumato.yaml)", "protect unit: user:p"),
        ("a new file, or overwrite=True: x", "a new file, or --overwrite: x", "a new file, or --overwrite: x"),
        ("raised with ledger.change_limit.", "raised with `sfumato ledger limit`.", None),
        ("run `verify`", "run `sfumato ledger verify`", "run `sfumato ledger verify`"),
        ("this one with accept_restore", "this one with `sfumato ledger accept-restore`", None),
    ],
)  # fmt: skip
def test_python_s_words_are_said_otherwise(python: str, options: str, file: str | None) -> None:
    assert in_shell(python) == options
    assert in_shell(python, "file") == (file or options)


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (QueryError("no bounds.", "give bounds: bounds={'n': (0, 10)}"), "give bounds: --bounds n=0:10"),
        (BudgetError("there is no account 'x' (there are a, b): open one with a budget first", code="no-account"),
         "ledger allocate"),
        (LedgerError("it is an older copy. Have two persons accept this one with accept_restore"), ""),
        (ArgumentError("accuracy needs limits: how wide. Give limits={'rows': 10}."), "--limit rows=10"),
        (PlanError("the unit given is a row: use Unit('user:p'), or leave it"), "unit: user:p"),
        (
            PolicyError("above 1: it needs 2 approval(s) of others, and has 0; ask with name = ledger.ask(error.act, "
                        "reason=...)", Act(do="weaken unit", on="visits@1", what="ab" * 32),
                        cause="above 1: it needs 2 approval(s) of others, and has 0"),
            f"`sfumato ledger ask 'weaken unit' visits@1 {'ab' * 32} --reason TEXT`",
        ),
    ],
)  # fmt: skip
def test_the_three_lines_of_an_error_tell_no_python(error: Exception, fix: str) -> None:
    problem = problem_of(error)
    assert fix in problem.fix and not PYTHON.search(f"{problem.why} {problem.fix}"), problem


def test_the_library_itself_still_tells_python() -> None:
    with pytest.raises(QueryError, match=r"bounds=\{'cost'") as caught:
        raise QueryError("no bounds.", "bounds={'cost': (lowest, highest)}")
    assert "--bounds" not in str(caught.value)
    assert fix_of("something else") is None


# Provoked


WITHOUT_BOUNDS = YAML.replace("cost: {type: real, lower: 0, upper: 1000}", "cost: key")
PROVOKED = (
    ("quote", "SELECT SUM(EXP(cost)) AS s FROM visits"),
    ("quote", "SELECT MEDIAN(LN(cost)) AS s FROM visits"),
    ("quote", "SELECT day, ward, COUNT(*) AS n FROM visits GROUP BY day, ward", "--keys", "ward=nowhere"),
    ("quote", "SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost", "--epsilon", "1", "--delta", "0"),
    ("quote", "SELECT COUNT(*) AS n FROM visits", "--limit", "advise", "--accuracy", "n=5"),
    ("quote", "SELECT AVG(cost) AS n FROM visits", "--accuracy", "n=5"),
    ("query", "SELECT COUNT(*) AS n FROM visits", "--account", "nobody"),
    ("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "9"),
    ("query", "SELECT COUNT(*) AS n FROM visits"),
    ("query", "SELECT COUNT(*) AS n FROM visits", "--limit", "advise"),
    ("rehearse", "SELECT COUNT(*) AS n FROM visits"),
    ("ledger", "limit", "nobody", "--epsilon", "1", "--reason", "r"),
    ("ledger", "allocate", "fresh", "--epsilon", "1", "--under", "nobody", "--reason", "r"),
    ("ledger", "move", "hospital", "training", "--reason", "r"),
    ("ledger", "approve", "abc", "--reason", "r"),
    ("ledger", "ask", "spend", "x", "y", "--reason", "r"),
    ("ledger", "accept-restore", "--person", "a", "--person", "b", "--reason", "r"),
    ("ledger", "accept-restore", "--person", "a", "--reason", "r"),
    ("ledger", "status", "nobody"),
    ("ledger", "unlock", "nobody", "--reason", "r"),
    ("run", "plan.yaml"),
)


@pytest.mark.parametrize("words", PROVOKED, ids=lambda words: " ".join(words)[:60])
def test_what_commands_say_when_they_are_provoked_tells_no_python(words: tuple[str, ...], tmp_path: Path) -> None:
    here = make_project(tmp_path)
    plan = "sfumato-plan: 1\nreleases:\n  - {name: a, sql: SELECT SUM(EXP(cost)) AS s FROM visits, epsilon: 0.1}\n"
    (here / "plan.yaml").write_text(plan, encoding="utf-8")
    ran = run_command(*words, at=here)
    said = ran.out + ran.err
    assert said and not PYTHON.search(re.sub(r"\s+", " ", said)) and "('" not in said, said
    if words[0] == "run":
        assert "bounds: {" in said and "--bounds" not in said
