"""Reductions and what runs along an axis."""

import numpy as np
from bounds import ELEMENTARY, linear, settled, smooth
from operators import operator
from values import FLOAT, FLOATS, INT32, INT64, INTEGERS, TINY, UINT32, UINT64, UNIT, Skip, Value

REDUCE = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


def draw_axes(b, op, x, attribute_until):
    """The axes of a reduction as numpy takes them, the inputs and the attributes that say so."""
    attributes, inputs = {}, [x]
    keep = b.random.randint(0, 1)
    if keep == 0 or b.chance(0.5):
        attributes["keepdims"] = keep
    style = b.random.random()
    if x.rank == 0 or style < 0.12:
        if b.opset >= attribute_until and b.chance(0.3):
            attributes["noop_with_empty_axes"] = 1
            return None, attributes, inputs, bool(keep)
        return tuple(range(x.rank)), attributes, inputs, bool(keep)
    count = min(x.rank, b.pick([1, 1, 2, 3]))
    axes = b.random.sample(range(x.rank), count)
    shown = [a - x.rank if b.opset >= 11 and b.chance(0.4) else a for a in axes]
    if b.opset < attribute_until:
        attributes["axes"] = shown
    else:
        inputs.append(b.ints(shown))
    return tuple(sorted(axes)), attributes, inputs, bool(keep)


@operator(*[f"Reduce{name}" for name in REDUCE])
def reduce(b, op):
    name = op[len("Reduce"):]
    whole = name in ("Sum", "Max", "Min", "Prod", "Mean") and b.chance(0.2)
    kinds = (b.pick([INT32, INT64]),) if whole else (b.float_kind(),)
    positive = name in ("LogSum",)
    x = b.tensor(kinds, rank=(0, 5), low=0.125 if positive else -3, high=3, specials=name in ("Max", "Min") and not whole)
    axes, attributes, inputs, keep = draw_axes(b, op, x, 13 if name == "Sum" else 18)
    if axes is None:
        # Nothing is reduced; what is done to each element is still done.
        axes = ()
        if name in ("Max", "Min", "Sum", "Mean", "Prod"):
            return b.add(op, inputs, [(x.kind, x.array, x.error)], **attributes)
        if b.opset < 20:
            raise Skip("the older text says that the input is returned")
    count = int(np.prod([x.shape[a] for a in axes], dtype=int))
    if name in ("Mean", "Max", "Min") and count == 0:
        raise Skip("the reduction of nothing")
    if name in ("LogSum", "LogSumExp") and count == 0:
        raise Skip("the logarithm of nothing")

    def along(function, v, **more):
        return function(v, axis=axes, keepdims=keep, **more)

    if whole:
        with np.errstate(all="ignore"):
            if name == "Mean":
                raise Skip("how integers are divided is open")
            function = {"Sum": np.sum, "Max": np.max, "Min": np.min, "Prod": np.prod}[name]
            more = {} if name in ("Max", "Min") else {"dtype": x.array.dtype}
            return b.add(op, inputs, [(x.kind, along(function, x.array, **more), None)], **attributes)
    kind = x.kind
    if name in ("Max", "Min"):
        function = np.max if name == "Max" else np.min
        exact = along(function, x.array)
        error = None if x.error is None else along(np.max, x.error)
        return b.add(op, inputs, [(kind, exact, error)], **attributes)
    if name in ("Sum", "Mean"):
        result = linear(lambda v: along(np.sum if name == "Sum" else np.mean, v), [x], kind, count)
    elif name == "L1":
        size = Value("", kind, np.abs(x.array), x.error)
        result = linear(lambda v: along(np.sum, v), [size], kind, count)
    elif name == "Prod":
        exact = along(np.prod, x.array)
        if x.error is not None and x.error.any():
            raise Skip("a product of what is not exact")
        result = settled(kind, exact, (count + 2) * UNIT[kind] * np.abs(exact) + TINY[kind] * 64)
    else:
        functions = {
            "L2": lambda v: [np.sqrt(along(np.sum, v * v))],
            "SumSquare": lambda v: [along(np.sum, v * v)],
            "LogSum": lambda v: [np.log(along(np.sum, v))],
            "LogSumExp": lambda v: [np.log(along(np.sum, np.exp(v)))],
        }
        result = smooth(functions[name], [x], kind, b.numbers, 16 + count)[0]
        if name.startswith("Log"):
            result = (result[0], result[1] + ELEMENTARY * UNIT[kind])
    b.add(op, inputs, [(kind, *result)], **attributes)


