"""A pass through a model, watched: whose is every number that it makes?

`Watch.over(inputs, target)` follows every operation of torch that runs inside it, with gradients or without, and at the
end `Watch.settle(losses)` answers: is loss i a function of record i alone, and did the model take the same steps on the
same layouts as when it was looked at first?

Claim: if a strict watch settles, then loss i depends on record i, its place in the batch and nobody's numbers alone,
and nothing of the records is left in a tensor that is older than the pass.

Proof sketch. By induction over the operations, every number in memory is nobody's (it depends on no record), one
record's, or mixed. The inputs begin as their records'; weights, buffers and constants are nobody's, and stay so, since
what is of records may not be written there. Each operation gives what `effects` claims of it; one without a claim, or a
number that leaves torch for Python (a shape, an item, an array), ends the pass. A tensor that outlives its pass is
mixed in all later ones. The losses lie one for each record, so none is mixed. What Python decides in between depends on
public things alone, as no number of a record ever reached it.

A watch that is not strict is for a loop of somebody's own, whose code sees the data anyway: there numbers may leave
torch (to be printed), and nothing follows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode_stack

from ...errors import PlanError
from ..layout import Layout
from .call import Call, writes
from .effects import effect_of, nobodys
from .memory import EARLIER, Memory, Mixed, Owner, address

Trace = list[tuple[Any, tuple[Owner, ...]]]
"""The operations on numbers of records, and how records lie in what they made."""

_OPEN: list[Watch] = []
_LEAVING = frozenset(
    getattr(torch.Tensor, name)
    for name in (
        "numpy", "tolist", "__array__", "__dlpack__", "data_ptr", "storage", "untyped_storage", "apply_", "map_",
        "share_memory_", "__reduce_ex__",
    )
)  # fmt: skip
_DECIDES = (
    "{name} lets the records decide what the model does next: a number, a shape or an array of records leaves torch. "
    "Steps and shapes must not depend on the data: use torch.where, a mask or torch.gather within each record instead"
)
_UNKNOWN = (
    "{name} is an operation whose effect on records is not known, so nobody can tell whose numbers it makes. Write it "
    "with ordinary operations of torch, or ask for a rule"
)
_STAYS = (
    "{name} writes something of the records into a tensor that outlives the pass (a buffer, a weight, something kept in "
    "the model): it would be released without protection. Take it out, or put that module in eval mode if that stops it"
)
_ANOTHER = "records do not lie where they lay for made-up records: the model's steps depend on the data, or change"


class Watch:
    """Follows the passes of one model, one at a time.

    strict  refuse numbers that leave torch
    """

    def __init__(self, *, strict: bool = True) -> None:
        self.strict = strict
        self.memory = Memory()
        self.trace: Trace = []
        self._checks = 0  # inside an operation that looks at its arguments to check them
        self._modes = (_Operations(self), _Functions(self))

    @contextmanager
    def over(self, tensors: Sequence[torch.Tensor], records: int) -> Iterator[Watch]:
        """One pass, over tensors of so many records."""
        self.open(tensors, records)
        try:
            yield self
        finally:
            self.close()

    def open(self, tensors: Sequence[torch.Tensor], records: int) -> None:
        self.trace = []
        self.memory.begin(records, tensors)
        _OPEN.append(self)
        for mode in self._modes:
            mode.__enter__()

    def close(self) -> None:
        """The end of the pass, if it is open."""
        if self not in _OPEN:
            return
        if _OPEN[-1] is not self or _get_current_dispatch_mode_stack()[-1] is not self._modes[0]:
            raise PlanError("a mode of torch was entered in the pass and is still on: leave it before the backward pass")
        for mode in reversed(self._modes):
            mode.__exit__(None, None, None)
        _OPEN.pop()

    def settle(self, losses: torch.Tensor) -> Trace:
        """What was done, once it is clear that each loss is its own record's."""
        owner = self.memory.owner(losses)
        if owner == EARLIER:
            raise PlanError("the losses use a tensor that was kept from an earlier pass: records of two steps would mix")
        if isinstance(owner, Mixed):
            raise PlanError(
                f"the model mixes records, or moves them inside the batch, at {owner.cause}: what a record contributes "
                "must depend on that record alone, in its own place. Work within each record (dimensions other than the "
                "batch's), or take it out"
            )
        if owner != Layout(0):
            raise PlanError("the losses do not depend on the records one by one: give one loss for each record, in order")
        return self.trace

    # one operation

    def ran(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        with torch._C.DisableTorchFunction():
            return self._ran(func, args, kwargs)

    def _ran(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        memory = self.memory
        call = Call(func, args, kwargs, memory)
        made = func(*args, **kwargs)
        call.outputs = [each for each in (made if isinstance(made, tuple | list) else (made,)) if _is_tensor(each)]
        owners: tuple[Owner, ...] = (None,) * len(call.outputs)
        touched = any(owner is not None for _, owner in call.all)
        places = {address(tensor) for tensor in call.tensors}
        written = writes(func)
        fresh = [output for output in call.outputs if address(output) not in places]
        if touched and (fresh or written or not call.outputs):
            owners = self._owners(call, made)
            self.trace.append((func, owners))
        for output, owner in zip(call.outputs, owners, strict=True):
            if address(output) not in places:
                memory.made(output, owner)
            elif written and not memory.written(output, owner) and self.strict:
                raise PlanError(_STAYS.format(name=call.name))
        if written and not call.outputs:
            self._written_unseen(call, written)
        return made

    def _owners(self, call: Call, made: Any) -> tuple[Owner, ...]:
        effect = effect_of(call.func)
        plain = made is None or all(_is_tensor(each) for each in (made if isinstance(made, tuple | list) else (made,)))
        if not plain or effect is None or _by_mask(call):
            if self.strict and not self._checks:
                raise PlanError((_UNKNOWN if plain and effect is None and not _follows_data(call) else _DECIDES)
                                .format(name=call.name))  # fmt: skip
            return (call.mixing,) * len(call.outputs)
        mixed = call.mixed
        if mixed is not None and effect is not nobodys:
            return (mixed,) * len(call.outputs)
        owners = effect(call)
        return owners if isinstance(owners, tuple) else (owners,) * len(call.outputs)

    def _written_unseen(self, call: Call, written: tuple[str, ...]) -> None:
        """An operation that gives nothing back writes what nobody can tell."""
        owner = call.mixing if any(mine is not None for _, mine in call.all) else None
        for name in written:
            several = call[name] if isinstance(call[name], list | tuple) else [call[name]]
            for tensor in several:
                if _is_tensor(tensor) and not self.memory.written(tensor, owner) and self.strict:
                    raise PlanError(_STAYS.format(name=call.name))

    def called(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A function of torch, seen from Python."""
        if self.strict and func in _LEAVING and self.memory.owner(args[0]) is not None:
            raise PlanError(_DECIDES.format(name=func.__name__))
        if func is torch.nn.functional.one_hot and (len(args) > 1 or kwargs.get("num_classes", -1) > 0):
            self._checks += 1  # it looks for ids that are out of range
            try:
                return func(*args, **kwargs)
            finally:
                self._checks -= 1
        return func(*args, **kwargs)


def as_one(
    run: Callable[[], torch.Tensor],
    *,
    time_first: torch.Tensor,
    others: Sequence[torch.Tensor | None],
    shared: Sequence[torch.Tensor],
) -> torch.Tensor:
    """Something of our own that computes record by record, as one operation: records along dimension 1 of what comes in
    time-first and of what it makes, along dimension 0 of the others, and in nothing that is shared."""
    if not _OPEN:
        return run()
    memory = _OPEN[-1].memory
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        main = memory.owner(time_first)
        beside = [owner for each in others if each is not None and (owner := memory.owner(each)) is not None]
        common = [owner for each in shared if (owner := memory.owner(each)) is not None]
        made = run()
        owner: Owner = None
        if main is not None or beside or common:
            first = next((each for each in (main, *beside) if each is not None), None)
            before = first.before if isinstance(first, Layout) else 1
            apart = main in (None, Layout(1, before)) and all(each == Layout(0, before) for each in beside)
            owner = Layout(1, before) if apart and not common else Mixed("a recurrent layer")
        memory.made(made, owner)
    _OPEN[-1].trace.append(("a recurrent layer", (owner,)))
    return made


def same(trace: Trace, surveyed: Trace) -> None:
    """Refuse a pass that did something else than the one that was looked at first."""
    if trace != surveyed:
        raise PlanError(_ANOTHER)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _by_mask(call: Call) -> bool:
    """x[mask], where the mask is of records: how many numbers that gives is up to them."""
    if call.name != "index":
        return False
    pairs = zip(call["indices"], call.owners["indices"], strict=True)
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) and owner for index, owner in pairs)


def _follows_data(call: Call) -> bool:
    """Does the shape of what it makes depend on values?"""
    return torch.Tag.data_dependent_output in call.func.tags or torch.Tag.dynamic_output_shape in call.func.tags


class _Operations(TorchDispatchMode):
    """Below autograd: everything that is computed passes here, under no_grad and in place, too."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and the compiler takes seconds to import

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._watch.ran(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Above it: ways out of torch that compute nothing."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._watch.called(func, args, kwargs or {})


__all__ = ["Trace", "Watch", "as_one", "same"]
