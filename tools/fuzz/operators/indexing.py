"""Indices say where elements come from or go to."""

import itertools

import numpy as np
from operators import operator
from operators.movement import anything, moved
from values import BOOL, INT32, INT64, TINY, UNIT, Skip


def draw(b, limit, shape, negative=True):
    """Indices below `limit`, some counted from the end."""
    if limit == 0 and int(np.prod(shape, dtype=int)):
        raise Skip("an index into nothing")
    low = -limit if negative and b.opset >= 11 and b.chance(0.4) else 0
    return b.numbers.integers(low, max(limit, 1), shape, dtype=np.int64)


def indices(b, array, kinds=(INT64, INT64, INT32)):
    return b.fresh(b.pick(kinds), array, constant=0.3)


@operator("Gather", weight=2)
def gather(b, op):
    x = anything(b, (1, 4))
    shown, axis = b.axis(x.rank)
    where = draw(b, x.shape[axis], b.shape(0, 3, 60))
    if int(np.prod(x.shape[:axis] + where.shape + x.shape[axis + 1:], dtype=int)) > 20000:
        raise Skip("too large")
    attributes = {"axis": shown} if shown or b.chance(0.5) else {}
    moved(b, op, lambda v: np.take(v, where % max(x.shape[axis], 1), axis=axis), [x], [x, indices(b, where)], **attributes)


@operator("GatherElements")
def gather_elements(b, op):
    x = anything(b, (1, 4))
    shown, axis = b.axis(x.rank)
    shape = [b.random.randint(min(1, n), n) if i != axis else b.dim(9) for i, n in enumerate(x.shape)]
    where = draw(b, x.shape[axis], shape)

    def function(v):
        v = v[tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(shape))]
        return np.take_along_axis(v, where % max(x.shape[axis], 1), axis=axis)

    moved(b, op, function, [x], [x, indices(b, where)], axis=shown)


@operator("GatherND")
def gather_nd(b, op):
    x = anything(b, (1, 4))
    batch = b.random.randint(0, x.rank - 1) if b.opset >= 12 and b.chance(0.4) else 0
    depth = b.random.randint(1, x.rank - batch)
    lead = x.shape[:batch] + b.shape(0 if batch else 1, 2, 20)
    parts = [draw(b, x.shape[batch + i], lead) for i in range(depth)]
    where = np.stack(parts, -1)

    def function(v):
        out = []
        for at in np.ndindex(*lead):
            path = tuple(i % n for i, n in zip(where[at], x.shape[batch:]))
            out.append(v[at[:batch] + path])
        return np.array(out, v.dtype).reshape(lead + x.shape[batch + depth:])

    attributes = {"batch_dims": batch} if batch or (b.opset >= 12 and b.chance(0.3)) else {}
    moved(b, op, function, [x], [x, b.fresh(INT64, where, constant=0.3)], **attributes)


REDUCTIONS = {"none": 11, "add": 16, "mul": 16, "max": 18, "min": 18}


def combined(b, x, updates, places, mode):
    """The data with updates at flat places; with errors."""
    flat, slack = x.array.reshape(-1).copy(), x.slack.reshape(-1).copy() if x.is_float else None
    sizes = np.abs(flat).astype(np.float64)
    counts = np.zeros(flat.size)
    new = updates.array.reshape(-1)
    fresh = updates.slack.reshape(-1) if x.is_float else None
    with np.errstate(all="ignore"):
        for place, value, i in zip(places, new, range(new.size)):
            if mode == "none":
                flat[place] = value
            elif mode == "add":
                flat[place] = flat[place] + value
                sizes[place] += abs(float(value))
                counts[place] += 1
            elif mode == "mul":
                flat[place] = flat[place] * value
                sizes[place] *= abs(float(value))
                counts[place] += 1
            elif mode == "max":
                flat[place] = max(flat[place], value)
            else:
                flat[place] = min(flat[place], value)
            if slack is not None:
                slack[place] = fresh[i] if mode == "none" else max(slack[place], fresh[i])
                if mode in ("add", "mul") and (slack[place] or fresh[i]):
                    raise Skip("sums of what is not exact")
    if slack is None:
        return flat.reshape(x.shape), None
    if mode in ("add", "mul"):
        # Elements that nothing is added to keep the errors that they came with.
        slack += counts * UNIT[x.kind] * 2 * sizes + np.where(counts, TINY[x.kind], 0)
    if not slack.any():
        return flat.reshape(x.shape), None
    return flat.reshape(x.shape), slack.reshape(x.shape)


def mode_of(b):
    return b.pick([m for m, since in REDUCTIONS.items() if b.opset >= since] or ["none"])


