"""The commands of `sfumato`, read off the program itself: replaces the line `<!-- commands -->` of a page."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

PLACE = "<!-- commands -->"
_ELSEWHERE = {"--json", "--debug", "--help"}  # every command has them: the page itself says what they do
_MARKUP = re.compile(r"\[/?(?:bold|dim|italic|cyan|green|red|yellow)*\]")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return markdown.replace(PLACE, commands()) if PLACE in markdown else markdown


def commands() -> str:
    """All commands as Markdown."""
    source = str(Path(__file__).parents[2] / "src")
    if source not in sys.path:
        sys.path.insert(0, source)
    from typer.main import get_command

    from sfumato.cli.app import app

    top: Any = get_command(app)
    panels: dict[str, list[str]] = {}
    for name, command in top.commands.items():
        if not command.hidden:
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            panels.setdefault(str(panel), []).extend(_told(command, f"sfumato {name}"))
    return "\n".join(line for panel, lines in panels.items() for line in (f"## {panel}", "", *lines))


def _told(command: Any, name: str) -> Iterator[str]:
    yield from (f"### {name}", "")
    inner = getattr(command, "commands", None)
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    arguments = [each for each in shown if not each.opts[0].startswith("-")]
    options = [each for each in shown if each.opts[0].startswith("-") and not _ELSEWHERE & set(each.opts)]
    if inner is None:
        usage = " ".join([name, *map(_place, arguments), *(["[OPTIONS]"] if options else [])])
        yield from ("```text", usage, "```", "")
    yield from (_plain(command.help or ""), "")
    if arguments or options:
        yield from ("| option | meaning |", "|---|---|")
        yield from (f"| `{_place(each)}` | {_meaning(each)} |" for each in arguments)
        yield from (f"| {_flags(each)} | {_meaning(each)} |" for each in options)
        yield ""
    for below, each in (inner or {}).items():
        if not each.hidden:
            yield from _told(each, f"{name} {below}")


def _place(argument: Any) -> str:
    word = (argument.metavar or argument.name).strip("[]{}").upper()
    word += "..." if argument.nargs == -1 else ""
    return word if argument.required else f"[{word}]"


def _flags(option: Any) -> str:
    value = "" if getattr(option, "is_flag", False) else f" {option.metavar or option.name.upper()}"
    return ", ".join(f"`{flag}{value}`" for flag in [*option.opts, *option.secondary_opts])


def _meaning(param: Any) -> str:
    text = _plain(param.help or "").replace("\n", " ").replace("|", "\\|")
    default = param.default
    told = bool(getattr(param, "show_default", True)) and not param.required
    if told and not callable(default) and default not in (None, False, "", (), []):
        text += f" Default: `{default}`."
    return text


def _plain(text: str) -> str:
    """Help as the terminal shows it, with paragraphs that Markdown keeps."""
    return _MARKUP.sub("", text.split("\f")[0]).strip().replace("<", "&lt;")
