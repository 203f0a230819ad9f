"""Recurrent layers against plain autograd: outputs, gradients at inputs and states, and each record's own gradients."""

import copy
import gc
import weakref
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402

from sfumato.errors import PlanError  # noqa: E402
from sfumato.learn.layout import Layout  # noqa: E402
from sfumato.learn.recurrent import RecurrentLayer, is_call, recorded, rule  # noqa: E402

KINDS = ("lstm", "gru", "tanh", "relu", "projected")


def module(kind: str, features: int, hidden: int, **options: Any) -> Any:
    if kind == "lstm":
        return nn.LSTM(features, hidden, **options)
    if kind == "projected":
        return nn.LSTM(features, hidden, proj_size=hidden - 1, **options)
    return (
        nn.GRU(features, hidden, **options) if kind == "gru" else nn.RNN(features, hidden, nonlinearity=kind, **options)
    )


def start(made: Any, records: int, dtype: Any = torch.float64) -> Any:
    layers = made.num_layers * (2 if made.bidirectional else 1)
    h = torch.randn(layers, records, made.proj_size or made.hidden_size, dtype=dtype, requires_grad=True)
    if made.mode != "LSTM":
        return h
    return h, torch.randn(layers, records, made.hidden_size, dtype=dtype, requires_grad=True)


def leaves(hx: Any) -> list[Any]:
    return [] if hx is None else list(hx) if isinstance(hx, tuple) else [hx]


def flat(made: Any) -> list[Any]:
    output, states = made
    return [output, *leaves(states)]


def scores(made: Any, seeds: list[Any]) -> Any:
    """One loss for each record, from all that the module gave."""
    output, *states = flat(made)
    lost = (output * seeds[0]).sum(-1)
    return [lost, *[(state * seed).sum((0, 2)) for state, seed in zip(states, seeds[1:], strict=True)]]


def per_record(recording: Any, parameter: Any) -> Any:
    """(records, *shape): what the recorded uses say about one parameter."""
    total: Any = 0
    for call in recording.calls:
        assert call.node.batch_dim == 1
        for slot, kind, a, g in call.uses():
            leaf = call.node.next_functions[slot][0]
            if leaf.variable is parameter:
                total = total + (torch.einsum("tbp,tbd->bpd", g, a) if kind == "affine" else g.sum(0))
                assert (a is None) == (kind == "bias")
    return total


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    steps=st.integers(1, 5),
    records=st.integers(0, 4),
    features=st.integers(1, 4),
    hidden=st.integers(2, 5),
    layers=st.integers(1, 3),
    bidirectional=st.booleans(),
    bias=st.booleans(),
    batch_first=st.booleans(),
    given_state=st.booleans(),
    parts=st.sets(st.integers(0, 2), min_size=1),
)
def test_as_plain_autograd(
    kind: str,
    steps: int,
    records: int,
    features: int,
    hidden: int,
    layers: int,
    bidirectional: bool,
    bias: bool,
    batch_first: bool,
    given_state: bool,
    parts: set[int],
) -> None:
    torch.manual_seed(steps * 7 + records)
    options = {"num_layers": layers, "bidirectional": bidirectional, "bias": bias, "batch_first": batch_first}
    made = module(kind, features, hidden, **options).double()
    shape = (records, steps, features) if batch_first else (steps, records, features)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    hx = start(made, records) if given_state else None
    inputs = [x, *leaves(hx)]

    plain = flat(made(x, hx))
    seeds = [torch.randn_like(each) for each in plain]
    chosen = [place for place in sorted(parts) if place < len(plain)] or [0]
    expected = torch.autograd.grad(
        sum((plain[place] * seeds[place]).sum() for place in chosen), [*inputs, *made.parameters()], allow_unused=True
    )
    with recorded(made) as recording:
        got = flat(made(x, hx))
    assert len(recording.calls) == layers * (2 if bidirectional else 1)
    for one, two in zip(got, plain, strict=True):
        torch.testing.assert_close(one, two)
    loss = sum((got[place] * seeds[place]).sum() for place in chosen)
    found = torch.autograd.grad(loss, [*inputs, *recording.handles], allow_unused=True)
    for one, two in zip(found, expected[: len(inputs)], strict=False):
        assert (one is None) == (two is None) or (one if two is None else two).abs().sum() == 0
        if one is not None and two is not None:
            torch.testing.assert_close(one, two)
    reached = [call for call, handle in zip(recording.calls, found[len(inputs) :], strict=True) if handle is not None]
    assert all(call.node.uses.ran == (call in reached) for call in recording.calls)
    recording.calls[:] = reached
    for parameter, whole in zip(made.parameters(), expected[len(inputs) :], strict=True):
        each = per_record(recording, parameter)
        if isinstance(each, int) or whole is None:
            assert (
                (0 if isinstance(each, int) else each.abs().sum()) == (0 if whole is None else whole.abs().sum()) == 0
            )
            continue
        assert each.shape == (records, *parameter.shape)
        torch.testing.assert_close(each.sum(0), whole)


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_each_record_alone(kind: str, bidirectional: bool) -> None:
    torch.manual_seed(3)
    made = module(kind, 3, 4, num_layers=2, bidirectional=bidirectional).double()
    x, hx = torch.randn(5, 4, 3, dtype=torch.float64), start(made, 4)
    with recorded(made) as recording:
        got = made(x, hx)
    seeds = [torch.randn_like(each) for each in flat(got)]
    torch.autograd.grad([each.sum() for each in scores(got, seeds)], recording.handles)
    for record in range(4):
        mine = slice(record, record + 1)
        own = tuple(each[:, mine] for each in hx) if isinstance(hx, tuple) else hx[:, mine]
        lost = scores(made(x[:, mine], own), [each[:, mine] for each in seeds])
        expected = torch.autograd.grad([each.sum() for each in lost], list(made.parameters()))
        for parameter, one in zip(made.parameters(), expected, strict=True):
            torch.testing.assert_close(per_record(recording, parameter)[record], one)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reverse", [False, True])
