"""One operation as it runs: its arguments by name, how records lie in them, and what it made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from ..layout import Layout
from .memory import Memory, Mixed, Owner, address


@cache
def _signature(func: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    arguments = func._schema.arguments
    return tuple(each.name for each in arguments), {each.name: each.default_value for each in arguments}


@cache
def name_of(func: Any) -> str:
    """The operation's name, as people know it: add for add, add_ and add.out."""
    space, _, name = func._schema.name.partition("::")
    plain = name.rstrip("_") if not name.endswith("__") else name
    return plain if space == "aten" else f"{space}.{plain}"


@cache
def writes(func: Any) -> tuple[str, ...]:
    """The arguments that the operation writes to."""
    return tuple(
        each.name for each in func._schema.arguments if each.alias_info is not None and each.alias_info.is_write
    )


class Call:
    """An operation of torch with what it is called on. `outputs` are there once it ran.

    all     every tensor that comes in, with its owner
    blocks  the addresses of their memory
    owners  the same by the names of arguments; a list where the argument is one
    """

    __slots__ = ("all", "arguments", "blocks", "func", "memory", "outputs", "owners", "touched")

    def __init__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any], memory: Memory) -> None:
        names, defaults = _signature(func)
        self.func, self.memory = func, memory
        self.arguments = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        self.all: list[tuple[torch.Tensor, Owner]] = []
        self.blocks: set[int] = set()
        self.owners: dict[str, Any] = {}
        self.touched = False  # is anything in it of records?
        self.outputs: list[torch.Tensor] = []
        for name, value in self.arguments.items():
            if isinstance(value, torch.Tensor):
                self.owners[name] = self._met(value)
            elif isinstance(value, list | tuple) and any(isinstance(each, torch.Tensor) for each in value):
                self.owners[name] = [None if each is None else self._met(each) for each in value]

    def _met(self, tensor: torch.Tensor) -> Owner:
        place = address(tensor)
        owner = self.memory.owner_at(place, tensor)
        self.blocks.add(place)
        self.all.append((tensor, owner))
        self.touched = self.touched or owner is not None
        return owner

    @property
    def name(self) -> str:
        return name_of(self.func)

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    @property
    def owned(self) -> list[tuple[torch.Tensor, Layout]]:
        """Those in which records lie."""
        return [(tensor, owner) for tensor, owner in self.all if isinstance(owner, Layout)]

    @property
    def mixed(self) -> Mixed | None:
        return next((owner for _, owner in self.all if isinstance(owner, Mixed)), None)

    @property
    def mixing(self) -> Mixed:
        """What to say where this operation makes one value of several records, or moves them."""
        return Mixed(self.name)

    def only(self, *names: str) -> bool:
        """Do records lie in these arguments alone?"""
        several = (each for name, owner in self.owners.items() if name not in names
                   for each in (owner if isinstance(owner, list) else [owner]))  # fmt: skip
        return all(each is None for each in several)

    def agreed(self, *owners: Owner) -> Owner:
        """The one that all of them are, those that are nobody's left out."""
        there = [owner for owner in owners if owner is not None]
        if not there:
            return None
        return there[0] if all(owner == there[0] for owner in there[1:]) else self.mixing

    def carried(self, source: torch.Tensor, owner: Layout, output: torch.Tensor, dim: int) -> Owner:
        """The records of `source`, place by place, along that dimension of the output."""
        if dim >= output.dim() or source.shape[owner.dim] != output.shape[dim]:
            return self.mixing
        return Layout(dim, owner.before)