@operator("ArgMax", "ArgMin")
def arg(b, op):
    kinds = (b.float_kind(),) if b.chance(0.7) else (b.pick(INTEGERS),)
    x = b.tensor(kinds, rank=(1, 4), exact=True)
    shown, axis = b.axis(x.rank, 0.4 if b.opset >= 11 else 0)
    if x.shape[axis] == 0:
        raise Skip("the largest of nothing")
    keep, last = b.random.randint(0, 1), b.random.randint(0, 1) if b.opset >= 12 else 0
    attributes = {"axis": shown, "keepdims": keep}
    function = np.argmax if op == "ArgMax" else np.argmin
    if last:
        attributes["select_last_index"] = 1
        result = x.shape[axis] - 1 - function(np.flip(x.array, axis), axis=axis)
    else:
        result = function(x.array, axis=axis)
    if keep:
        result = np.expand_dims(result, axis)
    b.add(op, [x], [(INT64, result, None)], **attributes)


@operator("CumSum", "CumProd")
def cumulate(b, op):
    kinds = (b.float_kind(),) if b.chance(0.7) else (b.pick([INT32, INT64, UINT32, UINT64]),)
    x = b.tensor(kinds, rank=(1, 4), low=-2, high=2, exact=op == "CumProd")
    shown, axis = b.axis(x.rank)
    exclusive, reverse = b.random.randint(0, 1), b.random.randint(0, 1)
    attributes = {k: v for k, v in (("exclusive", exclusive), ("reverse", reverse)) if v or b.chance(0.3)}

    def function(v):
        v = np.flip(v, axis) if reverse else v
        if op == "CumSum":
            out = np.cumsum(v, axis=axis, dtype=v.dtype)
        else:
            out = np.cumprod(v, axis=axis, dtype=v.dtype)
        if exclusive:
            first = np.zeros_like(v) if op == "CumSum" else np.ones_like(v)
            head = np.take(first, [0], axis=axis) if v.shape[axis] else v
            out = np.concatenate([head, np.take(out, range(max(v.shape[axis] - 1, 0)), axis=axis)], axis=axis)
        return np.flip(out, axis) if reverse else out

    where = b.fresh(b.pick([INT64, INT32]), np.array(shown), constant=0.8)
    if x.kind not in FLOATS:
        return b.add(op, [x, where], [(x.kind, function(x.array), None)], **attributes)
    if op == "CumSum":
        result = linear(function, [x], x.kind, x.shape[axis])
        if x.kind not in (FLOAT,):
            result = (result[0], result[1] + x.shape[axis] * UNIT[x.kind] * function(np.abs(x.array)))
    else:
        exact = function(x.array)
        result = settled(x.kind, exact, (x.shape[axis] + 2) * UNIT[x.kind] * np.abs(exact) + 64 * TINY[x.kind])
    b.add(op, [x, where], [(x.kind, *result)], **attributes)


