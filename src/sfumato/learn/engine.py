"""Per-record clipping in one backward pass (book-keeping, Bu et al. 2022), for the model as it is.

    forward      the user's own model, untouched
    backward     only as far as the values that parameters made: no weight gradient is computed
    norms        of each record's gradient, layer by layer, from what the graph kept; rounded up
    weights      c_i, so that every record's part is at most C, float errors included
    sum          one product for each layer, with c_i on its rows

Claim: let a batch have fixed slots, and let one of its micro-batches differ between two runs in one slot, which holds a
record in one and a placeholder of weight 0 in the other. Then the two sums differ by at most C (1 + eta) in L2, as
floats.

Proof sketch. A record's inputs a and gradients g at every use are float numbers that depend on that record, its slot,
the parameters and the shapes alone: kernels do the same operations in the same order whatever the other rows hold. So
let v_i be the record's gradient as the exact function of these floats. sizes() gives N_i >= |v_i|, by the bounds of
arithmetic.py, and e_i, a bound of the float error that its rows can cause in the sum for weight 1. As c_i <= C / N_i,
the exact sums differ by at most C. As c_i <= h C / e_i, the computed sum is off by at most m h C, m being the slots of
a micro-batch; twice that for both runs is eta C with h = eta / (2 m). c_i itself is a float, whatever its own rounding:
it is rounded down, and the bounds hold for the value that is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.autograd.graph import GradientEdge

from ..errors import PlanError
from . import graph, recurrent
from .clipping import Clipping, coefficients
from .owners import OwnerWatch, same
from .passes import Pass as Pass
from .rules import Block, Known, Rule, Use, anything, both, keep, looked, rule, sent_back
from .survey import Survey, Tensors, survey

Loss = Callable[[Any, torch.Tensor], torch.Tensor]
_OTHER_STEPS = "the model computed something else than for made-up records: its steps depend on the data"
_OTHER_SHAPE = "a value has another shape than for made-up records: shapes must not depend on the data"
_NO_CALLS = recurrent.Recording()
FEW = 3  # made-up records, on which the model is looked at
ETA = 1 / 64  # the share of the clip norm that is set aside for float errors


class Engine:
    """Clipped sums of a model's gradients.

    loss      from the model's output and the target to one loss for each record
    examples  made-up (or public) inputs and target, at least one row: shapes and types are taken from them
    each      rows of one record, which lie one after the other: where the unit is a user, what one user brings
    cast      for mixed precision: torch.bfloat16 runs the forward pass under autocast
    """

    def __init__(
        self,
        model: torch.nn.Module,
        loss: Loss,
        *,
        examples: tuple[Tensors, torch.Tensor],
        rows_per_unit: int = 1,
        cast: torch.dtype | None = None,
    ) -> None:
        self.model = model
        self.names = tuple(name for name, each in model.named_parameters() if each.requires_grad)
        self.parameters = tuple(each for each in model.parameters() if each.requires_grad)
        if not self.parameters:
            raise PlanError("the model has no trainable parameter: set requires_grad=True on what shall be learnt")
        self._loss = loss
        self._examples = examples
        self._rows_per_unit = rows_per_unit
        self._cast = cast
        self._recurs = any(isinstance(each, torch.nn.RNNBase) for each in model.modules())
        self._surveyed: Survey | None = None
        self._watch = OwnerWatch()

    def losses(self, inputs: Tensors, target: torch.Tensor) -> torch.Tensor:
        """One loss for each row."""
        with self._precision():
            per_row = self._loss(self.model(*inputs), target)
        if not isinstance(per_row, torch.Tensor) or per_row.dim() == 0 or len(per_row) != len(target):
            raise PlanError(
                "the loss must give one number for each record: use reduction='none' (a mean over the batch would mix "
                "records)"
            )
        return per_row.flatten(1).mean(1) if per_row.dim() > 1 else per_row

    def followed(self, inputs: Tensors, target: torch.Tensor) -> torch.Tensor:
        """The same, whose every number is known to be its own record's; what was done is in the watch's trace."""
        with self._watch.over((*inputs, target), len(target) // self._rows_per_unit):
            losses = self.losses(inputs, target)
        self._watch.settle(losses)
        return losses

    def tiled(self, records: int) -> tuple[Tensors, torch.Tensor]:
        """So many made-up records, from those that there are."""
        inputs, target = self._examples
        index = torch.arange(records * self._rows_per_unit) % len(target)
        return tuple(each[index] for each in inputs), target[index]

    def survey(self, records: int) -> Survey:
        """Where parameters are used in a batch of so many records: worked out once, on a few made-up ones."""
        if self._surveyed is None:
            inputs, target = self.tiled(FEW)
            with recurrent.recorded(self.model):
                surveyed = survey(self.followed, inputs, target, self.parameters, self._rows_per_unit)
            with recurrent.recorded(self.model) as calls:
                losses = self.followed(inputs, target)
            surveyed = replace(surveyed, trace=self._watch.trace)
            surveyed = replace(surveyed, whole=self._pass(losses, None, calls, replace(surveyed, whole=True)).general)
            self._surveyed = surveyed
        return self._surveyed if records == self._surveyed.records else self._surveyed.scaled(records)

    def backward(self, inputs: Tensors, target: torch.Tensor, weights: torch.Tensor | None = None) -> Pass:
        """The one forward and backward pass. Weights are 1 for a row that counts, and 0 for a placeholder."""
        if len(target) == self._rows_per_unit:  # one record alone makes another graph: some steps do nothing to it
            made_up, label = self.tiled(1)
            inputs = tuple(torch.cat(pair) for pair in zip(inputs, made_up, strict=True))
            row_weights = torch.ones(len(target)) if weights is None else weights
            done = self.backward(
                inputs, torch.cat([target, label]), torch.cat([row_weights, torch.zeros_like(row_weights)])
            )
            return done.without_last()
        if len(target):
            surveyed = self.survey(len(target) // self._rows_per_unit)  # first: it needs a forward pass of its own
        with recurrent.recorded(self.model) if self._recurs else nullcontext(_NO_CALLS) as calls:
            losses = self.followed(inputs, target) if len(target) else self.losses(inputs, target)
        if len(target):
            same(self._watch.trace, surveyed.trace)
        return self.backward_from(losses, weights, calls)

    def backward_from(self, losses: torch.Tensor, weights: torch.Tensor | None, calls: Any) -> Pass:
        """The backward pass from losses that somebody's own loop computed, under `recurrent.recorded`."""
        if not len(losses):
            return Pass([None] * len(self.parameters), 0)
        return self._pass(losses, weights, calls, self.survey(len(losses) // self._rows_per_unit))

    def sums(
        self, inputs: Tensors, target: torch.Tensor, weights: torch.Tensor | None = None, *, clipping: Clipping,
        norm: float | None = None, eta: float = ETA,
    ) -> list[torch.Tensor]:  # fmt: skip
        """The clipped sum of one micro-batch, a tensor for each trainable parameter."""
        done = self.backward(inputs, target, weights)
        return self.summed(done, weights, clipping=clipping, norm=norm, eta=eta)[0]

    def summed(
        self, done: Pass, weights: torch.Tensor | None, *, clipping: Clipping, norm: float | None, eta: float
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The clipped sum, and the records' norms."""
        if not done.records or all(each is None for each in done.rules):
            return [torch.zeros_like(each) for each in self.parameters], torch.zeros(done.records)
        groups = clipping.groups(self.names)
        most = float(clipping.norm) if norm is None else norm
        with torch.no_grad():
            factors, norms = coefficients(clipping, most, done.sizes(), groups, eta)
            if weights is not None:
                factors = [one * weights for one in factors]
            totals = done.totals([factors[group] for group in groups])
            return [
                torch.zeros_like(parameter) if total is None else total
                for parameter, total in zip(self.parameters, totals, strict=True)
            ], norms

    def _pass(self, losses: torch.Tensor, weights: torch.Tensor | None, calls: Any, surveyed: Survey) -> Pass:
        nodes = graph.nodes(losses)
        if graph.names(nodes) != surveyed.names:
            raise PlanError(_OTHER_STEPS)
        done = Pass([], surveyed.records)
        uses: list[list[Rule]] = [[] for _ in self.parameters]
        later: list[tuple[int, torch.Tensor]] = []  # what needs the graph whole

        def arrived(place: int, gradients: Sequence[torch.Tensor | None]) -> None:
            if gradients[0] is None:
                return
            if place in surveyed.unclear or gradients[0].shape != surveyed.shapes[place]:
                raise PlanError(
                    _OTHER_SHAPE if place not in surveyed.unclear
                    else f"made-up records give no gradient at {graph.spoken(nodes[place].name())}, so how records lie "
                    "there cannot be measured: give examples that do, or put the batch first there"
                )  # fmt: skip
            for leaf, leaf_rule in self._found(nodes[place], place, gradients[0], surveyed):
                if leaf_rule is None:
                    later.append((place, gradients[0]))
                    return
                uses[leaf].append(leaf_rule)

        # A use is worked on as soon as its gradient is there, and then let go. Autograd runs a node only on the way to
        # what it is asked for: so it is asked for the last uses, and tells of the others as it passes.
        calls_too = {place for place in surveyed.uses if recurrent.is_call(nodes[place])}
        hooks = [
            nodes[place].register_prehook(partial(arrived, place))
            for place in surveyed.uses
            if place not in surveyed.last and place not in calls_too
        ]
        last = [place for place in surveyed.last if place not in calls_too]
        seed = torch.ones_like(losses) if weights is None else weights.to(losses.dtype)
        try:
            got = torch.autograd.grad(
                losses,
                [*(GradientEdge(nodes[place], 0) for place in last), *calls.handles],
                seed,
                retain_graph=surveyed.whole,
                allow_unused=True,
            )
        finally:
            for hook in hooks:
                hook.remove()  # they hold the graph that holds them
        with torch.no_grad():
            for place, g in zip(last, got, strict=False):
                arrived(place, (g,))
            for place in calls_too:
                if not nodes[place].uses.ran:
                    continue  # the losses do not depend on it
                for operand in surveyed.uses[place]:
                    special = recurrent.rule(nodes[place], operand.slot, surveyed.layouts[place], surveyed.records)
                    if operand.path == "made":
                        done.general = True
                        for leaf, leaf_rule in self._behind(nodes[place], operand, special.by_record()):
                            uses[leaf].append(leaf_rule)
                    else:
                        uses[operand.leaves[0]].append(self._as_leaf(special, nodes[place], operand))
            for place, g in later:
                done.general = True
                for leaf, leaf_rule in self._sent(nodes[place], place, g, surveyed):
                    uses[leaf].append(leaf_rule)
            done.rules = [both(each) if each else None for each in uses]
        return done

    def _found(self, node: Any, place: int, g: torch.Tensor, surveyed: Survey) -> list[tuple[int, Rule | None]]:
        """The gradients of the parameters that one node uses; None where the graph is needed for them."""
        saved = keep(node)
        rules: list[tuple[int, Rule | None]] = []
        for operand in surveyed.uses[place]:
            use = self._use(node, operand, saved, g, surveyed)
            special = None if operand.path == "made" else rule(use)
            if special is None:
                return [(operand.leaves[0], None)]
            rules.append((operand.leaves[0], self._as_leaf(special, node, operand)))
        return rules

    def _use(self, node: Any, operand: graph.Operand, tensors: Any, g: torch.Tensor, surveyed: Survey) -> Use:
        layout, saved = surveyed.layouts[operand.node], surveyed.saved[operand.node]
        return Use(node, tensors, operand.slot, operand.turned, operand.shape, g, layout, surveyed.records, saved)

    def _as_leaf(self, special: Rule, node: Any, operand: graph.Operand) -> Rule:
        """From the gradient of what a path made to that of the parameter."""
        shape = tuple(self.parameters[operand.leaves[0]].shape)
        if operand.path == "rows":
            return Block({(operand.start, operand.start + operand.shape[0]): special}, shape)
        if operand.path == "viewed":
            return Known(special.by_record().reshape(-1, *shape))
        if operand.path == "looked":
            child = graph.past_casts(node.next_functions[operand.slot])[0]
            gradients = special.by_record()
            ids = child._saved_indices.reshape(1, -1).expand(len(gradients), -1)
            return looked(ids, child._saved_padding_idx, gradients.reshape(*ids.shape, -1), shape[0])
        return special

    def _sent(self, node: Any, place: int, g: torch.Tensor, surveyed: Survey) -> Iterator[tuple[int, Rule]]:
        """The same for any operation, by the graph."""
        saved = keep(node)
        for operand in surveyed.uses[place]:
            use = self._use(node, operand, saved, g, surveyed)
            special = rule(use)
            if operand.path != "made":
                own_rule = Known(anything(use)) if special is None else special
                yield operand.leaves[0], self._as_leaf(own_rule, node, operand)
                continue
            yield from self._behind(node, operand, anything(use) if special is None else special.by_record())

    def _behind(self, node: Any, operand: graph.Operand, gradients: torch.Tensor) -> Iterator[tuple[int, Rule]]:
        """From the gradients of something made of parameters to theirs."""
        start = GradientEdge(*node.next_functions[operand.slot])
        for leaf in operand.leaves:
            yield leaf, Known(sent_back(start, self.parameters[leaf], gradients))

    def _precision(self) -> AbstractContextManager[Any]:
        if self._cast is not None:
            return torch.autocast("cpu", self._cast)
        return torch.autocast("cpu", enabled=False) if torch.is_autocast_enabled("cpu") else nullcontext()
