"""Operators that choose elements: ties, NaN, negative indices, duplicates and empty tensors."""

import numpy as np

from peer import operator
from peer.question import Question, texts

ANY = [np.float32, np.float32, np.float64, np.int32, np.int64]


def data(d, shape, dtype=None, special=0.1):
    dtype = dtype or d.pick(ANY)
    if np.dtype(dtype).kind == "f":
        return d.pick([d.ties(shape, dtype), d.floats(shape, dtype=dtype), d.floats(shape, dtype=dtype, special=special)])
    return d.ties(shape, dtype) if np.dtype(dtype) != np.bool_ else d.ties(shape, np.int8) > 0


@operator("NonMaxSuppression", weight=4)
def suppressed(d, op):
    n, classes, boxes = d.int(1, 2), d.int(1, 3), d.int(1, 9)
    corners = d.pick([d.floats((n, boxes, 4), 0, 3), d.ties((n, boxes, 4), most=2)])
    scores = d.pick([d.floats((n, classes, boxes), 0, 1), d.ties((n, classes, boxes)) / 4])
    least = lambda choices: np.asarray([d.pick(choices)], np.float32) if d.chance(0.6) else None
    most = np.asarray([d.pick([0, 1, 3, 20])], np.int64) if d.chance(0.8) else None
    inputs = [corners, scores, most, least([0.0, 0.3, 0.5, 1.0]), least([-0.5, 0.0, 0.25, 0.5])]
    return Question(op, inputs, kept=[2, 3, 4] if d.chance(0.5) else (), opset=11, **d.flags(center_point_box=[0, 1]))


@operator("TopK", weight=3)
def top(d, op):
    shape = d.dims(d.int(1, 3), 7, empty=0.05)
    axis = d.axis(len(shape))
    x = data(d, shape, special=d.pick([0.0, 0.2]))
    if np.isnan(x.astype(np.float64)).any():
        return None  # The order of NaN is nobody's.
    k = np.asarray([d.int(0, shape[axis])], np.int64)
    return Question(op, [x, k], 2, kept=[1] if d.chance(0.5) else (), opset=11, axis=axis, **d.flags(largest=[0, 1]))


@operator("ArgMax", "ArgMin", weight=2)
def arg(d, op):
    shape = d.dims(d.int(1, 3), 6)
    x = d.ties(shape, d.pick([np.float32, np.float64, np.int32, np.int8, np.uint8]))
    return Question(op, [x], opset=13, **d.flags(axis=[d.axis(len(shape))], keepdims=[0, 1], select_last_index=[0, 1]))


@operator("Hardmax", "Softmax", "LogSoftmax", weight=2)
def soft(d, op):
    shape = d.dims(d.int(2, 4), 5, empty=0.1)
    x = d.ties(shape) if op == "Hardmax" else d.floats(shape, -5, 5, special=d.pick([0.0, 0.0, 0.05]))
    if op != "Hardmax":
        x = np.where(np.isposinf(x), np.float32(3), x)
    return Question(op, [x], opset=d.pick([11, 13]), **d.flags(axis=[d.axis(len(shape))]))


@operator("Unique", weight=2)
def unique(d, op):
    shape = d.dims(d.int(1, 3), 4, empty=0.08)
    x = d.ties(shape, d.pick([np.float32, np.int64, np.int8, np.float64]), 2)
    return Question(op, [x], d.pick([1, 4]), opset=11, **d.flags(axis=[d.axis(len(shape))], sorted=[0, 1]))


@operator("OneHot", weight=2)
def one_hot(d, op):
    indices = d.integers(d.dims(d.int(1, 3), 4, empty=0.05), np.int64, -9, 9)
    if d.chance(0.3):
        indices = indices.astype(np.float32)
    depth = np.asarray(d.int(1, 6), np.int64)
    values = d.pick([np.asarray([0, 1], np.float32), np.asarray([2, 5], np.int64), np.asarray([-1.5, 3], np.float32)])
    return Question(op, [indices, depth, values], kept=[1] if d.chance(0.6) else (), opset=11, **d.flags(axis=[d.int(-indices.ndim - 1, indices.ndim)]))


