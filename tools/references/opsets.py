"""Small models of older operator sets, at the versions where an operator's meaning, or the form that
its nodes must have, changed.

    python tools/references/opsets.py

Needs numpy, ml_dtypes and onnx. What a model gives is said by the authorities that there are for it, which
must agree: onnx's version converter to the newest operator set with its reference implementation,
the reference implementation of the old version itself, and, where neither knows the old form, the
formula of the operator's documentation in numpy.
"""

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from opset_case import case, cases, floats, ints, random

# Operator set 1 to 6: broadcasting along an axis, then as in numpy from 7 on.
PAIRS = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide,
    "Pow": lambda a, b: np.power(np.abs(a), b),
}
for op, f in PAIRS.items():
    x, y = (np.abs(floats(2, 3, 4)) if op == "Pow" else floats(2, 3, 4)), floats(3) + 3
    for version in (1, 6):
        case(op, version, x, y, broadcast=1, axis=1, formula=lambda a, b, f=f: f(a, b[:, None]))
    case(op, 7, x, floats(3, 1) + 3, formula=f)
for op, f in {"Equal": np.equal, "Less": np.less, "Greater": np.greater}.items():
    kind = np.int32 if op == "Equal" else np.float32
    x, y = (random.integers(0, 3, s).astype(kind) for s in ((2, 3, 4), (3,)))
    case(op, 1, x, y, broadcast=1, axis=1, formula=lambda a, b, f=f: f(a, b[:, None]))
    case(op, 7, x, y[:, None].copy(), formula=f)
    if op != "Equal":
        case(op, 9, x.astype(np.int64), y[:, None].astype(np.int64), formula=f)
for op, f in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
    x, y = random.random((2, 3, 4)) < 0.5, random.random(3) < 0.5
    case(op, 1, x, y, broadcast=1, axis=1, formula=lambda a, b, f=f: f(a, b[:, None]))
    case(op, 7, x, y[:, None].copy(), formula=f)
slopes = lambda x, s: np.where(x < 0, x * s[:, None], x)
case("PRelu", 6, floats(2, 3, 4), floats(3), formula=slopes)
case("PRelu", 7, floats(2, 3, 4), floats(3, 1), formula=lambda x, s: np.where(x < 0, x * s, x))
case("Gemm", 6, floats(2, 3), floats(3, 4), floats(4), broadcast=1, alpha=0.5)
case("Gemm", 7, floats(2, 3), floats(3, 4), floats(2, 1), beta=2.0)
case("Gemm", 11, floats(2, 3), floats(3, 4), alpha=0.5, formula=lambda a, b: np.float32(0.5) * (a @ b))

# Attributes that became inputs.
case("Reshape", 1, floats(2, 3, 4), shape=[4, -1], formula=lambda x: x.reshape(4, -1))
case("Reshape", 5, floats(2, 3, 4), ints(0, -1), formula=lambda x, s: x.reshape(2, 12))
case("Reshape", 14, floats(0, 3), ints(3, 0), allowzero=1, formula=lambda x, s: x.reshape(3, 0))
case("Slice", 1, floats(5, 6), starts=[1, -4], ends=[3, 100], axes=[0, 1])
case("Slice", 1, floats(5, 6), starts=[1, -4], ends=[3, 100], name="all_axes")
case("Slice", 10, floats(5, 6), ints(1, -1), ints(4, -100), ints(0, 1), ints(2, -2))
case("Pad", 1, floats(2, 3), paddings=[0, 1, 2, 0], value=1.5,
     formula=lambda x: np.pad(x, [(0, 2), (1, 0)], constant_values=1.5))
case("Pad", 2, floats(2, 3), pads=[0, 1, 2, 0], value=1.5)
case("Pad", 2, floats(3, 4), pads=[1, 1, 1, 2], mode="reflect", name="reflect")
case("Pad", 11, floats(3, 4), ints(1, 0, 0, 2), np.float32(2.5), mode="constant")
case("Pad", 18, floats(3, 4), ints(1, 2), None, ints(-1), mode="edge",
     formula=lambda x, p, v, a: np.pad(x, [(0, 0), (1, 2)], mode="edge"))
