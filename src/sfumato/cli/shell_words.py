"""Fixes in the words of where one stands. The library's texts name Python; whoever typed a command is told its options
and other commands, and whoever wrote a file is told its fields."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

Place = Literal["options", "file"]
"""Where what is wrong was written: on the command line, or in a file of the project (plan.yaml, sfumato.yaml)."""


class Cause(NamedTuple):
    """A refusal whose fix is another one in the shell: the code of the error, and what to do."""

    code: str
    options: str
    file: str | None = None  # where that is something else


CAUSES: tuple[Cause, ...] = (
    Cause("at-work", "try again later, wait for it with --wait SECONDS, or stop it"),
    Cause("no-ledger", "`sfumato ledger open` makes the ledger that sfumato.yaml describes"),
    Cause(
        "how-much",
        "give --epsilon (with --delta), --rho or --accuracy, or `privacy` in sfumato.yaml",
        "give epsilon (with delta), rho or accuracy, or `privacy` in sfumato.yaml",
    ),
    Cause("key-unread", "bring back the key file that sfumato.yaml names (ledger: key), as this user's own"),
    Cause(
        "given-twice",
        "say it once: as an option here, or in the comment of the query",
        "say it once: as a field here, or in the comment of the query",
    ),
    Cause("key-unanswered", "give another --key: it pays again"),
    Cause("key-used", "give another --key, or none"),
    Cause("no-data-set", "`sfumato ledger open` makes the accounts that sfumato.yaml describes"),
    Cause("empty-ledger", "restore the ledger's file, or remove it and run `sfumato ledger open`"),
    Cause("locked", "a privacy officer looks at the failures: `sfumato ledger unlock`"),
    Cause(
        "groups-private",
        "groups that nobody listed take a --delta; or name them: --keys COLUMN=A,B",
        "groups that nobody listed take a delta; or name them, as in keys: {COLUMN: [A, B]}",
    ),
    Cause(
        "rank-accuracy",
        "say about how many: --group-rows 1000; or in rows of rank: --accuracy rank.COLUMN=20",
        "say about how many: group_rows: 1000; or in rows of rank: accuracy: {COLUMN: {rank: 20}}",
    ),
    Cause(
        "group-rows",
        "say about how many: --group-rows 1000",
        "say about how many: group_rows: 1000",
    ),
    Cause("no-purpose", "say it: --note TEXT", "say it, as in note: TEXT"),
    Cause("fresh-budget", "give --under, the account that it is a part of, or --reason why nobody counts twice"),
    Cause("no-account", "name one of these, or make it: `sfumato ledger allocate`"),
    Cause("nothing-asked", "see `sfumato ledger pending` for what was asked for"),
    Cause("policy-lists", "adopt another policy first: `sfumato ledger adopt FILE --reason WHY`"),
    Cause(
        "other-owners",
        "put sfumato.yaml back, or give the data another name and a budget of its own; a column that was only renamed "
        "or moved is entered as docs/ledger.md shows",
    ),
)


class _Phrase(NamedTuple):
    """Python's words, and what they are called in the shell and in a file; `\\1` is what the first group matched."""

    python: str
    options: str
    file: str


_NAME = r"(?:'([^']*)'|\"([^\"]*)\"|name of the column)"
_SAME = "\\g<0>"

