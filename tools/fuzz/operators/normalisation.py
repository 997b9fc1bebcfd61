"""Normalisations, dropout, attention."""

import numpy as np
from bounds import ELEMENTARY, smooth
from operators import operator
from operators.reductions import softmax
from values import BOOL, DOUBLE, FLOAT, HALF, UNIT, Skip


def spread_enough(x, axes):
    if x.array.size == 0 or (x.array.std(axis=axes) < 0.05).any():
        raise Skip("nearly zero over nearly zero")


def staged(kind):
    """What LayerNormalization and its like compute in: `stash_type` is float32 unless said."""
    return FLOAT if kind == DOUBLE else kind


def along(v, rank, axis=1):
    return v.reshape(*[1] * axis, -1, *[1] * (rank - axis - 1))


@operator("BatchNormalization", weight=3)
def batch_normalization(b, op):
    kind = b.float_kind()
    x = b.tensor((kind,), rank=(2, 5))
    c = x.shape[1]
    draw = lambda low, high: b.tensor((kind,), shape=(c,), low=low, high=high, constant=0.9, reuse=0)
    scale, bias, mean, var = draw(-2, 2), draw(-2, 2), draw(-2, 2), draw(0.25, 4)
    epsilon = b.pick([1e-5, 1e-3, 0.01])
    attributes = {"epsilon": epsilon} if epsilon != 1e-5 or b.chance(0.3) else {}
    epsilon = float(np.float32(epsilon))
    put = lambda v: along(v, x.rank)

    def function(v, s, o, m, r):
        return [(v - put(m)) / np.sqrt(put(r) + epsilon) * put(s) + put(o)]

    array, error = smooth(function, [x, scale, bias, mean, var], kind, b.numbers)[0]
    # Folded, the mean's part is rounded apart from the rest.
    folded = np.abs(put(scale.array)) / np.sqrt(put(var.array) + epsilon)
    error = error + 8 * UNIT[kind] * (folded * (np.abs(x.array) + np.abs(put(mean.array))) + np.abs(put(bias.array)))
    b.add(op, [x, scale, bias, mean, var], [(kind, array, error)], **attributes)


