"""Functions of single elements at the ends of their ranges, integer arithmetic, conversions and quantisation."""

import numpy as np
from onnx import TensorProto, helper

from peer import operator
from peer.question import Question

WIDE = [np.float32, np.float32, np.float64]
WHOLE = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
PLAIN = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Reciprocal Round Sigmoid Sign Sin Sinh Softplus
Softsign Sqrt Tan Tanh Mish HardSwish Relu Not""".split()
SHAPED = {
    "Elu": {"alpha": [0.5, -1.0]}, "Selu": {"alpha": [2.0], "gamma": [0.5]}, "Celu": {"alpha": [0.5, 2.0]}, "LeakyRelu": {"alpha": [0.3, 0.0]},
    "ThresholdedRelu": {"alpha": [0.5, 0.0]}, "HardSigmoid": {"alpha": [0.3], "beta": [0.4]}, "Gelu": {"approximate": ["none", "tanh"]},
    "Shrink": {"bias": [0.3, 1.0], "lambd": [0.5, 1.5]}, "IsInf": {"detect_negative": [0, 1], "detect_positive": [0, 1]}, "IsNaN": {},
}
EXTREMES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, -1e30, 88.5, -88.5, 104, -104, 20.5, -20.5, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-4, 3.0, -3.0]


@operator(*PLAIN, *SHAPED, weight=1)
def unary(d, op):
    if op == "Not":
        return Question(op, [d.numbers.random(5) < 0.5])
    dtype = d.pick(WIDE if op != "HardSwish" else [np.float32])
    x = np.concatenate([np.asarray(EXTREMES, dtype), d.floats((7,), -6, 6, dtype)])
    if op in ("Sin", "Cos", "Tan"):
        x = x[np.abs(x) < 1e3]
    d.random.shuffle(x)
    x = x[: d.int(1, len(x))]
    if op in ("Abs", "Neg", "Sign", "Relu") and d.chance(0.4):
        x = d.integers((6,), d.pick(WHOLE if op in ("Abs", "Sign") else [np.int8, np.int32, np.int64]))
        x[0] = np.iinfo(x.dtype).min
    return Question(op, [x], opset=22, near=4, **d.flags(**SHAPED.get(op, {})))


@operator("Clip", weight=2)
def clip(d, op):
    dtype = d.pick([np.float32, np.float32, np.float64, np.int32, np.int8, np.uint8, np.int64])
    shape = d.dims(d.int(0, 3), 5, empty=0.1)
    x = d.floats(shape, -5, 5, dtype, 0.2) if np.dtype(dtype).kind == "f" else d.integers(shape, dtype)
    bound = lambda: np.asarray(d.pick([1, 3, 2, 0] if np.dtype(dtype).kind == "u" else [-2, 1, 3, 2, 0]), dtype) if d.chance(0.7) else None
    low, high = bound(), bound()
    if low is None or high is None:
        # onnxruntime takes the largest number for a bound that is left out; the function body takes none.
        x = np.where(np.isinf(x), np.asarray(0.5, dtype), x) if np.dtype(dtype).kind == "f" else x
    return Question(op, [x, low, high], kept=[1, 2] if d.chance(0.5) else (), opset=13)


@operator("Add", "Sub", "Mul", "Div", "Mod", "Pow", "PRelu", weight=3)
def binary(d, op):
    shape = d.dims(d.int(0, 3), 4, empty=0.08)
    part = lambda: tuple(1 if d.chance(0.25) else n for n in shape)
    named = {}
    dtype = d.pick([np.float32, np.float32, np.float64, *WHOLE])
    if op == "PRelu":
        return Question(op, [d.floats(shape, special=0.2), d.floats(part())], opset=16)
    if op == "Pow":
        base, power = d.pick([np.float32, np.float64, np.int32, np.int64]), d.pick([np.float32, np.float64, np.int32, np.int64])
        make = lambda t, low, high: d.pick([d.floats, d.ties])(part()).astype(t) if np.dtype(t).kind == "f" else d.integers(part(), t, low, high)
        x, y = make(base, -4, 4), make(power, 0, 4)
        if np.dtype(base).kind == "i":
            y = np.abs(np.trunc(y)).astype(power)
        return Question(op, [x, y], opset=15)
    if np.dtype(dtype).kind == "f":
        x, y = (d.floats(part(), -5, 5, dtype, d.pick([0, 0.2])) for _ in range(2))
        if op == "Mod":
            named = {"fmod": 1}
            y = np.where(np.abs(y) < 1e-6, dtype(1.5), y)
            x = np.where(np.abs(x) > 1e20, dtype(7.25), x)
    else:
        low = None if d.chance(0.3) else (0 if np.dtype(dtype).kind == "u" else -9)
        x, y = d.integers(part(), dtype, low, None if low is None else 9), d.integers(part(), dtype, low, None if low is None else 9)
        if op in ("Div", "Mod"):
            # Division by zero, and of the least number by -1, is the machine's own.
            y = np.where((y == 0) | ((y.astype(np.int64) == -1) if np.dtype(dtype).kind == "i" else False), dtype(3), y)
        if op == "Mod":
            named = d.flags(fmod=[0, 1])
    return Question(op, [x, y], opset=14, **named)


@operator("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def compared(d, op):
    shape = d.dims(d.int(0, 3), 4, empty=0.08)
    dtype = d.pick([np.float32, np.float64, np.int32, np.int64])
    x, y = ((d.floats(shape, -2, 2, dtype, 0.3) if np.dtype(dtype).kind == "f" else d.ties(shape, dtype)) for _ in range(2))
    return Question(op, [x, y], opset=16)


@operator("BitShift")
def shift(d, op):
    dtype = d.pick([np.uint8, np.uint32, np.uint64])
    width = np.dtype(dtype).itemsize * 8
    return Question(op, [d.integers((9,), dtype), d.integers(d.pick([(9,), (1,)]), dtype, 0, width - 1)], opset=11, direction=d.pick(["LEFT", "RIGHT"]))


NARROW = [getattr(TensorProto, t) for t in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")]
STORED = [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL]
COUNTED = [getattr(TensorProto, t) for t in ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64")]


@operator("Cast", weight=8)
def cast(d, op):
    """Floats that fit, and integers that wrap; floats out of an integer's range are the compiler's."""
    to = d.pick([*STORED, *COUNTED, *NARROW])
    dtype = d.pick([np.float32, np.float64, np.float16, *WHOLE, np.bool_])
    if dtype == np.bool_:
        x = d.numbers.random(9) < 0.5
    elif np.dtype(dtype).kind == "f":
        x = np.concatenate([np.asarray([*EXTREMES, 448, 464, 465, 240, 57344, 61440, 65504, 65519, 65520, 7e4, 1e-8, 6e-8, 3e-5, 2**-9, 2**-10, 1.5 * 2**-10], dtype), d.floats((20,), -500, 500, dtype)])
        if to in COUNTED:
            info = np.iinfo(helper.tensor_dtype_to_np_dtype(to))
            x = np.concatenate([d.floats((20,), max(info.min, -200), min(info.max, 200), dtype), np.asarray([0.5, 1.5, 2.5, 0.99, 0.0], dtype)])
    else:
        x = d.integers((12,), dtype)
    if to in NARROW and np.dtype(dtype).kind != "f":
        return None
    named = d.flags(saturate=[0, 1]) if to in NARROW else {}
    if named.get("saturate") == 0:
        # Just above the largest number onnxruntime saturates all the same.
        x = np.where((np.abs(x) > 200) & (np.abs(x) < 70000), x.dtype.type(17), x)
    return Question(op, [x], opset=19, to=to, **named)


@operator("QuantizeLinear", "DequantizeLinear", weight=4)
def quantised(d, op):
    shape = d.dims(d.int(1, 4), 5, empty=0.05)
    axis = d.axis(len(shape))
    opset = d.pick([10, 13, 19, 21])
    kind = d.pick([np.uint8, np.int8] if opset < 21 else [np.uint8, np.int8, np.int16, np.uint16])
    each = (shape[axis],) if opset >= 13 and d.chance(0.5) else ()
    scale = d.pick([d.floats(each, 0.01, 0.3), np.full(each, 0.5, np.float32)])
    zero = d.integers(each, kind) if d.chance(0.7) else None
    named = {"axis": axis} if opset >= 13 else {}
    block = d.int(1, 3) if opset >= 21 and d.chance(0.3) else 0
    if block and 0 not in shape:
        count = [-(-n // block) if i == axis % len(shape) else n for i, n in enumerate(shape)]
        scale, zero, named["block_size"] = d.floats(count, 0.01, 0.3), None if zero is None else d.integers(count, kind), block
    if op == "QuantizeLinear":
        x = d.pick([d.floats(shape, -20, 20), (d.ties(shape, np.float32, 9) / 4).astype(np.float32), d.floats(shape, -9, 9, special=0.15)])
        x = np.where(np.isnan(x), np.float32(0.25), x)
        if zero is None:
            kind = np.uint8
        return Question(op, [x, scale, zero], kept=[1, 2] if d.chance(0.6) else (), opset=opset, **named)
    kind = d.pick([kind, kind, np.int32]) if opset < 21 else kind
    x = d.integers(shape, kind)
    zero = None if zero is None else (np.zeros_like(zero, np.int32) if kind == np.int32 else zero.astype(kind))
    return Question(op, [x, scale, zero], kept=[1, 2] if d.chance(0.6) else (), opset=opset, **named)


@operator("DynamicQuantizeLinear", weight=2)
def dynamic(d, op):
    shape = d.dims(d.int(1, 3), 6)
    x = d.pick([d.floats(shape), d.floats(shape, 0.5, 3), d.floats(shape, -3, -0.5), np.zeros(shape, np.float32), d.ties(shape)])
    return Question(op, [x], 3, opset=11)


@operator("QLinearMatMul", weight=2)
def products(d, op):
    m, k, n = d.dims(3, 6)
    left, right = d.pick([(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
    scale = lambda shape=(): d.floats(shape, 0.01, 0.1)
    lead = d.dims(d.int(0, 2), 3)
    each = (n,) if d.chance(0.4) else ()
    inputs = [d.integers((*lead, m, k), left), scale(), d.integers((), left), d.integers((k, n), right, -63 if right == np.int8 else 0, 63), scale(each), d.integers(each, right, 0, 63), scale() * 40, d.integers((), left)]
    return Question(op, inputs, kept=[1, 2, 3, 4, 5, 6, 7], opset=10)
