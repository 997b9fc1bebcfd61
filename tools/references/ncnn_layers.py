"""ncnn networks of one layer and more with random weights, and what ncnn makes of them.

    python tools/references/ncnn_layers.py

Needs ncnn, numpy and onnx (for the files of the tensors).
"""

import contextlib
import sys

import numpy as np

from common import Cases, message
from ncnn_network import Network, in_table, tagged

cases = Cases("ncnn")
random = np.random.default_rng(5)
failed = []


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def positive(*shape):
    return random.uniform(0.3, 2, shape).astype(np.float32)


def case(name, net, inputs, binary=None, whole=None, rtol=1e-4, atol=2e-5):
    """Inputs by name, without the dimension in front that Kilim's inputs have."""
    try:
        print(name, file=sys.stderr) if "-v" in sys.argv else None
        outputs = net.run(inputs)
        if not outputs or not all(np.isfinite(o).all() for o in outputs.values()):
            raise ValueError("no numbers")
    except ValueError as error:
        failed.append(f"{name}: {error}")
        return
    # Outputs come in the order in which layers write them.
    order = [b for b in net.blobs if b in outputs]
    given = [np.asarray(v)[None] for v in inputs.values()]
    if binary:
        order = sorted(outputs, key=net.blobs.index)
    case = {"name": name, "kind": "ncnn", "path": name, "model": "model.param", "beside": ["model.bin"], "data_sets": 1,
            "rtol": rtol, "atol": atol, "nondeterministic": False}
    files = {"model.param": binary or net.text(), "model.bin": net.weights}
    # The blob of a single Quantize holds bytes, which the binding shows as floats.
    wanted = [outputs[n].astype(whole) if whole else outputs[n] for n in order]
    for what, values in (("input", given), ("output", wanted)):
        for i, value in enumerate(values):
            files[f"test_data_set_0/{what}_{i}.pb"] = message(value).SerializeToString()
    cases.add_files(case, files)


# The network that layers go to, its inputs, and what the case may differ by.
shared = None


@contextlib.contextmanager
def together(name, **more):
    """A network of layers beside each other, whose outputs are named after them: many layers need few files."""
    global shared
    shared = Network(), {}
    yield
    net, inputs = shared
    shared = None
    case(name, net, inputs, **more)


def one(name, kind, x, params=None, weights=(), tops=1, declared=None, **more):
    """A network of one layer: `x` is an input or several."""
    net, inputs = shared or (Network(), {})
    prefix = f"{name}." if shared else ""
    xs = x if isinstance(x, list) else [x]
    given = {f"{prefix}in{i}": v for i, v in enumerate(xs)}
    inputs.update(given)
    for i, (blob, v) in enumerate(given.items()):
        sizes = {"p0": v.shape[-1]}
        if v.ndim > 1:
            sizes["p1"] = v.shape[-2]
        if v.ndim > 2:
            sizes["p2"] = v.shape[0]
        if v.ndim > 3:
            sizes["p11"] = v.shape[1]
        if declared is False:
            sizes = {}
        net.input(blob, **sizes)
    net.layer(kind, list(given), [f"{prefix}out{i}" for i in range(tops)], params, weights)
    if not shared:
        case(name, net, inputs, **more)


# Functions of one blob.
with together("activations"):
    for name, kind, params in [
        ("absval", "AbsVal", {}), ("bnll", "BNLL", {}), ("celu", "CELU", {0: 0.7}), ("clip", "Clip", {0: -0.5, 1: 0.8}),
        ("dropout", "Dropout", {}), ("dropout_scale", "Dropout", {0: 0.5}), ("elu", "ELU", {0: 0.4}), ("erf", "Erf", {}),
        ("exp", "Exp", {}), ("exp_base", "Exp", {0: 2.0, 1: 0.5, 2: 0.1}), ("gelu", "GELU", {0: 0}), ("gelu_fast", "GELU", {0: 1}),
        ("hardsigmoid", "HardSigmoid", {}), ("hardsigmoid_sixth", "HardSigmoid", {0: 1 / 6, 1: 0.5}), ("hardswish", "HardSwish", {}),
        ("hardswish_sixth", "HardSwish", {0: 1 / 6, 1: 0.5}), ("mish", "Mish", {}), ("relu", "ReLU", {}), ("relu_slope", "ReLU", {0: 0.2}),
        ("selu", "SELU", {}), ("shrink", "Shrink", {0: 0.1, 1: 0.4}), ("sigmoid", "Sigmoid", {}), ("softplus", "Softplus", {}),
        ("swish", "Swish", {}), ("tanh", "TanH", {}), ("threshold", "Threshold", {0: 0.2}), ("power", "Power", {0: 2.0, 1: 0.5, 2: 3.0}),
        ("noop", "Noop", {}), ("split", "Split", {}), ("deepcopy", "DeepCopy", {}),
    ]:
        one(name, kind, floats(3, 5, 7), params, tops=2 if kind == "Split" else 1)
    one("log", "Log", positive(4, 5), {0: -1.0, 1: 2.0, 2: 0.5})
    one("log_base", "Log", positive(6), {0: 10.0})
