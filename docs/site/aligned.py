"""Docstrings as Markdown: they are written to be read in a terminal, this makes them read well in the site.

name   what it means     a paragraph of such lines becomes a list
Paper: who, when         each such line becomes a paragraph of its own, its label in bold
    a formula            indented lines become a block
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ALIGNED = re.compile(r"(?P<name>\S+(?:, \S+)*) {2,}(?P<text>\S.*)")
_LABEL = re.compile(r"(?:Guarantee|Needs|Paper|Proof sketch|Proof): ")
_CODE = re.compile(r"(`[^`]*`)")


class Aligned(griffe.Extension):
    """Converts every docstring of a package, once it is loaded.

    A function of a package that is called like one of its files (`bounds.bins`) is what Python finds under that name,
    and what readers look for; it is put back in place of the file, whose content stays below it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._functions: list[griffe.Function] = []

    def on_function_instance(self, *, func: griffe.Function, **kwargs: Any) -> None:
        if func.parent is not None and func.parent.is_init_module:
            self._functions.append(func)

    def on_module(self, *, mod: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        if mod.parent is not None:
            return
        _convert(mod)
        for func in self._functions:
            file = func.parent.members.get(func.name) if func.parent is not None else None
            if isinstance(file, griffe.Module):
                func.members.update(file.members)
                func.parent.members[func.name] = func
                _convert(func, below=False)


def _convert(thing: griffe.Object | griffe.Alias, *, below: bool = True) -> None:
    if thing.is_alias:
        return
    if thing.docstring is not None:
        thing.docstring.value = markdown(thing.docstring.value)
    for member in thing.members.values() if below else ():
        _convert(member)


def markdown(text: str) -> str:
    """The docstring as Markdown."""
    return "\n\n".join(part for paragraph in re.split(r"\n\s*\n", text.strip("\n")) for part in _parts(paragraph))


def _parts(paragraph: str) -> list[str]:
    """A paragraph as blocks of Markdown: runs of lines that belong together. An example is one, with what it prints."""
    if paragraph.startswith(">>> "):
        return [_session(paragraph.splitlines())]
    blocks: list[tuple[str, list[str]]] = []
    for line in paragraph.splitlines():
        kind, last = _kind(line), blocks[-1][0] if blocks else ""
        goes_on = kind == last != "label" or (kind == "indented" and last in ("aligned", "label"))
        if goes_on or (kind == "text" and last == "label"):
            blocks[-1][1].append(line)
        else:
            blocks.append((kind, [line]))
    return [_WRITTEN[kind](lines) for kind, lines in blocks]


def _kind(line: str) -> str:
    if line.startswith(("  ", ">>> ", "... ")):
        return "indented" if line.startswith(" ") else "prompt"
    if _LABEL.match(line):
        return "label"
    return "aligned" if _ALIGNED.fullmatch(line) else "text"


def _items(lines: list[str]) -> str:
    items: list[str] = []
    for line in lines:
        if line.startswith("  "):
            items[-1] += " " + _escaped(line.strip())
        elif found := _ALIGNED.fullmatch(line):
            names = ", ".join(f"`{name.strip('`')}`" for name in found["name"].split(", "))
            items.append(f"- {names}: {_escaped(found['text'])}")
    return "\n".join(items)


def _shown(lines: list[str]) -> str:
    return "\n".join(["```text", *(line[2:] for line in lines), "```"])


def _session(lines: list[str]) -> str:
    return "\n".join(["```pycon", *lines, "```"])


def _labelled(lines: list[str]) -> str:
    label, _, text = _joined(lines).partition(": ")
    return f"**{label}**: {_escaped(text)}"


def _text(lines: list[str]) -> str:
    return _escaped(_joined(lines))


def _joined(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


_WRITTEN = {"aligned": _items, "indented": _shown, "label": _labelled, "prompt": _session, "text": _text}


def _escaped(text: str) -> str:
    """Signs that Markdown would read as tags or emphasis, outside code."""
    pieces = _CODE.split(text)
    return "".join(piece if i % 2 else re.sub(r"[<>*\[\]|\\_]", _sign, piece) for i, piece in enumerate(pieces))


def _sign(sign: re.Match[str]) -> str:
    return f"&#{ord(sign.group())};"
