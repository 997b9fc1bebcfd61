"""Operators that move elements, at odd sizes, negative pads and axes, and with nothing to move."""

import numpy as np

from peer import operator
from peer.question import Question


def anything(d, low=1, high=4, most=5, empty=0.1):
    shape = d.dims(d.int(low, high), most, empty)
    return d.floats(shape, -9, 9).astype(d.pick([np.float32, np.float32, np.int64, np.int32, np.float64]))


@operator("Pad", weight=8)
def pad(d, op):
    opset = d.pick([10, 11, 13, 18, 19, 21])
    x = anything(d, empty=0.05)
    if opset < 11:
        x = x.astype(np.float32)
    mode = d.pick(["constant", "reflect", "edge", *(["wrap"] if opset >= 19 else [])])
    axes = d.axes(x.ndim) if opset >= 18 and d.chance(0.4) else None
    extents = [x.shape[a] for a in axes] if axes else list(x.shape)
    reach = d.pick([1, 3, 12])
    cut = d.chance(0.3)
    pads = [d.int(-1 if cut and n > 2 else 0, reach if mode != "reflect" or d.chance(0.3) else max(min(reach, n - 1), 0)) for n in extents * 2]
    if opset < 11:
        return Question(op, [x], opset=opset, mode=mode, pads=pads, **d.flags(value=[1.5]))
    value = np.asarray(2, x.dtype) if mode == "constant" and d.chance(0.5) else None
    inputs = [x, np.asarray(pads, np.int64), value, None if axes is None else np.asarray(axes, np.int64)]
    return Question(op, inputs, kept=[1, 2, 3] if d.chance(0.5) else (), opset=opset, mode=mode)


@operator("DepthToSpace", "SpaceToDepth")
def blocks(d, op):
    b, (n, c, h, w) = d.int(1, 3), d.dims(4, 4, empty=0.05)
    if op == "SpaceToDepth":
        return Question(op, [d.floats((n, c, h * b, w * b))], opset=13, blocksize=b)
    return Question(op, [d.floats((n, c * b * b, h, w))], opset=13, blocksize=b, **d.flags(mode=["DCR", "CRD"]))


@operator("Slice", weight=4)
def sliced(d, op):
    x = anything(d)
    axes = d.axes(x.ndim)
    far = d.pick([0, 0, 2**31 - 1, 2**63 - 1])
    steps = [d.pick([1, 1, 2, -1, -2, 3, 7, -7]) for _ in axes] if d.chance(0.7) else None
    # Going back, onnxruntime takes the largest number for the end, against the text.
    ends = lambda: [d.pick([d.int(-8, 8), d.int(-8, 8), far if s > 0 else -far, -far]) for s in steps or [1] * len(axes)]
    inputs = [x, *(np.asarray(v, np.int64) for v in (ends(), ends(), axes))]
    return Question(op, [*inputs, None if steps is None else np.asarray(steps, np.int64)], kept=[1, 2, 3, 4] if d.chance(0.5) else (), opset=13)


@operator("Reshape", "Expand", "Tile", weight=2)
def shaped(d, op):
    x = anything(d, 0)
    if op == "Tile":
        return Question(op, [x, np.asarray([d.int(0, 3) for _ in x.shape], np.int64)], kept=[1] if d.chance(0.5) else (), opset=13)
    if op == "Expand":
        base = [1 if d.chance(0.4) else n for n in x.shape]
        target = [n if d.chance(0.6) else 1 for n in x.shape]
        return Question(op, [d.floats(tuple(base)), np.asarray([*d.dims(d.int(0, 1), 3), *target], np.int64)], kept=[1] if d.chance(0.5) else (), opset=13)
    total, new = x.size, []
    for _ in range(d.int(0, 3)):
        new.append(d.pick([n for n in range(1, max(total, 1) + 1) if total == 0 or total % n == 0]))
        total = total // new[-1]
    new.append(d.pick([-1, total]))
    allow = d.flags(allowzero=[0, 1])
    return Question(op, [x, np.asarray(new, np.int64)], kept=[1] if d.chance(0.5) else (), opset=14, **allow)


@operator("Concat", "Split", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "ReverseSequence", "CenterCropPad", "Shape", weight=2)
def moved(d, op):
    x = anything(d)
    axis = d.axis(x.ndim)
    if op == "Concat":
        parts = []
        for _ in range(d.int(1, 3)):
            shape = list(x.shape)
            shape[axis] = d.int(0, 4)
            parts.append(d.floats(tuple(shape)))
        return Question(op, parts, opset=13, axis=axis)
    if op == "Split":
        n = x.shape[axis]
        if d.chance(0.5):
            count = d.int(1, max(n, 1))
            return Question(op, [x], -(-n // -(-n // count)) if n else 1, opset=18, axis=axis, num_outputs=count) if n and -(-n // -(-n // count)) == count else None
        cuts = sorted(d.int(0, n) for _ in range(d.int(0, 2)))
        sizes = np.diff([0, *cuts, n]).astype(np.int64)
        return Question(op, [x, sizes], len(sizes), kept=[1] if d.chance(0.5) else (), opset=13, axis=axis)
    if op == "Transpose":
        return Question(op, [x], opset=13, **d.flags(perm=[d.random.sample(range(x.ndim), x.ndim)]))
    if op == "Flatten":
        return Question(op, [x], opset=13, **d.flags(axis=[d.int(-x.ndim, x.ndim)]))
    if op == "Squeeze":
        ones = [a for a, n in enumerate(x.shape) if n == 1]
        chosen = None if d.chance(0.4) or not ones else np.asarray([a - x.ndim if d.chance(0.5) else a for a in ones], np.int64)
        return Question(op, [x, chosen], kept=[1], opset=13)
    if op == "Unsqueeze":
        axes = d.random.sample(range(x.ndim + 2), 2)
        return Question(op, [x, np.asarray([a - x.ndim - 2 if d.chance(0.5) else a for a in axes], np.int64)], kept=[1], opset=13)
    if op == "Shape":
        return Question(op, [x], opset=15, **d.flags(start=[d.int(-6, 6)], end=[d.int(-6, 6)]))
    if op == "CenterCropPad":
        axes = d.axes(x.ndim)
        return Question(op, [x, np.asarray([d.int(1, 8) for _ in axes], np.int64)], kept=[1] if d.chance(0.5) else (), opset=18, axes=axes)
    x = anything(d, 2, 4, empty=0)
    time = d.int(0, 1)
    lengths = d.integers((x.shape[1 - time],), np.int64, 1, x.shape[time])
    return Question(op, [x, lengths], opset=10, batch_axis=1 - time, time_axis=time)