with together("unary"):
    for number in range(28):
        x = {8: positive, 5: positive, 6: positive, 17: positive, 15: positive}.get(number, floats)(3, 4, 5)
        if number in (12, 13, 26):
            x = np.clip(x / 4, -0.9, 0.9)
        if number == 25:
            x = np.abs(x) + 1.1
        if number == 27:
            x = np.abs(x)
        one(f"unary_{number:02}", "UnaryOp", x, {0: number})
with together("ranks"):
    for rank, shape in enumerate([(6,), (5, 6), (4, 5, 6), (3, 2, 4, 5)], 1):
        one(f"prelu_{rank}", "PReLU", floats(*shape), {0: shape[0]}, [positive(shape[0])])
        one(f"scale_{rank}", "Scale", floats(*shape), {0: shape[0], 1: 1}, [floats(shape[0]), floats(shape[0])])
        if rank > 2:
            one(f"bias_{rank}", "Bias", floats(*shape), {0: shape[0]}, [floats(shape[0])])
        c = shape[0]
        one(f"batchnorm_{rank}", "BatchNorm", floats(*shape), {0: c, 1: 1e-3}, [floats(c), floats(c), positive(c), floats(c)])
        one(f"softmax_{rank}", "Softmax", floats(*shape), {0: rank - 1, 1: 1})
        one(f"softmax_outer_{rank}", "Softmax", floats(*shape), {0: 0})
        one(f"flatten_{rank}", "Flatten", floats(*shape))
        one(f"flip_{rank}", "Flip", floats(*shape), {0: [rank - 1]})
        for axis in range(rank):
            one(f"concat_{rank}_{axis}", "Concat", [floats(*shape), floats(*shape)], {0: axis - rank})
            one(f"slice_{rank}_{axis}", "Slice", floats(*shape), {0: [1, -233], 1: axis}, tops=2)
            one(f"tile_{rank}_{axis}", "Tile", floats(*shape), {0: axis, 1: 3})
            if rank < 4:
                one(f"cumsum_{rank}_{axis}", "CumulativeSum", floats(*shape), {0: axis})
                one(f"expanddims_{rank}_{axis}", "ExpandDims", floats(*shape), {3: [axis]})
with together("parts"):
    one("prelu_one", "PReLU", floats(4, 5, 6), {0: 1}, [positive(1)])
    one("scale_blob", "Scale", [floats(4, 5, 6), floats(4)], {0: -233})
    for name, shape, axis in [("glu_1", (6,), 0), ("glu_2_0", (6, 5), 0), ("glu_2_1", (5, 8), 1), ("glu_3_0", (4, 3, 2), 0), ("glu_3_1", (4, 6, 3), 1),
                              ("glu_3_2", (4, 3, 6), 2)]:
        one(name, "GLU", floats(*shape), {0: axis})
    one("slice_lengths", "Slice", floats(9, 3, 2), {0: [2, 3, -233], 1: 0}, tops=3)
    one("slice_equal", "Slice", floats(7, 3, 2), {0: [-233, -233, -233], 1: 0}, tops=3)
    one("slice_indices", "Slice", floats(3, 9, 2), {2: [2, -3], 1: 1}, tops=3)
    one("tile_repeats", "Tile", floats(2, 3, 4), {2: [2, 1, 3]})
    one("tile_repeats_longer", "Tile", floats(3, 4), {2: [2, 3, 1]})
    one("tile_repeats_depth", "Tile", floats(3, 4, 5), {2: [2, 7, 1, 1]})

# Functions of two blobs.
with together("binary", rtol=1e-3):
    for number in range(19):
        b = positive(3, 4, 5)
        a = positive(3, 4, 5) if number in (6, 9) else floats(3, 4, 5)
        one(f"binary_{number:02}", "BinaryOp", [a, b], {0: number}, rtol=1e-3 if number in (17, 18) else 1e-4)
        one(f"binary_{number:02}_scalar", "BinaryOp", a + 0.01, {0: number, 1: 1, 2: 1.75})
