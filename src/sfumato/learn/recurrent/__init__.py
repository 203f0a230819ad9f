"""Recurrent layers with the gradients of their gates at hand.

PyTorch's own LSTM is one fused node that hides what happens at each step. Inside `recorded(model)` the user's nn.RNN,
nn.LSTM and nn.GRU run on nodes of ours, which tell what every record did to every weight:

    with recorded(model) as recording:
        losses = ...                                              # the forward pass
    torch.autograd.grad(losses, [*edges, *recording.handles], ...)  # the handles make the nodes run
    for call in recording.calls:
        for slot, kind, a, g in call.uses():                      # call.node.next_functions[slot] is the parameter's
            ...

The cells (nn.LSTMCell and the like) need none of this: they leave ordinary matrix products in the graph.
"""

from .layer import RecurrentLayer, Use
from .recording import Call, Recording, recorded
from .rule import is_call, rule

__all__ = ["Call", "Recording", "RecurrentLayer", "Use", "is_call", "recorded", "rule"]