def test_gradcheck(kind: str, reverse: bool) -> None:
    torch.manual_seed(5)
    made = module(kind, 2, 3).double()
    state = [each[0].detach().requires_grad_() for each in leaves(start(made, 2))]
    state = state if made.mode == "LSTM" else [*state, None]
    weights = [*made.parameters()]
    weights = weights if kind == "projected" else [*weights, None]
    handle = torch.zeros(2, 0, dtype=torch.float64)
    x = torch.randn(4, 2, 2, dtype=torch.float64, requires_grad=True)

    def run(*tensors: Any) -> Any:
        return RecurrentLayer.apply(handle, *tensors, made.mode, reverse)

    assert torch.autograd.gradcheck(run, (x, *state, *weights))


@pytest.mark.parametrize("kind", KINDS[:4])
def test_single_precision_and_steps_that_saturate(kind: str) -> None:
    torch.manual_seed(11)
    made = module(kind, 6, 8, num_layers=2, batch_first=True)
    x = torch.randn(3, 20, 6) * torch.tensor([1e-3, 1.0, 30.0])[:, None, None]
    x.requires_grad_()
    plain, seed = made(x)[0], torch.randn(3, 20, 8)
    expected = torch.autograd.grad(plain, [x, *made.parameters()], seed)
    with recorded(made) as recording:
        got = made(x)[0]
    torch.testing.assert_close(got, plain, rtol=1e-5, atol=1e-5)
    found = torch.autograd.grad(got, [x, *recording.handles], seed)
    torch.testing.assert_close(found[0], expected[0], rtol=1e-4, atol=1e-5)
    for parameter, whole in zip(made.parameters(), expected[1:], strict=True):
        scale = float(whole.abs().max())
        torch.testing.assert_close(per_record(recording, parameter).sum(0), whole, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(kind: str, dtype: Any) -> None:
    torch.manual_seed(1)
    made = module(kind, 3, 4).to(dtype)
    wide = copy.deepcopy(made).float()
    x = torch.randn(5, 2, 3).to(dtype).requires_grad_()
    with recorded(made) as recording:
        output, states = made(x)
    assert {output.dtype, *(each.dtype for each in leaves(states))} == {dtype}
    (dx, *_) = torch.autograd.grad(output.sum(), [x, *recording.handles])
    assert dx.dtype is dtype
    assert all(use.g.dtype is torch.float32 for use in recording.calls[0].uses())
    assert all(use.a is None or use.a.dtype is torch.float32 for use in recording.calls[0].uses())
    with recorded(wide) as other:
        exact, _ = wide(x.detach().float())
    torch.testing.assert_close(output.float(), exact, atol=0.02, rtol=0.02)
    torch.autograd.grad(exact.sum(), other.handles)
    for one, two in zip(made.parameters(), wide.parameters(), strict=True):
        torch.testing.assert_close(per_record(recording, one), per_record(other, two), atol=0.02, rtol=0.02)


def test_autocast_keeps_the_types_of_the_input() -> None:
    made = nn.LSTM(3, 4)
    for dtype in (torch.float32, torch.bfloat16):
        with torch.autocast("cpu", torch.bfloat16), recorded(made) as recording:
            output, _ = made(torch.randn(5, 2, 3).to(dtype))
            torch.autograd.grad(output.sum(), recording.handles)
        assert output.dtype is dtype
        assert all(use.g.dtype is torch.float32 for use in recording.calls[0].uses())


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_other_records_do_not_matter(kind: str) -> None:
    """Bit for bit, even if they are not numbers."""
    torch.manual_seed(2)
    made = module(kind, 3, 4, num_layers=2, bidirectional=True)
    x, seed = torch.randn(6, 5, 3), torch.randn(6, 5, 2 * (made.proj_size or 4))
    kept = []
    for other in (0.0, 3.0, float("nan"), float("inf")):
        changed = x.clone()
        changed[:, 2] = other
        with recorded(made) as recording:
            output, _ = made(changed)
        torch.autograd.grad(output, recording.handles, seed)
        rest = [0, 1, 3, 4]
        kept.append([output[:, rest].detach(), *(per_record(recording, each)[rest] for each in made.parameters())])
    for others in kept[1:]:
        for one, two in zip(kept[0], others, strict=True):
            assert torch.equal(one, two)


@pytest.mark.parametrize("kind", KINDS[:4])
def test_dropout_between_layers(kind: str) -> None:
    made = module(kind, 3, 4, num_layers=3, dropout=0.5)
    x = torch.randn(5, 2, 3)
    torch.manual_seed(8)
    plain, _ = made(x)
    with recorded(made):
        torch.manual_seed(8)
        torch.testing.assert_close(made(x)[0], plain)
        assert not torch.equal(made(x)[0], made(x)[0])
        made.eval()
        assert torch.equal(made(x)[0], made(x)[0])


@pytest.mark.parametrize("kind", KINDS[:4])
def test_outputs_may_be_changed_in_place_and_one_module_called_twice(kind: str) -> None:
    torch.manual_seed(4)
    made = module(kind, 3, 3).double()
    x = torch.randn(4, 2, 3, dtype=torch.float64)

    def run(own: Any) -> Any:
        output, states = made(x)
        again, _ = made(own(output).relu_(), states)  # the last states must not be changed by that
        return own(again).tanh_().sum()

    expected = torch.autograd.grad(run(torch.clone), list(made.parameters()))
    with recorded(made) as recording:
        loss = run(lambda tensor: tensor)
    torch.autograd.grad(loss, recording.handles)
    for parameter, whole in zip(made.parameters(), expected, strict=True):
        torch.testing.assert_close(per_record(recording, parameter).sum(0), whole)


def test_gradients_are_ordinary_where_somebody_asks_for_them() -> None:
    made = nn.LSTM(3, 4).double()
    x = torch.randn(4, 2, 3, dtype=torch.float64)
    expected = torch.autograd.grad(made(x)[0].sum(), list(made.parameters()))
    with recorded(made):
        made(x)[0].sum().backward()
    for parameter, whole in zip(made.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, whole)


def test_no_ordinary_gradient_is_computed_for_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    real = torch._C._will_engine_execute_node
    monkeypatch.setattr(torch._C, "_will_engine_execute_node", lambda node: asked.append(real(node)) or asked[-1])
    made, x = nn.LSTM(3, 4), torch.randn(4, 2, 3)
    with recorded(made) as recording:
        output, _ = made(x)
    torch.autograd.grad(output.sum(), recording.handles)
    assert asked == [False] * 4
    assert all(parameter.grad is None for parameter in made.parameters())


def test_frozen_weights_have_no_uses() -> None:
    made = nn.LSTM(3, 4)
    made.weight_hh_l0.requires_grad_(False)
    made.bias_ih_l0.requires_grad_(False)
    with recorded(made) as recording:
        output, _ = made(torch.randn(4, 2, 3))
    torch.autograd.grad(output.sum(), recording.handles)
    used = [recording.calls[0].node.next_functions[use.slot][0].variable for use in recording.calls[0].uses()]
    assert [each is one for each, one in zip(used, (made.weight_ih_l0, made.bias_hh_l0), strict=True)] == [True, True]
    made.requires_grad_(False)
    with recorded(made) as recording:
        made(torch.randn(4, 2, 3))
    assert recording.calls == []


def test_weights_that_are_computed_are_read_at_each_call() -> None:
    made = nn.GRU(3, 4)
    other = {name: torch.randn_like(each) for name, each in made.named_parameters()}
    x = torch.randn(4, 2, 3)
    plain = torch.func.functional_call(made, other, (x,))[0]
    with recorded(made):
        torch.testing.assert_close(torch.func.functional_call(made, other, (x,))[0], plain)
    nn.utils.parametrizations.weight_norm(made, "weight_hh_l0")
    plain = made(x)[0]
    with recorded(made):
        torch.testing.assert_close(made(x)[0], plain)


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_comes_back_to_a_layer_is_seen_at_its_one_value(kind: str) -> None:
    """So that a look at the gradient there finds records that were mixed or moved, whatever the loss is made of."""
    made = module(kind, 3, 4)
    for place in range(3 if made.mode == "LSTM" else 2):
        with recorded(made) as recording:
            got = flat(made(torch.randn(5, 2, 3)))
        (call,) = recording.calls
        assert len(call.node._input_metadata) == 1
        edge = torch.autograd.graph.GradientEdge(call.node, 0)
        found, _ = torch.autograd.grad(got[place].sum(), [edge, call.handle])
        assert found.shape[1] == 2
        assert found.sum() == got[place].numel()


def test_a_learned_initial_state_gets_its_gradient() -> None:
    made, first = nn.GRU(3, 4).double(), nn.Parameter(torch.randn(1, 1, 4, dtype=torch.float64))
    x = torch.randn(5, 3, 3, dtype=torch.float64)
    expected = torch.autograd.grad(made(x, first.expand(1, 3, 4))[0].sum(), first)
    with recorded(made) as recording:
        output, _ = made(x, hx=first.expand(1, 3, 4))
    found, *_ = torch.autograd.grad(output.sum(), [first, *recording.handles])
    torch.testing.assert_close(found, expected[0])


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(7, 3), nn.LSTM(3, 4, batch_first=True)
        self.out = nn.Linear(4, 2)

    def forward(self, ids: Any) -> Any:
        return self.out(self.lstm(self.embed(ids))[0].mean(1))


class Same(nn.LSTM):
    pass


class Own(nn.LSTM):
    def forward(self, input: Any, hx: Any = None) -> Any:
        return super().forward(input * 2, hx)


def test_the_model_is_as_before() -> None:
    model = Tagger()
    names, places = list(model.state_dict()), [id(each) for each in model.parameters()]
    with pytest.raises(KeyError), recorded(model):
        assert list(model.state_dict()) == names
        assert [id(each) for each in model.parameters()] == places
        assert type(model.lstm) is nn.LSTM
        assert "forward" in vars(model.lstm)
        raise KeyError
    assert "forward" not in vars(model.lstm)
    assert list(model.state_dict()) == names


def test_hooks_still_run_and_nothing_is_recorded_without_gradients() -> None:
    model, seen = Tagger(), []
    model.lstm.register_forward_hook(lambda *_: seen.append(1))
    with recorded(model) as recording:
        with torch.no_grad():
            model(torch.zeros(2, 5, dtype=torch.long))
        assert recording.calls == []
        model(torch.zeros(2, 5, dtype=torch.long))
    assert len(seen) == 2
    assert [call.name for call in recording.calls] == ["LSTM 'lstm'"]
    assert recording.handles[0].hint.startswith("LSTM 'lstm' takes records for the steps")


def test_subclasses() -> None:
    model = nn.ModuleList([Same(3, 3), Own(3, 3), nn.LSTM(3, 3)])
    model[2].forward = lambda *inputs: nn.LSTM.forward(model[2], *inputs)  # type: ignore[method-assign]
    x = torch.randn(2, 2, 3)
    with recorded(model) as recording:
        for each in model:
            each(x)
    assert [call.name for call in recording.calls] == ["Same '0'"]
    assert "forward" in vars(model[2])


def test_recordings_may_be_nested_and_left_in_any_order() -> None:
    model, x = nn.GRU(3, 3), torch.randn(2, 2, 3)
    with recorded(model) as outer:
        model(x)
        with recorded(model) as inner:
            model(x)
        model(x)
    assert (len(outer.calls), len(inner.calls)) == (2, 1)
    one, two = ExitStack(), ExitStack()
    first, second = one.enter_context(recorded(model)), two.enter_context(recorded(model))
    one.close()
    model(x)
    two.close()
    model(x)
    assert (len(first.calls), len(second.calls)) == (0, 1)
    assert "forward" not in vars(model)


def test_graph_and_recording_are_freed() -> None:
    made = nn.LSTM(3, 4)
    gc.disable()
    try:
        with recorded(made) as recording:
            output, _ = made(torch.randn(4, 2, 3))
        torch.autograd.grad(output.sum(), recording.handles)
        gates = weakref.ref(recording.calls[0].uses()[0].g)
        del recording, output, _
        assert gates() is None
    finally:
        gc.enable()


def test_what_is_refused() -> None:
    model = nn.Sequential()
    model.add_module("rnn", nn.LSTM(3, 4, batch_first=True))
    packed = pack_padded_sequence(torch.randn(2, 5, 3), torch.tensor([5, 3]), batch_first=True)
    with recorded(model):
        with pytest.raises(PlanError, match=r"LSTM 'rnn': a PackedSequence"):
            model(packed)
        with pytest.raises(PlanError, match="2 dimensions and needs 3"):
            model(torch.randn(5, 3))
        with pytest.raises(PlanError, match="no steps"):
            model(torch.randn(2, 0, 3))
        with pytest.raises(RuntimeError, match="input_size"):
            model(torch.randn(2, 5, 4))
        with pytest.raises(RuntimeError, match="hidden"):
            model.rnn(torch.randn(2, 5, 3), (torch.zeros(1, 3, 4), torch.zeros(1, 2, 4)))


def test_uses_before_the_backward_pass_are_refused() -> None:
    made = nn.LSTM(3, 4)
    with recorded(made) as recording:
        output, _ = made(torch.randn(4, 2, 3))
    with pytest.raises(RuntimeError, match="handle"):
        recording.calls[0].uses()
    node = recording.calls[0].node
    assert node is output.grad_fn.next_functions[0][0]
    assert is_call(node)
    assert not is_call(output.sum().grad_fn)
    with pytest.raises(RuntimeError, match="handle"):
        rule(node, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_are_those_of_the_uses(kind: str) -> None:
    torch.manual_seed(9)
    made = module(kind, 3, 4).double()
    with recorded(made) as recording:
        output, _ = made(torch.randn(5, 2, 3, dtype=torch.float64))
    torch.autograd.grad(output.sum(), recording.handles)
    (call,) = recording.calls
    for use in call.uses():
        found = rule(call.node, use.slot)
        parameter = call.node.next_functions[use.slot][0].variable
        torch.testing.assert_close(found.by_record(), per_record(recording, parameter))
    with pytest.raises(ValueError, match="slot"):
        rule(call.node, 0)


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_single_cells_leave_ordinary_products(cell: Any) -> None:
    made = cell(3, 4)
    state = made(torch.randn(2, 3))
    seen, waiting = set(), [(state[0] if isinstance(state, tuple) else state).grad_fn]
    users = []
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        children = [child for child, _ in node.next_functions]
        users += [node.name() for child in children if child is not None and "AccumulateGrad" in child.name()]
        waiting += children
    assert set(users) == {"AddmmBackward0", "TBackward0"}


@pytest.mark.parametrize("before", [1, 3])
def test_a_record_may_be_several_sequences(before: int) -> None:
    made = nn.GRU(3, 4).double()
    x = torch.randn(5, 6, 3, dtype=torch.float64)
    with recorded(made) as recording:
        output, _ = made(x)
    torch.autograd.grad(output.sum(), recording.handles)
    (call,) = recording.calls
    for use in call.uses():
        found = rule(call.node, use.slot, Layout(1, before), 2).by_record()
        parts = per_record(recording, call.node.next_functions[use.slot][0].variable)
        torch.testing.assert_close(
            found, parts.unflatten(0, (2, 3) if before == 1 else (3, 2)).sum(1 if before == 1 else 0)
        )
    with pytest.raises(PlanError, match="batch_first"):
        rule(call.node, call.uses()[0].slot, Layout(0), 5)