with together("broadcasting"):
    for name, a, b in [
        ("1_2_rows", (5,), (5, 6)), ("1_2_columns", (6,), (5, 6)), ("1_3_channels", (4,), (4, 5, 6)), ("1_3_width", (6,), (4, 5, 6)),
        ("2_3", (4, 5), (4, 5, 6)), ("2_3_one", (4, 1), (4, 5, 6)), ("3_4", (3, 2, 4), (3, 2, 4, 5)), ("2_4", (3, 2), (3, 2, 4, 5)),
        ("1_4", (3,), (3, 2, 4, 5)), ("1_4_width", (5,), (3, 2, 4, 5)), ("one_3", (1,), (4, 5, 6)), ("3_3_inner", (4, 1, 6), (4, 5, 6)),
        ("3_3_outer", (1, 5, 6), (4, 1, 1)), ("2_2", (5, 1), (1, 6)), ("equal", (4,), (4, 4)),
    ]:
        one(f"broadcast_{name}", "BinaryOp", [floats(*a), floats(*b)], {0: 1})
        one(f"broadcast_{name}_back", "BinaryOp", [floats(*b), floats(*a)], {0: 1})
    for number, params in [(0, {}), (1, {}), (1, {1: [0.5, -1.5, 2.0]}), (2, {})]:
        name = f"eltwise_{number}" + ("_factors" if params else "")
        one(name, "Eltwise", [floats(3, 4, 5), floats(3, 4, 5), floats(3, 4, 5)], {0: number, **params})

# Convolutions.
conv = {0: 6, 1: 3, 5: 1, 6: 6 * 4 * 9}
weights = [tagged(floats(6, 4, 3, 3)), floats(6)]
for name, params in [
    ("conv", {}), ("conv_pad", {4: 1}), ("conv_pads", {4: 1, 14: 2, 15: 0, 16: 3}), ("conv_pad_value", {4: 1, 18: 0.5}), ("conv_stride", {3: 2, 13: 3, 4: 1}),
    ("conv_dilation", {2: 2, 4: 2}), ("conv_same", {4: -233, 3: 2}), ("conv_same_lower", {4: -234, 3: 2}), ("conv_same_dilated", {4: -233, 2: 2}),
    ("conv_relu", {9: 1}), ("conv_leaky", {9: 2, 10: [0.1]}), ("conv_clip", {9: 3, 10: [0.0, 6.0]}), ("conv_sigmoid", {9: 4}),
    ("conv_mish", {9: 5}), ("conv_hardswish", {9: 6, 10: [1 / 6, 0.5]}),
]:
    one(name, "Convolution", floats(4, 9, 11), {**conv, **params}, weights)
one("conv_no_bias_open", "Convolution", floats(4, 8, 9), {0: 5, 1: 5, 11: 1, 6: 5 * 4 * 5}, [tagged(floats(5, 4, 1, 5))], declared=False)
one("conv_half", "Convolution", floats(3, 8, 9), {0: 5, 1: 3, 6: 5 * 27, 5: 1}, [tagged(floats(5, 3, 3, 3).astype(np.float16)), floats(5)])
one("conv_table", "Convolution", floats(3, 8, 9), {0: 5, 1: 3, 6: 5 * 27}, [in_table(floats(256), random.integers(0, 256, 135))])
one("conv_of_list", "Convolution", floats(7), {0: 5, 1: 1, 5: 1, 6: 35}, [tagged(floats(5, 7)), floats(5)])
one("conv_depthwise", "ConvolutionDepthWise", floats(6, 9, 7), {0: 6, 1: 3, 4: 1, 5: 1, 6: 54, 7: 6, 9: 1}, [tagged(floats(6, 1, 3, 3)), floats(6)])
one("conv_multiplier", "ConvolutionDepthWise", floats(3, 9, 7), {0: 6, 1: 3, 3: 2, 6: 54, 7: 3}, [tagged(floats(6, 1, 3, 3))])
one("conv_groups", "ConvolutionDepthWise", floats(6, 5, 7), {0: 4, 1: 3, 4: 1, 6: 4 * 3 * 9, 7: 2}, [tagged(floats(4, 3, 3, 3))])
one("conv_1d", "Convolution1D", floats(4, 13), {0: 5, 1: 3, 3: 2, 4: 1, 15: 2, 5: 1, 6: 60, 9: 1}, [tagged(floats(5, 4, 3)), floats(5)])
one("conv_1d_depthwise", "ConvolutionDepthWise1D", floats(4, 13), {0: 4, 1: 3, 2: 2, 6: 12, 7: 4}, [tagged(floats(4, 1, 3))])
one("conv_3d", "Convolution3D", floats(2, 5, 6, 7), {0: 3, 1: 3, 11: 2, 21: 2, 4: 1, 5: 1, 6: 3 * 2 * 12}, [tagged(floats(3, 2, 2, 2, 3)), floats(3)])
one("conv_3d_depthwise", "ConvolutionDepthWise3D", floats(2, 5, 6, 7), {0: 2, 1: 2, 3: 2, 6: 16, 7: 2}, [tagged(floats(2, 1, 2, 2, 2))])

