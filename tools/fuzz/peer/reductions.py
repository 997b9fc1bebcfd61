"""Reductions, running sums, products and Einsum: axes that are empty or left out, extents of zero, NaN."""

import numpy as np

from peer import operator
from peer.question import Question

OPS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]


@operator(*[f"Reduce{op}" for op in OPS], weight=3)
def reduced(d, op):
    shape = d.dims(d.int(0, 4), 5, empty=0.1)
    kind = d.pick([np.float32, np.float32, np.float64, np.int32, np.int64])
    if op in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceL1") and kind in (np.int32, np.int64) and d.chance(0.7):
        kind = np.float32
    if op in ("ReduceMax", "ReduceMin") and d.chance(0.3):
        kind = d.pick([np.int8, np.uint8])
    if op in ("ReduceLogSum", "ReduceLogSumExp") and np.dtype(kind).kind != "f":
        kind = np.float64
    # Of NaN onnxruntime keeps track in float32 only.
    special = d.pick([0.0, 0.0, 0.1]) if kind == np.float32 else 0.0
    if op == "ReduceMean" and 0 in shape:
        return None  # NaN in PyTorch and numpy, 0 in onnxruntime
    x = d.floats(shape, 0.1 if op == "ReduceLogSum" else -2, 2, kind, special) if np.dtype(kind).kind == "f" else d.integers(shape, kind, 0 if kind == np.uint8 else -5, 5)
    if special:
        # Sums of what cancels, or overflows, are nobody's, and onnxruntime loses NaN among maxima.
        x = np.where(np.abs(x) == np.float32(1e30), kind(0.5), x)
        x = np.where(np.isnan(x), kind(0.5), x) if op in ("ReduceMax", "ReduceMin", "ReduceLogSumExp") else x
    opset = d.pick([11, 13, 18, 20])
    named = d.flags(keepdims=[0, 1])
    axes = d.pick([None, d.axes(len(shape), 0)]) if shape else None
    modern = opset >= 18 or (op == "ReduceSum" and opset >= 13)
    if not modern:
        return Question(op, [x], opset=opset, axes=axes or None, **named)
    named |= d.flags(noop_with_empty_axes=[0, 1])
    inputs = [x, None if axes is None else np.asarray(axes, np.int64)]
    return Question(op, inputs, kept=[1] if d.chance(0.6) else (), opset=opset, **named)


@operator("CumSum", weight=2)
def running(d, op):
    x = d.floats(d.dims(d.int(1, 3), 5, empty=0.05), dtype=d.pick([np.float32, np.float64]), special=d.pick([0, 0, 0.05]))
    x = d.pick([x, d.ties(x.shape, d.pick([np.int32, np.int64]))])
    axis = np.asarray(d.axis(x.ndim), d.pick([np.int32, np.int64]))
    return Question(op, [x, axis], kept=[1] if d.chance(0.5) else (), opset=14, **d.flags(exclusive=[0, 1], reverse=[0, 1]))


@operator("MatMul", "Gemm", "MatMulInteger", weight=2)
def product(d, op):
    m, k, n = d.int(1, 6), d.pick([0, 1, 3, 5] if op != "MatMulInteger" else [1, 3, 5]), d.int(1, 6)
    if op == "Gemm":
        named = d.flags(transA=[0, 1], transB=[0, 1], alpha=[0.5], beta=[0.0, 2.0])
        a, b = (k, m) if named.get("transA") else (m, k), (n, k) if named.get("transB") else (k, n)
        c = d.floats(d.pick([(), (1,), (n,), (1, n), (m, 1), (m, n)])) if d.chance(0.6) else None
        return Question(op, [d.floats(a), d.floats(b), c], opset=13, **named)
    lead = d.dims(d.int(0, 2), 3)
    a, b = d.pick([((*lead, m, k), (k, n)), ((m, k), (*lead, k, n)), ((*lead, m, k), (*lead, k, n)), ((k,), (*lead, k, n)), ((*lead, m, k), (k,))])
    if op == "MatMul":
        return Question(op, [d.floats(a, special=0.0), d.floats(b)], opset=13)
    left, right = d.pick([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    zeros = [d.integers((), left) if d.chance(0.6) else None, d.integers((), right, 0, 63) if d.chance(0.6) else None]
    return Question(op, [d.integers(a, left), d.integers(b, right, -63 if right == np.int8 else 0, 63), *zeros], opset=10)


@operator("Einsum", weight=2)
def einsum(d, op):
    equation = d.pick(["ij,jk->ik", "ij->ji", "ii->i", "ii", "...ij,...jk->...ik", "ij,kj", "bhid,bhjd->bhij", "i,j->ij", "ij,ij->", "...i->...", "ijk->kij", " i j , j -> i", "ijj->i", "ab,cd->bdac", "a...b->b...a"])
    terms = equation.replace(" ", "").split("->")[0].split(",")
    size = {c: d.int(1, 4) for c in "abcdhijk"}
    lead = d.dims(d.int(0, 2), 3)
    shapes = [[s for part in ([size[c]] if c != "." else [] for c in t) for s in part] for t in terms]
    inputs = []
    for term, shape in zip(terms, shapes):
        if "..." in term:
            at = term.index("...")
            shape = shape[:at] + list(lead) + shape[at:]
        inputs.append(d.floats(tuple(shape)))
    return Question(op, inputs, opset=12, equation=equation)


@operator("Mean", "Sum", "Det")
def several(d, op):
    if op == "Det":
        n = d.int(1, 4)
        return Question(op, [d.floats((*d.dims(d.int(0, 2), 3), n, n))], opset=11, near=4)
    shape = d.dims(d.int(0, 3), 4)
    part = lambda: d.floats(tuple(1 if d.chance(0.3) else n for n in shape))
    return Question(op, [part() for _ in range(d.int(1, 4))], opset=13)