case("Clip", 1, floats(7), min=-0.5, max=0.25, formula=lambda x: np.clip(x, -0.5, 0.25))
case("Clip", 6, floats(7), min=-0.5)
case("Clip", 11, floats(7), None, np.float32(0.25))
for op in ("Squeeze", "Unsqueeze"):
    x = floats(1, 3, 1, 2) if op == "Squeeze" else floats(3, 2)
    case(op, 1, x, axes=[0, 2])
    case(op, 11, x, axes=[0, -2])
    case(op, 13, x, ints(0, -2))
case("Squeeze", 1, floats(1, 3, 1), name="all", formula=np.squeeze)
for since, ops in ((13, ["ReduceSum"]), (18, ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"])):
    for op in ops:
        op = op if op.startswith("Reduce") else f"Reduce{op}"
        x = np.abs(floats(2, 3, 4)) + np.float32(0.5)
        case(op, 1, x, axes=[0, 2], keepdims=0)
        case(op, 11, x, axes=[-2])
        case(op, since, x, ints(-1, 0), keepdims=0)
        case(op, since, x, keepdims=0, name="all")
case("Split", 2, floats(7, 2), outputs=2, split=[3, 4])
case("Split", 2, floats(2, 6), outputs=3, axis=1, name="equal")
case("Split", 11, floats(2, 7), outputs=2, axis=-1, split=[2, 5])
case("Split", 13, floats(7, 2), ints(3, 4), outputs=2)
case("Split", 18, floats(7, 2), outputs=3, num_outputs=3,
     formula=lambda x: (x[:3], x[3:6], x[6:]))
case("TopK", 1, floats(3, 5), outputs=2, k=2)
case("TopK", 10, floats(3, 5), ints(2), outputs=2, axis=0)
case("TopK", 11, floats(3, 5), ints(2), outputs=2, largest=0)
case("Tile", 1, floats(2, 3), np.float32(3), np.float32(1), constants=(1, 2),
     formula=lambda x, t, a: np.tile(x, (1, 3)))
case("Tile", 6, floats(2, 3), ints(2, 1), formula=lambda x, r: np.tile(x, (2, 1)))
case("Concat", 1, floats(2, 3), floats(2, 1), formula=lambda a, b: np.concatenate([a, b], 1))
case("Concat", 4, floats(2, 3), floats(1, 3), axis=0, formula=lambda a, b: np.concatenate([a, b], 0))
case("Concat", 11, floats(2, 3), floats(2, 1), axis=-1, formula=lambda a, b: np.concatenate([a, b], 1))
case("Cast", 1, floats(4) * 3, to="INT32", formula=lambda x: x.astype(np.int32))
case("Cast", 6, floats(4) * 3, to=TensorProto.INT64, formula=lambda x: x.astype(np.int64))
case("Cast", 9, np.array(["1.5", "-2", "NaN"], object), to=TensorProto.FLOAT,
     formula=lambda x: np.array([1.5, -2, np.nan], np.float32), trust=False)
case("Dropout", 1, floats(2, 3), is_test=1, ratio=0.3, formula=lambda x: x)
case("Dropout", 6, floats(2, 3), is_test=1, formula=lambda x: x)
case("Dropout", 7, floats(2, 3), ratio=0.3, formula=lambda x: x)
case("Dropout", 12, floats(2, 3), np.float32(0.3), formula=lambda x, r: x)


# Softmax and its like take everything from the axis on as one before 13.
def of_rows(f, axis):
    def run(x):
        rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
        return f(rows).reshape(x.shape)
    return run


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def hardmax(x, axis=-1):
    return (np.arange(x.shape[axis]) == x.argmax(axis)[..., None]).astype(x.dtype)


for op, f in {"Softmax": softmax, "LogSoftmax": lambda x: np.log(softmax(x)), "Hardmax": hardmax}.items():
    x = floats(2, 3, 4)
    case(op, 1, x, formula=of_rows(f, 1), trust=op != "Hardmax")
    case(op, 11, x, axis=-2, formula=of_rows(f, 1), trust=op != "Hardmax")
    case(op, 11, x, axis=2, formula=of_rows(f, 2), trust=op != "Hardmax", name="last")
    case(op, 13, x, formula=f)

# Normalisations.
def normalised(x, scale, bias, mean, var, epsilon=1e-5):
    s = [v[:, None, None] if v.ndim == 1 else v for v in (scale, bias, mean, var)]
    return ((x - s[2]) / np.sqrt(s[3] + np.float32(epsilon)) * s[0] + s[1]).astype(x.dtype)


def statistics(*shape):
    return floats(*shape), floats(*shape), floats(*shape), np.abs(floats(*shape)) + np.float32(0.1)


for version in (1, 6):
    extra = {"consumed_inputs": [0, 0, 0, 1, 1]} if version < 6 else {}
    case("BatchNormalization", version, floats(2, 3, 4, 5), *statistics(3), is_test=1, formula=normalised,
         trust=False, **extra)
case("BatchNormalization", 7, floats(2, 3, 4, 5), *statistics(3), formula=normalised)
case("BatchNormalization", 7, floats(2, 3, 4, 5), *statistics(3, 4, 5), spatial=0, formula=normalised,
     trust=False, name="per_element")
case("BatchNormalization", 9, floats(2, 3, 4, 5), *statistics(3), epsilon=0.01,
     formula=lambda *a: normalised(*a, epsilon=0.01))


def trained(x, scale, bias, mean, var, momentum=0.9):
    batch = x.mean((0, 2, 3)), x.var((0, 2, 3))
    running = [old * np.float32(momentum) + new * np.float32(1 - momentum) for old, new in zip((mean, var), batch)]
    return normalised(x, scale, bias, *batch), *running


case("BatchNormalization", 14, floats(2, 3, 4, 5), *statistics(3), outputs=3, training_mode=1, formula=trained)
case("BatchNormalization", 15, floats(2, 3, 4, 5), *statistics(3), formula=normalised)


def grouped(per_channel):
    def run(x, scale, bias):
        groups = x.reshape(2, 2, -1)
        y = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + np.float32(1e-5))
        y = y.reshape(x.shape)
        wide = (lambda v: v) if per_channel else (lambda v: v.repeat(x.shape[1] // 2))
        return (y * wide(scale)[:, None] + wide(bias)[:, None]).astype(np.float32)
    return run


case("GroupNormalization", 18, floats(2, 4, 3), floats(2), floats(2), num_groups=2, formula=grouped(False))
case("GroupNormalization", 21, floats(2, 4, 3), floats(4), floats(4), num_groups=2, formula=grouped(True))

# Sampling.
def nearest(x, *_):
    return x.repeat(2, 2).repeat(3, 3)


def linear(x, scales):
    """Cells begin where those of the input do; the converter forgets that of Resize 10."""
    for axis, scale in enumerate(scales):
        n = x.shape[axis]
        at = np.minimum(np.arange(int(n * scale), dtype=np.float32) / scale, n - 1)
        low = np.floor(at).astype(int)
        part = (at - low).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
        x = x.take(low, axis) * (1 - part) + x.take(np.minimum(low + 1, n - 1), axis) * part
    return x.astype(np.float32)


x = floats(1, 2, 2, 3)
case("Upsample", 1, x, height_scale=2.0, width_scale=3.0, mode="nearest", formula=nearest, trust=False)
case("Upsample", 7, x, scales=[1.0, 1.0, 2.0, 3.0], mode="nearest", formula=nearest)
scales = np.array([1, 1, 2, 3], np.float32)
case("Upsample", 9, x, scales, mode="nearest", constants=(1,), formula=nearest)
case("Upsample", 9, x, scales, mode="linear", constants=(1,), name="linear", formula=linear, trust=False)
case("Resize", 10, x, scales, mode="nearest", formula=nearest)
case("Resize", 10, floats(1, 1, 4, 6), np.array([1, 1, 0.5, 0.5], np.float32), mode="nearest", name="smaller",
     formula=lambda x, s: x[:, :, ::2, ::2])
case("Resize", 10, x, scales, mode="linear", name="linear", formula=linear, trust=False)
case("Resize", 11, x, np.zeros(0, np.float32), scales, mode="linear")
case("Resize", 11, x, np.zeros(0, np.float32), np.zeros(0, np.float32), ints(1, 2, 3, 7), mode="cubic", name="sizes")
case("Resize", 13, x, None, None, ints(1, 2, 5, 4), mode="linear", coordinate_transformation_mode="align_corners")
case("Resize", 18, x, None, None, ints(5, 4), mode="linear", axes=[2, 3])
grid = (floats(1, 3, 2, 2) * np.float32(0.4)).clip(-0.9, 0.9)
for version, names in ((16, ("bilinear", "bicubic", "nearest")), (20, ("linear", "cubic", "nearest"))):
    for mode in names:
        case("GridSample", version, floats(1, 2, 4, 5), grid, mode=mode, name=mode)


def region_mean(offset):
    """Of one region, bilinear, one sample in each cell."""
    def run(x, rois, batch):
        (x0, y0, x1, y1), image = rois[0] - np.float32(offset), x[batch[0]]
        out = np.zeros((1, x.shape[1], 2, 2), np.float32)
        for i in range(2):
            for j in range(2):
                py, px = y0 + (y1 - y0) * (i + 0.5) / 2, x0 + (x1 - x0) * (j + 0.5) / 2
                y, x_ = int(py), int(px)
                dy, dx = py - y, px - x_
                out[0, :, i, j] = (image[:, y, x_] * (1 - dy) * (1 - dx) + image[:, y, x_ + 1] * (1 - dy) * dx
                                   + image[:, y + 1, x_] * dy * (1 - dx) + image[:, y + 1, x_ + 1] * dy * dx)
        return out
    return run


x, rois = floats(1, 2, 8, 8), np.array([[1.2, 1.6, 5.4, 6.2]], np.float32)
region = dict(output_height=2, output_width=2, sampling_ratio=1)
case("RoiAlign", 10, x, rois, ints(0), formula=region_mean(0), trust=False, **region)
case("RoiAlign", 16, x, rois, ints(0), formula=region_mean(0.5), trust=False, **region)

# Windows.
x = floats(1, 2, 6, 6)
case("AveragePool", 1, x, kernel_shape=[2, 2], strides=[2, 2], formula=lambda x: x.reshape(1, 2, 3, 2, 3, 2).mean((3, 5)))
case("AveragePool", 7, x, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
case("AveragePool", 10, x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
case("AveragePool", 19, x, kernel_shape=[2, 2], dilations=[2, 2])
case("MaxPool", 1, x, kernel_shape=[2, 2], strides=[2, 2], formula=lambda x: x.reshape(1, 2, 3, 2, 3, 2).max((3, 5)))
case("MaxPool", 8, x, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
case("MaxPool", 10, x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, dilations=[1, 1])
case("LpPool", 1, np.abs(x), kernel_shape=[2, 2], strides=[2, 2], p=3.0, trust=False,
     formula=lambda x: ((x ** 3).reshape(1, 2, 3, 2, 3, 2).sum((3, 5)) ** np.float32(1 / 3)).astype(np.float32))
case("LpPool", 2, x, kernel_shape=[2, 2], strides=[2, 2], p=1)
case("GlobalLpPool", 1, x, p=2.0, trust=False, formula=lambda x: np.sqrt((x ** 2).sum((2, 3), keepdims=True)))
case("GlobalLpPool", 2, x, p=1, formula=lambda x: np.abs(x).sum((2, 3), keepdims=True))

# Others.
signal = floats(1, 6, 3, 1)


def spectrum(axis):
    def run(x, *_):
        y = np.fft.fft(x[..., 0].astype(np.float64), axis=axis)
        return np.stack([y.real, y.imag], -1).astype(np.float32)
    return run


case("DFT", 17, signal, axis=2, formula=spectrum(2))
case("DFT", 17, signal, formula=spectrum(1), name="default")
case("DFT", 20, signal, None, np.int64(1), formula=lambda x, n, a: spectrum(1)(x))
case("DFT", 20, signal, formula=spectrum(2), name="default")
case("ArgMax", 1, floats(3, 4), axis=0, keepdims=0)
case("ArgMax", 11, floats(3, 4), axis=-1)
case("ArgMax", 12, ints(1, 3, 3, 0, dtype=np.int32), axis=0, select_last_index=1,
     formula=lambda x: np.array([2]))
case("ArgMin", 1, floats(3, 4), axis=0, keepdims=0)
case("ArgMin", 12, ints(1, 0, 3, 0, dtype=np.int32), axis=0, select_last_index=1,
     formula=lambda x: np.array([3]))
for version in (9, 11):
    case("Scatter", version, floats(3, 4), ints(1, 0, 2, 0).reshape(1, 4), floats(1, 4), axis=0,
         formula=lambda x, i, u: np.array([[u[0, c] if i[0, c] == r else x[r, c] for c in range(4)] for r in range(3)]))
adding = lambda x, i, u: x + np.bincount(i, u, minlength=4).astype(np.float32)
case("ScatterElements", 16, floats(4), ints(1, 1, 2), floats(3), reduction="add", formula=adding)
case("ScatterElements", 18, floats(4), ints(1, 1, 2), floats(3), reduction="max",
     formula=lambda x, i, u: np.array([x[0], max(x[1], u[0], u[1]), max(x[2], u[2]), x[3]]))
case("ScatterND", 11, floats(4), ints(2, 0).reshape(2, 1), floats(2),
     formula=lambda x, i, u: np.array([u[1], x[1], u[0], x[3]]))
case("ScatterND", 16, floats(4), ints(1, 1, 2).reshape(3, 1), floats(3), reduction="add",
     formula=lambda x, i, u: adding(x, i[:, 0], u))
case("GatherND", 11, floats(2, 3), ints(1, 0).reshape(1, 2), formula=lambda x, i: x[1:, 0])
case("GatherND", 12, floats(2, 3), ints(2, 0).reshape(2, 1), batch_dims=1, formula=lambda x, i: x[[0, 1], [2, 0]])
case("Shape", 1, floats(2, 3, 4), formula=lambda x: ints(2, 3, 4))
case("Shape", 15, floats(2, 3, 4), start=-2, formula=lambda x: ints(3, 4))
case("Mod", 10, ints(-7, 7, -7), ints(3, -3, -3), formula=np.mod)
case("Mod", 28, floats(5) * 9, np.float32([2, -2, 3, -3, 1]), formula=np.mod, trust=False)
for version in (1, 6):
    f = lambda x, a, g: (g * np.where(x > 0, x, a * (np.exp(x) - 1))).astype(np.float32)
    a, g = (1.6732, 1.0507) if version == 1 else (1.67326319217681884765625, 1.05070102214813232421875)
    case("Selu", version, floats(5) * 3, formula=lambda x, f=f, a=a, g=g: f(x, a, g), trust=False)
case("DepthToSpace", 1, floats(1, 8, 2, 3), blocksize=2, name="plain")
case("DepthToSpace", 11, floats(1, 8, 2, 3), blocksize=2, mode="CRD")
case("IsInf", 10, np.float32([np.inf, 1, -np.inf]), detect_negative=0, formula=lambda x: np.array([True, False, False]))
case("QuantizeLinear", 10, floats(2, 3), np.float32(0.05), np.uint8(100))
case("QuantizeLinear", 13, floats(2, 3), np.float32([0.05, 0.02, 0.1]), np.int8([1, 2, 3]), axis=1)
case("QuantizeLinear", 21, floats(2, 4), np.float32([[0.05, 0.02], [0.1, 0.03]]), np.int8([[1, 2], [3, 4]]),
     axis=1, block_size=2)
case("DequantizeLinear", 10, np.uint8([1, 2, 200]), np.float32(0.5), np.uint8(100))
case("DequantizeLinear", 13, np.int8([[1, 2], [3, -4]]), np.float32([0.5, 2]), np.int8([1, 0]), axis=0)
case("Sum", 1, floats(3), floats(3), formula=np.add)
case("Sum", 8, floats(2, 3), floats(3), formula=np.add)
case("Mean", 8, floats(2, 3), floats(3), formula=lambda a, b: (a + b) / 2)
case("Max", 6, floats(3), floats(3), formula=np.maximum)
case("Max", 8, floats(2, 3), floats(2, 1), formula=np.maximum)
case("Min", 12, ints(1, 5), ints(3, 2), formula=np.minimum)
case("OneHot", 9, ints(0, 2), np.float32(3), floats(2), formula=lambda i, d, v: np.where(np.eye(3)[i] > 0, v[1], v[0]))
case("OneHot", 11, ints(0, -1), np.int64(3), floats(2), formula=lambda i, d, v: np.where(np.eye(3)[i] > 0, v[1], v[0]))
case("ConstantOfShape", 9, ints(2, 3), value=numpy_helper.from_array(ints(7)), formula=lambda s: np.full((2, 3), 7))
case("Range", 11, np.float32(1), np.float32(3), np.float32(0.5), formula=lambda a, b, d: np.arange(a, b, d, np.float32))
case("Gather", 1, floats(3, 2), ints(2, 0), formula=lambda x, i: x[i])
case("Gather", 11, floats(3, 2), ints(-1), axis=-1, formula=lambda x, i: x[:, [-1]])
case("Flatten", 1, floats(2, 3, 4), axis=2, formula=lambda x: x.reshape(6, 4))
case("Flatten", 11, floats(2, 3, 4), axis=-1, formula=lambda x: x.reshape(6, 4))
case("Compress", 9, floats(3, 2), np.array([False, True, True]), axis=0, formula=lambda x, c: x[1:])
case("Compress", 11, floats(3, 2), np.array([False, True]), axis=-1, formula=lambda x, c: x[:, 1:])
case("MeanVarianceNormalization", 9, floats(2, 3, 4, 4), trust=False,
     formula=lambda x: ((x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1e-9)).astype(np.float32))


# Scan of operator set 8 has a batch in front of everything.
def scan(version, x, start, lengths=None, **attributes):
    value = lambda n, s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    body = helper.make_graph(
        [helper.make_node("Add", ["sum", "next"], ["total"]), helper.make_node("Identity", ["total"], ["out"])],
        "body", [value("sum", [2]), value("next", [2])], [value("total", [2]), value("out", [2])],
    )
    inputs = [lengths, start, x] if version < 9 else [start, x]
    total = np.cumsum(x, axis=x.ndim - 2, dtype=np.float32) + np.expand_dims(start, -2)
    last = total[..., -1, :]
    if lengths is not None:
        # What lies behind the end of a sequence is zero; a sequence without steps keeps its state.
        last = np.stack([total[i, n - 1] if n else start[i] for i, n in enumerate(lengths)])
        total = np.where(np.arange(x.shape[1])[None, :, None] < lengths[:, None, None], total, np.float32(0))
    case("Scan", version, *inputs, outputs=2, body=body, num_scan_inputs=1, trust=False,
         formula=lambda *_: (last, total), **attributes)


scan(8, floats(1, 3, 2), floats(1, 2), name="one")
scan(8, floats(3, 4, 2), floats(3, 2), name="batch")
scan(9, floats(3, 2), floats(2))
scan(11, floats(3, 2), floats(2), scan_input_axes=[-2])
scan(8, floats(3, 4, 2), floats(3, 2), ints(2, 4, 1), name="lengths")
scan(8, floats(2, 3, 2), floats(2, 2), ints(0, 3), name="lengths_none")

case("DFT", 20, floats(2, 5, 3, 1), np.array(7, np.int64), np.array(1, np.int64), name="fed")


def dynamic_quantize(x):
    """The text of the operator: bytes, scale and zero point."""
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((np.float32(high) - np.float32(low)) / np.float32(255))
    zero = np.uint8(np.rint(np.clip(-low / scale, 0, 255)))
    return np.clip(np.rint(x / scale) + np.float32(zero), 0, 255).astype(np.uint8), scale, zero


for outputs in (1, 2, 3):
    case("DynamicQuantizeLinear", 11, floats(3, 5), outputs=outputs, name=f"{outputs}_of_3",
         formula=lambda x, n=outputs: dynamic_quantize(x)[:n])


def float8(to, special):
    """Quantisation along axis 1 to a float8, with numbers beyond its range."""
    x = np.array([[1, -3, 500, -700], [0.01, 4e4, -9e4, np.inf], [7, -np.inf, np.nan, 3e5]], np.float32)
    scale = np.array([0.5, 2, 4, 1], np.float32)
    for saturate in (0, 1):
        formula = (lambda x, s, z: (x / s).astype(to)) if saturate == 0 else None
        case("QuantizeLinear", 19, x, scale, np.zeros(4, to), constants=(1, 2), axis=1, saturate=saturate,
             formula=formula, trust=saturate == 1, name=f"{to.__name__}_{special}"[7:] + f"_{saturate}")


float8(ml_dtypes.float8_e4m3fn, "nan")
float8(ml_dtypes.float8_e5m2, "inf")

# The quotient decides ties, and so does its precision.
for precision in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16):
    x = np.round(random.uniform(-60, 60, (4, 3)) * 8).astype(np.float32) / 7
    for kind, source in (("half", np.float16), ("single", np.float32)):
        name = f"{TensorProto.DataType.Name(precision).lower()}_of_{kind}"
        case("QuantizeLinear", 23, x.astype(source), np.array([0.3, 1.7, 0.11], source), ints(3, -7, 0, dtype=np.int8),
             axis=1, precision=precision, name=name)

cases.write()