# Transposed convolutions.
conv = {0: 6, 1: 3, 5: 1, 6: 6 * 4 * 9}
with together("deconvolutions"):
    for name, params in [
        ("deconv", {}), ("deconv_stride", {3: 2}), ("deconv_pad", {3: 2, 4: 1}), ("deconv_pads", {3: 2, 4: 1, 14: 0, 15: 2, 16: 1}),
        ("deconv_output_pad", {3: 2, 4: 1, 18: 1}), ("deconv_output_pads", {3: 3, 4: 1, 18: 1, 19: 2}), ("deconv_dilation", {2: 2}),
        ("deconv_same", {3: 2, 4: -233, 20: 10, 21: 8}), ("deconv_same_lower", {3: 2, 4: -234, 20: 10, 21: 8}), ("deconv_relu", {9: 1, 3: 2}),
    ]:
        one(name, "Deconvolution", floats(4, 4, 5), {**conv, **params}, weights)
    one("deconv_depthwise", "DeconvolutionDepthWise", floats(6, 4, 5), {0: 6, 1: 3, 3: 2, 4: 1, 5: 1, 6: 54, 7: 6}, [tagged(floats(6, 1, 3, 3)), floats(6)])
    one("deconv_groups", "DeconvolutionDepthWise", floats(6, 4, 5), {0: 4, 1: 3, 3: 2, 6: 4 * 3 * 9, 7: 2}, [tagged(floats(4, 3, 3, 3))])
    one("deconv_1d", "Deconvolution1D", floats(4, 7), {0: 5, 1: 3, 3: 2, 4: 1, 18: 1, 5: 1, 6: 60}, [tagged(floats(5, 4, 3)), floats(5)])
    one("deconv_3d", "Deconvolution3D", floats(2, 3, 4, 3), {0: 3, 1: 2, 3: 2, 6: 48}, [tagged(floats(3, 2, 2, 2, 2))])

# Pooling.
with together("pooling"):
    for kind in range(2):
        for name, params in [
            ("valid", {5: 1}), ("full", {}), ("full_pad", {3: 1}), ("full_pads", {3: 1, 13: 0, 14: 0, 15: 1}), ("same", {5: 2}), ("same_lower", {5: 3}),
            ("valid_pad", {5: 1, 3: 1}), ("valid_count", {5: 1, 3: 1, 6: 1}), ("full_count", {3: 1, 6: 1}), ("uneven", {1: 2, 11: 3, 12: 1, 5: 1}),
        ]:
            one(f"pool_{kind}_{name}", "Pooling", floats(3, 8, 11), {0: kind, 1: 3, 2: 2, **params})
        one(f"pool_{kind}_global", "Pooling", floats(3, 5, 7), {0: kind, 4: 1})
        one(f"pool_{kind}_global_open", "Pooling", floats(3, 5, 7), {0: kind, 4: 1}, declared=False)
        one(f"pool_{kind}_open", "Pooling", floats(3, 8, 11), {0: kind, 1: 3, 2: 2, 3: 1}, declared=False)
        for name, size in [("one", {8: 1}), ("even", {8: 2, 18: 4}), ("uneven", {8: 3, 18: 5}), ("kept", {8: -233, 18: 2})]:
            one(f"pool_{kind}_adaptive_{name}", "Pooling", floats(3, 8, 10), {0: kind, 7: 1, **size})
        one(f"pool_1d_{kind}", "Pooling1D", floats(3, 11), {0: kind, 1: 3, 2: 2})
        one(f"pool_1d_{kind}_global", "Pooling1D", floats(3, 11), {0: kind, 4: 1})
        one(f"pool_3d_{kind}", "Pooling3D", floats(2, 4, 6, 7), {0: kind, 1: 2, 2: 2, 5: 1})

# Products.
one("inner", "InnerProduct", floats(3, 4, 2), {0: 5, 1: 1, 2: 120, 9: 1}, [tagged(floats(5, 24)), floats(5)])
one("inner_list", "InnerProduct", floats(7), {0: 5, 2: 35}, [tagged(floats(5, 7))])
one("inner_rows", "InnerProduct", floats(3, 7), {0: 5, 1: 1, 2: 35}, [tagged(floats(5, 7)), floats(5)])
one("inner_half", "InnerProduct", floats(7), {0: 3, 1: 1, 2: 21}, [tagged(floats(3, 7).astype(np.float16)), floats(3)])
with together("matmul"):
    for name, a, b, turned in [
        ("1_1", (6,), (6,), 0), ("1_2", (6,), (6, 5), 0), ("2_1", (4, 6), (6,), 0), ("2_2", (4, 6), (6, 5), 0), ("2_2_turned", (4, 6), (5, 6), 1),
        ("3_3", (3, 4, 6), (3, 6, 5), 0), ("3_2", (3, 4, 6), (6, 5), 0), ("2_3", (4, 6), (3, 6, 5), 0), ("1_3", (6,), (3, 6, 5), 0), ("3_1", (3, 4, 6), (6,), 0),
        ("4_4", (2, 3, 4, 6), (2, 3, 6, 5), 0), ("4_3", (2, 3, 4, 6), (3, 6, 5), 0), ("4_4_turned", (2, 3, 4, 6), (1, 3, 5, 6), 1),
    ]:
        one(f"matmul_{name}", "MatMul", [floats(*a), floats(*b)], {0: turned})
