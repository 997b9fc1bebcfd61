"""Quantised tensors: integer results, to the last step."""

import numpy as np
from operators import operator
from operators.windows import Window, convolve, draw_convolution
from values import FLOAT, HALF, INT8, INT16, INT32, STORED, TINY, UINT8, UINT16, UNIT, Skip, rounded


def steps(b, kind, count=None):
    """Scales that are powers of two mostly, so that quotients are exact."""
    shape = () if count is None else (count,)
    if b.chance(0.7):
        return b.numbers.choice([0.125, 0.25, 0.5, 1.0, 2.0], shape)
    return rounded(kind, b.numbers.uniform(0.05, 2, shape))


def steady(real, factor, unit=UNIT[FLOAT]):
    """`Skip` where a rounded product with this factor may fall on the other side of a step."""
    edge = np.abs(real - np.floor(real) - 0.5)
    if not np.all(np.log2(factor) % 1 == 0) and (edge < 8 * unit * (1 + np.abs(real))).any():
        raise Skip("a quotient at the edge of a step")


def quantised(array, scale, zero, kind, unit):
    """Rounds half to even and saturates."""
    quotient = array / scale
    steady(quotient, scale, unit)
    info = np.iinfo(STORED[kind])
    return np.clip(np.rint(quotient) + zero, info.min, info.max).astype(STORED[kind])


@operator("QuantizeLinear", "DequantizeLinear", weight=2)
def linear_steps(b, op):
    kind = FLOAT if b.opset < 19 or b.chance(0.8) else HALF
    small = b.pick([INT8, UINT8] if b.opset < 21 else [INT8, UINT8, INT16, UINT16])
    rank = b.random.randint(0, 4)
    shape = b.shape(rank, rank)
    style = b.random.random()
    attributes, axis, block = {}, None, 0
    if rank and style < 0.4 and b.opset >= 13:
        shown, axis = b.axis(rank)
        attributes["axis"] = shown
    elif rank and style < 0.55 and b.opset >= 21:
        shown, axis = b.axis(rank)
        block = b.pick([1, 2, 3, 4])
        attributes.update(axis=shown, block_size=block)
    if axis is None:
        scale = steps(b, kind)
        spread = lambda v: v
    elif not block:
        scale = steps(b, kind, shape[axis])
        spread = lambda v: v.reshape(*[1] * axis, -1, *[1] * (rank - axis - 1))
    else:
        parts = list(shape)
        parts[axis] = -(-shape[axis] // block)
        if 0 in shape or shape[axis] < block:
            raise Skip("no block")
        scale = b.numbers.choice([0.125, 0.25, 0.5, 1.0, 2.0], parts)
        spread = lambda v: np.take(np.repeat(v, block, axis), range(shape[axis]), axis)
    info = np.iinfo(STORED[small])
    zero = np.zeros(np.shape(scale), STORED[small])
    named = b.chance(0.7)
    if named:
        zero = b.numbers.integers(max(info.min, -200), min(info.max, 300), np.shape(scale), endpoint=True).astype(STORED[small])
    constant = 0.85
    s = b.fresh(kind, np.asarray(scale), constant)
    if op == "QuantizeLinear":
        x = b.tensor((kind,), shape=shape, low=-40, high=40, exact=True)
        if not named:
            small, zero = UINT8, np.zeros(np.shape(scale), np.uint8)
        result = quantised(x.array, spread(np.asarray(scale)), spread(np.asarray(zero)).astype(np.float64), small, UNIT[kind])
        inputs = [x, s] + ([b.fresh(small, zero, constant)] if named else [])
        return b.add(op, inputs, [(small, result, None)], **attributes)
    x = b.tensor((small,), shape=shape, low=info.min, high=info.max)
    exact = (x.array.astype(np.float64) - spread(np.asarray(zero)).astype(np.float64)) * spread(np.asarray(scale))
    inputs = [x, s] + ([b.fresh(small, zero, constant)] if named else [])
    error = None if (rounded(kind, exact) == exact).all() else 2 * UNIT[kind] * np.abs(exact) + TINY[kind]
    b.add(op, inputs, [(kind, exact, error)], **attributes)


@operator("DynamicQuantizeLinear")
def dynamic(b, op):
    x = b.tensor((FLOAT,), rank=(1, 4), exact=True)
    if x.array.size == 0:
        raise Skip("nothing to scale")
    low, high = min(x.array.min(), 0), max(x.array.max(), 0)
    scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(255))
    if scale < 1e-3:
        raise Skip("no range")
    zero = -low / float(scale)
    quotients = x.array / float(scale)
    for q in (np.array(zero), quotients):
        steady(q, float(scale))
    zero = np.clip(np.rint(zero), 0, 255)
    result = np.clip(np.rint(quotients) + zero, 0, 255)
    b.add(op, [x], [(UINT8, result, None), (FLOAT, np.float64(scale), 4 * UNIT[FLOAT] * np.float64(scale)), (UINT8, zero, None)])