@operator("InstanceNormalization", "GroupNormalization")
def by_channel(b, op):
    kind = b.float_kind()
    x = b.tensor((kind,), rank=(3, 5))
    if 0 in x.shape:
        raise Skip("the mean of nothing")
    c = x.shape[1]
    groups = c if op == "InstanceNormalization" else b.pick([g for g in range(1, c + 1) if c % g == 0])
    per = groups if op == "GroupNormalization" and b.opset < 21 else c
    scale = b.tensor((kind,), shape=(per,), low=-2, high=2, constant=0.9)
    bias = b.tensor((kind,), shape=(per,), low=-2, high=2, constant=0.9)
    epsilon = b.pick([1e-5, 1e-3, 0.1])
    attributes = {"epsilon": epsilon} if epsilon != 1e-5 or b.chance(0.3) else {}
    epsilon = float(np.float32(epsilon))
    grouped = (x.shape[0], groups, -1)
    axes = 2
    spread_enough(type(x)("", kind, x.array.reshape(grouped)), axes)

    def function(v, s, o):
        g = v.reshape(grouped)
        g = (g - g.mean(axis=axes, keepdims=True)) / np.sqrt(g.var(axis=axes, keepdims=True) + epsilon)
        if per != c:
            s, o = np.repeat(s, c // per), np.repeat(o, c // per)
        return [g.reshape(x.shape) * along(s, x.rank) + along(o, x.rank)]

    count = x.array.size // (x.shape[0] * groups)
    array, error = smooth(function, [x, scale, bias], staged(kind), b.numbers, 16 + count)[0]
    if op == "GroupNormalization":
        attributes["num_groups"] = groups
    b.add(op, [x, scale, bias], [(kind, array, error)], **attributes)


@operator("LayerNormalization", "RMSNormalization", weight=2)
def by_row(b, op):
    kind = b.float_kind()
    x = b.tensor((kind,), rank=(1, 4))
    if 0 in x.shape:
        raise Skip("the mean of nothing")
    attributes, shown, axis = {}, -1, x.rank - 1
    if b.chance(0.6):
        shown, axis = b.axis(x.rank)
        attributes["axis"] = shown
    axes = tuple(range(axis, x.rank))
    shape = x.shape[axis:]
    if op == "LayerNormalization":
        spread_enough(x, axes)
    elif (np.abs(x.array).max(axis=axes) < 0.05).any():
        raise Skip("nearly zero over nearly zero")
    epsilon = b.pick([1e-5, 1e-3, 0.1])
    if epsilon != 1e-5 or b.chance(0.3):
        attributes["epsilon"] = epsilon
    epsilon = float(np.float32(epsilon))
    inputs = [x, b.tensor((kind,), shape=shape, low=-2, high=2, constant=0.9)]
    if op == "LayerNormalization" and b.chance(0.6):
        inputs.append(b.tensor((kind,), shape=shape, low=-2, high=2, constant=0.9))

    def function(v, s, o=None):
        if op == "LayerNormalization":
            v = v - v.mean(axis=axes, keepdims=True)
        out = v / np.sqrt((v * v).mean(axis=axes, keepdims=True) + epsilon) * s
        return [out if o is None else out + o]

    count = int(np.prod(shape))
    array, error = smooth(function, inputs, staged(kind), b.numbers, 16 + count)[0]
    b.add(op, inputs, [(kind, array, error)], **attributes)


@operator("Dropout")
def dropout(b, op):
    x = b.tensor()
    results = [(x.kind, x.array, x.error)]
    if b.opset >= 10 and b.chance(0.3):
        results.append((BOOL, np.ones(x.shape, bool), None))
    attributes = {"ratio": 0.3} if b.opset < 12 and b.chance(0.5) else {}
    b.add(op, [x], results, **attributes)


@operator("Attention")
def attention(b, op):
    """Scaled dot products, with heads apart, masks and grouped queries."""
    kind = b.pick([FLOAT, FLOAT, HALF])
    batch, per, groups = b.pick([1, 2]), b.pick([1, 2, 3]), b.pick([1, 1, 2])
    heads, rows, columns = per * groups, b.dim(9), b.dim(9)
    size, width = b.pick([2, 4, 8, 5]), b.pick([2, 4, 8, 3])
    rows, columns = max(rows, 1), max(columns, 1)
    q = b.tensor((kind,), shape=(batch, heads, rows, size), low=-2, high=2)
    k = b.tensor((kind,), shape=(batch, per, columns, size), low=-2, high=2)
    v = b.tensor((kind,), shape=(batch, per, columns, width), low=-2, high=2)
    inputs, attributes = [q, k, v], {}
    causal = b.chance(0.3)
    if causal:
        attributes["is_causal"] = 1
        if b.opset < 24 or rows > columns:
            raise Skip("rows that see nothing")
    scale = 1 / np.sqrt(size)
    if b.chance(0.4):
        scale = attributes["scale"] = b.pick([0.5, 0.25, 1.0])
    mask = None
    if b.chance(0.4):
        mask = b.tensor((kind,), shape=b.pick([(rows, columns), (batch, heads, rows, columns)]), low=-2, high=2)
        inputs.append(mask)
    softcap = b.pick([0.0, 0.0, 2.0])
    if softcap:
        if mask is not None:
            raise Skip("the order of softcap and mask has changed")
        attributes["softcap"] = softcap

    def function(q, k, v, mask=None):
        k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
        scores = np.einsum("bhid,bhjd->bhij", q, k) * scale
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        if mask is not None:
            scores = scores + mask
        if causal:
            scores = np.where(np.tril(np.ones((rows, columns), bool)), scores, -np.inf)
        return [np.einsum("bhij,bhjd->bhid", softmax(scores, -1), v)]

    array, error = smooth(function, inputs, kind, b.numbers, 32 + size + columns)[0]
    b.add(op, inputs, [(kind, array, error + ELEMENTARY * UNIT[kind])], **attributes)
