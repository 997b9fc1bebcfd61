"""Pooling and convolutions: pads, strides, dilations, `auto_pad`, `ceil_mode`, and what they say of the output's shape."""

import numpy as np

from peer import operator
from peer.question import Question


def placed(d, rank, kernel, most_pad=None, ceil=True, dilated=True):
    """Attributes of a window."""
    named = d.flags(strides=[[d.int(1, 3) for _ in range(rank)]])
    if dilated:
        named |= d.flags(dilations=[[d.int(1, 2) for _ in range(rank)]])
    if ceil:
        named |= d.flags(ceil_mode=[0, 1])
    how = d.pick(["pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID", "none"])
    if how == "pads":
        named["pads"] = [d.int(0, (k if most_pad is None else most_pad) - 1) if k > 1 else 0 for k in (*kernel, *kernel)]
    elif how != "none":
        named["auto_pad"] = how
    if "SAME" in how:
        # onnxruntime leaves dilations out of account there, against the text.
        named.pop("dilations", None)
        # A stride beyond the kernel has it begin before the data.
        named["strides"] = [min(s, k) for s, k in zip(named.get("strides", [1] * rank), kernel)]
    if how == "VALID":
        # Of `ceil_mode` the text and onnxruntime say different things there.
        named.pop("ceil_mode", None)
    return named


def image(d, rank, channels=None, most=9, kernel=None, named={}):
    """Data that the window fits into."""
    spatial = d.dims(rank, most)
    if kernel:
        spatial = [max(n, (k - 1) * t + 1) for n, k, t in zip(spatial, kernel, named.get("dilations", [1] * rank))]
    return d.floats((d.int(1, 2), channels or d.int(1, 3), *spatial))


@operator("AveragePool", "LpPool", weight=5)
def pool(d, op):
    rank = d.pick([1, 2, 2, 2, 3])
    kernel = d.dims(rank, 4)
    opset = d.pick([11, 19, 22] if op == "AveragePool" else [11, 18, 22])
    named = placed(d, rank, kernel, ceil=op == "AveragePool" or opset > 11, dilated=opset > 11)
    named |= d.flags(count_include_pad=[0, 1]) if op == "AveragePool" else d.flags(p=[1, 2, 3])
    return Question(op, [image(d, rank, kernel=kernel, named=named)], opset=opset, kernel_shape=kernel, **named)


@operator("MaxPool", weight=6)
def max_pool(d, op):
    rank = d.pick([1, 2, 2, 2, 3])
    kernel = d.dims(rank, 4)
    named = placed(d, rank, kernel)
    outputs = d.pick([1, 2])
    if outputs == 2:
        named |= d.flags(storage_order=[0, 0, 1])
    x = image(d, rank, kernel=kernel, named=named)
    how = d.pick(["plain", "plain", "ties", "bytes", "double", "special"])
    if how == "ties":
        x = d.ties(x.shape)
    elif how == "bytes":
        x = d.integers(x.shape, d.pick([np.int8, np.uint8]))
    elif how == "double":
        x = x.astype(np.float64)
    elif how == "special":
        # onnxruntime lets NaN go by, PyTorch does not.
        x = np.where(d.numbers.random(x.shape) < 0.2, np.float32(np.inf), x)
    return Question(op, [x], outputs, opset=d.pick([12, 22]), kernel_shape=kernel, **named)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def overall(d, op):
    x = d.floats((d.int(1, 2), d.int(1, 3), *d.dims(d.int(1, 3), 5)))
    return Question(op, [x], opset=22, **(d.flags(p=[1, 2, 3]) if op == "GlobalLpPool" else {}))


