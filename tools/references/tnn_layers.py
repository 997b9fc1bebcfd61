"""TNN networks with random weights, and what the formulas of TNN's sources make of them in float64.

    python tools/references/tnn_layers.py

The formulas are those of `source/tnn/device/cpu/acc/` and `source/tnn/utils/naive_compute.cc`, the sizes those of `source/tnn/layer/`
(Tencent/TNN at f0cb0812). Beside each family stand the files that it was read from.
"""

import numpy as np

import formulas as f
from common import Cases, message
from tnn_network import OLD, Network, text

cases = Cases("tnn")
random = np.random.default_rng(11)


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def positive(*shape):
    return random.uniform(0.3, 2, shape).astype(np.float32)


def case(name, net, rtol=1e-4, atol=2e-5):
    entry = {"name": name, "kind": "tnn", "path": name, "model": "model.tnnproto", "beside": ["model.tnnmodel"], "data_sets": 1,
             "rtol": rtol, "atol": atol, "nondeterministic": False}
    files = {"model.tnnproto": net.proto(), "model.tnnmodel": net.model()}
    for what, values in (("input", net.inputs), ("output", net.outputs)):
        for i, value in enumerate(values.values()):
            value = np.asarray(value)
            value = value.astype(np.float32) if value.dtype == np.float64 else value
            files[f"test_data_set_0/{what}_{i}.pb"] = message(value).SerializeToString()
    cases.add_files(entry, files)


def ints(name, values):
    """The bytes of `name`, a flag, and what else layers write in front of their buffers."""
    return text(name) + np.int32(values).tobytes()


def conv_stored(net, w, bias):
    return lambda name: ints(name, [bias is not None]) + net.buffer(w) + (net.buffer(bias) if bias is not None else b"")