_PHRASES: tuple[_Phrase, ...] = (
    _Phrase(r"\bkeys=\{'column': 'select'\}", "--keys COLUMN=select", "keys: {COLUMN: select}"),
    _Phrase(r"\bkeys=\{'column': \[\.\.\.\]\}", "--keys COLUMN=A,B", "keys: {COLUMN: [A, B]}"),
    _Phrase(r"\blimits=\{'rows': (\w+|\.\.\.)\}", r"--limit rows=\1", r"limits: {rows: \1}"),
    _Phrase(r"\blimits='advise'", "--limit advise", "advise: true"),
    _Phrase(r"\bnoise='(\w+)'", r"--noise \1", r"noise: \1"),
    _Phrase(r"\bunclip=True\b", "--unclip", "unclip: true"),
    _Phrase(r"\baccuracy=\{'([^']+)': \{'rank': (\w+)\}\}", r"--accuracy rank.\1=\2", r"accuracy: {\1: {rank: \2}}"),
    _Phrase(r"\bgroup_rows=(\w+)", r"--group-rows \1", r"group_rows: \1"),
    _Phrase(r"\bgive the new budget a larger delta\b", "give a larger --delta", "give a larger --delta"),
    _Phrase(r"\bpay_again=True\b", "--pay-again", "--pay-again"),
    _Phrase(r"\ba key of another name\b", "another --key", "another --key"),
    _Phrase(r"\braisable=True\b", "--raisable", "--raisable"),
    _Phrase(r"\boverwrite=True\b", "--overwrite", "--overwrite"),
    _Phrase(r"\bepsilon= or rho=", "--epsilon or --rho", "epsilon or rho"),
    _Phrase(r"\bin note=", "with --note TEXT", "in note"),
    _Phrase(r"\bparent=", "--under ACCOUNT", "--under ACCOUNT"),
    _Phrase(r"\breason=", "--reason TEXT", "--reason TEXT"),
    _Phrase(r"\ba longer wait=", "it more time", "it more time"),
    # What sfumato.yaml says of tables and columns.
    _Phrase(r"\bUnit\(\)", "unit: row", "unit: row"),
    _Phrase(r"\bUnit\('user:([^']+)'\)", r"unit: user:\1 (in sfumato.yaml)", r"unit: user:\1"),
    _Phrase(r"\bTable\(\.\.\., unit='\.\.\.'\)", "as its unit (in sfumato.yaml)", "as its unit"),
    _Phrase(r"\b(unit|names|owner)='([^']+)'", r"\1: \2", r"\1: \2"),
    _Phrase(r"\bleave (unit|owner)= out", r"leave its \1 out", r"leave its \1 out"),
    _Phrase(r"\bgive unit=", "say it in sfumato.yaml (unit)", "give unit"),
    _Phrase(r"\bnulls='drop'", "nulls: drop", "nulls: drop"),
    _Phrase(r"\b(constant|scaled)=True\b", r"\1: true", r"\1: true"),
    _Phrase(r"\btype='(\w+)'", r"type: \1", r"type: \1"),
    _Phrase(r"\brows= in the schema", "rows of its table in sfumato.yaml", "rows of its table in sfumato.yaml"),
    # Commands.
    _Phrase(
        r"\b(?:ledger\.)?accept_restore\b(?:\([^)]*\))?",
        "`sfumato ledger accept-restore`",
        "`sfumato ledger accept-restore`",
    ),
    _Phrase(r"\bledger\.change_limit\b", "`sfumato ledger limit`", "`sfumato ledger limit`"),
    _Phrase(r"\bledger\.pending\(\)", "`sfumato ledger pending`", "`sfumato ledger pending`"),
    _Phrase(r"\bledger\.verify\(\)|`verify`", "`sfumato ledger verify`", "`sfumato ledger verify`"),
    _Phrase(r"\bsee ledger\.spent\b", "see `sfumato ledger status ACCOUNT`", "see `sfumato ledger status ACCOUNT`"),
    _Phrase(r"\bwith sf\.public\(query, data\) or ", "with ", "with "),
    _Phrase(r"\bledger\.open_block\b", "the library", "the library"),
)
_BOUNDS = re.compile(rf"\bbounds=\{{{_NAME}: \(([^,()]+), ([^()]+)\)\}}")


def in_shell(text: str, place: Place = "options") -> str:
    """The same text, in which nothing is left of Python that stands for an option, a command or a field."""
    text = _BOUNDS.sub(lambda match: _bounds(match, place), text)
    for phrase in _PHRASES:
        text = re.sub(phrase.python, phrase.options if place == "options" else phrase.file, text)
    return text


def fix_of(code: str, place: Place = "options") -> str | None:
    """What to do about a refusal, where that is another thing in the shell than in Python."""
    for cause in CAUSES:
        if cause.code == code:
            return cause.options if place == "options" or cause.file is None else cause.file
    return None


def _bounds(match: re.Match[str], place: Place) -> str:
    name = match[1] or match[2] or "COLUMN"
    low, high = (end.upper() if end.isalpha() else end for end in (match[3], match[4]))
    return f"--bounds {name}={low}:{high}" if place == "options" else f"bounds: {{{name}: [{low}, {high}]}}"
