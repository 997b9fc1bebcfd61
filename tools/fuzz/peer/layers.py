"""Recurrent layers, normalisations, attention and losses."""

import numpy as np

from peer import operator
from peer.question import Question

PLAIN = ["Relu", "Tanh", "Sigmoid", "Softsign", "Softplus"]
WITH = {"Affine": (0.5, 0.3), "LeakyRelu": (0.1, None), "ThresholdedRelu": (0.4, None), "ScaledTanh": (0.7, 1.2), "HardSigmoid": (0.3, 0.4), "Elu": (0.8, None)}


@operator("RNN", "LSTM", "GRU", weight=5)
def recurrent(d, op):
    gates, functions = {"RNN": (1, 1), "LSTM": (4, 3), "GRU": (3, 2)}[op]
    direction = d.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    layout = 0  # onnxruntime has no other.
    steps, batch, size, hidden = d.int(1, 5), d.int(1, 3), d.int(1, 4), d.int(1, 4)
    turned = lambda shape: (shape[1], shape[0], *shape[2:]) if layout else shape
    floats = lambda *shape: d.floats(shape, -1, 1)
    optional = lambda share, make: make() if d.chance(share) else None
    inputs = [
        floats(*turned((steps, batch, size))), floats(ways, gates * hidden, size), floats(ways, gates * hidden, hidden),
        optional(0.6, lambda: floats(ways, 2 * gates * hidden)),
        optional(0.5, lambda: d.integers((batch,), np.int32, 1, steps)),
        optional(0.5, lambda: floats(*turned((ways, batch, hidden)))),
    ]
    named = {"hidden_size": hidden, "direction": direction} | ({"layout": 1} if layout else {})
    if op == "LSTM":
        inputs += [optional(0.5, lambda: floats(*turned((ways, batch, hidden)))), optional(0.3, lambda: floats(ways, 3 * hidden))]
        named |= d.flags(input_forget=[0, 0, 1])
    if op == "GRU":
        named |= d.flags(linear_before_reset=[0, 1])
    named |= {"clip": d.pick([0.3, 1.0])} if d.chance(0.3) else {}
    if d.chance(0.4):
        chosen = [d.pick([*PLAIN, *WITH]) for _ in range(ways * functions)]
        named["activations"] = chosen
        first = [WITH[c][0] for c in chosen if c in WITH]
        second = [WITH[c][1] for c in chosen if c in WITH and WITH[c][1] is not None]
        named |= {k: v for k, v in (("activation_alpha", first), ("activation_beta", second)) if v}
    outputs = d.pick([["y"], ["y", "h"], ["", "h"]] + ([["y", "h", "c"], ["", "", "c"]] if op == "LSTM" else []))
    return Question(op, inputs, outputs, opset=d.pick([14, 22]), kept=[1, 2, 3] if d.chance(0.5) else (), **named)


@operator("LayerNormalization", "RMSNormalization", weight=2)
def layer_norm(d, op):
    x = d.floats(d.dims(d.int(1, 4), 5))
    axis = d.axis(x.ndim)
    inner = x.shape[axis:]
    shape = inner if d.chance(0.7) else tuple(1 if d.chance(0.5) else n for n in inner)
    inputs = [x, d.floats(shape)]
    outputs = 1
    if op == "LayerNormalization":
        inputs.append(d.floats(shape) if d.chance(0.5) else None)
        outputs = d.pick([1, 1, 3])
    return Question(op, inputs, outputs, opset=17 if op == "LayerNormalization" else 23, axis=axis, **d.flags(epsilon=[1e-5, 0.1]))


