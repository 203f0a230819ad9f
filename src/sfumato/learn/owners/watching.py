"""A pass through a model, watched: whose is every number that it makes?

`OwnerWatch.over(inputs, target)` follows every operation of torch that runs inside it, with gradients or without, and
at the end `OwnerWatch.settle(losses)` answers: is loss i a function of record i alone, and did the model take the same
steps on the same layouts as when it was looked at first?

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

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves

from ...errors import PlanError
from ..layout import Layout
from .call import Call, writes
from .effects import effect_of, nobodys
from .memory import EARLIER, Memory, Mixed, Owner, address

Trace = list[tuple[Any, tuple[Owner, ...]]]
"""The operations on numbers of records, and how records lie in what they made."""


class _Open(threading.local):
    """The watches of this thread that are open, the last one inside of the others: torch's modes are a thread's own."""

    def __init__(self) -> None:
        self.watches: list[OwnerWatch] = []


_OPEN = _Open()
_LEAVING = frozenset(
    getattr(torch.Tensor, name)
    for name in (
        "numpy", "tolist", "__array__", "__dlpack__", "data_ptr", "storage", "untyped_storage", "apply_", "map_",
        "const_data_ptr", "share_memory_", "__reduce_ex__", "__repr__",
    )
    if hasattr(torch.Tensor, name)
)  # fmt: skip
_BUILDING = (torch.tensor, torch.as_tensor, torch.asarray, torch.Tensor.new_tensor)  # read the tensors of a list
_SPLITTING = (torch.tensor_split, torch.Tensor.tensor_split)  # reads where to split, if that is a tensor
_CHECKING = (torch.nn.functional.one_hot, torch.nn.functional.gaussian_nll_loss)  # look at arguments to refuse them
_CONSTANT = torch.ops.aten.lift_fresh.default  # torch.tensor(...)
_DECIDES = (
    "{name} lets the records decide what the model does next: a number, a shape or an array of records leaves torch. "
    "Steps and shapes must not depend on the data: use torch.where, a mask or torch.gather within each record instead"
)
_UNKNOWN = (
    "{name} is an operation whose effect on records is not known, so nobody can tell whose numbers it makes. Write it "
    "with ordinary operations of torch, or ask for a rule"
)
_STAYS = (
    "{name} writes something of the records into a tensor that outlives the pass (a buffer, a weight, something kept "
    "in the model): it would be released without protection. Take it out, or put that module in eval mode, if that "
    "stops it"
)
_ANOTHER = "records do not lie where they lay for made-up records: the model's steps depend on the data, or change"


class OwnerWatch:
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
    def over(self, tensors: Sequence[torch.Tensor], records: int) -> Iterator[OwnerWatch]:
        """One pass, over tensors of so many records."""
        self.open(tensors, records)
        try:
            yield self
        finally:
            self.close()

    def open(self, tensors: Sequence[torch.Tensor], records: int) -> None:
        self.trace = []
        self.memory.begin(records, tensors)
        _OPEN.watches.append(self)
        for mode in self._modes:
            mode.__enter__()  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """The end of the pass, if it is open."""
        if self not in _OPEN.watches:
            return
        if _OPEN.watches[-1] is not self or _get_current_dispatch_mode_stack()[-1] is not self._modes[0]:
            raise PlanError("a mode of torch was entered in the pass and is still on: leave it before batch.backward")
        for mode in reversed(self._modes):
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        _OPEN.watches.pop()

    def settle(self, losses: torch.Tensor) -> Trace:
        """What was done, once it is clear that each loss is its own record's."""
        owner = self.memory.owner(losses)
        if owner == EARLIER:
            raise PlanError("the losses use a tensor that was kept from an earlier pass: records of steps would mix")
        if isinstance(owner, Mixed):
            raise PlanError(
                f"the model mixes records, or moves them inside the batch, at {owner.cause}: what a record contributes "
                "must depend on that record alone, in its own place. Work within each record (along dimensions other "
                "than the batch's), or take it out"
            )
        if owner not in (None, Layout(0)):
            raise PlanError("the losses do not depend on records one by one: give one loss for each record, in order")
        return self.trace

    # one operation

    def ran(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        with torch._C.DisableTorchFunction():
            return self._ran(func, args, kwargs)

    def _ran(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        memory = self.memory
        call = Call(func, args, kwargs, memory)
        result = func(*args, **kwargs)
        several = result if isinstance(result, tuple | list) else (result,)
        call.outputs = outputs = [each for each in several if isinstance(each, torch.Tensor)]
        places = [address(output) for output in outputs]
        written = writes(func)
        owners: tuple[Owner, ...] = (None,) * len(outputs)
        if call.touched and (written or not outputs or any(place not in call.blocks for place in places)):
            owners = self._owners(call, all(each is None or isinstance(each, torch.Tensor) for each in several))
            self.trace.append((func, owners))
        for output, place, owner in zip(outputs, places, owners, strict=True):
            if place not in call.blocks or func is _CONSTANT:
                memory.assign(output, owner)
            elif written:
                self._write(call, output, owner)
        for name in written:
            self._written_unseen(call, name, places)
        return result

    def _owners(self, call: Call, plain: bool) -> tuple[Owner, ...]:
        """How records lie in the outputs; `plain` says that these are all that the operation gives back."""
        effect = effect_of(call.func)
        if not plain or effect is None or _by_mask(call):
            if self.strict and not self._checks:
                unknown = plain and effect is None and not _follows_data(call)
                raise PlanError((_UNKNOWN if unknown else _DECIDES).format(name=call.name))
            return (call.mixing,) * len(call.outputs)
        mixed = call.mixed
        if mixed is not None and effect is not nobodys:
            return (mixed,) * len(call.outputs)
        owners = effect(call)
        return owners if isinstance(owners, tuple) else (owners,) * len(call.outputs)

    def _written_unseen(self, call: Call, name: str, places: list[int]) -> None:
        """What an operation writes to and does not give back: nobody can tell what is in it now."""
        several = call[name] if isinstance(call[name], list | tuple) else [call[name]]
        for tensor in several:
            if isinstance(tensor, torch.Tensor) and address(tensor) not in places and call.touched:
                self._write(call, tensor, call.mixing)

    def _write(self, call: Call, tensor: torch.Tensor, owner: Owner) -> None:
        if not self.memory.written(tensor, owner) and self.strict:
            raise PlanError(_STAYS.format(name=call.name))

    def called(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A function of torch, seen from Python."""
        if self.strict and any(self.memory.owner(each) is not None for each in _leaving(func, args, kwargs)):
            raise PlanError(_DECIDES.format(name=func.__name__))
        if func in _CHECKING and not _sizes_itself(func, args, kwargs):
            self._checks += 1
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
    if not _OPEN.watches:
        return run()
    memory = _OPEN.watches[-1].memory
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        main = memory.owner(time_first)
        beside = [mine for each in others if each is not None and (mine := memory.owner(each)) is not None]
        common = [mine for each in shared if (mine := memory.owner(each)) is not None]
        output = run()
        owner: Owner = None
        if main is not None or beside or common:
            first = next((each for each in (main, *beside) if each is not None), None)
            before = first.before if isinstance(first, Layout) else 1
            apart = main in (None, Layout(1, before)) and all(each == Layout(0, before) for each in beside)
            owner = Layout(1, before) if apart and not common else Mixed("a recurrent layer")
        memory.assign(output, owner)
    _OPEN.watches[-1].trace.append(("a recurrent layer", (owner,)))
    return output


def same(trace: Trace, surveyed: Trace | None) -> None:
    """Refuse a pass that did something else than the one that was looked at first."""
    if trace != surveyed:
        raise PlanError(_ANOTHER)


def _leaving(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors that a function reads for Python, past all that is computed."""
    if func in _LEAVING:
        return [args[0]]
    if func in _SPLITTING or func in _BUILDING:
        own = func is torch.Tensor.new_tensor or func in _SPLITTING  # the first one is whose method it is
        lists = [
            each for each in (*args[own:], *kwargs.values()) if func in _SPLITTING or isinstance(each, list | tuple)
        ]
        return [each for each in tree_leaves(lists) if isinstance(each, torch.Tensor)]
    return []


def _sizes_itself(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """one_hot without a number of classes takes it from the records."""
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    return func is torch.nn.functional.one_hot and classes < 0


def _by_mask(call: Call) -> bool:
    """x[mask], where the mask is of records: how many numbers that gives is up to them."""
    if call.name != "index":
        return False
    pairs = zip(call["indices"], call.owners["indices"], strict=True)
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) and owner for index, owner in pairs)


def _follows_data(call: Call) -> bool:
    """Does the shape of what it makes depend on values?"""
    return torch.Tag.data_dependent_output in call.func.tags or torch.Tag.dynamic_output_shape in call.func.tags


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Below autograd: everything that is computed passes here, under no_grad and in place, too."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and the compiler takes seconds to import

    def __init__(self, watch: OwnerWatch) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._watch = watch

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._watch.ran(func, args, kwargs or {})


class _Functions(TorchFunctionMode):
    """Above it: ways out of torch that compute nothing."""

    def __init__(self, watch: OwnerWatch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._watch.called(func, args, kwargs or {})


__all__ = ["OwnerWatch", "Trace", "as_one", "same"]
