"""Tengine networks with random weights, and what the formulas of Tengine's sources make of them in float64.

    python tools/references/tengine_operators.py

The formulas are those of `source/device/cpu/op/*/*_ref*`, the sizes those of `source/operator/prototype/` (OAID/Tengine at c73708ce).
Beside each family stand the files that it was read from.
"""

import struct

import numpy as np

import formulas as f
from common import Cases, message
from tengine_network import Network

cases = Cases("tengine")
random = np.random.default_rng(13)


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def positive(*shape):
    return random.uniform(0.3, 2, shape).astype(np.float32)


def case(name, net, rtol=1e-4, atol=2e-5):
    files = {"model.tmfile": net.file()}
    for what, values in (("input", net.inputs), ("output", net.outputs)):
        for i, value in enumerate(values.values()):
            value = np.asarray(value)
            value = value.astype(np.float32) if value.dtype == np.float64 else value
            files[f"test_data_set_0/{what}_{i}.pb"] = message(value).SerializeToString()
    cases.add_files({"name": name, "kind": "tengine", "path": name, "model": "model.tmfile", "data_sets": 1, "rtol": rtol, "atol": atol,
                     "nondeterministic": False}, files)


# prototype/convolution.c, conv_kernel_ref_fp32.c: paddings by number, groups, dilations, activations.
net = Network()
x = floats(1, 4, 9, 8)
data = net.input("x", x)
for groups, (kh, kw), (sh, sw), pads, (dh, dw), act in (
    (1, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), -1),
    (2, (3, 2), (2, 1), (1, 0, 0, 1), (1, 1), 0),
    (4, (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), 6),
    (1, (3, 3), (2, 2), (-1, -1, -1, -1), (1, 1), 1),
    (1, (3, 2), (2, 1), (-2, -2, -2, -2), (1, 1), -1),
):
    w, b = floats(8, 4 // groups, kh, kw), floats(8)
    begins, ends = pads[:2], pads[2:]
    if pads[0] < 0:
        total = [((n - 1) // s) * s + k - n for n, s, k in zip(x.shape[2:], (sh, sw), (kh, kw))]
        low, high = [t // 2 for t in total], [t - t // 2 for t in total]
        begins, ends = (low, high) if pads[0] == -1 else (high, low)
    y = f.conv(x, w, b, [sh, sw], begins, ends, [dh, dw], groups)
    y = {-1: y, 0: np.maximum(y, 0), 1: np.clip(y, -1, 1), 6: np.clip(y, 0, 6)}[act]
    net.node(5, [data, net.constant(w), net.constant(b)], [kh, kw, sh, sw, dh, dw, 4, 8, groups, act, *pads], [y])
w = floats(2, 4, 1, 1)
net.node(5, [data, net.constant(w)], [0, 0, 0, 0, 1, 1, 4, 2, 1, -1, 0, 0, 0, 0], [f.conv(x, w)])
half = w.astype(np.float16)
net.node(5, [data, net.constant(half)], [1, 1, 1, 1, 1, 1, 4, 2, 1, -1, 0, 0, 0, 0], [f.conv(x, half)])
case("convolutions", net)

# prototype/deconvolution.c, deconv_ref.c.
net = Network()
x = floats(1, 4, 4, 5)
data = net.input("x", x)
for groups, (kh, kw), (sh, sw), (top, left, bottom, right), (dh, dw), added, act in (
    (1, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), (1, 0), -1), (2, (4, 2), (2, 1), (1, 0, 2, 1), (1, 2), (0, 0), 0), (4, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (0, 0), 2),
):
    outputs = 6 if groups < 4 else 4
    w, b = floats(4, outputs // groups, kh, kw), floats(outputs)
    y = f.deconv(x, w, b, (sh, sw), (top, left), (bottom, right), (dh, dw), groups, added)
    y = {-1: y, 0: np.maximum(y, 0), 2: np.clip(y, 0, 6)}[act]
    net.node(6, [data, net.constant(w), net.constant(b)], [outputs, kh, kw, sh, sw, left, top, right, bottom, dh, dw, groups, act, *added], [y])
case("deconvolutions", net)

# prototype/pooling.c, pooling_param.h, pooling_kernel_ref_fp32.c. In Caffe's flavour sizes are rounded up, and the padding counts in means.
net = Network()
x = floats(1, 3, 7, 6)
data = net.input("x", x)
for mean in (0, 1):
    for (kh, kw), (sh, sw), (ph, pw), flavour in (((3, 3), (2, 2), (1, 1), 0), ((3, 3), (2, 3), (0, 0), 1), ((3, 3), (2, 2), (1, 1), 1), ((3, 3), (2, 2), (1, 1), 0x10), ((3, 3), (2, 2), (2, 2) if mean else (1, 1), 2)):
        kernel, strides, pads = [kh, kw], [sh, sw], [ph, pw]
        sizes, begins = [], []
        for n, k, s, p in zip(x.shape[2:], kernel, strides, pads):
            if flavour == 1:
                size = 2 + (n - k + 2 * p - 1) // s
                size -= p > 0 and (size - 1) * s >= n + p
            else:
                size = 1 + (n - k + (p if flavour == 2 else 2 * p)) // s
            sizes.append(size)
            begins.append(p // 2 if flavour == 2 else p)
        count = lambda starts: np.prod([min(a + k, n + b) - a for a, k, n, b in zip(starts, kernel, x.shape[2:], begins)])
        y = f.pool(x, kernel, strides, begins, sizes, bool(mean), count if flavour else None)
        net.node(16, [data], [mean, kh, kw, sh, sw, 0, flavour, ph, pw, ph, pw], [y])
    whole = x.mean((2, 3), keepdims=True, dtype=np.float64) if mean else x.max((2, 3), keepdims=True)
    net.node(16, [data], [mean, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], [whole])
    net.node(16, [data], [mean, 7, 6, 1, 1, 0, 0, 0, 0, 0, 0], [whole])
    net.node(16, [data], [mean, 3, 3, 2, 2, 0, 0, -1, -1, -1, -1], [f.pool(x, [3, 3], [2, 2], [1, 0], [4, 3], bool(mean))])
case("pooling", net)

# Functions of one tensor, each by its own file; unary_kernel_ref_fp32.c.
net = Network()
x, p = floats(1, 3, 4, 5), positive(1, 3, 4, 5)
u = np.float32(random.uniform(-0.9, 0.9, (1, 3, 4, 5)))
X, P, U = map(np.float64, (x, p, u))
a, b, c = net.input("x", x), net.input("p", p), net.input("u", u)
for number, tensor, y in (
    (0, a, abs(X)), (1, a, -X), (2, a, np.floor(X)), (3, a, np.ceil(X)), (4, a, X * X), (5, b, np.sqrt(P)), (6, b, P ** -0.5), (7, a, np.exp(X)), (8, b, np.log(P)),
    (9, a, np.sin(X)), (10, a, np.cos(X)), (11, c, np.tan(U)), (12, c, np.arcsin(U)), (13, c, np.arccos(U)), (14, a, np.arctan(X)), (15, b, 1 / P), (16, a, np.tanh(X)),
):
    net.node(59, [tensor], [number], [y])
for operator, params, tensor, y in (
    (8, None, a, X), (20, [0.0], a, np.maximum(X, 0)), (20, [0.1], a, np.where(X < 0, 0.1 * X, X)), (21, None, a, np.clip(X, 0, 6)), (33, None, a, f.sigmoid(X)),
    (36, None, a, np.tanh(X)), (37, None, a, f.sigmoid(X)), (62, None, a, X), (64, [0.2, 0.5], a, np.clip(X * 0.2 + 0.5, 0, 1)), (68, None, a, abs(X)),
    (70, [0.2, 0.5], a, X * np.clip(X + 3, 0, 6) / 6), (72, [1.5, 1.1], a, np.where(X < 0, (np.exp(X) - 1) * 1.5 * 1.1, 1.1 * X)), (73, [0.5], a, np.where(X < 0, 0.5 * (np.exp(X) - 1), X)),
    (83, None, a, np.ceil(X)), (87, [0.75, -0.5], a, np.clip(X, -0.5, 0.75)), (97, None, a, X * np.tanh(np.log(1 + np.exp(X)))), (102, None, a, np.log(np.exp(X) + 1)),
    (103, None, b, 1 / P), (106, None, a, 0.5 * X * (f.erf(X * 0.707106793288165) + 1)),
):
    net.node(operator, [tensor], params, [y])
net.node(87, [a, net.constant(np.float32([-0.25])), net.constant(np.float32([0.5]))], [6.0, 0.0], [np.clip(X, -0.25, 0.5)])
for slopes in (np.float32([0.25]), floats(3)):
    net.node(17, [a, net.constant(slopes)], None, [np.where(X < 0, X * slopes.reshape(-1, 1, 1), X)])
case("functions", net)

# eltwise_ref.c: the second tensor has as many numbers, one, one for each channel, or one for each pixel.
net = Network()
x, y = positive(1, 3, 4, 5), positive(1, 3, 4, 5)
X, Y = np.float64(x), np.float64(y)
a, b = net.input("x", x), net.input("y", y)
KINDS = {0: np.multiply, 2: np.add, 4: np.subtract, 10: np.divide}
for number, function in KINDS.items():
    net.node(9, [a, b], [number, 0, 0.0, 0.0, 0.0], [function(X, Y)])
    for shape in ((1,), (3,), (1, 3, 1, 1)):
        k = positive(*shape)
        net.node(9, [a, net.constant(k)], [number, 0, 0.0, 0.0, 0.0], [function(X, k.reshape(-1, 1, 1))])
pixels = positive(1, 1, 4, 5)
net.node(9, [a, net.constant(pixels)], [2, 0, 0.0, 0.0, 0.0], [X + pixels])
net.node(9, [net.constant(positive(1)), a], [0, 0, 0.0, 0.0, 0.0], [X * net.tensors[-1][2][0]])
net.node(9, [a, b], [6, 0, 0.0, 0.0, 0.0], [np.maximum(X, Y)])
net.node(9, [a, b], [16, 0, 0.0, 0.0, 0.0], [X ** Y])
one = np.float32([0.75])
for number, function in {1: np.multiply, 5: np.subtract, 8: np.minimum}.items():
    net.node(9, [a, net.constant(one)], [number, 0, 0.0, 0.0, 0.0], [function(X, one)])
for number, y in {7: X ** -0.5, 11: np.log(X), 12: np.exp(X), 13: np.sqrt(X), 14: np.floor(X), 15: X * X, 17: (0.5 + 2 * X) ** 1.5}.items():
    net.node(9, [a], [number, 0, 0.5, 1.5, 2.0], [y])
gate = positive(1, 3, 1, 1)
for operator, function in {46: np.maximum, 47: np.minimum, 49: np.add}.items():
    net.node(operator, [a, b], [0] if operator == 49 else None, [function(X, Y)])
net.node(74, [a, net.constant(gate)], None, [X * gate])
net.node(84, [a, b], None, [(X - Y) ** 2])
case("pairs", net)

# prototype/fc.c, fc_ref.c, prototype/matmul.c.
net = Network()
x, flat, m = floats(2, 3, 4, 5), floats(2, 6), floats(2, 3, 5, 2)
a, b, c = net.input("x", x), net.input("flat", flat), net.input("m", m)
w, bias = floats(7, 60), floats(7)
y = np.float64(x).reshape(2, -1) @ w.T + bias
net.node(11, [a, net.constant(w), net.constant(bias)], [7], [y.reshape(2, 7, 1, 1)])
w = floats(7, 6)
net.node(11, [b, net.constant(w)], [7], [np.float64(flat) @ w.T])
net.node(91, [a, c], None, [np.float64(x) @ m])
case("products", net)

# batchnorm_ref.c, scale_ref.c, bias, instancenorm, layernorm_ref.c, lrn_ref.c (which adds k to each square).
net = Network()
x = floats(2, 4, 3, 5)
X = np.float64(x)
a = net.input("x", x)
g, b, mean, var = floats(4), floats(4), floats(4), positive(4)
column = lambda v: np.float64(v).reshape(4, 1, 1)
for factor, flavour in ((1.0, 0), (2.0, 1), (0.0, 0)):
    r = 1 / factor if factor else 0
    y = (X - column(mean) * r) / np.sqrt(column(var) * r + 1e-3)
    y = y if flavour else y * column(g) + column(b)
    net.node(1, [a, *map(net.constant, (g, b, mean, var))], [factor, 1e-3, flavour], [y])
net.node(26, [a, net.constant(g), net.constant(b)], [1, 1, 1], [X * column(g) + column(b)])
net.node(26, [a, net.constant(g)], [1, 1, 0], [X * column(g)])
net.node(61, [a, net.constant(b)], [4], [X + column(b)])
y = (X - X.mean((2, 3), keepdims=True)) / np.sqrt(X.var((2, 3), keepdims=True) + 1e-3)
net.node(66, [a, net.constant(g), net.constant(b)], [1e-3], [y * column(g) + column(b)])
rows, more = floats(5), floats(5)
y = (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-3)
net.node(107, [a, net.constant(rows), net.constant(more)], [1e-3], [y * rows + more])
for k in (0.0, 1.5):
    squares = np.pad(X ** 2 + k, ((0, 0), (1, 1), (0, 0), (0, 0)))
    y = X * (1 + 0.5 / 3 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:])) ** -0.75
    net.node(13, [a], [3, 0.5, 0.75, 0, k, 0.0, 0], [y])
case("norms", net)

# reduction_kernel_ref.h, softmax, logsoftmax, argmax, argmin. -2 stands for no axis.
net = Network()
x = positive(2, 3, 4, 5)
X = np.float64(x)
a = net.input("x", x)
for number, function in {
    0: lambda v, ax, k: v.sum(ax, keepdims=k), 1: lambda v, ax, k: v.mean(ax, keepdims=k), 2: lambda v, ax, k: abs(v).sum(ax, keepdims=k), 3: lambda v, ax, k: (v * v).sum(ax, keepdims=k),
    4: lambda v, ax, k: v.max(ax, keepdims=k), 5: lambda v, ax, k: v.min(ax, keepdims=k), 6: lambda v, ax, k: v.prod(ax, keepdims=k), 8: lambda v, ax, k: np.sqrt((v * v).sum(ax, keepdims=k)),
    9: lambda v, ax, k: np.log(v.sum(ax, keepdims=k)), 10: lambda v, ax, k: np.log(np.exp(v).sum(ax, keepdims=k)),
}.items():
    net.node(45, [a], [2, 3, -2, -2, number, 1], [function(X, (2, 3), True)])
    net.node(45, [a], [1, -2, -2, -2, number, 0], [function(X, (1,), False)])
net.node(45, [a], [-2, -2, -2, -2, 0, 0], [X.sum().reshape(1)])
net.node(28, [a], [1], [f.softmax(X, 1)])
net.node(28, [a], [-1], [f.softmax(X, -1)])
net.node(99, [a], [2], [np.log(f.softmax(X, 2))])
net.node(42, [a], [1, 1], [np.int32(X.argmax(1))[:, None]])
net.node(43, [a], [2, 0], [np.int32(X.argmin(2))])
case("reductions", net)

# The files of the operators in operator/prototype/, pad_ref.c.
net = Network()
x, y = floats(2, 8, 3, 4), floats(2, 8, 3, 4)
a, b = net.input("x", x), net.input("y", y)
net.node(3, [a, b], [1], [np.concatenate([x, y], 1)])
net.node(3, [a, b], [-1], [np.concatenate([x, y], -1)])
net.node(10, [a], [1, 3], [x.reshape(2, -1)])
net.node(15, [a], [0, 0, 2, 3, 1], [x.transpose(0, 2, 3, 1)])
net.node(77, [a], [[3, 1, 0, 2]], [x.transpose(3, 1, 0, 2)])
net.node(50, [a], [1, 3], [x.swapaxes(1, 3)])
net.node(23, [a], [0, 0, [0, -1, 6], 1], [x.reshape(2, -1, 6)])
net.node(23, [a], [0, 0, [0, -1, 0, 24], 0], [x.reshape(1, -1, 24)])
net.node(55, [a], [4], [f.shuffled(x, 4)])
net.node(60, [a], [1], [x[:, None]])
wide, = net.node(88, [a], [[0, 2]], [x[None, :, None]])
flat, = net.node(16, [a], [0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0], [x.max((2, 3), keepdims=True)])
net.node(38, [flat], [1, 2, -2, -2], [x.max((2, 3))])
net.node(38, [flat], [-2, -2, -2, -2], [x.max((2, 3))])
net.node(27, [a], [1, [2, 5], 0, 0, 1, 0, 0, 0, 0, 0], [x[:, :2], x[:, 2:5], x[:, 5:]])
net.node(27, [a], [1, 0, 0, 0, 1, 0, 0, 0, 0, 0], [x[:, :4], x[:, 4:]])
net.node(27, [a], [3, 0, 0, 0, 0, 1, 0, 1, 3, 0], [x[..., 1:3]])
net.node(27, [a], [1, 0, 0, 0, 0, 0, 1, 1, 7, 2], [x[:, 1:7:2]])
net.node(27, [a], [0, 0, [0, 2, 1, 0], [2, 3, 2, 4], 0, 0, 0, 0, 0, 0], [x[:, 2:5, 1:3]])
sizes = lambda flags, at: struct.pack("<iiBBxxi", 1, 2, *flags, at)
net.node(29, [a], sizes((1, 0), 0), [x, x])
net.node(29, [a], sizes((0, 1), 0), [x[:, :4], x[:, 4:]])
for mode, how in enumerate(("constant", "edge", "reflect")):
    more = {"constant_values": 0.5} if mode == 0 else {}
    net.node(40, [a], [0, 0, 0, 0, 1, 2, 2, 1, mode, 0.5], [np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), mode=how, **more)])
case("movement", net)

# upsample_ref.c, interp_ref.c.
net = Network()
x = floats(1, 2, 4, 5)
a = net.input("x", x)
net.node(51, [a], [2.0], [f.sampled(x, 8, 10, f.nearest)])
net.node(71, [a], [1, 3.0, 2.0, 0, 0], [f.sampled(x, 8, 15, f.nearest)])
net.node(71, [a], [2, 2.0, 2.0, 0, 0], [f.sampled(x, 8, 10, f.linear(False))])
net.node(71, [a], [2, 0.0, 0.0, 10, 12], [f.sampled(x, 12, 10, f.linear(False))])
net.node(71, [a], [4, 2.0, 1.5, 0, 0], [f.sampled(x, 6, 10, f.linear(True))])
case("sampling", net)

# Files of version 1, by serializer/tengine/v1/tm1_op_load.cpp and operator/operator/ (at 17f0e15c): what has other parameters there.
net = Network(version=1)
x = floats(1, 4, 7, 6)
a = net.input("x", x)
w, b = floats(6, 2, 3, 2), floats(6)
y = f.conv(x, w, b, [2, 1], (1, 0), (1, 0), [1, 2], 2)
net.node(5, [a, net.constant(w), net.constant(b)], [3, 2, 2, 1, 1, 0, 1, 2, 6, 2, 9, 9, 9, 9, 0], [np.maximum(y, 0)])
half = floats(2, 4, 1, 1).astype(np.float16)
net.node(5, [a, net.constant(half)], [1, 1, 1, 1, 0, 0, 1, 1, 2, 1, 0, 0, 0, 0, -1], [f.conv(x, half)])
w = floats(4, 3, 3, 3)
net.node(6, [a, net.constant(w)], [3, 2, 1, 3, 1], [f.deconv(x, w, np.zeros(3), (2, 2), (1, 1), (1, 1), (1, 1), 1, (0, 0))])
for mean in (0, 1):
    y = f.pool(x, [3, 2], [2, 2], [1, 0], [4, 3], bool(mean))
    net.node(16, [a], [mean, 3, 2, 9, 9, 2, 2, 0, 0, 3, 2, 2, 2, 1, 0, 1, 0], [y])
X = np.float64(x)
squares = np.pad(X ** 2 + 1.5, ((0, 0), (1, 1), (0, 0), (0, 0)))
y = X * (1 + 0.5 / 3 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:])) ** -0.75
net.node(13, [a], [3, 0.5, 0.75, 0, 1.5], [y])
net.node(23, [a], [0, -1, 6, -2, 3, 0], [x.reshape(1, -1, 6)])
net.node(23, [a], [2, 0, -1, 7, 4, 0], [x.reshape(2, 1, -1, 7)])
net.node(27, [a], [1], [x[:, :2], x[:, 2:]])
net.node(29, [a], None, [x, x])
net.node(20, [a], [0.1], [np.where(X < 0, 0.1 * X, X)])
net.node(9, [a, a], [2, 0], [X + X])
net.node(28, [a], [1], [f.softmax(X, 1)])
w = floats(5, 168)
net.node(11, [a, net.constant(w)], [5], [(X.reshape(1, -1) @ w.T).reshape(1, 5, 1, 1)])
case("first_version", net)

cases.write()