with together("gemm"):
    one("gemm", "Gemm", [floats(4, 6), floats(6, 5)], {0: 0.5, 1: 2.0})
    one("gemm_turned", "Gemm", [floats(6, 4), floats(5, 6)], {2: 1, 3: 1})
    for name, c in [("scalar", (1,)), ("rows", (4,)), ("columns", (5,)), ("column", (4, 1)), ("row", (1, 5)), ("whole", (4, 5))]:
        one(f"gemm_c_{name}", "Gemm", [floats(4, 6), floats(6, 5), floats(*c)], {1: 0.5})
    for kind, c in [(0, (1,)), (1, (4,)), (2, (4,)), (3, (4, 5)), (4, (5,))]:
        params = {3: 1, 5: 1, 6: 1, 7: 4, 8: 5, 9: 6, 10: kind}
        one(f"gemm_constant_{kind}", "Gemm", floats(4, 6), params, [tagged(floats(5, 6)), tagged(floats(*c))])
    one("gemm_no_c", "Gemm", floats(4, 6), {3: 1, 5: 1, 6: 1, 7: 0, 8: 5, 9: 6, 10: -1}, [tagged(floats(5, 6))])
    one("gemm_constant_a", "Gemm", floats(6, 5), {4: 1, 6: 1, 7: 4, 9: 6, 10: -1, 11: 1}, [tagged(floats(4, 6))])
    one("gemm_transposed_output", "Gemm", [floats(4, 6), floats(6, 5)], {14: 1})
net = Network()
net.input("in0", p0=5)
net.layer("Embed", "in0", "out0", {0: 6, 1: 9, 2: 1, 3: 54}, [tagged(floats(9, 6)), floats(6)])
case("embed", net, {"in0": random.integers(0, 9, 5, np.int32)})

# Shapes.
with together("shapes"):
    for rank, orders in [(2, 2), (3, 6), (4, 24)]:
        for order in range(orders):
            one(f"permute_{rank}_{order:02}", "Permute", floats(*(2, 3, 4, 5)[:rank]), {0: order})
    for name, shape, params in [
        ("3_1", (3, 4, 2), {0: -1}), ("3_2", (3, 4, 2), {0: 8, 1: -1}), ("1_3", (24,), {0: 2, 1: 3, 2: 4}), ("3_3_kept", (3, 4, 2), {0: 4, 1: 2, 2: 0}),
        ("3_3_kept_width", (3, 4, 2), {0: 0, 1: 3, 2: -1}), ("3_4", (3, 4, 6), {0: 3, 1: 2, 11: 4, 2: 3}), ("4_2", (2, 3, 4, 5), {0: -1, 1: 2}),
        ("2_3", (6, 4), {0: 0, 1: 2, 2: 3}),
    ]:
        one(f"reshape_{name}", "Reshape", floats(*shape), params)
    one("reshape_expression", "Reshape", floats(3, 4, 6), {6: '"//(0w,2),*(0h,2),0c"'})
    one("reshape_expression_open", "Reshape", floats(3, 4, 6), {6: '"*(0w,0h),0c"'}, declared=False)
    one("reshape_expression_other", "Reshape", [floats(3, 4, 6), floats(2, 9)], {6: '"1w,-(1h,-6),-1"'})
    for name, shape, params in [("flags", (1, 4, 1), {0: 1, 2: 1}), ("axes", (3, 1, 5), {3: [1]}), ("negative", (1, 4, 1), {3: [-1]}), ("all", (1, 1), {3: [0, 1]})]:
        one(f"squeeze_{name}", "Squeeze", floats(*shape), params)
    one("expanddims_two", "ExpandDims", floats(3, 4), {3: [0, -1]})
with together("crops"):
    for name, shape, params in [
        ("starts", (5, 6, 7), {9: [1, 2], 10: [4, -1], 11: [0, 2]}), ("starts_open", (5, 6, 7), {9: [-233, 2], 10: [4, -233], 11: [0, 1]}),
        ("starts_all", (5, 6), {9: [1, 2], 10: [3, 6]}), ("offsets", (5, 6, 7), {0: 1, 1: 2, 2: 1, 3: 4, 4: 3, 5: 3}),
        ("offsets_behind", (5, 6, 7), {0: 1, 1: 2, 2: 0, 3: -233, 4: -233, 5: -233, 6: 2, 7: 1, 8: 1}), ("4", (3, 4, 5, 6), {9: [1, 1], 10: [3, 4], 11: [1, 3]}),
    ]:
        one(f"crop_{name}", "Crop", floats(*shape), params)