# cpu_conv_layer_acc.cc, layer/conv_layer.cc: strides, paddings by number, groups, dilations, activations.
def convolutions(net):
    x = floats(1, 4, 9, 8)
    net.input("x", x)
    relu, relu6 = (lambda y: np.maximum(y, 0)), (lambda y: np.clip(y, 0, 6))
    for groups, kernel, strides, pads, found, dilations, act in (
        (1, (3, 3), (1, 1), (1, 1), -1, (1, 1), 0),
        (1, (3, 2), (2, 1), (1, 0), -1, (1, 1), 1),
        (2, (3, 3), (1, 1), (2, 2), -1, (2, 2), 2),
        (4, (3, 3), (2, 2), (1, 1), -1, (1, 1), 0x100),
        (1, (3, 3), (2, 2), (0, 0), 0, (1, 1), 0),
        (1, (3, 3), (2, 2), (0, 0), 1, (1, 1), 0),
    ):
        w, bias = floats(8, 4 // groups, *kernel), floats(8) if found != 1 else None
        begins, ends = list(pads), list(pads)
        if found == 0:
            sizes = [-(-n // s) for n, s in zip(x.shape[2:], strides)]
            total = [(o - 1) * s + k - n for o, s, k, n in zip(sizes, strides, kernel, x.shape[2:])]
            begins, ends = [t // 2 for t in total], [t - t // 2 for t in total]
        y = f.conv(x, w, bias, list(strides), begins, ends, list(dilations), groups)
        y = {0: lambda y: y, 1: relu, 2: relu6, 0x100: lambda y: y * f.sigmoid(y)}[act](y)
        params = [groups, 4 // groups, 8, *kernel, *strides, *pads, int(bias is not None), found, *dilations, act]
        net.layer("Convolution", "x", params, conv_stored(net, w, bias), [y])


for name, version in (("convolutions", None), ("convolutions_old", OLD)):
    net = Network(version) if version else Network()
    convolutions(net)
    case(name, net)

net = Network()
x = net.input("x", floats(1, 3, 7)), net.input("z", floats(1, 2, 4, 5, 3))
w = floats(4, 3, 3)
y = f.conv(net.inputs["x"], w, None, [2], [1], [1])
net.layer("Convolution1D", "x", [1, 3, 4, 3, 2, 1, 1, 0, -1, 1, 0], conv_stored(net, w, None), [y])
w, b = floats(3, 2, 3, 2, 1), floats(3)
y = f.conv(net.inputs["z"], w, b, [1, 2, 1], [1, 0, 0], [1, 0, 0])
net.layer("Convolution3D", "z", [1, 2, 3, 3, 2, 1, 1, 2, 1, 1, 0, 0, 1, -1, 1, 1, 1, 0], conv_stored(net, w, b), [y])
net.layer("Pooling1D", "x", [1, 3, 2, 1, -1, -1, -1, 0], results=[f.pool(net.inputs["x"], [3], [2], [1], [4], True)])
net.layer("Pooling3D", "z", [0, 2, 3, 1, 1, 2, 1, 1, 1, 0, -1, -1, -1, -1, 0], results=[f.pool(net.inputs["z"], [2, 3, 1], [1, 2, 1], [1, 1, 0], [5, 3, 3])])
case("other_axes", net)

# Numbers that are stored in 16 bits (interpreter/raw_buffer.cc) are those that they stand for.
net = Network()
x = floats(2, 3, 5, 5)
net.input("x", x)
w, b = floats(4, 3, 3, 3).astype(np.float16), floats(4).astype(np.float16)
net.layer("Convolution", "x", [1, 3, 4, 3, 3, 1, 1, 1, 1, 1, -1, 1, 1, 0], conv_stored(net, w, b), [f.conv(x, w, b, None, [1, 1])])
m, b = floats(4, 75).astype(np.float16), floats(4).astype(np.float16)
y = x.reshape(2, -1) @ np.float64(m).T + b
net.layer("InnerProduct", "x", [4, 1, 0, 1], lambda n: text(n) + net.buffer(m) + net.buffer(b), [y])
s = np.float16([0.5, 2, 0.25])
net.layer("PReLU", "x", [0, 1], lambda n: text(n) + net.buffer(s), [np.where(x < 0, x * np.float64(s).reshape(3, 1, 1), x)])
half = np.float16(random.normal(size=(3, 1, 1)))
net.constants["half"] = half
net.layer("Add", ["x", "half"], [-1], results=[x + np.float64(half)])
case("halves", net)

# cpu_deconv_layer_acc.cc, layer/deconv_layer.cc.
net = Network()
x = floats(1, 4, 4, 5)
net.input("x", x)
for groups, kernel, strides, pad, number, dilations in (
    (1, (3, 3), (2, 2), (1, 1), -1, (1, 1)),
    (2, (4, 2), (2, 1), (1, 0), -1, (1, 2)),
    (4, (4, 4), (2, 2), (0, 0), 0, (1, 1)),
    (1, (3, 3), (2, 2), (0, 0), 1, (1, 1)),
    (1, (2, 2), (1, 1), (0, 0), 2, (1, 1)),
    (1, (3, 1), (2, 2), (0, 0), 3, (1, 1)),
):
    w, b = floats(4, 6 // groups if groups != 4 else 1, *kernel), floats(6 if groups != 4 else 4)
    over = [d * (k - 1) + 1 - s for k, d, s in zip(kernel, dilations, strides)]
    begins = {-1: list(pad), 0: [o // 2 for o in over], 1: [0, 0], 2: [k - 1 for k in kernel], 3: [max(o, 0) - max(o, 0) // 2 for o in over]}[number]
    ends = {-1: list(pad), 0: [o - o // 2 for o in over], 1: [0, 0], 2: begins, 3: [max(o, 0) // 2 for o in over]}[number]
    added = [max(-o, 0) for o in over] if number == 3 else [0, 0]
    y = f.deconv(x, w, b, strides, begins, ends, dilations, groups, added)
    net.layer("Deconvolution", "x", [groups, 4 // groups, len(b), *kernel, *strides, *pad, 1, number, *dilations, 0], conv_stored(net, w, b), [y])
case("deconvolutions", net)

# layer/pooling_layer.cc, NaivePooling and NaiveAdaptivePooling: padding never counts.
net = Network()
x = floats(1, 3, 7, 6)
net.input("x", x)
for mean, (kh, kw), (sh, sw), (ph, pw), ceil in (
    (0, (3, 3), (2, 2), (1, 1), 0), (0, (3, 2), (2, 2), (0, 0), 1), (1, (3, 3), (2, 1), (1, 1), 0), (1, (2, 4), (2, 3), (0, 1), 1),
):
    room = [7 + 2 * ph - kh, 6 + 2 * pw - kw]
    sizes = [(-(-r // s) if ceil else r // s) + 1 for r, s in zip(room, (sh, sw))]
    y = f.pool(x, [kh, kw], [sh, sw], [ph, pw], sizes, bool(mean))
    net.layer("Pooling", "x", [mean, kh, kw, sh, sw, ph, pw, -1, -1, -1, ceil], results=[y])
for mean in (0, 1):
    whole = x.mean((2, 3), keepdims=True, dtype=np.float64) if mean else x.max((2, 3), keepdims=True)
    net.layer("Pooling", "x", [mean, 0, 0, 1, 1, 0, 0, -1, -1, -1, 0], results=[whole])
    net.layer("Pooling", "x", [mean, 1, 1, 1, 1, 0, 0, 2, 3, -1, 0], results=[whole])
    net.layer("Pooling", "x", [mean, 0, 0, 0, 0, 0, 0, -1, -1, -1, 0, 1, 3, 4], results=[f.parts(x, [3, 4], mean)])
net.layer("Pooling", "x", [1, 3, 3, 2, 2, 0, 0, -1, -1, 0, 0], results=[f.pool(x, [3, 3], [2, 2], [1, 0], [4, 3], True)])
net.layer("Pooling", "x", [0, 3, 3, 2, 2, 0, 0, -1, -1, 1, 0], results=[f.pool(x, [3, 3], [2, 2], [0, 0], [3, 2])])
case("pooling", net)

# Functions of one blob, each by its own file.
net = Network()
x, p = floats(1, 3, 4, 5), positive(1, 3, 4, 5)
u = np.float32(random.uniform(-0.9, 0.9, (1, 3, 4, 5)))
net.input("x", x), net.input("p", p), net.input("u", u)
X, P, U = map(np.float64, (x, p, u))
for kind, blob, y in (
    ("Abs", "x", abs(X)), ("Acos", "u", np.arccos(U)), ("Asin", "u", np.arcsin(U)), ("Atan", "x", np.arctan(X)), ("Ceil", "x", np.ceil(X)),
    ("Cos", "x", np.cos(X)), ("Erf", "x", f.erf(X)), ("Exp", "x", np.exp(X)), ("Floor", "x", np.floor(X)),
    ("GELU", "x", 0.5 * X * (f.erf(X * 0.707106793288165) + 1)), ("Log", "p", np.log(P)), ("LogSigmoid", "x", np.log(f.sigmoid(X))),
    ("Neg", "x", -X), ("ReLU", "x", np.maximum(X, 0)), ("ReLU6", "x", np.clip(X, 0, 6)), ("Reciprocal", "p", 1 / P),
    ("Rsqrt", "p", P ** -0.5), ("Sigmoid", "x", f.sigmoid(X)), ("Sign", "x", np.sign(X)), ("Sin", "x", np.sin(X)),
    ("Softplus", "x", np.log(np.exp(X) + 1)), ("Softsign", "x", X / (1 + abs(X))), ("Sqrt", "p", np.sqrt(P)), ("Swish", "x", X * f.sigmoid(X)),
    ("Tan", "u", np.tan(U)), ("Tanh", "x", np.tanh(X)),
):
    net.layer(kind, blob, results=[y])
net.layer("Clip", "x", [-0.5, 0.75], results=[np.clip(X, -0.5, 0.75)])
net.layer("Elu", "x", [0.5], results=[np.where(X < 0, 0.5 * (np.exp(X) - 1), X)])
net.layer("Selu", "x", [1.5, 1.1], results=[np.where(X <= 0, 1.1 * (1.5 * np.exp(X) - 1.5), 1.1 * X)])
net.layer("HardSigmoid", "x", [0.2, 0.5], results=[np.clip(X * 0.2 + 0.5, 0, 1)])
net.layer("HardSwish", "x", [0.2, 0.5], results=[X * np.clip(X * 0.2 + 0.5, 0, 1)])
net.layer("HardSwish", ["x", "p"], [0.2, 0.5], results=[X * np.clip(P * 0.2 + 0.5, 0, 1)])
net.layer("Power", "p", [1.5, 2, 0.25], results=[(P * 2 + 0.25) ** 1.5])
for shared, slopes in ((1, np.float32([0.25])), (0, floats(3))):
    y = np.where(X < 0, X * slopes.reshape(-1, 1, 1), X)
    net.layer("PReLU", "x", [shared, 1], lambda n: text(n) + net.buffer(slopes), [y])
net.layer("GLU", "x", [2], results=[X[:, :, :2] * f.sigmoid(X[:, :, 2:])])
case("functions", net)

# layer/multidir_broadcast_layer.cc, cpu_binary_op_layer_acc.cc.
KINDS = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Maximum": np.maximum, "Minimum": np.minimum,
         "SquaredDifference": lambda a, b: (a - b) ** 2}
net = Network()
x, z, row = positive(1, 3, 4, 5), positive(1, 3, 1, 1), positive(4, 5)
net.input("x", x), net.input("z", z), net.input("row", row)
for kind, function in KINDS.items():
    net.layer(kind, ["x", "z"], [-1], results=[function(np.float64(x), z)])
    weights = positive(3, 1, 1)
    net.layer(kind, "x", [0], net.buffer(weights), [function(np.float64(weights), x)])
net.layer("Add", ["x", "z", "row"], [-1], results=[np.float64(x) + z + row])
net.layer("Mul", ["row", "x"], [-1], results=[np.float64(row) * x])
case("pairs", net)
net = Network(OLD)
net.input("x", x)
# Weights without a shape: what they are follows from their number.
for shape in ((1,), (3, 1, 1), (3, 4, 5), (5,), (4, 5)):
    weights = positive(*shape)
    net.layer("Mul", "x", [1], net.buffer(weights), [np.float64(x) * weights])
case("pairs_old", net)

# cpu_inner_product_layer_acc.cc, cpu_mat_mul_layer_acc.cc.
net = Network()
x, a, b = floats(2, 3, 4), floats(2, 3, 4, 5), floats(3, 5, 2)
net.input("x", x), net.input("a", a), net.input("b", b)
for axis in (1, 2):
    m, bias = floats(6, int(np.prod(x.shape[axis:]))), floats(6)
    y = np.float64(x).reshape(*x.shape[:axis], -1) @ m.T + (bias if axis == 1 else 0)
    net.layer("InnerProduct", "x", [6, int(axis == 1), 0, axis], lambda n: text(n) + net.buffer(m) + net.buffer(bias if axis == 1 else None), [y])
net.layer("MatMul", ["a", "b"], [-1], results=[np.float64(a) @ b])
m = floats(5, 3)
net.layer("MatMul", "a", [1], net.buffer(m), [np.float64(a) @ m])
m = floats(6, 4)
net.layer("MatMul", "a", [0], net.buffer(m), [np.float64(m) @ a])
m = floats(5)
net.layer("MatMul", "a", [1], net.buffer(m), [np.float64(a) @ m])
case("products", net)

# cpu_batch_norm, cpu_scale, cpu_bias_add, cpu_instance_norm, cpu_group_norm, cpu_layer_norm, cpu_lrn, cpu_normalize.
net = Network()
x = floats(2, 4, 3, 5)
net.input("x", x)
X = np.float64(x)
k, b = floats(4), floats(4)
K, B = (np.float64(v).reshape(4, 1, 1) for v in (k, b))
net.layer("BatchNormCxx", "x", [], net.buffer(k) + net.buffer(b), [X * K + B])
net.layer("BatchNormCxx", "x", [], net.buffer(k) + net.buffer(None), [X * K])
net.layer("BatchNormCxx", "x", [], net.buffer(k[:1]) + net.buffer(b[:1]), [X * k[0] + b[0]])
net.layer("Scale", "x", [1, 1, 1], lambda n: ints(n, [1]) + net.buffer(k) + net.buffer(b), [X * K + B])
net.layer("BiasAdd", "x", [], net.buffer(b), [X + B])


def normal(axes, epsilon):
    return (X - X.mean(axes, keepdims=True)) / np.sqrt(X.var(axes, keepdims=True) + epsilon)


net.layer("InstBatchNormCxx", "x", [4, 1e-3], net.buffer(k) + net.buffer(b), [normal((2, 3), 1e-3) * K + B])
net.constants |= {"k": k, "b": b, "rows": floats(3, 5), "more": floats(3, 5)}
groups = X.reshape(2, 2, 2, 3, 5)
y = (groups - groups.mean((2, 3, 4), keepdims=True)) / np.sqrt(groups.var((2, 3, 4), keepdims=True) + 1e-3)
net.layer("GroupNorm", ["x", "k", "b"], [2, 1e-3], results=[y.reshape(X.shape) * K + B])
net.layer("LayerNorm", ["x", "rows", "more"], [2, 1e-3], results=[normal((2, 3), 1e-3) * net.constants["rows"] + net.constants["more"]])
squares = np.pad(X ** 2, ((0, 0), (1, 1), (0, 0), (0, 0)))
y = X / (1.5 + 0.25 / 3 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:])) ** 0.75
net.layer("LRN", "x", [0.25, 0.75, 1.5, 3], results=[y])
net.layer("Normalize", "x", [0, 1e-12, 1, 1, 2], results=[X / np.maximum(np.sqrt((X ** 2).sum(1, keepdims=True)), 1e-12)])
net.layer("Normalize", "x", [0, 1e-12, 1, 1, 1], results=[X / abs(X).sum(1, keepdims=True)])
case("norms", net)

# layer/reduce_layer.cc, cpu_softmax, cpu_log_softmax, cpu_arg_max_or_min.
net = Network()
x = positive(2, 3, 4, 5)
net.input("x", x)
X = np.float64(x)
for kind, function in {
    "ReduceL1": lambda a, ax, k: abs(a).sum(ax, keepdims=k), "ReduceL2": lambda a, ax, k: np.sqrt((a * a).sum(ax, keepdims=k)),
    "ReduceLogSum": lambda a, ax, k: np.log(a.sum(ax, keepdims=k)), "ReduceLogSumExp": lambda a, ax, k: np.log(np.exp(a).sum(ax, keepdims=k)),
    "ReduceMax": lambda a, ax, k: a.max(ax, keepdims=k), "ReduceMean": lambda a, ax, k: a.mean(ax, keepdims=k),
    "ReduceMin": lambda a, ax, k: a.min(ax, keepdims=k), "ReduceProd": lambda a, ax, k: a.prod(ax, keepdims=k),
    "ReduceSum": lambda a, ax, k: a.sum(ax, keepdims=k), "ReduceSumSquare": lambda a, ax, k: (a * a).sum(ax, keepdims=k),
}.items():
    net.layer(kind, "x", [1, 1, -1], results=[function(X, (1, 3), True)])
    net.layer(kind, "x", [0, 2], results=[function(X, (2,), False)])
net.layer("ReduceSum", "x", [1], results=[X.sum(keepdims=True)])
net.layer("Softmax", "x", [], results=[f.softmax(X, 1)])
net.layer("SoftmaxCaffe", "x", [-1], results=[f.softmax(X, -1)])
net.layer("LogSoftmax", "x", [2], results=[np.log(f.softmax(X, 2))])
net.layer("ArgMaxOrMin", "x", [1, 2, 1, 0], results=[np.int32(X.argmax(2))[:, :, None]])
net.layer("ArgMaxOrMin", "x", [0, -1, 0, 0], results=[np.int32(X.argmin(-1))])
case("reductions", net)

# utils/dims_function_utils.cc and the files of the layers.
net = Network()
x, y = floats(2, 8, 3, 4), floats(2, 8, 3, 4)
net.input("x", x), net.input("y", y)
net.layer("Concat", ["x", "y"], [1], results=[np.concatenate([x, y], 1)])
net.layer("Concat", ["x", "y"], [-1], results=[np.concatenate([x, y], -1)])
net.layer("Flatten", "x", [2], results=[x.reshape(16, 12)])
net.layer("Permute", "x", [4, 0, 2, 3, 1], results=[x.transpose(0, 2, 3, 1)])
net.layer("Permute", "x", [2, 1, 0], results=[x.transpose(1, 0, 2, 3)])
net.layer("Reshape", "x", [0, 3, 3, 0, -1, 6, 0], results=[x.reshape(2, -1, 6)])
net.layer("Reshape", "x", [1, 2, 2, -1, 4, 0], results=[x.reshape(2, -1, 4)])
net.layer("Reshape", "x", [0, 4, 4, 2, 6, 4, 4, 1], results=[x.transpose(0, 2, 3, 1).reshape(2, 4, 4, 6).transpose(0, 3, 1, 2)])
net.layer("Reshape", "x", [0, 2, 2, 2, 96, 1], results=[x.transpose(0, 2, 3, 1).reshape(2, 96)])
net.constants |= {"shape": np.int32([4, 0, 3, -1]), "repeats": np.int32([1, 2, 1, 3]), "wide": np.int32([3, 1, 8, 1, 1])}
net.layer("Reshape", ["x", "shape"], [0, 4, 4, 0, 0, 0, 0, 0], results=[x.reshape(4, 8, 3, -1)])
net.layer("Unsqueeze", "x", [2, 0, -1], results=[x[None, ..., None]])
net.layer("Squeeze", net.layer("Unsqueeze", "x", [2, 0, 3], results=[x[None, :, :, None]])[0], [2, 0, 3], results=[x])
net.layer("Expand", ["x", "wide"], [0], results=[np.broadcast_to(x, (3, 2, 8, 3, 4))])
net.layer("Expand", "x", [5, 2, -1, 8, 3, 4], results=[np.broadcast_to(x, (2, 2, 8, 3, 4))])
net.layer("Tile", "x", [1, 1, 2, 1], results=[np.tile(x, (1, 1, 2, 1))])
net.layer("Repeat", ["x", "repeats"], [], results=[np.tile(x, (1, 2, 1, 3))])
net.layer("ShuffleChannel", "x", [4], results=[f.shuffled(x, 4)])
crd = x.reshape(2, 2, 2, 2, 3, 4).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 6, 8)
dcr = x.reshape(2, 2, 2, 2, 3, 4).transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 6, 8)
net.layer("PixelShuffle", "x", [2], results=[crd])
net.layer("Reorg", "x", [2, 1, 0, 1], results=[crd])
deep, = net.layer("Reorg", "x", [2, 1, 0, 0], results=[dcr])
net.layer("Reorg", deep, [2, 0, 0, 0], results=[x])
net.layer("Split", "x", [], results=[x, x])
net.layer("Size", "x", [], results=[np.int32(192)])
case("movement", net)

# stride_slice_layer.cc, stride_slice_v2_layer.cc, splitv_layer.cc, cpu_pad, cpu_padv2, cpu_gather, cpu_gathernd, cpu_scatter.
net = Network()
x = floats(2, 6, 4, 5)
net.input("x", x)
net.layer("StridedSlice", "x", [4, 0, 1, 0, -3, 4, 0, 5, -1, 0, 4, 1, 2, 1, 1], results=[x[:, 1:5:2, :-1, -3:]])
net.layer("StridedSliceV2", "x", [2, 1, -1, 2, 2147483647, -2147483648, 2, 1, 3, 2, 2, -1], results=[x[:, 1::2, :, ::-1]])
net.constants |= {"from": np.int32([1]), "to": np.int32([-1])}
net.layer("StridedSliceV2", ["x", "from", "to"], [1, 0, 1, 0, 1, 2, 1, 1], results=[x[:, :, 1:-1]])
net.layer("SplitV", "x", [1, 2, 2, 4], results=[x[:, :2], x[:, 2:]])
net.layer("SplitV", "x", [-3, 0], results=[x[:, :3], x[:, 3:]])
net.layer("Pad", "x", [0, 0, 1, 2, 0, 1, 1, 2, 0, 0.5], results=[np.pad(x, ((0, 0), (1, 2), (1, 2), (0, 1)), constant_values=0.5)])
net.layer("Pad", "x", [0, 0, 1, 2, 2, 1, 0, 0, 1, 0], results=[np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), mode="reflect")])
net.layer("Pad", "x", [0, 0, 1, 2, 2, 1, 0, 0, 2, 0], results=[np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), mode="edge")])
net.layer("PadV2", "x", [4, 1, 0, 0, 2, 0, 1, 0, 1, 0, 0.25], results=[np.pad(x, ((1, 0), (0, 1), (0, 0), (2, 1)), constant_values=0.25)])
rows, table = np.int32([[2, 0], [-1, 1]]), floats(5, 3)
gathered = lambda *parts: b"".join(np.int32([p is not None]).tobytes() + (net.buffer(p) if p is not None else b"") for p in parts)
net.layer("Gather", "x", [1, 0, 1], gathered(None, rows), [np.take(x, rows, 1)])
net.constants["rows"] = rows
net.layer("Gather", "rows", [0, 1, 0], gathered(table, None), [np.take(table, rows, 0)])
net.layer("Gather", ["x", "rows"], [2, 0, 0], gathered(None, None), [np.take(x, rows, 2)])
net.constants |= {"places": np.int32([[0, 5], [1, 2]]), "new": floats(2, 4, 5), "spots": np.int32(random.integers(0, 6, (2, 2, 4, 5))), "put": floats(2, 2, 4, 5)}
net.layer("GatherND", ["x", "places"], [0], results=[np.stack([x[0, 5], x[1, 2]])])
written = x.copy()
written[0, 5], written[1, 2] = net.constants["new"]
net.layer("ScatterND", ["x", "places", "new"], [], b"\0\0", [written])
written = np.float64(x)
for at in np.ndindex(2, 2, 4, 5):
    written[at[0], net.constants["spots"][at], at[2], at[3]] += net.constants["put"][at]
net.layer("ScatterElements", ["x", "spots", "put"], [1, 1], results=[written])
case("parts", net)

# cpu_upsample_layer_acc.cc, cpu_gridsample_layer_acc.cc.
net = Network()
x = floats(1, 2, 4, 5)
net.input("x", x)
net.layer("Upsample", "x", [1, 2, 2, 0], results=[f.sampled(x, 8, 10, f.nearest)])
net.layer("Upsample", "x", [1, 1, 1, 0, 6, 7], results=[f.sampled(x, 6, 7, f.nearest)])
net.layer("Upsample", "x", [2, 2, 2, 0], results=[f.sampled(x, 8, 10, f.linear(False))])
net.layer("Upsample", "x", [2, 1.5, 1.4, 1], results=[f.sampled(x, 6, 7, f.linear(True))])
net.layer("Upsample", "x", [2, 1, 1, 0, 1, 9], results=[f.sampled(x, 1, 9, f.linear(False))])
net.layer("Upsample", "x", [3, 2, 2, 0], results=[f.sampled(x, 8, 10, f.cubic)])
net.layer("Upsample", "x", [2, 1, 1, 0], results=[x])
net.constants |= {"scales": np.float32([1, 1, 2, 3]), "sizes": np.int32([1, 2, 3, 3]), "none": np.float32([0])}
net.layer("Upsample", ["x", "scales"], [1, 0, 0, 0], results=[f.sampled(x, 8, 15, f.nearest)])
net.layer("Upsample", ["x", "none", "none", "sizes"], [1, 0, 0, 0], results=[f.sampled(x, 3, 3, f.nearest)])
grid = np.float32(random.uniform(-1.2, 1.2, (1, 3, 4, 2)))
net.input("grid", grid)
y = np.zeros((1, 2, 3, 4))
for h, w in np.ndindex(3, 4):
    ix, iy = (grid[0, h, w, 0] + 1) * 2.5 - 0.5, (grid[0, h, w, 1] + 1) * 2 - 0.5
    for a in (int(np.floor(iy)), int(np.floor(iy)) + 1):
        for b in (int(np.floor(ix)), int(np.floor(ix)) + 1):
            if 0 <= a < 4 and 0 <= b < 5:
                y[0, :, h, w] += x[0, :, a, b] * (1 - abs(iy - a)) * (1 - abs(ix - b))
net.layer("GridSample", ["x", "grid"], [2, 0, 0], results=[y])
case("sampling", net)

# cpu_lstm_layer_acc.cc.
net = Network()
x = floats(5, 2, 3)
net.input("x", x)
for direction in (0, 1, 2):
    count, hidden = 2 if direction == 2 else 1, 4
    w, r, b = floats(count, 16, 3), floats(count, 16, 4), floats(count, 32)
    h, c = floats(count, 2, 4), floats(count, 2, 4)
    net.constants |= {f"{n}{direction}": v for n, v in zip("wrbhc", (w, r, b, h, c))}
    made = [f.lstm(x, w[i], r[i], b[i], h[i], c[i], i == 1 or direction == 1) for i in range(count)]
    y, last, cell = (np.concatenate([m[0] for m in made], -1), np.stack([m[1] for m in made]), np.stack([m[2] for m in made]))
    names = [f"{n}{direction}" for n in "wrbhc"]
    net.layer("LSTMONNX", ["x", *names], [0, hidden, direction], results=[y, last, cell])
zero = np.zeros((2, 4))
net.layer("LSTMONNX", ["x", "w0", "r0", "b0"], [0, 4, 0], results=[f.lstm(x, *(net.constants[f"{n}0"][0] for n in "wrb"), zero, zero)[0]])
case("recurrent", net)

# Shapes, constants, flags: cpu_shape, cpu_constantofshape, cpu_range, cpu_cast, cpu_where, cpu_onehot, cpu_topk.
net = Network()
x, n = floats(2, 3), np.int32([[1, 0, 2], [2, 2, 0]])
net.input("x", x), net.input("n", n)
c = floats(2, 2)
net.layer("Const", [], [2, 2, 2], net.buffer(c), [c])
shape, = net.layer("Shape", "x", [], results=[np.int32([2, 3])])
net.layer("ConstantOfShape", shape, [], net.buffer(np.float32([1.5])), [np.full((2, 3), 1.5, np.float32)])
net.constants |= {"one": np.int32([1]), "nine": np.int32([9]), "three": np.int32([3])}
net.layer("Range", ["one", "nine", "three"], [], results=[np.int32([1, 4, 7])])
net.layer("Cast", "n", [0], results=[np.float32(n)])
net.layer("Cast", "x", [3], results=[np.int32(x)])
net.layer("OneHot", "n", [-1, 3, 0, 2], results=[np.float32(2 * np.eye(3)[n])])
more, = net.layer("Greater", "x", [1], net.buffer(np.float32([0.25])), [x > 0.25])
less, = net.layer("Less", "x", [1], net.buffer(np.float32([0.75])), [x < 0.75])
net.layer("And", [more, less], [-1], results=[(x > 0.25) & (x < 0.75)])
net.layer("Not", more, [], results=[x <= 0.25])
net.layer("Equal", ["n", "one"], [], results=[n == 1])
net.constants["y"] = floats(2, 3)
net.layer("Where", ["x", "y", more], [], results=[np.where(x > 0.25, x, net.constants["y"])])
order = np.argsort(-x, 1)[:, :2]
net.layer("TopK", "x", [1, 1, 1, 2], results=[np.take_along_axis(x, order, 1), np.int32(order)])
case("data", net)

# Integers of 8 bits: NaiveConvBias, NaiveFCBias, NaivePooling, CPU_ADD_BIAS and float2int8 in utils/naive_compute.cc and compute/. Scales of
# weights are products with that of the data.
def in_bytes(value):
    """Rounded to the nearest integer from -128 to 127. No number is near the middle of two, where floats could decide."""
    assert (abs(value - np.floor(value) - 0.5) > 1e-4).all()
    return np.clip(np.floor(np.float64(value) + 0.5), -128, 127)


net = Network()
scales = {"x": 0.021, "conv": 0.17, "point": 0.23, "sum": 0.31, "product": 0.9}
x = floats(1, 4, 9, 8)
net.input("x", x)
net.scale("x", scales["x"], [0])
q = {"x": in_bytes(x / np.float32(scales["x"]))}


def of_bytes(kind, blobs, params, exact, scale, stored=b""):
    """A layer whose blob is `exact`, in floats, or integers that are passed on, in this scale."""
    name, = net.layer(kind, blobs, params, stored, [np.float64(exact) * np.float32(scale)])
    net.scale(name, scale)
    q[name] = exact
    return name


def weights(kind, data, of_data, params, shape, to, function, act=None):
    w, own = np.int8(random.integers(-127, 128, shape)), positive(shape[0]) * np.float32(0.01)
    products, bias = own * np.float32(of_data), np.int32(random.integers(-2000, 2000, shape[0]))
    sums = function(q[data], w) + bias.reshape(-1, *[1] * (len(shape) - 2))
    value = sums * np.float64(products).reshape(-1, *[1] * (len(shape) - 2)) / np.float32(to)
    value = np.maximum(value, 0) if act else value
    front = (lambda n: ints(n, [1])) if kind == "QuantizedConvolution" else text
    stored = lambda n: front(n) + net.buffer(w) + net.buffer(bias) + net.buffer(np.zeros(shape[0], np.int8)) + net.buffer(products)
    return of_bytes(kind, data, params, in_bytes(value), to, stored)


conv = weights("QuantizedConvolution", "x", scales["x"], [1, 4, 6, 3, 3, 1, 1, 1, 1, 1, -1, 1, 1, 1], (6, 4, 3, 3), scales["conv"], lambda x, w: f.conv(x, w, None, None, [1, 1]), True)
point = weights("QuantizedConvolution", conv, scales["conv"], [6, 1, 6, 1, 1, 1, 1, 0, 0, 1, -1, 1, 1, 0], (6, 1, 1, 1), scales["point"], lambda x, w: f.conv(x, w, None, groups=6))
total = of_bytes("QuantizedAdd", [conv, point], [1], in_bytes((q[conv] * np.float32(scales["conv"]) + q[point] * np.float32(scales["point"])) / np.float32(scales["sum"])), scales["sum"])
relu = of_bytes("QuantizedReLU", total, [], np.maximum(q[total], 0), scales["sum"])
most = of_bytes("QuantizedPooling", total, [0, 2, 2, 2, 2, 0, 0, -1, -1, -1, 0], f.pool(q[total], [2, 2], [2, 2], [0, 0], [4, 4]), scales["sum"])
mean = of_bytes("QuantizedPooling", total, [1, 0, 0, 1, 1, 0, 0, -1, -1, -1, 0], np.trunc(q[total].mean((2, 3), keepdims=True) + 0.0), scales["sum"])
part = of_bytes("QuantizedPooling", total, [1, 3, 3, 2, 2, 1, 1, -1, -1, -1, 0], np.trunc(f.pool(q[total], [3, 3], [2, 2], [1, 1], [5, 4], True)), scales["sum"])
product = weights("QuantizedInnerProduct", mean, scales["sum"], [5, 1, 0, 1], (5, 6), scales["product"], lambda x, w: x.reshape(1, -1) @ np.float64(w).T)
net.layer("Sigmoid", product, results=[f.sigmoid(q[product] * np.float32(scales["product"]))])
case("bytes", net, atol=1e-4)

cases.write()
