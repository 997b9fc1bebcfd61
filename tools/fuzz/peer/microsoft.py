"""Operators of `com.microsoft` that transformers and quantisers write."""

import numpy as np

from peer import operator
from peer.question import Question

DOMAIN = "com.microsoft"


@operator("QuickGelu", "FastGelu", "BiasGelu")
def gelu(d, op):
    x = d.floats(d.dims(d.int(1, 3), 6), -6, 6)
    bias = [d.floats(x.shape[-1:])] if op == "BiasGelu" or (op == "FastGelu" and d.chance(0.5)) else []
    return Question(op, [x, *bias], domain=DOMAIN, near=4, **(d.flags(alpha=[1.0, 1.5]) if op == "QuickGelu" else {}))


@operator("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", weight=2)
def skip(d, op):
    n = d.int(1, 9)
    x = d.floats((d.int(1, 2), d.int(1, 4), n))
    other = d.floats(x.shape)
    optional = lambda: d.floats((n,)) if d.chance(0.5) else None
    inputs = [x, other, d.floats((n,)), *([optional()] if op == "SkipLayerNormalization" else []), optional()]
    return Question(op, inputs, d.pick([1, ["y", "", "", "s"]]), domain=DOMAIN, **d.flags(epsilon=[1e-5, 0.1]))


@operator("FusedMatMul", "FusedGemm", "FusedConv", weight=2)
def fused(d, op):
    m, k, n = d.dims(3, 5)
    if op == "FusedConv":
        x, w = d.floats((d.int(1, 2), 3, 6, 5)), d.floats((4, 3, *d.dims(2, 3)))
        how = d.pick(["Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
        values = {"LeakyRelu": [0.2], "Clip": [-0.5, 0.5], "HardSigmoid": [0.3, 0.4]}.get(how)
        return Question(op, [x, w, d.floats((4,))], domain=DOMAIN, activation=how, activation_params=values, pads=[1, 1, 1, 1], strides=[d.int(1, 2), 1])
    if op == "FusedGemm":
        how = d.pick(["Relu", "Tanh", "Sigmoid", "LeakyRelu"])
        named = d.flags(transA=[0, 1], transB=[0, 1], alpha=[0.5], beta=[2.0])
        a, b = (k, m) if named.get("transA") else (m, k), (n, k) if named.get("transB") else (k, n)
        return Question(op, [d.floats(a), d.floats(b), d.floats((n,))], domain=DOMAIN, activation=how, **({"activation_alpha": 0.2} if how == "LeakyRelu" else {}), **named)
    lead = d.dims(d.int(0, 2), 3)
    named = d.flags(transA=[0, 1], transB=[0, 1], alpha=[0.37])
    a, b = (k, m) if named.get("transA") else (m, k), (n, k) if named.get("transB") else (k, n)
    return Question(op, [d.floats((*lead, *a)), d.floats((*lead, *b))], domain=DOMAIN, **named)


@operator("QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearConcat", "QLinearSoftmax", weight=2)
def linear(d, op):
    kind = d.pick([np.uint8, np.int8])
    q = lambda low=0.01, high=0.1: [d.floats((), low, high), d.integers((), kind)]
    shape = d.dims(d.int(1, 4), 5)
    x = d.integers(shape, kind)
    if op in ("QLinearAdd", "QLinearMul"):
        y = d.integers(tuple(1 if d.chance(0.2) else n for n in shape), kind)
        return Question(op, [x, *q(), y, *q(), *q()], domain=DOMAIN, kept=[1, 2, 4, 5, 6, 7])
    if op == "QLinearConcat":
        return Question(op, [*q(), x, *q(), d.integers(shape, kind), *q()], domain=DOMAIN, kept=[0, 1, 3, 4, 6, 7], axis=d.axis(len(shape)))
    named = {}
    if "Pool" in op:
        x = d.integers((d.int(1, 2), d.int(1, 3), *d.dims(2, 6)), kind)
        if op == "QLinearAveragePool":
            kernel = d.dims(2, min(3, *x.shape[2:]))
            named = {"kernel_shape": kernel, "pads": [d.int(0, k - 1) if k > 1 else 0 for k in kernel * 2]} | d.flags(strides=[[1, 2], [2, 2]], **d.pick([{"count_include_pad": [0, 1]}, {"ceil_mode": [0, 1]}]))
    if op == "QLinearLeakyRelu":
        named = d.flags(alpha=[0.3])
    if op == "QLinearSoftmax":
        named = {"opset": 13}
        if len(shape) < 1:
            return None
        question = Question(op, [x, *q(), np.float32(1 / 256), np.asarray(0 if kind == np.uint8 else -128, kind)], domain=DOMAIN, kept=[1, 2, 3, 4], axis=d.axis(len(shape)))
        question.attributes["opset"] = 13
        return question
    return Question(op, [x, *q(), *q()], domain=DOMAIN, kept=[1, 2, 3, 4], **named)
