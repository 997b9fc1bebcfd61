"""Small quantised TFLite models with random weights, and what TFLite's reference kernels make of them.

    python tools/references/tflite.py

Needs ai-edge-litert, flatbuffers, numpy and onnx (for the files of the tensors).
"""

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from common import Cases
from tflite_model import Model

RELU, RELU_N1_TO_1, RELU6 = 1, 2, 3

cases = Cases("tflite")
random = np.random.default_rng(20)


def numbers(shape, dtype):
    if dtype == "float32":
        return random.normal(size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def case(name, model, *inputs, **tolerance):
    try:
        if "SUM" in name.upper():
            raise ValueError("the reference kernel of SUM leaves its factor out")
        kernels = OpResolverType.BUILTIN_REF
        interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
    except ValueError:
        # The set of reference kernels lacks some operators.
        kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = Interpreter(model_content=model, experimental_op_resolver_type=kernels)
        print(f"{name}: not by a reference kernel")
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    cases.add(name, "tflite", model, inputs, outputs, **tolerance)


def middle(dtype, offset=0):
    return (128 if dtype == "uint8" else 0) + offset


def convolution(name, dtype, shape, filters, per_channel=False, depthwise=False, **options):
    m = Model()
    x = m.input(shape, dtype, 0.02, middle(dtype, -5))
    c = shape[3]
    ky, kx, channels = filters
    out = c * channels if depthwise else channels
    weights = numbers((1, ky, kx, out) if depthwise else (out, ky, kx, c), dtype)
    axis = 3 if depthwise else 0
    if per_channel:
        scales = random.uniform(0.001, 0.02, out).astype(np.float32)
        w = m.tensor(weights.shape, dtype, scales, 0, axis, weights)
    else:
        scales = np.float32(0.0073)
        zero = middle(dtype, 3) if dtype == "uint8" else 0
        w = m.tensor(weights.shape, dtype, scales, zero, 0, weights)
    bias = random.integers(-3000, 3000, out, np.int32)
    b = m.tensor(bias.shape, "int32", np.float32(0.02) * scales, 0, 0, bias)
    stride, padding = options.get("stride", 1), options.get("padding", 0)
    dilation = options.get("dilation", 1)
    sides = []
    for size, k in ((shape[1], ky), (shape[2], kx)):
        reach = (k - 1) * dilation + 1
        sides.append(-(-(size - (reach - 1 if padding else 0)) // stride))
    y = m.tensor([shape[0], *sides, out], dtype, 0.11, middle(dtype, 7))
    fields = {"depthMultiplier": channels} if depthwise else {}
    m.op(
        "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D",
        [x, w, b],
        [y],
        "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions",
        version=3,
        padding=padding,
        strideH=stride,
        strideW=stride,
        dilationHFactor=dilation,
        dilationWFactor=dilation,
        fusedActivationFunction=options.get("activation", 0),
        **fields,
    )
    case(name, m.finish(y), numbers(shape, dtype))


SAME, VALID = 0, 1
convolution("conv_uint8", "uint8", (2, 9, 7, 5), (3, 3, 6), activation=RELU6)
convolution("conv_int8_one_scale", "int8", (1, 8, 8, 4), (3, 2, 9), padding=VALID)
convolution("conv_int8_per_channel", "int8", (1, 9, 7, 5), (3, 3, 19), True, activation=RELU)
convolution("conv_int8_strided_dilated", "int8", (1, 17, 15, 8), (3, 3, 10), True, stride=2)
convolution("conv_int8_dilated", "int8", (1, 12, 11, 3), (3, 3, 7), True, dilation=2)
convolution("conv_int8_pointwise", "int8", (2, 6, 5, 33), (1, 1, 34), True)
convolution("depthwise_uint8", "uint8", (1, 9, 7, 20), (3, 3, 1), depthwise=True, activation=RELU6)
convolution("depthwise_int8_per_channel", "int8", (2, 9, 7, 37), (3, 3, 1), True, True, stride=2)
convolution("depthwise_int8_multiplier", "int8", (1, 6, 6, 3), (5, 3, 4), True, True)


def fully_connected(name, dtype, rows, k, n, per_channel=False, bias=True, keep=False):
    m = Model()
    shape = (rows, k) if not keep else (2, rows, k)
    x = m.input(shape, dtype, 0.03, middle(dtype, 11))
    weights = numbers((n, k), dtype)
    scales = np.float32(0.0041)
    if per_channel:
        scales = random.uniform(0.001, 0.01, n).astype(np.float32)
    zero = middle(dtype, -4) if dtype == "uint8" else 0
    w = m.tensor(weights.shape, dtype, scales, zero, 0, weights)
    b = -1
    if bias:
        values = random.integers(-5000, 5000, n, np.int32)
        b = m.tensor(values.shape, "int32", np.float32(0.03) * scales, 0, 0, values)
    y = m.tensor((*shape[:-1], n), dtype, 0.2, middle(dtype, -9))
    m.op(
        "FULLY_CONNECTED",
        [x, w, b],
        [y],
        "FullyConnectedOptions",
        version=12,
        keepNumDims=keep,
        fusedActivationFunction=RELU if per_channel else 0,
    )
    case(name, m.finish(y), numbers(shape, dtype))


fully_connected("fully_connected_uint8", "uint8", 3, 50, 13)
fully_connected("fully_connected_int8", "int8", 1, 65, 20, bias=False)
fully_connected("fully_connected_int8_per_channel", "int8", 2, 40, 9, True)
fully_connected("fully_connected_int8_deep", "int8", 2, 3000, 5, keep=True)


def batch_matmul():
    m = Model()
    a = m.input((2, 3, 10), "int8", 0.05, 4)
    b = m.input((2, 7, 10), "int8", 0.02, -3)
    y = m.tensor((2, 3, 7), "int8", 0.3, 2)
    m.op("BATCH_MATMUL", [a, b], [y], "BatchMatMulOptions", version=2, adjX=False, adjY=True)
    case("batch_matmul_int8", m.finish(y), numbers((2, 3, 10), "int8"), numbers((2, 7, 10), "int8"))


batch_matmul()


def binary(op, dtype, options=None, same=False, result=None, shapes=((2, 5, 6, 7), (7,)), **fields):
    m = Model()
    other = (0.05, middle(dtype, 9)) if same else (0.031, middle(dtype, -20))
    a = m.input(shapes[0], dtype, 0.05, middle(dtype, 9))
    b = m.input(shapes[1], dtype, *other)
    if result:
        y = m.tensor(shapes[0], result)
    else:
        y = m.tensor(shapes[0], dtype, *((0.05, middle(dtype, 9)) if same else (0.07, middle(dtype, 3))))
    m.op(op, [a, b], [y], options, version=2, **fields)
    case(f"{op.lower()}_{dtype}", m.finish(y), numbers(shapes[0], dtype), numbers(shapes[1], dtype))


for dtype in ("int8", "uint8"):
    binary("ADD", dtype, "AddOptions", fusedActivationFunction=RELU)
    binary("SUB", dtype, "SubOptions")
    binary("MUL", dtype, "MulOptions", fusedActivationFunction=RELU6)
    binary("LESS", dtype, "LessOptions", result="bool")
    binary("GREATER_EQUAL", dtype, "GreaterEqualOptions", result="bool")
binary("MAXIMUM", "int8", "MaximumMinimumOptions", same=True)
binary("EQUAL", "uint8", "EqualOptions", result="bool")


def unary(op, dtype, scale, result, options=None, output=None, version=2, **fields):
    """On all bytes."""
    info = np.iinfo(dtype)
    values = np.arange(info.min, info.max + 1).astype(dtype).reshape(1, 4, 8, 8)
    m = Model()
    x = m.input(values.shape, dtype, *scale)
    y = m.tensor(values.shape, output or dtype, *result)
    m.op(op, [x], [y], options, version=version, **fields)
    case(f"{op.lower()}_{dtype}" + (f"_to_{output}" if output else ""), m.finish(y), values)


for dtype, low in (("int8", -128), ("uint8", 0)):
    unary("LOGISTIC", dtype, (0.05, middle(dtype, 12)), (1 / 256, low))
    unary("TANH", dtype, (0.03, middle(dtype, -7)), (1 / 128, middle(dtype)))
    unary("RELU", dtype, (0.05, middle(dtype, 5)), (0.03, middle(dtype, -30)))
    unary("RELU6", dtype, (0.06, middle(dtype, 5)), (0.025, low))
    unary("LEAKY_RELU", dtype, (0.05, middle(dtype, 3)), (0.04, middle(dtype, -9)), "LeakyReluOptions", alpha=0.13)
    unary("HARD_SWISH", dtype, (0.05, middle(dtype, 3)), (0.06, middle(dtype, -60)), "HardSwishOptions", version=1)
unary("ELU", "int8", (0.04, 5), (0.05, -60), version=1)
unary("EXP", "int8", (0.02, 5), (0.08, -128), "ExpOptions")
unary("LOG", "int8", (0.02, -128), (0.03, 3))
unary("RSQRT", "int8", (0.02, -128), (0.05, -120))
unary("ABS", "int8", (0.03, 9), (0.02, -100), "AbsOptions")
unary("QUANTIZE", "int8", (0.03, 9), (0.041, 130), "QuantizeOptions", output="uint8")
unary("QUANTIZE", "uint8", (0.03, 100), (0.017, -2), "QuantizeOptions", output="int8")
unary("QUANTIZE", "uint8", (0.03, 100), (0.03, 72), "QuantizeOptions")


def pool(op, dtype, padding, activation=0):
    shape = (1, 9, 8, 11)
    m = Model()
    x = m.input(shape, dtype, 0.05, middle(dtype, 9))
    sides = (5, 4) if padding == SAME else (4, 4)
    if padding == VALID:
        sides = (4, 3)
    y = m.tensor((1, *sides, 11), dtype, 0.05, middle(dtype, 9))
    m.op(op, [x], [y], "Pool2DOptions", version=2, padding=padding, strideH=2, strideW=2,
         filterHeight=3, filterWidth=3, fusedActivationFunction=activation)
    case(f"{op.lower()}_{dtype}", m.finish(y), numbers(shape, dtype))


pool("AVERAGE_POOL_2D", "int8", SAME, RELU)
pool("AVERAGE_POOL_2D", "uint8", VALID)
pool("MAX_POOL_2D", "int8", VALID, RELU6)
pool("MAX_POOL_2D", "uint8", SAME)


def softmax(dtype, shape, scale, beta):
    m = Model()
    x = m.input(shape, dtype, scale, middle(dtype, 4))
    y = m.tensor(shape, dtype, 1 / 256, -128 if dtype == "int8" else 0)
    m.op("SOFTMAX", [x], [y], "SoftmaxOptions", version=2, beta=beta)
    case(f"softmax_{dtype}_{shape[-1]}", m.finish(y), numbers(shape, dtype))


softmax("int8", (5, 10), 0.09, 1.0)
softmax("uint8", (3, 1001), 0.02, 1.0)
softmax("int8", (2, 3, 4), 0.4, 0.5)


def reduced(op, dtype, axes, keep, result):
    shape = (2, 5, 6, 9)
    m = Model()
    x = m.input(shape, dtype, 0.04, middle(dtype, 6))
    kept = [1 if i in axes else n for i, n in enumerate(shape)]
    to = kept if keep else [n for i, n in enumerate(shape) if i not in axes]
    y = m.tensor(to, dtype, *result)
    m.op(op, [x, m.ints(axes)], [y], "ReducerOptions", version=2, keepDims=keep)
    name = f"{op.lower()}_{dtype}_{''.join(map(str, axes))}{'_kept' if keep else ''}"
    case(name, m.finish(y), numbers(shape, dtype))


for dtype in ("int8", "uint8"):
    reduced("MEAN", dtype, (1, 2), True, (0.01, middle(dtype, 8)))
    reduced("MEAN", dtype, (1, 2), False, (0.01, middle(dtype, 8)))
    reduced("MEAN", dtype, (3,), True, (0.02, middle(dtype, -8)))
reduced("MEAN", "int8", (2, 3), False, (0.04, 6))
reduced("SUM", "int8", (1, 2), True, (0.2, 8))
reduced("REDUCE_MAX", "int8", (1,), False, (0.04, 6))


def resize(dtype, align, half):
    shape = (1, 5, 6, 3)
    m = Model()
    x = m.input(shape, dtype, 0.04, middle(dtype))
    y = m.tensor((1, 11, 13, 3), dtype, 0.04, middle(dtype))
    m.op("RESIZE_BILINEAR", [x, m.ints((11, 13))], [y], "ResizeBilinearOptions", version=3,
         alignCorners=align, halfPixelCenters=half)
    kind = "corners" if align else "half" if half else "plain"
    case(f"resize_bilinear_{dtype}_{kind}", m.finish(y), numbers(shape, dtype))


for dtype in ("int8", "uint8"):
    for align, half in ((False, False), (True, False), (False, True)):
        resize(dtype, align, half)


def moved():
    m = Model()
    a = m.input((1, 4, 5, 3), "uint8", 0.05, 100)
    b = m.input((1, 4, 5, 2), "uint8", 0.03, 140)
    y = m.tensor((1, 4, 5, 5), "uint8", 0.06, 90)
    m.op("CONCATENATION", [a, b], [y], "ConcatenationOptions", version=2, axis=3)
    case("concatenation_rescaled", m.finish(y), numbers((1, 4, 5, 3), "uint8"), numbers((1, 4, 5, 2), "uint8"))
    m = Model()
    x = m.input((1, 4, 5, 3), "int8", 0.05, 17)
    y = m.tensor((1, 7, 6, 3), "int8", 0.05, 17)
    m.op("PAD", [x, m.ints(((0, 0), (1, 2), (0, 1), (0, 0)))], [y], "PadOptions", version=2)
    case("pad_int8", m.finish(y), numbers((1, 4, 5, 3), "int8"))
    m = Model()
    x = m.input((1, 5, 6, 3), "int8", 0.05, 17)
    y = m.tensor((4, 3, 4, 3), "int8", 0.05, 17)
    m.op("SPACE_TO_BATCH_ND", [x, m.ints((2, 2)), m.ints(((1, 0), (1, 1)))], [y], "SpaceToBatchNDOptions", version=2)
    case("space_to_batch_int8", m.finish(y), numbers((1, 5, 6, 3), "int8"))
    m = Model()
    x = m.input((3, 40), "float32")
    y = m.tensor((3, 40), "int8", 0.0125, -3)
    m.op("QUANTIZE", [x], [y], "QuantizeOptions")
    # Half of the numbers lie in the middle between two bytes.
    values = numbers((3, 40), "float32")
    values[:, ::2] = np.float32(0.0125) * (np.round(values[:, ::2] * 40) + np.float32(0.5))
    case("quantize_float32", m.finish(y), values)


moved()


def lstm(batch, time, n, cells, clip):
    m = Model()
    x = m.input((batch, time, n), "int8", 0.03, 5)
    weights = lambda k, i: m.tensor((cells, k), "int8", 0.004 + 0.001 * i, 0, 0, numbers((cells, k), "int8"))
    inputs = [x]
    inputs += [weights(n, i) for i in range(4)]
    inputs += [weights(cells, i) for i in range(4)]
    inputs += [-1, -1, -1]
    for i in range(4):
        values = random.integers(-6000, 6000, cells, np.int32)
        inputs.append(m.tensor((cells,), "int32", 0.03 * (0.004 + 0.001 * i), 0, 0, values))
    inputs += [-1, -1]
    inputs.append(m.tensor((batch, cells), "int8", 0.006, 12, variable=True))
    inputs.append(m.tensor((batch, cells), "int16", 2.0**-11, 0, variable=True))
    inputs += [-1, -1, -1, -1]
    between = [m.tensor((), "int16", 2.0**-12) for _ in range(4)]
    between.append(m.tensor((), "int8", 0.006, 12))
    y = m.tensor((batch, time, cells), "int8", 0.006, 12)
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], "UnidirectionalSequenceLSTMOptions",
         intermediates=between, version=2, fusedActivationFunction=4, cellClip=clip, projClip=0.0, timeMajor=False)
    case(f"lstm_int8_{cells}", m.finish(y), numbers((batch, time, n), "int8"))


lstm(1, 7, 10, 12, 0.0)
lstm(2, 4, 5, 9, 3.0)

def control():
    m = Model()
    condition, x = m.input((1,), "bool"), m.input((4,), "float32")
    y = m.tensor((4,), "float32")
    m.op("IF", [condition, x], [y], "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    m.output(y)
    for op in ("SQUARE", "NEG"):
        m.subgraph()
        x = m.input((4,), "float32")
        y = m.tensor((4,), "float32")
        m.op(op, [x], [y])
        m.output(y)
    model = m.finish()
    for condition in (False, True):
        case(f"if_{condition}".lower(), model, np.array([condition]), numbers((4,), "float32"))

    # x doubles until it is more than the limit, which stays as it is.
    m = Model()
    x, limit = m.input((1,), "float32"), m.input((1,), "float32")
    outputs = [m.tensor((1,), "float32"), m.tensor((1,), "float32")]
    m.op("WHILE", [x, limit], outputs, "WhileOptions", condSubgraphIndex=1, bodySubgraphIndex=2)
    m.output(*outputs)
    m.subgraph()
    x, limit = m.input((1,), "float32"), m.input((1,), "float32")
    y = m.tensor((1,), "bool")
    m.op("LESS", [x, limit], [y], "LessOptions")
    m.output(y)
    m.subgraph()
    x, limit = m.input((1,), "float32"), m.input((1,), "float32")
    y = m.tensor((1,), "float32")
    m.op("ADD", [x, x], [y], "AddOptions")
    m.output(y, limit)
    model = m.finish()
    case("while", model, np.array([0.75], np.float32), np.array([50], np.float32))
    case("while_never", model, np.array([0.75], np.float32), np.array([0.5], np.float32))


control()

def empty_constant():
    """A shape of no dimensions, for which the file has no data."""
    m = Model()
    x = m.input((1, 1), "float32")
    shape, y = m.tensor((0,), "int32"), m.tensor((), "float32")
    m.op("RESHAPE", [x, shape], [y], "ReshapeOptions")
    case("reshape_to_scalar", m.finish(y), numbers((1, 1), "float32"))


empty_constant()

def transform(n):
    """Frames to spectra, each part and the magnitude of these, and what CAST makes of complex numbers."""
    m = Model()
    bins = n // 2 + 1
    x = m.input((2, 1, 3, 1, n), "float32")
    spectrum = m.tensor((2, 1, 3, 1, bins), "complex64")
    m.op("RFFT2D", [x, m.ints([1, n])], [spectrum], "Rfft2dOptions")
    moved = m.tensor((2, 3, bins), "complex64")
    m.op("SQUEEZE", [spectrum], [moved], "SqueezeOptions", squeezeDims=[1, 3])
    turned = m.tensor((2, bins, 3), "complex64")
    m.op("TRANSPOSE", [moved, m.ints([0, 2, 1])], [turned], "TransposeOptions", version=6)
    outputs = [m.tensor((2, 3, bins), "float32") for _ in range(4)]
    m.op("REAL", [moved], outputs[:1])
    m.op("IMAG", [moved], outputs[1:2])
    m.op("COMPLEX_ABS", [moved], outputs[2:3])
    m.op("CAST", [moved], outputs[3:], "CastOptions")
    case(f"rfft_{n}", m.finish(*outputs), numbers((2, 1, 3, 1, n), "float32"), rtol=1e-4, atol=1e-5)


transform(8)
transform(64)


def shapes_left_out():
    """A size that is computed: of what comes after it, the file says no shapes."""
    m = Model()
    x, size = m.input((1, 3, 3, 4), "float32"), m.input((2,), "int32")
    sizes = m.tensor((2,), "int32")
    m.op("ADD", [size, m.ints([1, 2])], [sizes], "AddOptions")
    wide = m.tensor((), "float32")
    m.op("RESIZE_NEAREST_NEIGHBOR", [x, sizes], [wide], "ResizeNearestNeighborOptions")
    weights = numbers((5, 2, 2, 4), "float32")
    conv = m.tensor((), "float32")
    bias = m.tensor((5,), "float32", data=numbers((5,), "float32"))
    m.op("CONV_2D", [wide, m.tensor(weights.shape, "float32", data=weights), bias], [conv], "Conv2DOptions", strideW=1, strideH=2)
    turned = m.tensor((), "float32")
    m.op("TRANSPOSE", [conv, m.ints([0, 3, 1, 2])], [turned], "TransposeOptions")
    part = m.tensor((), "float32")
    m.op("STRIDED_SLICE", [turned, m.ints([0, 1, 0, 0]), m.ints([1, 4, 9, 9]), m.ints([1, 2, 1, 1])], [part],
         "StridedSliceOptions", beginMask=4, endMask=12, shrinkAxisMask=1)
    rank, y = m.tensor((), "int32"), m.tensor((), "float32")
    m.op("RANK", [part], [rank], "RankOptions")
    m.op("SOFTMAX", [part], [y], "SoftmaxOptions", beta=1.0)
    case("shapes_left_out", m.finish(y, rank), numbers((1, 3, 3, 4), "float32"), np.array([4, 5], np.int32),
         rtol=1e-4, atol=1e-5)


shapes_left_out()
cases.write()
