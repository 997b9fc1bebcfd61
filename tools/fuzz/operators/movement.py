"""Elements change their place: every bit must arrive."""

import numpy as np
from operators import operator
from values import ANY, FLOATS, INT32, INT64, NUMBERS, Skip, held, proto


def moved(b, op, function, values, inputs=None, **attributes):
    """A node whose output `function` makes of the inputs, of arrays and errors alike."""
    array = function(*[v.array for v in values])
    error = None
    if any(v.error is not None for v in values):
        error = function(*[v.slack for v in values])
    return b.add(op, inputs or values, [(values[0].kind, array, error)], **attributes)


def anything(b, rank=(0, 4), shape=None, filled=False, **more):
    """A tensor of any kind; of one that has a zero where places are `filled`."""
    kind = b.any_kind() if filled else b.moved_kind()
    return b.tensor((kind,), rank=rank, shape=shape, specials=True, **more)


@operator("Transpose", weight=2)
def transpose(b, op):
    x = anything(b, (0, 5))
    order = list(range(x.rank))
    b.random.shuffle(order)
    attributes = {"perm": order}
    if b.chance(0.15) or x.rank == 0:
        order, attributes = list(reversed(range(x.rank))), {}
    moved(b, op, lambda v: np.transpose(v, order), [x], **attributes)


def factors(b, count, rank):
    """A random shape of a number of elements."""
    out = []
    for _ in range(rank - 1):
        options = [d for d in range(1, count + 1) if count % d == 0][:12] if count else [0, 1, 2]
        n = b.pick(options)
        out.append(n)
        count = count // n if n else 0
    out.append(count)
    b.random.shuffle(out)
    return out


@operator("Reshape", weight=2)
def reshape(b, op):
    x = anything(b)
    size = x.array.size
    target = factors(b, size, b.random.randint(1, 4))
    if size == 0:
        target = list(x.shape)
        b.random.shuffle(target)
    if not target:
        target = [1]
    shown = list(target)
    attributes = {}
    if size and b.chance(0.4):
        shown[b.random.randrange(len(shown))] = -1
    elif size and b.chance(0.3):
        for i in range(min(len(shown), x.rank)):
            if shown[i] == x.shape[i]:
                shown[i] = 0
    elif size == 0:
        if b.opset < 14:
            raise Skip("a zero means a copy")
        attributes["allowzero"] = 1
    moved(b, op, lambda v: v.reshape(target), [x], [x, b.ints(shown)], **attributes)


@operator("Flatten")
def flatten(b, op):
    x = anything(b)
    axis = b.random.randint(0, x.rank)
    attributes = {}
    shown = axis
    if b.opset >= 11 and axis < x.rank and b.chance(0.3):
        shown = axis - x.rank
    if x.rank >= 1 and b.chance(0.2):
        shown = axis = 1
    else:
        attributes["axis"] = shown
    left = int(np.prod(x.shape[:axis], dtype=int))
    right = int(np.prod(x.shape[axis:], dtype=int))
    moved(b, op, lambda v: v.reshape(left, right), [x], **attributes)


@operator("Squeeze", "Unsqueeze")
def squeeze(b, op):
    x = anything(b)
    if op == "Squeeze":
        ones = [i for i, n in enumerate(x.shape) if n == 1]
        if not ones and not b.chance(0.1):
            raise Skip("nothing to squeeze")
        if not ones or b.chance(0.25):
            return moved(b, op, np.squeeze, [x])
        axes = b.random.sample(ones, b.random.randint(1, len(ones)))
        rank = x.rank
        function = lambda v: np.squeeze(v, tuple(axes))
    else:
        rank = x.rank + b.random.randint(1, 2)
        axes = b.random.sample(range(rank), rank - x.rank)
        function = lambda v: np.expand_dims(v, tuple(axes))
    shown = [a - rank if b.opset >= 11 and b.chance(0.4) else a for a in axes]
    if b.opset < 13:
        return moved(b, op, function, [x], axes=shown)
    moved(b, op, function, [x], [x, b.ints(shown)])


@operator("Concat", weight=2)
def concat(b, op):
    x = anything(b, (1, 4))
    shown, axis = b.axis(x.rank, 0.4 if b.opset >= 11 else 0)
    values = [x]
    for _ in range(b.random.randint(0, 3)):
        shape = list(x.shape)
        if b.chance(0.6):
            shape[axis] = b.dim()
        values.append(b.tensor((x.kind,), shape=shape, specials=True))
    b.random.shuffle(values)
    moved(b, op, lambda *a: np.concatenate(a, axis), values, axis=shown)


