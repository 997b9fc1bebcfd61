"""LSTM, GRU and RNN, as the standard's equations say."""

import numpy as np
from bounds import smooth
from operators import operator
from operators.pointwise import sigmoid
from values import FLOAT, HALF, INT32

ACTIVATIONS = {"Tanh": np.tanh, "Sigmoid": sigmoid, "Relu": lambda v: np.maximum(v, 0)}


@operator("LSTM", "GRU", "RNN", weight=2)
def recurrent(b, op):
    kind = b.pick([FLOAT, FLOAT, FLOAT, HALF])
    time, batch, size, hidden = (b.pick(c) for c in ([1, 2, 3, 5], [1, 2, 3], [1, 2, 5, 8], [1, 3, 4, 8]))
    direction = b.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    layout = 1 if b.opset >= 14 and b.chance(0.25) else 0
    draw = lambda *shape: b.tensor((kind,), shape=shape, low=-1, high=1, constant=0.8)
    x = b.tensor((kind,), shape=(batch, time, size) if layout else (time, batch, size), low=-2, high=2)
    inputs = [x, draw(ways, gates * hidden, size), draw(ways, gates * hidden, hidden)]
    bias = draw(ways, 2 * gates * hidden) if b.chance(0.7) else None
    lengths = b.fresh(INT32, b.numbers.integers(1, time + 1, batch), 0.3) if b.chance(0.3) else None
    state = (batch, ways, hidden) if layout else (ways, batch, hidden)
    first = b.tensor((kind,), shape=state, low=-1, high=1) if b.chance(0.5) else None
    inputs += [bias, lengths, first]
    attributes = {"hidden_size": hidden}
    if direction != "forward" or b.chance(0.3):
        attributes["direction"] = direction
    if layout:
        attributes["layout"] = 1
    if op == "LSTM":
        inputs.append(b.tensor((kind,), shape=state, low=-1, high=1) if b.chance(0.4) else None)
        inputs.append(draw(ways, 3 * hidden) if b.chance(0.25) else None)
    defaults = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[op]
    names = defaults * ways
    if b.chance(0.25):
        names = [b.pick(list(ACTIVATIONS)) for _ in names]
        attributes["activations"] = names
    linear_reset = op == "GRU" and b.chance(0.5)
    if linear_reset:
        attributes["linear_before_reset"] = 1
    clip = 0.75 if b.chance(0.1) else None
    if clip:
        attributes["clip"] = clip
    forget = op == "LSTM" and b.chance(0.1)
    if forget:
        attributes["input_forget"] = 1
    while inputs[-1] is None:
        inputs.pop()
    present = [i for i, v in enumerate(inputs) if v is not None and v.is_float]

    def function(*arrays):
        given = dict(zip(present, arrays))
        return run(given)

    def run(given):
        x = given[0].swapaxes(0, 1) if layout else given[0]
        y = np.zeros((time, ways, batch, hidden))
        lasts, cells = [], []
        for way in range(ways):
            functions = [ACTIVATIONS[n] for n in names[way * len(defaults):(way + 1) * len(defaults)]]
            backwards = direction == "reverse" or way == 1
            w, r = given[1][way], given[2][way]
            bias = given.get(3, np.zeros((ways, 2 * gates * hidden)))[way]
            start = lambda i: given[i][:, way] if layout else given[i][way]
            h = (start(5) if 5 in given else np.zeros((batch, hidden))).copy()
            c = (start(6) if 6 in given else np.zeros((batch, hidden))).copy()
            p = given.get(7, np.zeros((ways, 3 * hidden)))[way]
            for n in range(batch):
                count = int(lengths.array[n]) if lengths is not None else time
                order = range(count - 1, -1, -1) if backwards else range(count)
                for t in order:
                    h[n], c[n] = step(x[t, n], h[n], c[n], w, r, bias, p, functions)
                    y[t, way, n] = h[n]
            lasts.append(h)
            cells.append(c)
        stack = 1 if layout else 0
        out = [y.transpose(2, 0, 1, 3) if layout else y, np.stack(lasts, stack)]
        return out + [np.stack(cells, stack)] if op == "LSTM" else out

    def clipped(v):
        return np.clip(v, -clip, clip) if clip else v

    def step(x, h, c, w, r, bias, p, functions):
        wb, rb = bias[: gates * hidden], bias[gates * hidden:]
        if op == "RNN":
            return functions[0](clipped(w @ x + r @ h + wb + rb)), c
        if op == "LSTM":
            i, o, f, g = np.split(w @ x + r @ h + wb + rb, 4)
            pi, po, pf = np.split(p, 3)
            i = functions[0](clipped(i + pi * c))
            f = 1 - i if forget else functions[0](clipped(f + pf * c))
            c = f * c + i * functions[1](clipped(g))
            o = functions[0](clipped(o + po * c))
            return o * functions[2](c), c
        z, reset, g = np.split(w @ x + wb, 3)
        rz, rr, rg = np.split(r, 3)
        bz, br, bg = np.split(rb, 3)
        z = functions[0](clipped(z + rz @ h + bz))
        reset = functions[0](clipped(reset + rr @ h + br))
        inner = reset * (rg @ h + bg) if linear_reset else rg @ (reset * h) + bg
        return (1 - z) * functions[1](clipped(g + inner)) + z * h, c

    results = smooth(function, [inputs[i] for i in present], kind, b.numbers, 64 + 2 * (size + hidden) * time)
    b.add(op, inputs, [(kind, *result) for result in results], **attributes)
