"""Write anew what help and errors look like. Run by hand, and read the difference before it is committed:

PYTHONPATH=src python -m tests.cli.golden_regen
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.front import BY_WARD, YAML, make_project, sfumato

GOLDEN = Path(__file__).parent / "golden"
HELP, ERRORS = GOLDEN / "help", GOLDEN / "errors.txt"


def commands() -> Iterator[tuple[str, ...]]:
    """Every command that there is, by the words that call it."""
    import typer

    from sfumato.cli.app import app

    def below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name, child in sorted(getattr(command, "commands", {}).items()):
            yield from below(child, (*words, name))

    yield from below(typer.main.get_command(app), ())


def file_of(words: tuple[str, ...]) -> Path:
    return HELP / f"{'-'.join(('sfumato', *words))}.txt"


def help_of(words: tuple[str, ...], folder: Path) -> str:
    """Its help, without the blanks that typer fills lines with."""
    ran = sfumato(*words, "--help", at=folder)
    assert (ran.code, ran.err) == (0, ""), words
    return "\n".join(line.rstrip() for line in ran.out.splitlines()).strip("\n") + "\n"


def errors(folder: Path) -> Iterator[str]:
    """What goes wrong, as it is told: the command, its exit code, the three lines."""
    here = make_project(folder / "here")
    bare = make_project(folder / "bare", ledger=False)
    empty = folder / "empty"
    empty.mkdir()
    yaml = make_project(folder / "yaml", text=YAML.replace("upper: 1000", "uper: 1000"), ledger=False)
    gone = make_project(folder / "gone")
    (gone / "data" / "visits.csv").unlink()
    broken = make_project(folder / "broken")
    (broken / "budget.ledger").write_bytes(b"this is no ledger" * 400)
    count = "SELECT COUNT(*) AS n FROM visits"
    assert sfumato("query", count, "--epsilon", "0.1", "--key", "monday", at=here).code == 0
    for at, *words in (
        (here, "query", "SELECT AVG(cots) AS mean FROM visits"),
        (here, "query", "SELECT COUNT(*) AS n FROM vists"),
        (here, "query", "SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient"),
        (here, "query", "SELECT AVG(r) AS r FROM (SELECT RANK() OVER (ORDER BY cost) AS r FROM visits)"),
        (here, "quote", "DROP TABLE visits"),
        (here, "query", ""),
        (here, "query", count, "--file", "query.sql"),
        (here, "query", "--file", "query.sql"),
        (here, "query", "query.sql"),
        (here, "query", count, "--epsilon", "half"),
        (here, "query", count, "--epsilon", "0"),
        (here, "query", count, "--limit", "rows"),
        (here, "query", count, "--limit", "row=8"),
        (here, "query", count, "--accuracy", "m=5"),
        (here, "query", count, "--alpha", "1"),
        (here, "query", f"-- sfumato: epsilon=1\n{count}", "--epsilon", "1"),
        (here, "query", count, "--format", "xlsx"),
        (here, "query", count, "--out", "answer.xlsx"),
        (here, "query", count, "--out", "nowhere/answer.csv"),
        (here, "query", count, "--out", "data/visits.csv"),
        (here, "query", count, "--epsilon", "5"),
        (here, "query", count, "--account", "nobody"),
        (here, "query", f"{count} WHERE cost > 5", "--key", "monday"),
        (here, "query", count, "--epsilom", "1"),
        (here, "qeury", count),
        (here, "schema", "qeury"),
        (empty, "describe"),
        (yaml, "describe"),
        (gone, "query", BY_WARD),
        (bare, "query", BY_WARD),
        (broken, "query", BY_WARD),
    ):
        ran = sfumato(*words, at=at)
        assert ran.out == "", words
        shown = " ".join(f"'{word}'" if " " in word or not word else word for word in words)
        told = ran.err.replace(str(folder), "FOLDER").rstrip("\n")
        yield f"$ sfumato {shown}   # in {at.name}\n{told}\n[{ran.code}]\n"


def main() -> None:
    HELP.mkdir(parents=True, exist_ok=True)
    for old in HELP.glob("*.txt"):
        old.unlink()
    with tempfile.TemporaryDirectory() as place:
        for words in commands():
            file_of(words).write_text(help_of(words, Path(place)), encoding="utf-8")
        ERRORS.write_text("\n".join(errors(Path(place))), encoding="utf-8")


if __name__ == "__main__":
    main()