with together("crops_by_others"):
    one("crop_blob", "Crop", [floats(5, 6, 7), floats(3, 4, 5)], {0: 1, 1: 2, 2: 1})
    one("crop_blob_lower", "Crop", [floats(5, 6, 7), floats(4, 5)], {0: 1, 1: 2})
    one("crop_expression", "Crop", floats(5, 6, 7), {19: '"//(0h,3),1"', 20: '"-(0h,1),4"', 21: '"1,2"'})
with together("paddings"):
    for mode in range(3):
        one(f"padding_{mode}", "Padding", floats(3, 5, 6), {0: 1, 1: 2, 2: 3, 3: 1, 4: mode, 5: 0.7})
    one("padding_matrix", "Padding", floats(5, 6), {0: 1, 2: 2, 4: 1})
one("padding_channels", "Padding", floats(3, 5, 6), {0: 1, 7: 1, 8: 2, 5: 0.7})
one("padding_4", "Padding", floats(2, 3, 4, 5), {0: 1, 2: 2, 7: 1, 8: 2})
with together("shuffles"):
    one("shufflechannel", "ShuffleChannel", floats(6, 3, 4), {0: 2})
    one("shufflechannel_reverse", "ShuffleChannel", floats(6, 3, 4), {0: 2, 1: 1})
    for mode in range(2):
        one(f"reorg_{mode}", "Reorg", floats(3, 4, 6), {0: 2, 1: mode})
        one(f"pixelshuffle_{mode}", "PixelShuffle", floats(12, 3, 4), {0: 2, 1: mode})

# Other positions.
with together("interp"):
    for kind in (1, 2, 3):
        one(f"interp_{kind}_scale", "Interp", floats(3, 5, 6), {0: kind, 1: 2.0, 2: 3.0})
        one(f"interp_{kind}_fraction", "Interp", floats(3, 5, 7), {0: kind, 1: 1.5, 2: 1.7})
        one(f"interp_{kind}_smaller", "Interp", floats(3, 9, 12), {0: kind, 1: 0.5, 2: 0.5})
        one(f"interp_{kind}_size", "Interp", floats(3, 5, 6), {0: kind, 3: 7, 4: 11})
        one(f"interp_{kind}_corners", "Interp", floats(3, 5, 6), {0: kind, 3: 9, 4: 13, 6: 1})
        one(f"interp_{kind}_like", "Interp", [floats(3, 5, 6), floats(2, 8, 10)], {0: kind, 5: 1})
        one(f"interp_{kind}_rows", "Interp", floats(3, 6), {0: kind, 2: 2.0})
        one(f"interp_{kind}_open", "Interp", floats(3, 5, 7), {0: kind, 1: 2.0, 2: 2.0}, declared=False)
        one(f"interp_{kind}_open_fraction", "Interp", floats(3, 5, 7), {0: kind, 1: 1.5, 2: 1.7}, declared=False)
    one("interp_list", "Interp", floats(4), {0: 2, 3: 3, 4: 5})
    one("interp_expression", "Interp", floats(3, 5, 6), {0: 1, 9: '"*(0w,2),*(0h,3)"'})
with together("sampling"):
    for kind in (1, 2, 3):
        for padding in (1, 2, 3):
            one(f"gridsample_{kind}_{padding}", "GridSample", [floats(3, 5, 6), floats(4, 7, 2) * 0.7], {0: kind, 1: padding, 2: padding % 2})
    one("gridsample_permuted", "GridSample", [floats(3, 5, 6), floats(2, 4, 7) * 0.7], {0: 1, 1: 1, 3: 1})
    one("unfold", "Unfold", floats(3, 6, 7), {1: 3, 11: 2, 4: 1, 3: 2})
    one("fold", "Fold", floats(3 * 6, 3 * 4), {1: 3, 11: 2, 3: 2, 4: 1, 20: 7, 21: 4})