def softmax(v, axis):
    e = np.exp(v - v.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@operator("Softmax", "LogSoftmax", "Hardmax", weight=2)
def along_an_axis(b, op):
    x = b.tensor(rank=(1, 4), low=-8, high=8, exact=op == "Hardmax")
    if 0 in x.shape:
        raise Skip("rows of nothing")
    attributes = {}
    if b.opset < 13:
        axis = 1
        if x.rank < 2 or b.chance(0.6):
            axis = b.random.randrange(x.rank)
            attributes["axis"] = axis
        flat = (int(np.prod(x.shape[:axis], dtype=int)), int(np.prod(x.shape[axis:], dtype=int)))
        axis = 1
    else:
        shown, axis = (-1, x.rank - 1)
        if b.chance(0.7):
            shown, axis = b.axis(x.rank)
            attributes["axis"] = shown
        flat = x.shape

    def function(v):
        v = v.reshape(flat)
        if op == "Softmax":
            out = softmax(v, axis)
        elif op == "LogSoftmax":
            moved = v - v.max(axis=axis, keepdims=True)
            out = moved - np.log(np.exp(moved).sum(axis=axis, keepdims=True))
        else:
            first = np.argmax(v, axis=axis, keepdims=True)
            out = np.zeros_like(v)
            np.put_along_axis(out, first, 1, axis=axis)
        return [out.reshape(x.shape)]

    if op == "Hardmax":
        return b.add(op, [x], [(x.kind, function(x.array)[0], None)], **attributes)
    array, error = smooth(function, [x], x.kind, b.numbers, 24)[0]
    if op == "LogSoftmax":
        error = error + ELEMENTARY * UNIT[x.kind]
    b.add(op, [x], [(x.kind, array, error)], **attributes)


@operator("TopK", weight=2)
def top(b, op):
    x = b.tensor((b.float_kind(),) if b.chance(0.6) else (b.pick(INTEGERS),), rank=(1, 4), low=-60, high=60, exact=True)
    shown, axis = b.axis(x.rank, 0.4 if b.opset >= 11 else 0)
    count = b.random.randint(0 if b.zeros else min(1, x.shape[axis]), x.shape[axis])
    attributes = {"axis": shown} if shown != -1 or b.chance(0.5) else {}
    largest = 1
    if b.opset >= 11:
        largest = b.random.randint(0, 1)
        attributes["largest"] = largest
        if b.chance(0.4):
            attributes["sorted"] = 1
    # Of equal elements the one with the lower index comes first.
    if largest and x.is_float:
        order = np.argsort(-x.array, axis=axis, kind="stable")
    elif largest:
        order = np.argsort(~x.array, axis=axis, kind="stable")
    else:
        order = np.argsort(x.array, axis=axis, kind="stable")
    chosen = np.take(order, range(count), axis=axis)
    values = np.take_along_axis(x.array, chosen, axis=axis)
    results = [(x.kind, values, None), (INT64, chosen, None)]
    if b.opset < 10:
        return b.add(op, [x], results, k=count, **attributes)
    b.add(op, [x, b.ints([count])], results, **attributes)


@operator("LpNormalization", "MeanVarianceNormalization")
def normalised(b, op):
    if op == "LpNormalization":
        x = b.tensor(rank=(1, 4))
        if 0 in x.shape:
            raise Skip("rows of nothing")
        shown, axis = b.axis(x.rank, 0)
        p = b.pick([1, 2])
        size = (np.abs(x.array) ** p).sum(axis=axis, keepdims=True) ** (1 / p)
        if (size < 0.05).any():
            raise Skip("nearly zero over nearly zero")
        attributes = {"axis": shown, "p": p}

        def function(v):
            return [v / (np.abs(v) ** p).sum(axis=axis, keepdims=True) ** (1 / p)]
    else:
        x = b.tensor(rank=(4, 4) if b.chance(0.6) else (2, 4))
        attributes, axes = {}, (0, 2, 3)
        if x.rank < 4 or b.chance(0.5):
            axes = tuple(sorted(b.random.sample(range(x.rank), b.random.randint(1, x.rank))))
            attributes["axes"] = list(axes)
        if 0 in x.shape or (x.array.std(axis=axes) < 0.1).any():
            raise Skip("nearly zero over nearly zero")

        def function(v):
            return [(v - v.mean(axis=axes, keepdims=True)) / (v.std(axis=axes, keepdims=True) + 1e-9)]

    array, error = smooth(function, [x], x.kind, b.numbers, 16 + x.array.size // 8)[0]
    b.add(op, [x], [(x.kind, array, error)], **attributes)
