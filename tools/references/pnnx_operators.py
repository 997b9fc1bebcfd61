"""PNNX networks with random weights, and what PyTorch's documentation says of their operators, computed in float64.

    python tools/references/pnnx_operators.py

Needs the package `pnnx`, whose converter makes the networks whose names begin with `converted` of ONNX models; what these give is computed by
onnx's reference implementation. Other networks are written here with the arguments that `tools/pnnx/src/pass_level1` and `pass_level2` of
Tencent/ncnn give operators.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import formulas as f
from common import Cases, message
from pnnx_network import Network, converted

cases = Cases("pnnx")
random = np.random.default_rng(31)


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def positive(*shape):
    return random.uniform(0.3, 2, shape).astype(np.float32)


def record(name, param, weights, inputs, outputs, rtol=1e-4, atol=2e-5):
    entry = {"name": name, "kind": "pnnx", "path": name, "model": "model.pnnx.param", "beside": ["model.pnnx.bin"], "data_sets": 1,
             "rtol": rtol, "atol": atol, "nondeterministic": False}
    files = {"model.pnnx.param": param, "model.pnnx.bin": weights}
    for what, values in (("input", inputs), ("output", outputs)):
        for i, value in enumerate(values):
            files[f"test_data_set_0/{what}_{i}.pb"] = message(value).SerializeToString()
    cases.add_files(entry, files)


def case(name, net, wide=True, **tolerance):
    record(name, net.param(), net.bin(wide), net.inputs.values(), net.outputs.values(), **tolerance)


# Convolutions as modules and functions: strides, paddings by number and word, groups, other numbers of axes.
net = Network()
x = floats(2, 4, 9, 8)
a = net.input(x)
for groups, kernel, stride, padding, dilation, biased in (
    (1, (3, 3), (1, 1), (1, 1), (1, 1), True),
    (2, (3, 2), (2, 1), (1, 0), (1, 2), False),
    (4, (3, 3), (2, 2), (0, 0), (1, 1), True),
    (1, (4, 3), (1, 1), "same", (1, 2), True),
    (1, (3, 3), (2, 2), "valid", (1, 1), True),
):
    w, b = floats(8, 4 // groups, *kernel), floats(8) if biased else None
    all = [d * (k - 1) for d, k in zip(dilation, kernel)]
    begins = [n // 2 for n in all] if padding == "same" else [0, 0] if padding == "valid" else list(padding)
    ends = [n - n // 2 for n in all] if padding == "same" else begins
    y = f.conv(x, w, b, list(stride), begins, ends, list(dilation), groups)
    stored = {"weight": w, **({"bias": b} if biased else {})}
    net.function("nn.Conv2d", [a], y, weights=stored, bias=biased, groups=groups, in_channels=4, out_channels=8, kernel_size=kernel, stride=stride,
                 padding=padding, dilation=dilation, padding_mode="zeros")
w = floats(3, 4, 3, 3)
around = [(0, 0), (0, 0), (1, 1), (1, 1)]
for mode, numpy_mode in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
    y = f.conv(np.pad(x, around, mode=numpy_mode), w, None, [1, 1], [0, 0])
    net.function("nn.Conv2d", [a], y, weights={"weight": w}, bias=False, groups=1, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1),
                 dilation=(1, 1), padding_mode=mode)
w, b = floats(4, 3, 3, 3), floats(6)
y = f.deconv(x, w, b, (2, 2), (1, 1), None, (1, 1), 2, (1, 0))
net.function("nn.ConvTranspose2d", [a], y, weights={"weight": w, "bias": b}, bias=True, groups=2, stride=(2, 2), padding=(1, 1),
             output_padding=(1, 0), dilation=(1, 1), kernel_size=(3, 3))
w, b = floats(5, 4, 3, 3), floats(5)
c, d = net.add("pnnx.Attribute", weights={"data": w}), net.add("pnnx.Attribute", weights={"data": b})
net.function("F.conv2d", [a, c, d], f.conv(x, w, b, [1, 1], [1, 1]), ("input", "weight", "bias"), stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1)
z = floats(2, 3, 7)
w = floats(4, 3, 3)
net.function("nn.Conv1d", [net.input(z)], f.conv(z, w, None, [2], [1]), weights={"weight": w}, bias=False, stride=(2,), padding=(1,), dilation=(1,),
             groups=1)
z = floats(1, 2, 4, 5, 3)
w, b = floats(3, 2, 3, 2, 1), floats(3)
net.function("nn.Conv3d", [net.input(z)], f.conv(z, w, b, [1, 2, 1], [1, 0, 0]), weights={"weight": w, "bias": b}, bias=True, stride=(1, 2, 1),
             padding=(1, 0, 0), dilation=(1, 1, 1), groups=1)
case("convolutions", net)
# Archives of before have numbers of 32 bits.
case("convolutions_old", net, wide=False)

# Weights and data in 16 bits.
net = Network()
x, w, b = (floats(*s).astype(np.float16) for s in ((2, 6), (4, 6), (4,)))
net.function("nn.Linear", [net.input(x)], (np.float64(x) @ np.float64(w).T + b).astype(np.float16), weights={"weight": w, "bias": b}, bias=True,
             in_features=6, out_features=4)
case("halves", net, rtol=4e-3, atol=4e-3)

# Pooling. Windows that begin behind the data are left out where sizes are rounded up; those of before count what they reach beyond it.
net = Network()
x = floats(2, 3, 8, 9)
a = net.input(x)


def windows(kernel, stride, padding, ceil, mean=False, counts=True):
    sizes = []
    for n, k, s, p in zip(x.shape[2:], kernel, stride, padding):
        room = n + 2 * p - k
        size = (-(-room // s) if ceil else room // s) + 1
        sizes.append(size - 1 if ceil and (size - 1) * s >= n + p else size)

    def count(starts):
        reach = [min(start + k, n + p) - start for start, k, n, p in zip(starts, kernel, x.shape[2:], padding)]
        return np.prod(reach)

    return f.pool(x, kernel, stride, padding, sizes, mean, count if mean and counts else None)


for kernel, stride, padding, ceil in (((2, 2), (2, 2), (0, 0), False), ((3, 3), (2, 2), (1, 1), False), ((3, 2), (2, 2), (0, 0), True), ((3, 3), (2, 2), (1, 1), True)):
    common = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
    net.function("nn.MaxPool2d", [a], windows(kernel, stride, padding, ceil), dilation=(1, 1), return_indices=False, **common)
    for counts in (True, False):
        net.function("F.avg_pool2d", [a], windows(kernel, stride, padding, ceil, True, counts), count_include_pad=counts, divisor_override=None, **common)
net.function("F.max_pool2d", [a], windows((3, 3), (3, 3), (0, 0), False), kernel_size=(3, 3), stride=None, padding=(0, 0), dilation=(1, 1), ceil_mode=False,
             return_indices=False)
net.function("nn.LPPool2d", [a], np.sqrt(f.pool(x * x, (2, 2), (2, 2), (0, 0), (4, 4), True) * 4),
             kernel_size=(2, 2), stride=(2, 2), norm_type=2, ceil_mode=False)
for mean, word in ((True, "Avg"), (False, "Max")):
    net.function(f"nn.Adaptive{word}Pool2d", [a], f.parts(x, (1, 1), mean), output_size=(1, 1))
    net.function(f"nn.Adaptive{word}Pool2d", [a], f.parts(x, (3, 4), mean), output_size=(3, 4))
    net.function(f"nn.Adaptive{word}Pool2d", [a], f.parts(x, (8, 2), mean), output_size=(0, 2))
case("pools", net)

# Functions of an element.
net = Network()
x = floats(2, 3, 4, 5) * 2
x[np.abs(x) < 0.02] = 0.1
x[np.abs(np.abs(x) - 0.5) < 0.02] = 0.7
a, v = net.input(x), np.float64(x)
sig, soft = f.sigmoid, np.log1p(np.exp(v))
elu = np.where(v > 0, v, np.expm1(v))
slope = positive(3)
for kind, y, params in (
    ("nn.ReLU", np.maximum(v, 0), {}), ("F.relu6", np.clip(v, 0, 6), {}), ("nn.SiLU", v * sig(v), {}), ("F.sigmoid", sig(v), {}),
    ("F.tanh", np.tanh(v), {}), ("nn.GELU", v * 0.5 * (1 + f.erf(v / np.sqrt(2))), {"approximate": "none"}),
    ("F.gelu", 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))), {"approximate": "tanh"}),
    ("nn.ELU", np.where(v > 0, v, 0.7 * np.expm1(v)), {"alpha": 0.7}), ("F.celu", np.where(v > 0, v, 1.5 * np.expm1(v / 1.5)), {"alpha": 1.5}),
    ("nn.SELU", 1.0507009873554805 * np.where(v > 0, v, 1.6732632423543772 * np.expm1(v)), {}), ("nn.Mish", v * np.tanh(soft), {}),
    ("nn.Hardsigmoid", np.clip(v / 6 + 0.5, 0, 1), {}), ("F.hardswish", v * np.clip(v / 6 + 0.5, 0, 1), {}),
    ("nn.Hardtanh", np.clip(v, -0.5, 1.5), {"min_val": -0.5, "max_val": 1.5}), ("F.leaky_relu", np.where(v < 0, 0.2 * v, v), {"negative_slope": 0.2}),
    ("nn.Softplus", np.log1p(np.exp(2 * v)) / 2, {"beta": 2.0, "threshold": 20.0}), ("F.logsigmoid", np.log(sig(v)), {}),
    ("nn.Softsign", v / (1 + np.abs(v)), {}), ("nn.Tanhshrink", v - np.tanh(v), {}), ("F.hardshrink", np.where(np.abs(v) > 0.5, v, 0), {"lambd": 0.5}),
    ("nn.Softshrink", np.sign(v) * np.maximum(np.abs(v) - 0.5, 0), {"lambd": 0.5}), ("F.threshold", np.where(v > 0.1, v, 20), {"threshold": 0.1, "value": 20.0}),
    ("F.rrelu", np.where(v < 0, v * (0.1 + 0.3) / 2, v), {"lower": 0.1, "upper": 0.3}), ("F.dropout", v, {"p": 0.5, "training": False}),
    ("nn.Softmax", f.softmax(v, 1), {"dim": 1}), ("F.log_softmax", np.log(f.softmax(v, -1)), {"dim": -1}), ("nn.Softmin", f.softmax(-v, 2), {"dim": 2}),
    ("torch.clamp", np.clip(v, -1, None), {"min": -1.0, "max": None}), ("torch.abs", np.abs(v), {}), ("torch.floor", np.floor(v), {}),
    ("torch.trunc", np.trunc(v), {}), ("torch.expm1", np.expm1(v), {}), ("torch.square", v * v, {}),
):
    net.function(kind, [a], y, **params)
net.function("nn.PReLU", [a], np.where(v < 0, v * slope.reshape(3, 1, 1), v), weights={"weight": slope}, num_parameters=3)
net.function("nn.PReLU", [a], np.where(v < 0, v * slope[0], v), weights={"weight": slope[:1]}, num_parameters=1)
half = floats(2, 4, 6)
net.function("nn.GLU", [net.input(half)], half[:, :2] * sig(half[:, 2:]), dim=1)
case("functions", net)

# Norms.
net = Network()
x = floats(2, 6, 4, 5)
a, v = net.input(x), np.float64(x)
scale, bias, mean, variance = positive(6), floats(6), floats(6), positive(6)


def column(list):
    return np.float64(list).reshape(6, 1, 1)


def normed(v, axes, eps=1e-5):
    return (v - v.mean(axes, keepdims=True)) / np.sqrt(v.var(axes, keepdims=True) + eps)


batch = (v - column(mean)) / np.sqrt(column(variance) + 1e-3)
stored = {"running_mean": mean, "running_var": variance}
net.function("nn.BatchNorm2d", [a], batch * column(scale) + column(bias), weights={**stored, "weight": scale, "bias": bias}, affine=True, eps=1e-3, num_features=6)
net.function("nn.BatchNorm2d", [a], batch, weights=stored, affine=False, eps=1e-3, num_features=6)
net.function("nn.InstanceNorm2d", [a], normed(v, (2, 3)), affine=False, eps=1e-5, num_features=6, track_running_stats=False)
grouped = normed(v.reshape(2, 3, -1), (2,)).reshape(v.shape)
net.function("nn.GroupNorm", [a], grouped * column(scale) + column(bias), weights={"weight": scale, "bias": bias}, affine=True, eps=1e-5, num_channels=6, num_groups=3)
w, b = positive(4, 5), floats(4, 5)
net.function("nn.LayerNorm", [a], normed(v, (2, 3)) * w + b, weights={"weight": w, "bias": b}, elementwise_affine=True, eps=1e-5, normalized_shape=(4, 5))
net.function("F.layer_norm", [a], normed(v, (3,)), eps=1e-5, normalized_shape=(5,), weight=None, bias=None)
net.function("nn.RMSNorm", [a], v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-6) * w[0], weights={"weight": w[0]}, elementwise_affine=True, eps=1e-6,
             normalized_shape=(5,))
around = np.pad(v * v, [(0, 0), (2, 2), (0, 0), (0, 0)])
squares = sum(around[:, i : i + 6] for i in range(5))
net.function("nn.LocalResponseNorm", [a], v / (1.5 + 0.3 * squares / 5) ** 0.75, size=5, alpha=0.3, beta=0.75, k=1.5)
net.function("F.normalize", [a], v / np.maximum(np.sqrt((v * v).sum(1, keepdims=True)), 1e-12), dim=1, eps=1e-12, p=2.0)
case("norms", net)

# Products.
net = Network()
x, w, b = floats(2, 3, 4), floats(5, 4), floats(5)
a = net.input(x)
net.function("nn.Linear", [a], np.float64(x) @ w.T + b, weights={"weight": w, "bias": b}, bias=True, in_features=4, out_features=5)
net.function("nn.Linear", [a], np.float64(x) @ w.T, weights={"weight": w}, bias=False, in_features=4, out_features=5)
other, c = floats(2, 4, 3), floats(3, 3)
d = net.input(other)
net.function("torch.matmul", [a, d], np.float64(x) @ other, ("input", "other"))
net.function("torch.bmm", [a, d], np.float64(x) @ other, ("input", "mat2"))
net.function("torch.einsum", [a, d], np.einsum("bij,bjk->bki", np.float64(x), other), (), equation="bij,bjk->bki")
e = net.add("pnnx.Attribute", weights={"data": c})
net.function("torch.baddbmm", [e, a, d], 0.5 * c + 2 * (np.float64(x) @ other), ("input", "batch1", "batch2"), alpha=2.0, beta=0.5)
table, rows = floats(7, 3), np.int64([[0, 6, 2], [1, 1, 5]])
g = net.input(rows)
net.function("nn.Embedding", [g], table[rows], weights={"weight": table}, embedding_dim=3, num_embeddings=7, sparse=False)
case("products", net)

# Recurrent modules: PyTorch's gates are i, f, g, o of an LSTM and r, z, n of a GRU.
def steps(kind, x, w, r, b, c, h, reverse):
    """The outputs `[steps, batch, hidden]` of one direction, and the last states."""
    states, out = [np.float64(s) for s in h], np.zeros((*x.shape[:2], r.shape[1]))
    for t in range(x.shape[0])[:: -1 if reverse else 1]:
        own, before = np.float64(x[t]) @ w.T + b, states[0] @ r.T + c
        if kind == "LSTM":
            i, forget, g, o = np.split(own + before, 4, 1)
            states[1] = sig(forget) * states[1] + sig(i) * np.tanh(g)
            states[0] = sig(o) * np.tanh(states[1])
        elif kind == "GRU":
            (r1, z1, n1), (r2, z2, n2) = np.split(own, 3, 1), np.split(before, 3, 1)
            update = sig(z1 + z2)
            states[0] = (1 - update) * np.tanh(n1 + sig(r1 + r2) * n2) + update * states[0]
        else:
            states[0] = np.tanh(own + before)
        out[t] = states[0]
    return out, states


def recurrent(kind, layers, both, batch_first, given):
    net = Network()
    x, hidden, gates = floats(4, 2, 3), 5, {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    directions, count = 1 + both, 2 if kind == "LSTM" else 1
    start = [floats(layers * directions, 2, hidden) if given else np.zeros((layers * directions, 2, hidden), np.float32) for _ in range(count)]
    stored, y, last = {}, np.float64(x), [[] for _ in range(count)]
    for layer in range(layers):
        made = []
        for direction in range(directions):
            end = f"l{layer}" + ("_reverse" if direction else "")
            w, r, b, c = (floats(gates * hidden, n) / 2 for n in (y.shape[2], hidden, 1, 1))
            stored |= {f"weight_ih_{end}": w, f"weight_hh_{end}": r, f"bias_ih_{end}": b[:, 0].copy(), f"bias_hh_{end}": c[:, 0].copy()}
            out, states = steps(kind, y, w, r, b[:, 0], c[:, 0], [s[layer * directions + direction] for s in start], direction == 1)
            made.append(out)
            for all, state in zip(last, states):
                all.append(state)
        y = np.concatenate(made, 2)
    operands = [net.input(x.transpose(1, 0, 2) if batch_first else x)] + ([net.input(s) for s in start] if given else [])
    y = y.transpose(1, 0, 2) if batch_first else y
    net.function(f"nn.{kind}", operands, [y, *(np.stack(s) for s in last)], (), stored, input_size=3, hidden_size=hidden, num_layers=layers, bias=True,
                 batch_first=batch_first, bidirectional=both, **({"proj_size": 0} if kind == "LSTM" else {}))
    case(f"recurrent_{kind.lower()}_{layers}{'_both' if both else ''}{'_batch' if batch_first else ''}", net)


recurrent("LSTM", 1, False, True, False)
recurrent("LSTM", 2, True, False, True)
recurrent("GRU", 1, True, True, True)
recurrent("GRU", 2, False, False, False)
recurrent("RNN", 1, False, False, True)


# Attention.
def attended(q, k, v, scale=None, mask=0.0):
    scores = np.float64(q) @ np.float64(k).swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5) + mask
    return f.softmax(scores, -1) @ np.float64(v)


net = Network()
q, k, v = floats(2, 3, 4, 6), floats(2, 3, 5, 6), floats(2, 3, 5, 7)
a, b, c = net.input(q), net.input(k), net.input(v)
plain = {"dropout_p": 0.0, "is_causal": False, "attn_mask": None}
names = ("query", "key", "value", "attn_mask")
net.function("F.scaled_dot_product_attention", [a, b, c], attended(q, k, v), names, **plain)
net.function("F.scaled_dot_product_attention", [a, b, c], attended(q, k, v, 0.3), names, scale=0.3, **plain)
triangle = np.where(np.tri(4, 5), 0, -np.inf)
net.function("F.scaled_dot_product_attention", [a, b, c], attended(q, k, v, None, triangle), names, dropout_p=0.0, is_causal=True, attn_mask=None)
mask, flags = floats(4, 5), random.uniform(size=(2, 1, 4, 5)) < 0.7
flags[..., 0] = True
net.function("F.scaled_dot_product_attention", [a, b, c, net.input(mask)], attended(q, k, v, None, mask), names, dropout_p=0.0, is_causal=False)
net.function("F.scaled_dot_product_attention", [a, b, c, net.input(flags)], attended(q, k, v, None, np.where(flags, 0, -np.inf)), names, dropout_p=0.0, is_causal=False)
net.function("F.scaled_dot_product_attention", [net.input(q[:, 0]), net.input(k[:, 0]), net.input(v[:, 0])], attended(q[:, 0], k[:, 0], v[:, 0]), names, **plain)
case("attention", net)

for batch_first in (True, False):
    net = Network()
    x, y = floats(2, 4, 6), floats(2, 5, 6)
    w, b, o, d = floats(18, 6) / 2, floats(18), floats(6, 6) / 2, floats(6)
    mask = floats(4, 5)

    def heads(q, k, mask=0.0, w=w, b=b, o=o, d=d):
        parts = [np.float64(s) @ w[6 * i : 6 * i + 6].T + b[6 * i : 6 * i + 6] for i, s in enumerate((q, k, k))]
        parts = [part.reshape(2, -1, 2, 3).swapaxes(1, 2) for part in parts]
        return attended(*parts, mask=mask).swapaxes(1, 2).reshape(2, -1, 6) @ o.T + d

    def turned(value, batch_first=batch_first):
        return value if batch_first else value.swapaxes(0, 1)

    a, c = net.input(turned(x)), net.input(turned(y))
    stored = {"in_proj_weight": w, "in_proj_bias": b, "out_proj.weight": o, "out_proj.bias": d}
    common = {"num_heads": 2, "embed_dim": 6, "kdim": 6, "vdim": 6, "bias": True, "add_bias_kv": False, "add_zero_attn": False, "batch_first": batch_first}
    net.function("nn.MultiheadAttention", [a], turned(heads(x, x)), (), stored, **common)
    net.function("nn.MultiheadAttention", [a, c], turned(heads(x, y)), (), stored, **common)
    e = net.input(mask)
    made = net.add("nn.MultiheadAttention", [a, c, e], 1, {"attn_mask": e}, stored, **common)
    net.result(made, turned(heads(x, y, mask)))
    case(f"multihead{'_batch' if batch_first else ''}", net)

# Shapes and orders.
net = Network()
x = floats(2, 3, 4, 6)
a = net.input(x)
one = floats(2, 1, 6)
o = net.input(one)
for kind, y, params in (
    ("Tensor.reshape", x.reshape(2, 12, 6), {"shape": (2, -1, 6)}), ("Tensor.view", x.reshape(2, 3, 24), {"shape": (0, 0, 24)}),
    ("torch.flatten", x.reshape(2, -1), {"start_dim": 1, "end_dim": -1}), ("torch.flatten", x.reshape(2, 12, 6), {"start_dim": 1, "end_dim": 2}),
    ("torch.unflatten", x.reshape(2, 3, 2, 2, 6), {"dim": 2, "sizes": (2, -1)}), ("Tensor.permute", x.transpose(0, 2, 3, 1), {"dims": (0, 2, 3, -3)}),
    ("torch.transpose", x.swapaxes(1, 3), {"dim0": 1, "dim1": -1}), ("torch.unsqueeze", x[:, :, None], {"dim": 2}),
    ("Tensor.repeat", np.tile(x, (2, 1, 1, 3, 1)), {"sizes": (2, 1, 1, 3, 1)}), ("torch.tile", np.tile(x, (2, 3)), {"dims": (2, 3)}),
    ("torch.repeat_interleave", np.repeat(x, 3, 1), {"repeats": 3, "dim": 1, "output_size": None}), ("torch.roll", np.roll(x, (1, -2), (2, 3)), {"shifts": (1, -2), "dims": (2, 3)}),
    ("torch.flip", x[:, ::-1, :, ::-1], {"dims": (1, 3)}),
):
    net.function(kind, [a], y.copy(), **params)
net.function("torch.squeeze", [o], one[:, 0], dim=1)
net.function("torch.squeeze", [o], one[:, 0], dim=None)
net.function("Tensor.expand", [o], np.broadcast_to(one, (2, 5, 6)).copy(), sizes=(-1, 5, -1))
blocks = floats(1, 8, 2, 3)
g = net.input(blocks)
y = blocks.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6)
net.function("nn.PixelShuffle", [g], y, upscale_factor=2)
net.function("nn.PixelUnshuffle", [net.input(y)], blocks, downscale_factor=2)
net.function("nn.ChannelShuffle", [g], f.shuffled(blocks, 4), groups=4)
case("shapes", net)

# Parts, and tensors of parts.
net = Network()
x, y = floats(2, 5, 6), floats(2, 3, 6)
a, b = net.input(x), net.input(y)
rows = np.int64([2, 0, -1])
i = net.input(rows)
last = 2147483647
net.function("torch.cat", [a, b], np.concatenate([x, y], 1), (), dim=1)
net.function("torch.stack", [a, a], np.stack([x, x], 2), (), dim=-2)
net.function("torch.split", [a], np.split(x, [2, 4], 1), ("tensor",), split_size_or_sections=2, dim=1)
net.function("torch.split", [a], np.split(x, [1, 3], 1), ("tensor",), split_size_or_sections=(1, 2, 2), dim=1)
net.function("torch.chunk", [a], np.split(x, [2, 4], 1), chunks=3, dim=1)
net.function("torch.tensor_split", [a], np.split(x, [1, 4], 1), indices=(1, 4), dim=1)
net.function("torch.tensor_split", [a], np.array_split(x, 2, 1), sections=2, dim=1)
net.function("torch.unbind", [b], [y[:, n] for n in range(3)], dim=1)
net.function("Tensor.slice", [a], x[:, 1::2], dim=1, start=1, end=last, step=2)
net.function("Tensor.slice", [a], x[1, 1:-1, 4].copy(), dims=(0, 1, 2), starts=(0, 1, 0), ends=(last, -1, last), steps=(1, 1, 1), selects=(1, last, 4))
net.function("Tensor.select", [a], x[:, -2], dim=1, index=-2)
net.function("torch.narrow", [a], x[:, 1:4], dim=1, start=1, length=3)
net.function("torch.index_select", [a, i], x[:, rows], ("input", "index"), dim=1)
net.function("Tensor.index", [a], x[:, [3, 1]], expr="[None,[3,1]]")
net.function("Tensor.index", [a, net.add("pnnx.Expression", [i], expr="[None,@0]")], x[:, rows], ("input",))
net.function("Tensor.index", [a, net.add("pnnx.Expression", [net.input(np.int64([0, 1, 1])), i], expr="[@0,@1]")], x[[0, 1, 1], rows], ("input",))
places = random.integers(0, 5, (2, 2, 6))
net.function("torch.gather", [a, net.input(places)], np.take_along_axis(x, places, 1), ("input", "index"), dim=1)
flags = random.uniform(size=(2, 5, 6)) < 0.5
m = net.input(flags)
net.function("Tensor.masked_fill", [a, m], np.where(flags, -2, x), ("input", "mask"), value=-2.0)
net.function("torch.where", [m, a, net.add("pnnx.Expression", [a], expr="neg(@0)")], np.where(flags, x, -x), ("condition", "input", "other"))
for kind, mode, pads, params in (
    ("F.pad", "constant", (1, 2), {"pad": (1, 2), "mode": "constant", "value": 3.0}), ("F.pad", "reflect", (2, 1), {"pad": (2, 1), "mode": "reflect"}),
    ("nn.ReplicationPad1d", "edge", (1, 1), {"padding": 1}), ("F.pad", "wrap", (1, 0), {"pad": (1, 0), "mode": "circular"}),
):
    more = {"constant_values": 3} if mode == "constant" else {}
    net.function(kind, [a], np.pad(x, [(0, 0), (0, 0), pads], mode, **more), **params)
case("parts", net)

# Reductions.
net = Network()
x = floats(2, 5, 6)
a, v = net.input(x), np.float64(x)
for kind, y, params in (
    ("torch.sum", v.sum((1, 2)), {"dim": (1, 2), "keepdim": False}), ("torch.mean", v.mean(1, keepdims=True), {"dim": (1,), "keepdim": True, "dtype": None}),
    ("torch.mean", v.mean(), {"dtype": None}), ("torch.amax", v.max(-1), {"dim": (-1,), "keepdim": False}), ("torch.prod", v.prod(1), {"dim": 1, "keepdim": False}),
    ("torch.logsumexp", np.log(np.exp(v).sum(1)), {"dim": (1,), "keepdim": False}), ("torch.norm", np.sqrt((v * v).sum(1)), {"dim": (1,), "p": 2, "keepdim": False}),
    ("torch.norm", np.sqrt((v * v).sum((1, 2))), {"dim": (1, 2), "p": "fro", "keepdim": False}), ("torch.var", v.var(1, ddof=1), {"dim": (1,), "unbiased": True, "keepdim": False}),
    ("torch.std", v.std(2, keepdims=True), {"dim": (2,), "unbiased": False, "keepdim": True}), ("torch.argmax", v.argmax(1), {"dim": 1, "keepdim": False}),
    ("torch.argmin", np.int64(v.argmin()), {"dim": None, "keepdim": False}), ("torch.cumsum", v.cumsum(1), {"dim": 1, "dtype": None}),
    ("torch.max", v.max(), {}), ("torch.max", [x.max(1), x.argmax(1)], {"dim": 1, "keepdim": False}), ("torch.min", v.min(2, keepdims=True), {"dim": 2, "keepdim": True}),
    ("torch.topk", [np.sort(x, 2)[:, :, :-4:-1].copy(), np.argsort(x, 2)[:, :, :-4:-1].copy()], {"k": 3, "dim": -1, "largest": True, "sorted": True}),
):
    net.function(kind, [a], y, **params)
n = net.input(random.integers(-9, 9, (3, 4)).astype(np.int32))
net.function("torch.sum", [n], net.inputs["in1"].sum(1, dtype=np.int64), dim=(1,), keepdim=False)
case("reductions", net)

# Sampling.
net = Network()
x = floats(1, 2, 4, 5)
a = net.input(x)


def exact(to, start):
    matrix = np.zeros((to, start))
    for i in range(to):
        matrix[i, int(np.floor((i + 0.5) * start / to))] = 1
    return matrix


for kind, weights, (height, width), params in (
    ("F.interpolate", f.nearest, (8, 10), {"mode": "nearest", "scale_factor": (2.0, 2.0), "recompute_scale_factor": False}),
    ("nn.Upsample", exact, (6, 7), {"mode": "nearest-exact", "size": (6, 7)}),
    ("F.interpolate", f.linear(False), (7, 9), {"mode": "bilinear", "size": (7, 9), "align_corners": False}),
    ("nn.Upsample", f.linear(True), (8, 15), {"mode": "bilinear", "scale_factor": (2.0, 3.0), "align_corners": True}),
    ("F.interpolate", f.cubic, (6, 8), {"mode": "bicubic", "size": (6, 8), "align_corners": False}),
    ("nn.UpsamplingBilinear2d", f.linear(True), (8, 10), {"scale_factor": (2.0, 2.0)}), ("nn.UpsamplingNearest2d", f.nearest, (6, 10), {"size": (6, 10)}),
    ("F.interpolate", f.linear(False), (6, 7), {"mode": "bilinear", "scale_factor": (1.5, 1.5), "align_corners": False, "recompute_scale_factor": True}),
):
    net.function(kind, [a], f.sampled(x, height, width, weights), **params)
net.function("F.interpolate", [a], f.parts(x, (2, 3), True), mode="area", size=(2, 3))
columns = np.stack([np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])[:, :, i : i + 5 : 2, j : j + 6 : 2].reshape(1, 2, -1) for i in range(2) for j in range(2)], 2)
net.function("F.unfold", [a], columns.reshape(1, 8, -1), kernel_size=(2, 2), padding=(1, 1), stride=(2, 2), dilation=(1, 1))
tiles = floats(1, 8, 4)
y = tiles.reshape(1, 2, 2, 2, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 4)
net.function("nn.Fold", [net.input(tiles)], y, output_size=(4, 4), kernel_size=(2, 2), padding=(0, 0), stride=(2, 2), dilation=(1, 1))
case("sampling", net)

# Expressions: element types become common, sizes are numbers.
net = Network()
x, n = floats(2, 3, 4), random.integers(-9, 9, (2, 3, 4))
n[n == 0] = 5
a, b = net.input(x), net.input(n)
v, third = np.float64(x), np.float64(n)
for inputs, expr, y in (
    ([a], "add(mul(@0,2),1.500000e+00)", v * 2 + 1.5), ([a, b], "mul(@0,@1)", v * n), ([b], "div(@0,2)", third / 2), ([b], "floor_divide(@0,4)", n // 4),
    ([b], "remainder(@0,-4)", n % -4), ([b], "mul(@0,3)", n * 3), ([b], "add(@0,5.000000e-01)", third + 0.5), ([a], "sqrt(square(@0))", np.abs(v)),
    ([a], "pow(abs(@0),5.000000e-01)", np.sqrt(np.abs(v))), ([a], "maximum(@0,neg(@0))", np.abs(v)), ([a], "rsqrt(add(square(@0),1))", 1 / np.sqrt(v * v + 1)),
    ([a], "mul(@0,size(@0,2))", v * 4), ([b], "and(@0,3)", n & 3), ([b], "rshift(@0,1)", n >> 1), ([a], "remainder(@0,1)", v % 1), ([a], "log1p(abs(@0))", np.log1p(np.abs(v))),
):
    net.function("pnnx.Expression", inputs, y, (), expr=expr)
size = net.add("Tensor.size", [a], named={"input": a}, dim=1)
shape = net.add("pnnx.Expression", [a, size], expr="[size(@0,0),-1,int(floor_divide(@1,3))]")
net.function("Tensor.reshape", [a, shape], x.reshape(2, 12, 1), ("input", "shape"))
net.function("torch.eq", [b, b], n == n, ("input", "other"))
net.function("torch.gt", [a], x > 0.5, other=0.5)
net.function("torch.logical_and", [b, net.add("torch.lt", [a], named={"input": a}, other=0)], (n != 0) & (x < 0), ("input", "other"))
net.function("Tensor.to", [a], np.trunc(x).astype(np.int64), dtype="torch.long", copy=False)
net.function("torch.arange", [], np.arange(1, 9, 2), (), start=1, end=9, step=2, dtype=None)
net.function("torch.zeros_like", [a], np.zeros_like(x), dtype=None)
net.function("torch.full", [], np.full((2, 3), 7, np.float32), (), size=(2, 3), fill_value=7.0, dtype="torch.float")
net.function("torch.tril", [net.input(x[0])], np.tril(x[0], 1), diagonal=1)
case("expressions", net)

# Sizes of the batch that the file leaves open.
net = Network()
x, w = floats(3, 4, 5), floats(2, 20)
a = net.input(x, opened=(0,))
b = net.add("pnnx.Expression", [a], expr="[size(@0,0),20]")
c = net.add("Tensor.reshape", [a, b], named={"input": a, "shape": b})
net.function("nn.Linear", [c], np.float64(x.reshape(3, 20)) @ w.T, weights={"weight": w}, bias=False, in_features=20, out_features=2)
net.function("torch.flatten", [a], x.reshape(3, 20), start_dim=1, end_dim=2)
net.function("torch.flatten", [a], x.reshape(12, 5), start_dim=0, end_dim=1)
case("open", net)


# What pnnx's converter writes.
def convert(name, nodes, inputs, outputs, constants):
    ports = [helper.make_tensor_value_info(key, TensorProto.FLOAT, value.shape) for key, value in inputs.items()]
    graph = helper.make_graph(nodes, "g", ports, [helper.make_tensor_value_info(key, TensorProto.FLOAT, shape) for key, shape in outputs.items()],
                              [numpy_helper.from_array(value, key) for key, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    record(name, *converted(model), inputs.values(), ReferenceEvaluator(model).run(None, inputs))


node = helper.make_node
x = floats(1, 3, 12, 12)
constants = {"w1": floats(8, 3, 3, 3) / 3, "b1": floats(8), "w2": floats(8, 1, 3, 3), "b2": floats(8), "w3": floats(6, 8, 1, 1), "b3": floats(6), "w4": floats(5, 54), "b4": floats(5),
             "half": np.float32([1, 1, 0.5, 0.5]), "shape": np.int64([1, 54])}
convert("converted_picture", [
    node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["b"]), node("Conv", ["b", "w2", "b2"], ["c"], pads=[1, 1, 1, 1], group=8),
    node("Sigmoid", ["c"], ["s"]), node("Mul", ["c", "s"], ["d"]), node("Add", ["d", "b"], ["e"]), node("MaxPool", ["e"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
    node("Conv", ["m", "w3", "b3"], ["n"]), node("GlobalAveragePool", ["n"], ["p"]), node("Mul", ["n", "p"], ["q"]),
    node("AveragePool", ["q"], ["r"], kernel_shape=[2, 2], strides=[2, 2]), node("Reshape", ["r", "shape"], ["t"]), node("Gemm", ["t", "w4", "b4"], ["u"], transB=1),
    node("Softmax", ["u"], ["y"], axis=1),
], {"x": x}, {"y": [1, 5]}, constants)
x = floats(1, 4, 8)
constants = {f"w{i}": floats(8, 8) / 2 for i in range(4)} | {f"b{i}": floats(8) for i in range(4)} | {
    "split": np.int64([1, 4, 2, 4]), "whole": np.int64([1, 4, 8]), "scale": np.float32(0.5), "g": positive(8), "h": floats(8), "w5": floats(8, 16) / 2, "w6": floats(16, 8) / 2,
}
nodes = []
for i, (name, perm) in enumerate((("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))):
    nodes += [node("MatMul", ["x", f"w{i}"], [f"{name}0"]), node("Add", [f"{name}0", f"b{i}"], [f"{name}1"]), node("Reshape", [f"{name}1", "split"], [f"{name}2"]),
              node("Transpose", [f"{name}2"], [name], perm=perm)]
nodes += [
    node("MatMul", ["q", "k"], ["s0"]), node("Mul", ["s0", "scale"], ["s1"]), node("Softmax", ["s1"], ["s"], axis=-1), node("MatMul", ["s", "v"], ["o0"]),
    node("Transpose", ["o0"], ["o1"], perm=[0, 2, 1, 3]), node("Reshape", ["o1", "whole"], ["o2"]), node("MatMul", ["o2", "w3"], ["o3"]), node("Add", ["o3", "b3"], ["o4"]),
    node("Add", ["o4", "x"], ["o5"]), node("LayerNormalization", ["o5", "g", "h"], ["n"], axis=-1, epsilon=1e-5), node("MatMul", ["n", "w5"], ["f0"]),
    node("Relu", ["f0"], ["f1"]), node("MatMul", ["f1", "w6"], ["f2"]), node("Add", ["f2", "n"], ["y"]),
]
convert("converted_transformer", nodes, {"x": x}, {"y": [1, 4, 8]}, constants)

cases.write()