# Norms.
with together("norms"):
    for axes, shape in [(1, (7,)), (1, (5, 7)), (1, (3, 5, 7)), (2, (3, 5, 7)), (1, (2, 3, 5, 4)), (2, (2, 3, 5, 4)), (3, (2, 3, 5, 4))]:
        size = int(np.prod(shape[-axes:]))
        one(f"layernorm_{len(shape)}_{axes}", "LayerNorm", floats(*shape), {0: size, 1: 1e-5}, [floats(size), floats(size)])
        one(f"rmsnorm_{len(shape)}_{axes}", "RMSNorm", floats(*shape), {0: size, 1: 1e-5}, [floats(size)])
    one("layernorm_plain", "LayerNorm", floats(5, 7), {0: 7, 1: 1e-5, 2: 0})
    one("rmsnorm_plain", "RMSNorm", floats(5, 7), {0: 7, 1: 1e-5, 2: 0})
    for shape in [(6,), (6, 7), (6, 4, 5)]:
        one(f"groupnorm_{len(shape)}", "GroupNorm", floats(*shape), {0: 3, 1: 6, 2: 1e-3}, [floats(6), floats(6)])
    one("groupnorm_plain", "GroupNorm", floats(6, 4, 5), {0: 2, 1: 6, 2: 1e-3, 3: 0})
    one("instancenorm", "InstanceNorm", floats(6, 4, 5), {0: 6, 1: 1e-3}, [floats(6), floats(6)])
    one("instancenorm_plain", "InstanceNorm", floats(6, 4, 5), {0: 6, 1: 1e-3, 2: 0})
    for region in range(2):
        one(f"lrn_{region}", "LRN", floats(7, 4, 5), {0: region, 1: 5, 2: 0.3, 3: 0.75, 4: 1.5})
    for name, params in [("channel", {4: 1}), ("spatial", {0: 1, 4: 0}), ("both", {0: 1, 4: 1}), ("pytorch", {4: 1, 9: 1}), ("tensorflow", {4: 1, 9: 2})]:
        one(f"normalize_{name}", "Normalize", floats(4, 5, 6), {2: 1e-3, 3: 4, **params}, [positive(4)])
    one("normalize_shared", "Normalize", floats(4, 5, 6), {1: 1, 2: 1e-3, 3: 1}, [positive(1)])
    for variance in range(2):
        for across in range(2):
            one(f"mvn_{variance}_{across}", "MVN", floats(4, 5, 6), {0: variance, 1: across, 2: 1e-3})
with together("reductions"):
    for number in range(11):
        x = positive(3, 4, 5) if number in (9, 6) else floats(3, 4, 5)
        one(f"reduce_{number:02}", "Reduction", x, {0: number, 1: 0, 3: [1, -1], 5: 1, 4: number % 2})
        one(f"reduce_{number:02}_all", "Reduction", x, {0: number, 1: 1, 4: number % 2})
    one("reduce_factor", "Reduction", floats(3, 4, 5), {0: 3, 1: 0, 2: 0.5, 3: [0], 5: 1})
    one("reduce_list", "Reduction", floats(6), {0: 0, 1: 0, 3: [0], 5: 1})

# Recurrent layers and attention.
with together("recurrent"):
    for kind, gates, biases in [("LSTM", 4, 4), ("GRU", 3, 4), ("RNN", 1, 1)]:
        for direction in range(3):
            d, hidden, size = 1 + (direction == 2), 5, 6
            weights = [tagged(floats(d, gates * hidden, size)), tagged(floats(d, biases, hidden)), tagged(floats(d, gates * hidden, hidden))]
            params = {0: hidden, 1: d * gates * hidden * size, 2: direction}
            one(f"{kind.lower()}_{direction}", kind, floats(7, size), params, weights)
            states = 2 if kind == "LSTM" else 1
            one(f"{kind.lower()}_{direction}_states", kind, [floats(7, size)] + [floats(d, hidden) for _ in range(states)], params, weights, tops=1 + states)
    attention = [tagged(floats(8, 8)), floats(8), tagged(floats(8, 8)), floats(8), tagged(floats(8, 8)), floats(8), tagged(floats(8, 8)), floats(8)]
    params = {0: 8, 1: 2, 2: 64}
with together("attention"):
    one("attention_self", "MultiHeadAttention", floats(5, 8), params, attention)
    one("attention_two", "MultiHeadAttention", [floats(5, 8), floats(7, 8)], params, attention)
    one("attention_mask", "MultiHeadAttention", [floats(5, 8), floats(7, 8), floats(7, 8), floats(5, 7)], {**params, 5: 1}, attention)
    mixed = [tagged(floats(8, 6)), floats(8), tagged(floats(8, 5)), floats(8), tagged(floats(8, 4)), floats(8), tagged(floats(6, 8)), floats(6)]
    one("attention_sizes", "MultiHeadAttention", [floats(5, 6), floats(7, 5), floats(7, 4)], {0: 8, 1: 2, 2: 48, 3: 5, 4: 4}, mixed)
    qkv = [floats(4, 5, 8), floats(4, 7, 8), floats(4, 7, 6)]
    one("sdpa", "SDPA", qkv, {})
    one("sdpa_scale", "SDPA", qkv, {6: 0.2})
    one("sdpa_mask", "SDPA", [*qkv, floats(5, 7)], {5: 1})
    one("sdpa_mask_heads", "SDPA", [*qkv, floats(4, 5, 7)], {5: 1})
    one("sdpa_groups", "SDPA", [qkv[0], qkv[1][:2], qkv[2][:2]], {})
    for mode in range(2):
        one(f"rotary_{mode}", "RotaryEmbed", [floats(3, 5, 8), floats(5, 4), floats(5, 4)], {0: mode})
    letters = lambda text: [ord(c) for c in text]
    one("einsum_product", "Einsum", [floats(3, 4), floats(4, 5)], {0: letters("il,lj->ij")})
    one("einsum_batch", "Einsum", [floats(2, 3, 4), floats(2, 5, 4)], {0: letters("ijl,ikl->ijk")})
    one("einsum_trace", "Einsum", floats(4, 4), {0: letters("ii")})