def bytes_of(b, shape, kind, constant=0.25):
    info = np.iinfo(STORED[kind])
    return b.tensor((kind,), shape=shape, low=info.min, high=info.max, constant=constant, specials=True)


def zero_point(b, kind, shape=()):
    info = np.iinfo(STORED[kind])
    return b.fresh(kind, b.numbers.integers(info.min, info.max, shape, endpoint=True).astype(STORED[kind]), 0.85)


@operator("MatMulInteger", "QLinearMatMul", weight=2)
def integer_products(b, op):
    left, right = b.pick([INT8, UINT8]), b.pick([INT8, UINT8])
    m, k, n = (max(b.dim(), 1) for _ in range(3))
    lead = b.shape(0, 2, 8)
    x = bytes_of(b, (*lead, m, k), left)
    y = bytes_of(b, (k, n), right, 0.8)
    if op == "MatMulInteger":
        inputs, zeros = [x, y], [0, 0]
        if b.chance(0.7):
            inputs.append(zero_point(b, left, (m,) if not lead and b.chance(0.1) else ()))
            zeros[0] = inputs[2].array.astype(np.int64)
            if zeros[0].ndim:
                zeros[0] = zeros[0].reshape(-1, 1)
            if b.chance(0.7):
                inputs.append(zero_point(b, right, (n,) if b.chance(0.5) else ()))
                zeros[1] = inputs[3].array.astype(np.int64)
        result = (x.array.astype(np.int64) - zeros[0]) @ (y.array.astype(np.int64) - zeros[1])
        return b.add(op, inputs, [(INT32, result.astype(np.int32), None)])
    out = b.pick([INT8, UINT8])
    scales = [b.fresh(FLOAT, np.array(s), 0.85) for s in (steps(b, FLOAT), steps(b, FLOAT), b.pick([8.0, 32.0, 64.0]))]
    points = [zero_point(b, kind) for kind in (left, right, out)]
    sums = (x.array.astype(np.int64) - points[0].array.astype(np.int64)) @ (y.array.astype(np.int64) - points[1].array.astype(np.int64))
    result = requantised(sums, scales[0].array * scales[1].array, scales[2].array, points[2].array, out)
    b.add(op, [x, scales[0], points[0], y, scales[1], points[1], scales[2], points[2]], [(out, result, None)])


def requantised(sums, factor, scale, zero, kind):
    ratio = factor / scale
    real = sums * ratio
    steady(real, ratio)
    info = np.iinfo(STORED[kind])
    return np.clip(np.rint(real) + zero.astype(np.float64), info.min, info.max).astype(STORED[kind])


@operator("ConvInteger", "QLinearConv", weight=2)
def integer_convolutions(b, op):
    spatial, kernel, groups, per_in, per_out, batch = draw_convolution(b, 9)
    left, right = b.pick([INT8, UINT8]), b.pick([INT8, UINT8])
    channels = groups * per_out
    x = bytes_of(b, (batch, groups * per_in, *spatial), left)
    w = bytes_of(b, (channels, per_in, *kernel), right, 0.85)
    window = Window(b, op, spatial, kernel)
    attributes = dict(window.attributes)
    if groups > 1 or b.chance(0.2):
        attributes["group"] = groups
    column = lambda v: v.reshape(-1, *[1] * (w.rank - 1)) if np.ndim(v) else v

    def sums(x_zero, w_zero):
        a = x.array.astype(np.int64) - np.int64(x_zero)
        return convolve(a, w.array.astype(np.int64) - column(np.asarray(w_zero).astype(np.int64)), window, groups)

    if op == "ConvInteger":
        inputs, zeros = [x, w], [0, 0]
        if b.chance(0.7):
            inputs.append(zero_point(b, left))
            zeros[0] = inputs[2].array
            if b.chance(0.6):
                inputs.append(zero_point(b, right, (channels,) if b.chance(0.3) else ()))
                zeros[1] = inputs[3].array
        return b.add(op, inputs, [(INT32, sums(*zeros), None)], **attributes)
    out = b.pick([INT8, UINT8])
    each = channels if b.chance(0.5) else None
    x_scale, w_scale = b.fresh(FLOAT, np.array(steps(b, FLOAT)), 0.85), b.fresh(FLOAT, np.asarray(steps(b, FLOAT, each)), 0.85)
    y_scale = b.fresh(FLOAT, np.array(b.pick([4.0, 16.0, 64.0])), 0.85)
    x_zero, y_zero = zero_point(b, left), zero_point(b, out)
    w_zero = zero_point(b, right, () if each is None else (channels,))
    total = sums(x_zero.array, w_zero.array)
    inputs = [x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero]
    if b.chance(0.5):
        bias = b.fresh(INT32, b.numbers.integers(-5000, 5000, channels), 0.9)
        inputs.append(bias)
        total = total + bias.array.reshape(1, -1, *[1] * len(kernel))
    factor = x_scale.array * w_scale.array
    factor = factor.reshape(1, -1, *[1] * len(kernel)) if each else factor
    result = requantised(total, factor, y_scale.array, y_zero.array, out)
    b.add(op, inputs, [(out, result, None)], **attributes)