@operator("Conv", weight=3)
def conv(d, op):
    rank, groups = d.pick([1, 2, 2, 3]), d.pick([1, 1, 2, 3])
    kernel, c, m = d.dims(rank, 4), groups * d.int(1, 3), groups * d.int(1, 3)
    named = placed(d, rank, kernel, most_pad=4, ceil=False) | ({"kernel_shape": kernel} if d.chance(0.5) else {})
    x = image(d, rank, c, kernel=kernel, named=named)
    inputs = [x, d.floats((m, c // groups, *kernel)), d.floats((m,)) if d.chance(0.5) else None]
    return Question(op, inputs, opset=d.pick([11, 22]), group=groups, **named)


@operator("ConvTranspose", weight=6)
def transposed(d, op):
    rank, groups = d.pick([1, 2, 2, 3]), d.pick([1, 1, 2])
    kernel, c, m = d.dims(rank, 4), groups * d.int(1, 3), groups * d.int(1, 3)
    x = image(d, rank, c, 5)
    strides, dilations = [d.int(1, 3) for _ in kernel], [d.int(1, 2) for _ in kernel]
    named = {"strides": strides, "dilations": dilations, "group": groups}
    if d.chance(0.5):
        named["output_padding"] = [d.int(0, max(s, t) - 1) for s, t in zip(strides, dilations)]
    how = d.pick(["pads", "pads", "auto", "shape", "auto shape", "none"])
    if how == "pads":
        named["pads"] = [d.int(0, 2) for _ in range(2 * rank)]
    full = [(n - 1) * s + (k - 1) * t + 1 for n, s, k, t in zip(x.shape[2:], strides, kernel, dilations)]
    if how == "auto" and any(f < n * s for f, n, s in zip(full, x.shape[2:], strides)):
        return None  # onnxruntime pads by less than nothing otherwise than the text says.
    if "auto" in how:
        named["auto_pad"] = d.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    if "shape" in how:
        named["output_shape"] = [max(f + d.int(-2, 1), 1) for f in full]
    inputs = [x, d.floats((c, m // groups, *kernel)), d.floats((m,)) if d.chance(0.5) else None]
    return Question(op, inputs, opset=d.pick([11, 22]), **named)


@operator("MaxUnpool", weight=2)
def unpool(d, op):
    kernel, strides = [2, 2], d.pick([[2, 2], [1, 2], [3, 2], None])
    n, c, (h, w) = d.int(1, 2), d.int(1, 2), d.dims(2, 4)
    pads = d.pick([None, [0, 0, 0, 0], [1, 0, 0, 1]])
    s, p = strides or [1, 1], pads or [0] * 4
    out = [(i - 1) * t - p[k] - p[k + 2] + 2 for k, (i, t) in enumerate(zip((h, w), s))]
    if min(out) < 1:
        return None
    # Of another size than that of the pooling, the suite counts indices otherwise than onnxruntime.
    size = out if d.chance(0.5) else None
    room = n * c * int(np.prod(out))
    if room < n * c * h * w:
        return None
    places = d.numbers.permutation(room)[: n * c * h * w].reshape(n, c, h, w).astype(np.int64)
    inputs = [d.floats((n, c, h, w)), places, None if size is None else np.asarray([n, c, *size], np.int64)]
    return Question(op, inputs, kept=[2], kernel_shape=kernel, strides=strides, pads=pads)


@operator("Col2Im")
def col2im(d, op):
    n = 2  # onnxruntime mixes up the columns of lines and volumes.
    size, block = [d.int(2, 6) for _ in range(n)], [d.int(1, 3) for _ in range(n)]
    strides, dilations, pads = ([d.int(low, 2) for _ in range(k)] for low, k in ((1, n), (1, n), (0, n)))
    pads *= 2  # onnxruntime mixes up sides that differ.
    counts = [(size[i] + pads[i] + pads[i + n] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(n)]
    if min(counts) < 1:
        return None
    x = d.floats((d.int(1, 2), d.int(1, 3) * int(np.prod(block)), int(np.prod(counts))))
    return Question(op, [x, np.asarray(size, np.int64), np.asarray(block, np.int64)], strides=strides, dilations=dilations, pads=pads)


@operator("ConvInteger", "QLinearConv", weight=2)
def whole(d, op):
    rank, groups = d.pick([1, 2, 2]), d.pick([1, 1, 2])
    kernel, c, m = d.dims(rank, 3), groups * d.int(1, 3), groups * d.int(1, 3)
    named = placed(d, rank, kernel, most_pad=3, ceil=False) | {"group": groups}
    data, weights = d.pick([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    x = d.integers(image(d, rank, c, 7, kernel, named).shape, data)
    # Pairs of larger products saturate in onnxruntime on some machines.
    w = d.integers((m, c // groups, *kernel), weights, -63 if weights == np.int8 else 0, 63)
    if op == "ConvInteger":
        zeros = [d.integers((), data) if d.chance(0.6) else None, d.integers((), weights, 0, 63) if d.chance(0.5) else None]
        return Question(op, [x, w, *zeros], kept=[1, 2, 3], opset=10, **named)
    each = (m,) if d.chance(0.4) else ()
    scale = lambda shape=(): d.floats(shape, 0.01, 0.1)
    inputs = [x, scale(), d.integers((), data), w, scale(each), np.zeros(each, weights) if each else d.integers((), weights, 0, 63)]
    inputs += [scale() * 50, d.integers((), data), d.integers((m,), np.int32, -500, 500) if d.chance(0.5) else None]
    return Question(op, inputs, kept=range(1, 9), opset=10, **named)
