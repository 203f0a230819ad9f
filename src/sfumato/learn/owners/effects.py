"""What each operation of torch does to the records in its arguments: how they lie in what it makes.

An effect is a claim about one operation, and the proof that records stay apart is made of them: *a number of the output
that is said to be record i's depends on numbers of record i, and on nobody's, alone*. An operation that is not in this
list has no effect that we know, and what it makes is nobody's to use. `Mixed` stands wherever the claim would be false.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from ..layout import Layout
from . import indexing
from .call import Call, name_of
from .memory import Owner

Effect = Callable[[Call], Owner | tuple[Owner, ...]]


def pointwise(call: Call) -> Owner:
    """Number by number, shapes broadcast: dimensions are counted from the last one."""
    output = call.outputs[0]
    return call.agreed(
        *(call.carried(tensor, owner, output, output.dim() - tensor.dim() + owner.dim) for tensor, owner in call.owned)
    )


def copied(call: Call) -> Owner:
    """From src to self, whatever was there."""
    owner, output = call.owners["src"], call.outputs[0]
    if owner is None:
        return None
    return call.carried(call["src"], owner, output, output.dim() - call["src"].dim() + owner.dim)


def turned(call: Call) -> Owner:
    """Another view of the same memory, in place: nothing in it moves."""
    return call.memory.owner(call.outputs[0])


def nobodys(call: Call) -> Owner:
    """Shape and type of a tensor alone, or new values over all of it."""
    return None


def _dims(call: Call, rank: int) -> list[int]:
    """The dimensions that an operation works along; all of them where it names none."""
    dims = call.arguments.get("dim", call.arguments.get("dims"))
    several = [dims] if isinstance(dims, int) else list(dims or range(rank))
    return [dim % rank for dim in several] if rank else []


def reduced(call: Call) -> Owner:
    """One number of all along some dimensions."""
    source, owner = call["self"], call.owners["self"]
    dims = _dims(call, source.dim())
    if owner is None or not call.only("self") or owner.dim in dims:
        return call.mixing
    gone = 0 if call.arguments.get("keepdim") else sum(dim < owner.dim for dim in dims)
    return call.carried(source, owner, call.outputs[0], owner.dim - gone)


def along(call: Call) -> Owner:
    """Within each line along some dimensions: sort, softmax, cumsum, gather, scatter. All else stays in place."""
    rank = call.outputs[0].dim()
    dims = _dims(call, rank)
    owners = []
    for tensor, owner in call.owned:
        if tensor.dim() != rank or owner.dim in dims:
            return call.mixing
        owners.append(call.carried(tensor, owner, call.outputs[0], owner.dim))
    return call.agreed(*owners)


def leading(spaces: int) -> Effect:
    """On the last dimensions, so many; the ones before, broadcast, are worked on one by one."""

    def effect(call: Call) -> tuple[Owner, ...]:
        rank = max(tensor.dim() for tensor, _ in call.all) - spaces
        layouts: list[Owner] = []
        for output in call.outputs:
            owners = [
                call.carried(tensor, owner, output, rank - (tensor.dim() - spaces) + owner.dim)
                if owner.dim < tensor.dim() - spaces else call.mixing
                for tensor, owner in call.owned
            ]  # fmt: skip
            layouts.append(call.agreed(*owners))
        return tuple(layouts)

    return effect


def distances(call: Call) -> Owner:
    """Between the rows of two batches of matrices: as a product with the second one turned."""
    one, two, output = call.owners["x1"], call.owners["x2"], call.outputs[0]
    batch = output.dim() - 2
    if two is None and one.dim <= batch:
        return call.carried(call["x1"], one, output, one.dim)
    if one is None and two.dim <= batch:
        return call.carried(call["x2"], two, output, two.dim + (two.dim == batch))
    return call.carried(call["x1"], one, output, one.dim) if one == two and one.dim < batch else call.mixing


def first(*names: str, none: str | None = None) -> Effect:
    """Records lie along dimension 0 of these arguments, and of all that is made; `none` names the argument that must be
    0 (no reduction) for that."""

    def effect(call: Call) -> tuple[Owner, ...]:
        owner = call.agreed(*(call.owners.get(name) for name in names))
        if not isinstance(owner, Layout) or owner.dim or not call.only(*names) or (none and call[none]):
            return tuple(call.mixing for _ in call.outputs)
        source = next(call[name] for name in names if call.owners.get(name) is not None)
        return tuple(call.carried(source, owner, output, 0) for output in call.outputs)

    return effect


def unreduced(call: Call) -> Owner:
    """A loss: number by number, unless it is reduced."""
    return call.mixing if call["reduction"] else pointwise(call)


def product(left: str, right: str) -> Effect:
    """A product of matrices, or of batches of them: records as rows of the left, as columns of the right, or as the
    batch; each with nobody's on the other side, or with the same record's in a batch."""

    def effect(call: Call) -> Owner:
        a, b, output = call[left], call[right], call.outputs[0]
        one, two = call.owners[left], call.owners[right]
        batch = a.dim() - 2
        layout: Owner = call.mixing
        if one is not None and (two is None or (batch and one == two)) and (one.dim < batch or (
            one.dim == batch and two is None)):  # fmt: skip
            layout = call.carried(a, one, output, one.dim)
        elif one is None and two is not None and two.dim != batch:
            layout = call.carried(b, two, output, two.dim)
        elif one is None and two is None:
            layout = None
        more = [
            call.carried(tensor, owner, output, output.dim() - tensor.dim() + owner.dim)
            for tensor, owner in call.owned
            if tensor is not a and tensor is not b
        ]
        return call.agreed(layout, *more)

    return effect


def vector(left: str) -> Effect:
    """A product of a matrix and a vector that is nobody's: records as rows."""

    def effect(call: Call) -> Owner:
        owner = call.owners[left]
        if owner is None or owner.dim or not call.only(left):
            return call.mixing
        return call.carried(call[left], owner, call.outputs[0], 0)

    return effect