# Weights of 8 bits.
def scales(weights):
    return 127 / np.abs(weights).reshape(len(weights), -1).max(1)


w = floats(6, 4, 3, 3)
s = scales(w)
rounded = np.clip(np.round(w * s[:, None, None, None]), -127, 127).astype(np.int8)
x = floats(4, 9, 8)
into, out = np.float32([127 / np.abs(x).max()]), np.float32([9.0])
# A number that is rounded to another integer moves the output by a step.
quantized = {"rtol": 1e-3, "atol": 2e-3}
one("conv_int8", "Convolution", x, {0: 6, 1: 3, 4: 1, 5: 1, 6: 216, 8: 2, 9: 1}, [tagged(rounded), floats(6), s, into], **quantized)
one("conv_int8_of_floats", "Convolution", x, {0: 6, 1: 3, 5: 1, 6: 216, 8: 2}, [tagged(w), floats(6), s, into], **quantized)
w = floats(4, 1, 3, 3)
s = scales(w)
rounded = np.clip(np.round(w * s[:, None, None, None]), -127, 127).astype(np.int8)
one("conv_int8_depthwise", "ConvolutionDepthWise", x, {0: 4, 1: 3, 4: 1, 5: 1, 6: 36, 7: 4, 8: 1}, [tagged(rounded), floats(4), s, into], **quantized)
w = floats(5, 12)
s = scales(w)
rounded = np.clip(np.round(w * s[:, None]), -127, 127).astype(np.int8)
x = floats(12)
into = np.float32([127 / np.abs(x).max()])
one("inner_int8", "InnerProduct", x, {0: 5, 1: 1, 2: 60, 8: 2}, [tagged(rounded), floats(5), s, into], **quantized)
one("quantize", "Quantize", floats(4, 9, 8), {0: 4}, [positive(4) * 20], whole=np.int8)

# Networks of several layers, one of them in words.
net = Network()
net.input("data", p0=16, p1=12, p2=3)
x = net.layer("Convolution", "data", "c1", {0: 8, 1: 3, 3: 2, 4: 1, 5: 1, 6: 216, 9: 1}, [tagged(floats(8, 3, 3, 3).astype(np.float16)), floats(8)])
net.layer("Split", x, ["s1", "s2", "s3"])
net.layer("Pooling", "s1", "pool", {0: 1, 4: 1})
net.layer("InnerProduct", "pool", "fc1", {0: 4, 1: 1, 2: 32, 9: 1}, [tagged(floats(4, 8)), floats(4)])
net.layer("InnerProduct", "fc1", "fc2", {0: 8, 1: 1, 2: 32, 9: 4}, [tagged(floats(8, 4)), floats(8)])
net.layer("BinaryOp", ["s2", "fc2"], "gated", {0: 2})
net.layer("MemoryData", [], "kept", {0: 1, 1: 1, 2: 8}, [floats(8)])
net.layer("BinaryOp", ["gated", "kept"], "shifted", {0: 0})
net.layer("Concat", ["shifted", "s3"], "joined", {0: 0})
net.layer("ShuffleChannel", "joined", "shuffled", {0: 2})
net.layer("Interp", "shuffled", "larger", {0: 2, 1: 2.0, 2: 2.0})
net.layer("Deconvolution", "larger", "picture", {0: 3, 1: 4, 3: 2, 4: 1, 6: 768}, [tagged(floats(3, 16, 4, 4))])
net.layer("Flatten", "pool", "unused")
net.layers.pop(), net.blobs.pop()
numbers = {"Input": 16, "Convolution": 6, "Split": 33, "Pooling": 21, "InnerProduct": 15, "BinaryOp": 40, "MemoryData": 19, "Concat": 5,
           "ShuffleChannel": 52, "Interp": 50, "Deconvolution": 8}
data = {"data": floats(3, 12, 16)}
case("network", net, data)
case("network_binary", net, data, binary=net.binary(numbers))
case("network_other_size", net, {"data": floats(3, 10, 14)})

cases.write()
print("\n".join(failed), file=sys.stderr)