@operator("ScatterND", "ScatterElements", weight=4)
def scatter(d, op):
    x = d.pick([d.floats, d.ties])(d.dims(d.int(1, 3), 5), dtype=np.float32)
    x = x.astype(d.pick([np.float32, np.float32, np.int64, np.float64, np.int32]))
    named = d.flags(reduction=["none", "add", "mul", "max", "min"])
    repeated = named.get("reduction", "none") != "none"
    if op == "ScatterND":
        k, lead = d.int(1, x.ndim), d.dims(d.int(1, 2), 4)
        count = int(np.prod(lead))
        room = int(np.prod(x.shape[:k]))
        if not repeated and count > room:
            return None
        flat = d.numbers.integers(0, room, count) if repeated else d.numbers.permutation(room)[:count]
        indices = np.stack(np.unravel_index(flat, x.shape[:k]), -1).reshape(*lead, k).astype(np.int64)
        indices = np.where(d.numbers.random(indices.shape) < 0.2, indices - np.asarray(x.shape[:k]), indices)
        shape = (*lead, *x.shape[k:])
    else:
        axis = d.axis(x.ndim)
        shape = tuple(d.int(1, n) for n in x.shape)
        n = x.shape[axis]
        order = lambda: d.numbers.integers(0, n, shape[axis]) if repeated else d.numbers.permutation(n)[: shape[axis]]
        rest = [m for i, m in enumerate(shape) if i != axis % x.ndim]
        indices = np.asarray([order() for _ in range(int(np.prod(rest)))]).reshape(*rest, shape[axis])
        indices = np.moveaxis(indices, -1, axis).astype(d.pick([np.int64, np.int32]))
        indices = np.where(d.numbers.random(shape) < 0.2, indices - n, indices).astype(indices.dtype)
        named["axis"] = axis
    updates = (d.floats(shape) * 3).astype(x.dtype)
    return Question(op, [x, indices, updates], opset=18, **named)


@operator("Gather", "GatherElements", "GatherND", weight=2)
def gather(d, op):
    x = data(d, d.dims(d.int(1, 4), 5))
    axis = d.axis(x.ndim)
    kind = np.int64 if op == "GatherND" else d.pick([np.int64, np.int32])
    if op == "Gather":
        n = x.shape[axis]
        return Question(op, [x, d.integers(d.dims(d.int(0, 2), 4, empty=0.1), kind, -n, n - 1)], opset=13, axis=axis)
    if op == "GatherElements":
        n = x.shape[axis]
        shape = [d.int(1, m) for m in x.shape]
        shape[axis] = d.int(0, 6)
        return Question(op, [x, d.integers(tuple(shape), kind, -n, n - 1)], opset=13, axis=axis)
    batch = d.int(0, x.ndim - 1)
    k = d.int(1, x.ndim - batch)
    lead = (*x.shape[:batch], *d.dims(d.int(0 if batch else 1, 2), 3, empty=0.1))
    limits = np.asarray(x.shape[batch:batch + k])
    indices = (d.numbers.random((*lead, k)) * limits).astype(np.int64)
    indices = np.where(d.numbers.random(indices.shape) < 0.2, indices - limits, indices)
    return Question(op, [x, indices], opset=13, batch_dims=batch)


@operator("Compress", "NonZero")
def kept(d, op):
    x = data(d, d.dims(d.int(1, 3), 5, empty=0.1), special=0.2)
    if op == "NonZero":
        return Question(op, [x], opset=13)
    axis = d.axis(x.ndim) if d.chance(0.6) else None
    room = x.size if axis is None else x.shape[axis]
    return Question(op, [x, d.numbers.random(d.int(0, room)) < 0.5], opset=11, axis=axis)