def trilinear(call: Call) -> Owner:
    """Three factors, with dimensions put in, multiplied and summed over some."""
    summed, output = call["sumdim"], call.outputs[0]
    owners: list[Owner] = []
    for number in (1, 2, 3):
        owner = call.owners[f"i{number}"]
        if owner is None:
            continue
        dim = owner.dim
        for new in sorted(call[f"expand{number}"]):
            dim += new <= dim
        if dim in summed:
            return call.mixing
        owners.append(call.carried(call[f"i{number}"], owner, output, dim - sum(each < dim for each in summed)))
    return call.agreed(*owners)


def attention(call: Call) -> tuple[Owner, ...]:
    """Scaled products of queries and keys: (records, heads, places, features), a mask broadcast to the products."""
    owners: list[Owner] = []
    for name in ("query", "key", "value", "attn_mask"):
        owner = call.owners.get(name)
        if isinstance(owner, Layout):
            dim = owner.dim + (4 - call[name].dim() if name == "attn_mask" else 0)
            owners.append(Layout(dim, owner.before) if dim == 0 else call.mixing)
    agreed = call.agreed(*owners)
    return tuple(agreed for _ in call.outputs)


def layer_norm(call: Call) -> tuple[Owner, ...]:
    owner, source = call.owners["input"], call["input"]
    if owner is None or not call.only("input") or owner.dim >= source.dim() - len(call["normalized_shape"]):
        return tuple(call.mixing for _ in call.outputs)
    return tuple(call.carried(source, owner, output, owner.dim) for output in call.outputs)


def batch_norm(call: Call) -> tuple[Owner, ...]:
    """By fixed statistics: number by number. By those of the batch: one channel by itself, and InstanceNorm makes every
    record's channels channels of their own."""
    owner, source, output = call.owners["input"], call["input"], call.outputs[0]
    others = tuple(call.mixing for _ in call.outputs[1:])
    if owner is None or not call.only("input"):
        return (call.mixing, *others)
    if not call.arguments.get("training", "no_training" not in call.name):
        return (call.carried(source, owner, output, owner.dim), *others)
    running = [call.arguments.get(name) for name in ("running_mean", "running_var")]
    for statistic in running:
        if statistic is not None:  # written without a word in the signature
            call.memory.written(statistic, call.mixing)
    if owner.dim != 1 or any(statistic is not None for statistic in running):
        return (call.mixing, *others)
    return (call.carried(source, owner, output, 1), *others)


def padded(call: Call) -> Owner:
    source, owner = call["self"], call.owners["self"]
    if owner is None or owner.dim >= source.dim() - len(call["pad"]) // 2:
        return call.mixing
    return call.carried(source, owner, call.outputs[0], owner.dim)


def joined(call: Call) -> Owner:
    """One after the other along a dimension. Along that of the records: they come round once for each part."""
    parts, output = [(each, owner) for each, owner in call.all if each.numel()], call.outputs[0]
    dim = call["dim"] % output.dim()
    owner = call.agreed(*(owner for _, owner in parts))
    if not isinstance(owner, Layout):
        return owner
    if owner.dim != dim:
        return call.carried(next(each for each, mine in parts if mine is not None), owner, output, owner.dim)
    if any(mine is None for _, mine in parts) or len({each.shape[dim] for each, _ in parts}) > 1:
        return call.mixing
    return Layout(dim, owner.before * len(parts))


def stacked(call: Call) -> Owner:
    owner, output = call.agreed(*(owner for _, owner in call.all)), call.outputs[0]
    if not isinstance(owner, Layout):
        return owner
    dim = call["dim"] % output.dim()
    return call.carried(call.owned[0][0], owner, output, owner.dim + (dim <= owner.dim))


def repeated(call: Call) -> Owner:
    owner, source, output = call.owners["self"], call["self"], call.outputs[0]
    dim = owner.dim + output.dim() - source.dim()
    return Layout(dim, owner.before * call["repeats"][dim])