@operator("ScatterElements", "Scatter")
def scatter_elements(b, op):
    x = b.tensor((b.any_kind(),), rank=(1, 3), elements=400)
    mode = mode_of(b) if op == "ScatterElements" else "none"
    if x.kind == BOOL and mode != "none":
        raise Skip("no arithmetic of bool")
    shown, axis = b.axis(x.rank)
    shape = [b.random.randint(min(1, n), n) for n in x.shape]
    n = x.shape[axis]
    if 0 in shape:
        raise Skip("nothing to scatter")
    if mode == "none":
        # Each place is written once: the order of writes is not defined.
        shape[axis] = min(shape[axis], n)
        where = np.argsort(b.numbers.random(shape[:axis] + [n] + shape[axis + 1:]), axis=axis)
        where = np.take(where, range(shape[axis]), axis=axis)
        if b.opset >= 11:
            where = where - n * b.numbers.integers(0, 2, where.shape)
    else:
        where = draw(b, n, shape)
    updates = b.tensor((x.kind,), shape=shape)
    places = []
    for at in np.ndindex(*shape):
        to = list(at)
        to[axis] = int(where[at]) % n
        places.append(int(np.ravel_multi_index(to, x.shape)))
    array, error = combined(b, x, updates, places, mode)
    attributes = {"axis": shown}
    if mode != "none":
        attributes["reduction"] = mode
    b.add(op, [x, indices(b, where), updates], [(x.kind, array, error)], **attributes)


@operator("ScatterND")
def scatter_nd(b, op):
    x = b.tensor((b.any_kind(),), rank=(1, 4), elements=600)
    if 0 in x.shape:
        raise Skip("nothing to scatter to")
    mode = mode_of(b)
    if x.kind == BOOL and mode != "none":
        raise Skip("no arithmetic of bool")
    depth = b.random.randint(1, x.rank)
    slots = list(itertools.product(*[range(n) for n in x.shape[:depth]]))
    count = b.random.randint(1, min(6, len(slots)))
    chosen = b.random.sample(slots, count) if mode == "none" else b.random.choices(slots, k=count)
    where = np.array(chosen, np.int64)
    if b.chance(0.3):
        where = where - np.array(x.shape[:depth]) * b.numbers.integers(0, 2, where.shape)
    updates = b.tensor((x.kind,), shape=(count, *x.shape[depth:]))
    numbers = np.arange(x.array.size).reshape(x.shape)
    places = [int(p) for at in chosen for p in numbers[at].reshape(-1)]
    array, error = combined(b, x, updates, places, mode)
    attributes = {"reduction": mode} if mode != "none" else {}
    b.add(op, [x, b.fresh(INT64, where, constant=0.3), updates], [(x.kind, array, error)], **attributes)


@operator("OneHot")
def one_hot(b, op):
    kind, depth = b.any_kind(), b.random.randint(1, 9)
    where = b.numbers.integers(-depth - 1, depth + 2, b.shape(1, 3, 200))
    axis = b.random.randint(-where.ndim - 1, where.ndim)
    values = b.data(kind, (2,))
    place = axis + where.ndim + 1 if axis < 0 else axis
    wrapped = np.where(where < 0, where + depth, where)
    outside = (where < -depth) | (where >= depth)
    hit = np.moveaxis((wrapped[..., None] == np.arange(depth)) & ~outside[..., None], -1, place)
    if b.opset < 11 and (where < 0).any():
        raise Skip("negative indices")
    array = np.where(hit, values[1], values[0])
    inputs = [
        b.fresh(b.pick([INT64, INT32]), where, constant=0.2),
        b.fresh(INT64, np.array(depth) if b.chance(0.5) else np.array([depth]), constant=0.8),
        b.fresh(kind, values, constant=0.6),
    ]
    b.add(op, inputs, [(kind, array, None)], axis=axis)


@operator("NonZero", "Compress", "Unique")
def data_dependent(b, op):
    x = b.tensor((b.any_kind(),), rank=(1, 4), low=-2, high=2, exact=True)
    if op == "NonZero":
        return b.add(op, [x], [(INT64, np.array(np.nonzero(x.array), np.int64), None)])
    if op == "Compress":
        if x.array.size == 0:
            raise Skip("nothing to choose")
        if b.chance(0.3):
            condition = b.data(BOOL, (b.random.randint(1, x.array.size),))
            result = x.array.reshape(-1)[: condition.size][condition[: x.array.size]]
            return b.add(op, [x, b.fresh(BOOL, condition)], [(x.kind, result, None)])
        shown, axis = b.axis(x.rank, 0.4 if b.opset >= 11 else 0)
        condition = b.data(BOOL, (b.random.randint(1, x.shape[axis]),))
        result = np.compress(condition, x.array, axis=axis)
        return b.add(op, [x, b.fresh(BOOL, condition)], [(x.kind, result, None)], axis=shown)
    if x.array.size == 0:
        raise Skip("nothing to compare")
    attributes, axis = {}, None
    if b.chance(0.4):
        shown, axis = b.axis(x.rank)
        attributes["axis"] = shown
    values, first, inverse, counts = np.unique(x.array, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if b.chance(0.4):
        attributes["sorted"] = 0
        order = np.argsort(first, kind="stable")
        values = np.take(values, order, axis=axis or 0)
        first, counts = first[order], counts[order]
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        inverse = back[inverse]
    results = [(x.kind, values, None), (INT64, first, None), (INT64, inverse, None), (INT64, counts, None)]
    b.add(op, [x], results, **attributes)