@operator("Split", weight=2)
def split(b, op):
    x = anything(b, (1, 4))
    shown, axis = b.axis(x.rank, 0.4 if b.opset >= 11 else 0)
    n = x.shape[axis]
    count = b.random.randint(1, min(4, max(n, 1)))
    attributes = {"axis": shown}
    inputs = [x]
    if b.chance(0.6) or (b.opset < 18 and n % count):
        cuts = sorted(b.random.randint(0 if b.zeros else 1, max(n, 1)) for _ in range(count - 1))
        cuts = [min(c, n) for c in cuts]
        sizes = np.diff([0, *cuts, n]).tolist()
        if any(s == 0 for s in sizes) and not b.zeros:
            raise Skip("empty parts")
        if b.opset < 13:
            attributes["split"] = sizes
        else:
            inputs.append(b.ints(sizes))
    else:
        step = -(-n // count)
        sizes = [step] * (count - 1) + [n - step * (count - 1)]
        if sizes[-1] < 0 or n == 0:
            raise Skip("uneven")
        if b.opset >= 18:
            attributes["num_outputs"] = count
    cuts = np.cumsum(sizes)[:-1]
    arrays = np.split(x.array, cuts, axis)
    errors = [None] * len(sizes) if x.error is None else np.split(x.error, cuts, axis)
    b.add(op, inputs, [(x.kind, a, e) for a, e in zip(arrays, errors)], **attributes)


@operator("Slice", weight=3)
def slices(b, op):
    x = anything(b, (1, 5))
    axes = b.random.sample(range(x.rank), b.random.randint(1, x.rank))
    index = [slice(None)] * x.rank
    starts, ends, steps = [], [], []
    for axis in axes:
        n = x.shape[axis]
        step = b.pick([1, 1, 1, 2, 3, -1, -2]) if b.opset >= 10 else 1
        start = b.random.randint(-n - 2, n + 2)
        end = b.pick([b.random.randint(-n - 2, n + 2), 2**31 - 1, 2**63 - 1, -(2**63)])
        if step > 0 and end < -(2**60):
            end = n
        starts.append(start)
        ends.append(end)
        steps.append(step)
        # The clamping that the standard spells out.
        first = start + n if start < 0 else start
        last = end + n if end < 0 else end
        if step > 0:
            first, last = min(max(first, 0), n), min(max(last, 0), n)
        else:
            first, last = min(max(first, 0), n - 1), min(max(last, -1), n - 1)
        where = list(range(first, last, step)) if n else []
        if not where and not b.chance(0.1):
            raise Skip("empty")
        index[axis] = where

    def function(v):
        for axis in axes:
            v = np.take(v, np.asarray(index[axis], dtype=np.int64), axis=axis)
        return v

    shown = [a - x.rank if b.opset >= 10 and b.chance(0.4) else a for a in axes]
    if b.opset < 10:
        return moved(b, op, function, [x], starts=starts, ends=ends, axes=shown)
    kind = b.pick([INT64, INT64, INT32])
    if kind == INT32:
        ends = [min(max(e, -(2**31)), 2**31 - 1) for e in ends]
    fed = 0.25
    inputs = [x, b.ints(starts, kind, fed), b.ints(ends, kind, fed)]
    if axes != list(range(len(axes))) or shown != axes or b.chance(0.5) or any(s != 1 for s in steps):
        inputs.append(b.ints(shown, kind, fed))
        if any(s != 1 for s in steps) or b.chance(0.3):
            inputs.append(b.ints(steps, kind, fed))
    moved(b, op, function, [x], inputs)


@operator("Pad", weight=2)
def pad(b, op):
    kind = b.any_kind(NUMBERS if b.opset < 13 else ANY)
    x = b.tensor((kind,), rank=(1, 4), specials=True)
    mode = b.pick(["constant", "constant", "reflect", "edge", "wrap"] if b.opset >= 19 else ["constant", "constant", "reflect", "edge"])
    axes = sorted(b.random.sample(range(x.rank), b.random.randint(1, x.rank)))
    if b.opset < 18:
        axes = list(range(x.rank))
    before, after = [], []
    for axis in axes:
        n = x.shape[axis]
        most = {"constant": 3, "edge": 3 if n else 0, "reflect": min(3, n - 1), "wrap": min(3, n)}[mode]
        least = -min(1, n - 1) if b.chance(0.15) and mode == "constant" else 0
        before.append(b.random.randint(min(least, 0), max(most, 0)))
        after.append(b.random.randint(min(least, 0), max(most, 0)))
    if mode == "constant" and any(x.shape[a] + min(p, 0) + min(q, 0) < 0 for a, p, q in zip(axes, before, after)):
        raise Skip("more is cut than there is")
    value = 0
    if mode == "constant" and b.chance(0.5):
        value = b.data(kind, (), -3, 3)[()]
        if b.opset < 11 and kind in FLOATS:
            value = float(np.float32(value))
    widths = [(0, 0)] * x.rank
    for a, p, q in zip(axes, before, after):
        widths[a] = (p, q)

    def padded(v, fill):
        for axis, (p, q) in enumerate(widths):
            n = v.shape[axis]
            v = np.take(v, range(max(-p, 0), n - max(-q, 0)), axis=axis)
        widened = [(max(p, 0), max(q, 0)) for p, q in widths]
        if mode == "constant":
            return np.pad(v, widened, mode=mode, constant_values=fill)
        return np.pad(v, widened, mode=mode)

    array = padded(x.array, value)
    error = None if x.error is None else padded(x.error, 0)
    attributes = {} if mode == "constant" and b.chance(0.5) else {"mode": mode}
    if b.opset < 11:
        if kind not in FLOATS:
            raise Skip("the value is a float")
        attributes["value"] = float(value)
        return b.add(op, [x], [(kind, array, error)], pads=before + after, **attributes)
    inputs = [x, b.ints(before + after)]
    if b.chance(0.7) or (value != 0):
        inputs.append(b.fresh(kind, np.asarray(value), constant=0.8) if mode == "constant" and (value != 0 or b.chance(0.5)) else None)
    if b.opset >= 18 and (axes != list(range(x.rank)) or b.chance(0.3)):
        while len(inputs) < 3:
            inputs.append(None)
        inputs.append(b.ints([a - x.rank if b.chance(0.3) else a for a in axes], b.pick([INT64, INT32])))
    b.add(op, inputs, [(kind, array, error)], **attributes)


@operator("Tile", "Expand")
def repeat(b, op):
    x = anything(b, (0, 4), elements=600)
    if op == "Tile":
        times = [b.pick([1, 1, 2, 3]) for _ in x.shape]
        if b.zeros and times and b.chance(0.2):
            times[0] = 0
        return moved(b, op, lambda v: np.tile(v, times), [x], [x, b.ints(times)])
    shape = [b.dim(5) if n == 1 and b.chance(0.6) else n for n in x.shape]
    shape = [b.dim(4) for _ in range(b.random.randint(0, 2))] + shape
    target = np.broadcast_shapes(tuple(shape), x.shape)
    shown = [1 if i >= len(shape) - x.rank and b.chance(0.2) else n for i, n in enumerate(shape)]
    target = np.broadcast_shapes(tuple(shown), x.shape)
    moved(b, op, lambda v: np.broadcast_to(v, target), [x], [x, b.ints(shown)])


@operator("DepthToSpace", "SpaceToDepth")
def blocks(b, op):
    size = b.pick([1, 2, 2, 3])
    n, c, h, w = (b.dim(4) for _ in range(4))
    kind = b.any_kind()
    if op == "SpaceToDepth":
        x = b.tensor((kind,), shape=(n, c, h * size, w * size), specials=True)

        def function(v):
            v = v.reshape(n, c, h, size, w, size)
            return v.transpose(0, 3, 5, 1, 2, 4).reshape(n, c * size * size, h, w)

        return moved(b, op, function, [x], blocksize=size)
    x = b.tensor((kind,), shape=(n, c * size * size, h, w), specials=True)
    mode = b.pick(["DCR", "CRD"]) if b.opset >= 11 else "DCR"

    def function(v):
        if mode == "DCR":
            return v.reshape(n, size, size, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c, h * size, w * size)
        return v.reshape(n, c, size, size, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h * size, w * size)

    attributes = {"mode": mode} if mode == "CRD" or (b.opset >= 11 and b.chance(0.5)) else {}
    moved(b, op, function, [x], blocksize=size, **attributes)


@operator("Trilu")
def triangle(b, op):
    x = anything(b, (2, 4), filled=True)
    k = b.random.randint(-4, 4)
    upper = b.random.randint(0, 1)
    function = np.triu if upper else np.tril
    inputs = [x] if k == 0 and b.chance(0.5) else [x, b.fresh(INT64, np.array(k), constant=0.7)]
    attributes = {} if upper and b.chance(0.5) else {"upper": upper}
    moved(b, op, lambda v: function(v, k).astype(v.dtype), [x], inputs, **attributes)


@operator("Shape", "Size")
def extent(b, op):
    x = anything(b, (0, 5))
    if op == "Size":
        return b.add(op, [x], [(INT64, np.array(x.array.size), None)])
    attributes, start, end = {}, 0, x.rank
    if b.opset >= 15:
        if b.chance(0.5):
            start = attributes["start"] = b.random.randint(-x.rank - 1, x.rank + 1)
        if b.chance(0.5):
            end = attributes["end"] = b.random.randint(-x.rank - 1, x.rank + 1)
    clamp = lambda i: min(max(i + x.rank if i < 0 else i, 0), x.rank)
    b.add(op, [x], [(INT64, np.array(x.shape[clamp(start):clamp(end)], dtype=np.int64), None)], **attributes)


@operator("ConstantOfShape", "EyeLike", "Range")
def made(b, op):


    if op == "ConstantOfShape":
        shape = b.shape()
        kind = b.any_kind()
        value = b.data(kind, (1,))
        attributes = {"value": proto("value", kind, value)}
        if b.chance(0.2):
            kind, value, attributes = 1, np.zeros(1), {}
        return b.add(op, [b.ints(list(shape), fed=0.4)], [(kind, np.full(shape, value[0], held(kind, value).dtype), None)], **attributes)
    if op == "EyeLike":
        x = b.tensor((b.any_kind(),), rank=(2, 2))
        kind = b.any_kind()
        k = b.random.randint(-3, 3)
        attributes = {"dtype": kind, "k": k}
        return b.add(op, [x], [(kind, np.eye(*x.shape, k=k), None)], **attributes)
    if b.chance(0.6):
        kind = b.pick([INT64, INT32])
        start, delta = b.random.randint(-20, 20), b.pick([1, 2, -1, -3, 7])
        limit = b.random.randint(-40, 40)
    else:
        kind = 1
        start, delta = b.random.randint(-20, 20) / 4, b.pick([0.25, 0.5, 1.0, -0.5])
        limit = b.random.randint(-40, 40) / 4
    parts = [b.fresh(kind, np.array(n), constant=0.5) for n in (start, limit, delta)]
    b.add(op, parts, [(kind, np.arange(start, limit, delta), None)])


@operator("ReverseSequence")
def reverse(b, op):
    x = anything(b, (2, 4))
    time, batch = b.pick([(0, 1), (1, 0)])
    lengths = [b.random.randint(min(1, x.shape[time]), x.shape[time]) for _ in range(x.shape[batch])]
    if 0 in x.shape:
        raise Skip("lengths of nothing")

    def function(v):
        out = v.copy()
        for i, n in enumerate(lengths):
            at = [slice(None)] * x.rank
            at[batch], at[time] = i, slice(0, n)
            part = v[tuple(at)]
            # The axis of time, once the batch's is gone.
            out[tuple(at)] = np.flip(part, axis=time - (batch < time))
        return out

    moved(b, op, function, [x], [x, b.ints(lengths)], time_axis=time, batch_axis=batch)


@operator("CenterCropPad")
def centre(b, op):
    x = anything(b, (1, 4), filled=True)
    axes = b.random.sample(range(x.rank), b.random.randint(1, x.rank))
    sizes = [b.dim(9) for _ in axes]
    if 0 in sizes:
        raise Skip("empty")

    def function(v):
        for axis, size in zip(axes, sizes):
            n = v.shape[axis]
            if size <= n:
                first = (n - size) // 2
                v = np.take(v, range(first, first + size), axis=axis)
            else:
                before = (size - n) // 2
                widths = [(0, 0)] * v.ndim
                widths[axis] = (before, size - n - before)
                v = np.pad(v, widths)
        return v

    shown = [a - x.rank if b.chance(0.3) else a for a in axes]
    moved(b, op, function, [x], [x, b.ints(sizes)], axes=shown)