def bucketed(call: Call) -> Owner:
    return pointwise(call) if call.only("self") else call.mixing


_POINTWISE = (
    "_to_copy _prelu_kernel masked_fill triu tril dropout native_dropout _fused_dropout rrelu_with_noise bernoulli "
    "log_sigmoid_forward resolve_conj resolve_neg alias complex polar _conj_physical clone lerp where addcmul "
    "addcdiv fill nan_to_num normal logit hardswish hardswish_backward elu_backward leaky_relu_backward "
    "hardtanh_backward softplus_backward mish_backward hardsigmoid_backward special_ndtr floor_divide rsub"
)
_NOBODYS = (
    "zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty new_full "
    "new_empty_strided _linalg_check_errors zero uniform exponential random cauchy log_normal geometric"
)
_REDUCED = (
    "sum mean amax amin max min prod var std var_mean std_mean logsumexp any all argmax argmin median nanmedian nansum "
    "count_nonzero norm linalg_vector_norm mode kthvalue aminmax"
)
_ALONG = (
    "_softmax _log_softmax _safe_softmax softmax log_softmax cumsum cumprod logcumsumexp cummax cummin _cummax_helper "
    "_cummin_helper sort topk flip roll glu gather scatter scatter_add scatter_reduce slice_scatter "
    "_fft_r2c _fft_c2c _fft_c2r _softmax_backward_data _log_softmax_backward_data"
)
_SPATIAL = (
    "avg_pool2d avg_pool3d avg_pool1d max_pool2d_with_indices max_pool3d_with_indices _adaptive_avg_pool2d "
    "_adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d reflection_pad1d reflection_pad2d reflection_pad3d "
    "replication_pad1d replication_pad2d replication_pad3d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d "
    "upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa "
    "max_unpool2d max_unpool3d"
)
_MATRICES = (
    "linalg_inv_ex linalg_cholesky_ex linalg_qr _linalg_svd _linalg_eigh _linalg_det _linalg_slogdet linalg_matrix_exp "
    "linalg_lu_factor_ex _linalg_solve_ex linalg_solve_triangular cholesky_inverse linalg_eig"
)
_REDUCIBLE = "mse_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss"
_TURNED = "transpose squeeze unsqueeze t as_strided swapaxes swapdims"
_LOSSES = "nll_loss_forward nll_loss2d_forward multi_margin_loss multilabel_margin_loss_forward"
EFFECTS: dict[str, Effect] = {
    **dict.fromkeys(_POINTWISE.split(), pointwise),
    **dict.fromkeys(_NOBODYS.split(), nobodys),
    **dict.fromkeys(_REDUCED.split(), reduced),
    **dict.fromkeys(_ALONG.split(), along),
    **{name: leading(int(re.findall(r"(\d)d", name)[-1])) for name in _SPATIAL.split()},
    **dict.fromkeys(_MATRICES.split(), leading(2)),
    **dict.fromkeys(_REDUCIBLE.split(), unreduced),
    **dict.fromkeys(_TURNED.split(), turned),
    **dict.fromkeys(_LOSSES.split(), first("self", "target", none="reduction")),
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), layer_norm),
    **dict.fromkeys(
        ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"), batch_norm
    ),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), indexing.bags),
    "_scaled_dot_product_flash_attention_for_cpu": attention,
    "_cdist_forward": distances,
    "_trilinear": trilinear,
    "addbmm": lambda call: call.mixing,
    "addmm": product("mat1", "mat2"),
    "addmv": vector("mat"),
    "baddbmm": product("batch1", "batch2"),
    "bmm": product("self", "mat2"),
    "bucketize": bucketed,
    "cat": joined,
    "col2im": leading(2),
    "constant_pad_nd": padded,
    "convolution": first("input"),
    "copy": copied,
    "embedding": indexing.embedded,
    "grid_sampler_2d": first("input", "grid"),
    "grid_sampler_3d": first("input", "grid"),
    "im2col": leading(2),
    "index": indexing.indexed,
    "index_add": indexing.selected,
    "index_copy": indexing.selected,
    "index_fill": indexing.selected,
    "index_put": indexing.put,
    "index_select": indexing.selected,
    "mkldnn_rnn_layer": indexing.recurrent,
    "mm": product("self", "mat2"),
    "multinomial": leading(1),
    "mv": vector("self"),
    "native_channel_shuffle": leading(3),
    "native_group_norm": first("input"),
    "pixel_shuffle": leading(3),
    "pixel_unshuffle": leading(3),
    "repeat": repeated,
    "stack": stacked,
}


@cache
def effect_of(func: Any) -> Effect | None:
    """Of the operation; None where we know of none."""
    effect = EFFECTS.get(name_of(func))
    if effect is None and torch.Tag.pointwise in func.tags and func._schema.name.startswith("aten::"):
        return pointwise
    return effect