@operator("Trilu", weight=2)
def trilu(d, op):
    x = data(d, (*d.dims(d.int(0, 2), 3, empty=0.1), *d.dims(2, 5, empty=0.1)))
    k = np.asarray(d.int(-9, 9), np.int64) if d.chance(0.7) else None
    return Question(op, [x, k], kept=[1] if d.chance(0.5) else (), opset=14, **d.flags(upper=[0, 1]))


@operator("EyeLike")
def eye(d, op):
    return Question(op, [data(d, d.dims(2, 6))], opset=9, **d.flags(k=[-7, -2, -1, 1, 2, 7], dtype=[1, 7, 11, 6]))


@operator("Range", weight=2)
def spread(d, op):
    dtype = d.pick([np.float32, np.float64, np.int32, np.int64, np.int16])
    if np.dtype(dtype).kind == "f":
        # Not at whole numbers of steps, where onnxruntime rounds in single precision.
        start, step = d.pick([0.0, 0.1, -1.3, 2.0]), d.pick([0.1, 0.3, -0.1, 0.7, 1.0, -1.0, 2.5])
        limit = start + step * d.pick([0, 2.5, 6.4, 10.01, -2])
    else:
        start, step, limit = d.int(-5, 5), d.pick([-3, -1, 1, 2, 4]), d.int(-12, 12)
    return Question(op, [np.asarray(v, dtype) for v in (start, limit, step)], kept=[0, 1, 2] if d.chance(0.5) else (), opset=11)


@operator("Where", "Max", "Min", weight=2)
def chosen(d, op):
    kind = d.pick([np.float32, np.float32, np.float64, np.int32, np.int64])
    shape = d.dims(d.int(0, 3), 4, empty=0.05)
    part = lambda: tuple(1 if d.chance(0.3) else n for n in shape)
    x, y = (data(d, part(), kind, 0.3) for _ in range(2))
    if op == "Where":
        return Question(op, [d.numbers.random(part()) < 0.5, x, y], opset=16)
    return Question(op, [x, y, data(d, part(), kind, 0.3)][: d.int(1, 3)], opset=13)


@operator("StringNormalizer", "TfIdfVectorizer", "StringSplit", "RegexFullMatch", "StringConcat")
def text(d, op):
    words = ["Ab", "b", "the", "THE", "été", "", "a b", "x,y,,z", " lead", "Ängstrom", "1-2"]
    strings = lambda n: texts(*[d.pick(words) for _ in range(n)])
    n = d.int(1, 5)
    if op == "StringNormalizer":
        named = d.flags(case_change_action=["LOWER", "UPPER", "NONE"], is_case_sensitive=[0, 1], stopwords=[["the", "b"]], locale=["en_US"])
        return Question(op, [strings(n)[None] if d.chance(0.4) else strings(n)], opset=10, **named)
    if op == "StringSplit":
        words.remove("")  # With a delimiter, one empty part in Python, none in onnxruntime.
        return Question(op, [strings(n)], 2, opset=20, **d.flags(delimiter=[",", "", " ", "-"], maxsplit=[1, 2]))
    if op == "RegexFullMatch":
        return Question(op, [strings(n)], opset=20, pattern=d.pick(["[a-zA-Z]+", "the|THE", ".*", "", "\\w{2}", "[^,]*"]))
    if op == "StringConcat":
        return Question(op, [strings(n), strings(d.pick([1, n]))], opset=20)
    named = d.flags(weights=[[0.5, 2.0, 1.5, 1.0, 0.3, 3.0]]) | {"mode": d.pick(["TF", "IDF", "TFIDF"])}
    low = d.int(1, 2)
    named |= {"min_gram_length": low, "max_gram_length": d.int(low, 2), "max_skip_count": d.int(0, 2)}
    x = d.integers(d.pick([(6,), (2, 5)]), d.pick([np.int32, np.int64]), 0, 4)
    return Question(op, [x], opset=9, ngram_counts=[0, 3], ngram_indexes=[2, 0, 1, 4, 3, 5], pool_int64s=[1, 2, 3, 1, 2, 3, 1, 2, 2], **named)