@operator("GroupNormalization", "InstanceNormalization", "BatchNormalization", "LRN", "MeanVarianceNormalization", "LpNormalization", weight=2)
def normalised(d, op):
    groups = d.int(1, 3)
    x = d.floats((d.int(1, 3), groups * d.int(1, 3), *d.dims(d.int(1, 3), 5)))
    c = x.shape[1]
    if op == "LRN":
        x = d.floats((*x.shape[:2], *d.dims(2, 5)))
        return Question(op, [x], opset=13, size=d.pick([1, 3, 5, 7]), **d.flags(alpha=[0.5], beta=[0.6], bias=[2.0]))
    if op == "MeanVarianceNormalization":
        return Question(op, [x], opset=13, axes=[0, *range(2, x.ndim)]) if x.size > x.shape[1] else None
    if op == "LpNormalization":
        x[d.numbers.random(x.shape) < 0.3] = 0
        return Question(op, [x], opset=22, **d.flags(axis=[d.axis(x.ndim)], p=[1, 2]))
    if op == "GroupNormalization":
        return Question(op, [x, d.floats((c,)), d.floats((c,))], opset=21, near=9, num_groups=groups, **d.flags(epsilon=[0.1]))
    if op == "InstanceNormalization":
        return Question(op, [x, d.floats((c,)), d.floats((c,))], opset=d.pick([6, 22]), **d.flags(epsilon=[0.1]))
    inputs = [x, d.floats((c,)), d.floats((c,)), d.floats((c,)), d.floats((c,), 0.1, 2)]
    training = d.chance(0.5)
    named = d.flags(epsilon=[0.1], momentum=[0.7, 0.9])
    return Question(op, inputs, 3 if training else 1, opset=15, **named, **({"training_mode": 1} if training else {}))


@operator("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", weight=3)
def loss(d, op):
    n, c, rest = d.int(1, 4), d.int(1, 5), d.dims(d.int(0, 2), 3)
    x = d.floats((n, c, *rest))
    target = d.integers((n, *rest), d.pick([np.int32, np.int64]), 0, c - 1)
    named = d.flags(reduction=["mean", "sum", "none"])
    if d.chance(0.5):
        ignored = d.pick([-1, 0, c - 1, c + 2, -100])
        named["ignore_index"] = ignored
        target = np.where(d.numbers.random(target.shape) < d.pick([0.3, 1.0]), target.dtype.type(ignored), target)
    weights = d.floats((c,), 0, 1) if d.chance(0.5) else None
    outputs = d.pick([1, 2]) if op == "SoftmaxCrossEntropyLoss" else 1
    return Question(op, [x, target, weights], outputs, opset=13, **named)


@operator("Attention", weight=5)
def attention(d, op):
    batch, groups, heads = d.int(1, 2), d.int(1, 2), d.int(1, 2)
    query_heads, queries, keys, size, value_size = heads * groups, d.int(1, 4), d.int(1, 5), d.int(1, 4), d.int(1, 4)
    flat = d.chance(0.5)
    lay = lambda h, s, n: (batch, s, h * n) if flat else (batch, h, s, n)
    inputs = [d.floats(lay(query_heads, queries, size)), d.floats(lay(heads, keys, size)), d.floats(lay(heads, keys, value_size))]
    past = d.int(1, 3) if d.chance(0.3) else 0
    total = keys + past
    mask = None
    if d.chance(0.6):
        shape = d.pick([(queries, total), (1, 1, queries, total), (batch, 1, queries, total), (batch, query_heads, queries, total)])
        mask = d.numbers.random(shape) < d.pick([0.3, 0.7]) if d.chance(0.5) else d.floats(shape, special=0.0)
    inputs.append(mask)
    outputs = 1
    if past:
        inputs += [d.floats((batch, heads, past, size)), d.floats((batch, heads, past, value_size))]
        outputs = 3
    named = d.flags(is_causal=[0, 1], scale=[0.3], softcap=[0.0, 2.0])
    if flat:
        named |= {"q_num_heads": query_heads, "kv_num_heads": heads}
    if past and queries == 1:
        # A single query sees every key in onnxruntime, against the text.
        named.pop("is_causal", None)
    if past == 0 and not named.get("is_causal") and (mask is None or mask.dtype != np.bool_) and d.chance(0.2):
        outputs, named["qk_matmul_output_mode"] = ["y0", "", "", "y3"], d.int(0, 3)
    return Question(op, inputs, outputs, opset=23, **named)


@operator("RotaryEmbedding", weight=2)
def rotary(d, op):
    n, heads, length, pairs = d.int(1, 2), d.int(1, 3), d.int(1, 4), d.int(1, 3)
    size, named = 2 * pairs, d.flags(interleaved=[0, 1])
    if d.chance(0.3):
        named["rotary_embedding_dim"] = size
        size += 2 * d.int(1, 2)
    packed = d.chance(0.5)
    if packed:
        named["num_heads"] = heads
    x = d.floats((n, length, heads * size) if packed else (n, heads, length, size))
    placed = d.chance(0.6)
    tables = [d.floats((9, pairs) if placed else (n, length, pairs)) for _ in range(2)]
    return Question(op, [x, *tables, d.integers((n, length), np.int64, 0, 8) if placed else None], opset=23, **named)
