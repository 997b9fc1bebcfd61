"""MNN networks of one operator and more with random weights, and what MNN makes of them.

    python tools/references/mnn_operators.py

Needs MNN, numpy and onnx. `-v` names each case before it runs.
"""

import contextlib
import sys

import numpy as np
from onnx import helper

from common import Cases, message
from mnn_network import Net, apart, converted, described, graph, ran

cases = Cases("mnn")
random = np.random.default_rng(7)
failed = []


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def positive(*shape):
    return random.uniform(0.3, 2, shape).astype(np.float32)


def ints(low, high, *shape):
    return random.integers(low, high, shape).astype(np.int32)


def case(name, nodes, inputs, outputs, constants=None, flags=(), run_with=None, rtol=1e-4, atol=2e-5):
    """`inputs` are arrays, or lists of dimensions, with the arrays that the network runs with in `run_with`."""
    print(name, file=sys.stderr) if "-v" in sys.argv else None
    arrays = run_with or inputs
    try:
        network, weights = apart(converted, graph(nodes, inputs, outputs, constants or {}), list(flags))
        record(name, network, weights, arrays, outputs, rtol, atol)
    except ValueError as error:
        failed.append(f"{name}: {error}")


def record(name, network, weights, arrays, outputs, rtol, atol):
    """Runs a network and keeps what it gives."""
    order, named, last = apart(described, network)
    outputs = named or outputs
    arrays = {key: arrays[key] for key in order}
    made = apart(ran, network, weights, arrays, outputs, last)
    for value in made:
        if not np.isfinite(value).all():
            raise ValueError("no numbers")
    beside = ["model.mnn.weight"] if weights else []
    index = {"name": name, "kind": "mnn", "path": name, "model": "model.mnn", "beside": beside, "data_sets": 1, "rtol": rtol, "atol": atol,
             "nondeterministic": False}
    files = {"model.mnn": network, **({"model.mnn.weight": weights} if weights else {})}
    for what, values in (("input", arrays.values()), ("output", made)):
        for i, value in enumerate(values):
            files[f"test_data_set_0/{what}_{i}.pb"] = message(value).SerializeToString()
    cases.add_files(index, files)


# Inputs of the network at hand, which operators share.
given = {}


def data(*shape):
    """An input of any numbers; one of another `shape` is another."""
    return given.setdefault(shape, floats(*shape))


def above(*shape):
    """An input of numbers above 0."""
    return given.setdefault(("above", *shape), positive(*shape))


# What goes into the network at hand: nodes, inputs, outputs, constants.
shared = None


@contextlib.contextmanager
def together(name, **more):
    """A network of operators beside each other: many need few files."""
    global shared
    shared = [], {}, [], {}
    given.clear()
    yield
    nodes, inputs, outputs, constants = shared
    shared = None
    case(name, nodes, inputs, outputs, constants, **more)


def one(name, kind, xs, consts=(), outs=1, left_out=(), **attributes):
    """An operator on inputs and then constants; of ONNX's optional inputs those at `left_out` are empty."""
    nodes, inputs, outputs, constants = shared
    xs = xs if isinstance(xs, list) else [xs]
    names = []
    for i, x in enumerate(xs):
        same = next((key for key, value in inputs.items() if value is x), f"{name}.in{i}")
        inputs[same] = x
        names.append(same)
    for i, c in enumerate(consts):
        constants[f"{name}.c{i}"] = c
        names.append(f"{name}.c{i}")
    for i in left_out:
        names.insert(i, "")
    made = [f"{name}.out{i}" for i in range(outs)]
    nodes.append(helper.make_node(kind, names, made, name=name, **attributes))
    outputs += made


def i64(*numbers):
    return np.array(numbers, np.int64)


with together("activations"):
    x = floats(1, 3, 5, 7)
    for name, kind, attributes in [
        ("relu", "Relu", {}), ("leaky", "LeakyRelu", {"alpha": 0.2}), ("elu", "Elu", {"alpha": 0.7}), ("selu", "Selu", {}), ("sigmoid", "Sigmoid", {}),
        ("tanh", "Tanh", {}), ("softplus", "Softplus", {}), ("softsign", "Softsign", {}), ("hardsigmoid", "HardSigmoid", {}), ("hardswish", "HardSwish", {}),
        ("exp", "Exp", {}), ("abs", "Abs", {}), ("neg", "Neg", {}), ("floor", "Floor", {}), ("ceil", "Ceil", {}), ("round", "Round", {}), ("sign", "Sign", {}),
        ("sin", "Sin", {}), ("cos", "Cos", {}), ("atan", "Atan", {}), ("sinh", "Sinh", {}), ("cosh", "Cosh", {}), ("asinh", "Asinh", {}), ("erf", "Erf", {}),
    ]:
        one(name, kind, data(2, 3, 5), **attributes)
    for name in ("Log", "Sqrt", "Reciprocal"):
        one(name.lower(), name, positive(2, 3, 5))
    for name in ("Tan", "Asin", "Acos", "Atanh"):
        one(name.lower(), name, np.clip(floats(2, 3, 5) / 4, -0.9, 0.9))
    one("acosh", "Acosh", above(2, 3, 5) + 1)
    one("clip", "Clip", data(2, 3, 5), [np.float32(-0.5), np.float32(0.8)])
    one("prelu", "PRelu", data(1, 3, 5, 4), [positive(3, 1, 1)])
    one("prelu_one", "PRelu", data(1, 3, 5, 4), [positive(1)])
    one("identity", "Identity", data(2, 3))
with together("binary"):
    a, b = data(2, 3, 5), above(2, 3, 5)
    for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        one(kind.lower(), kind, [a, b])
        one(f"{kind.lower()}_row", kind, [a, positive(5)])
        one(f"{kind.lower()}_number", kind, [data(1, 4, 3, 2)], [np.float32(1.5)])
    one("pow", "Pow", [b, floats(2, 3, 5)])
    one("mod", "Mod", [a, b], fmod=1)
    one("max_three", "Max", [data(2, 3), floats(2, 3), floats(2, 3)])
    one("sum_three", "Sum", [data(2, 3), floats(2, 3), floats(2, 3)])
    one("column", "Add", [data(2, 3, 5)], [floats(3, 1)])
    one("channel", "Mul", [data(1, 3, 4, 5)], [floats(3, 1, 1)])
with together("integers"):
    a, b = ints(-9, 9, 3, 4), ints(1, 5, 3, 4)
    for kind in ("Add", "Sub", "Mul", "Div", "Max", "Min"):
        one(kind.lower(), kind, [a, b])
    one("mod", "Mod", [ints(-9, 9, 3, 4), b])
    one("abs", "Abs", ints(-9, 9, 3, 4))
    one("neg", "Neg", ints(-9, 9, 3, 4))
    one("to_float", "Cast", ints(-9, 9, 3, 4), to=1)
    one("to_int", "Cast", data(3, 4) * 5, to=6)
    one("to_bool_and_back", "Cast", ints(-1, 2, 3, 4), to=9)
    one("sum", "ReduceSum", ints(-9, 9, 3, 4), [i64(1)])
    one("largest", "ReduceMax", ints(-9, 9, 3, 4), axes=[0])
with together("comparisons"):
    # MNN takes numbers for smaller that are larger by 1 to 2.
    a, b = ints(0, 4, 3, 4).astype(np.float32) / 4, ints(0, 4, 3, 4).astype(np.float32) / 4
    for kind in ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"):
        one(kind.lower(), kind, [a, b])
    nodes, inputs, outputs, constants = shared
    nodes += [helper.make_node("Greater", ["greater.in0", "greater.in1"], ["chosen.condition"], name="condition"),
              helper.make_node("LessOrEqual", ["greater.in0", "greater.in1"], ["chosen.other"], name="other"),
              helper.make_node("And", ["chosen.condition", "chosen.other"], ["chosen.and"], name="and"),
              helper.make_node("Or", ["chosen.condition", "chosen.other"], ["chosen.or"], name="or"),
              helper.make_node("Not", ["chosen.condition"], ["chosen.not"], name="not"),
              helper.make_node("Where", ["chosen.not", "greater.in0", "greater.in1"], ["chosen.out"], name="where")]
    outputs += ["chosen.and", "chosen.or", "chosen.out"]

# Convolutions.
with together("convolutions"):
    for name, x, w, bias, attributes in [
        ("plain", (1, 3, 7, 6), (2, 3, 3, 3), False, {}), ("bias", (2, 3, 7, 6), (2, 3, 3, 3), True, {"pads": [1, 1, 1, 1]}),
        ("strides", (1, 3, 7, 6), (2, 3, 3, 2), True, {"strides": [2, 1], "pads": [1, 0, 1, 1]}),
        ("sides", (1, 3, 7, 6), (2, 3, 3, 3), True, {"pads": [2, 1, 0, 1]}),
        ("dilated", (1, 3, 7, 6), (2, 3, 3, 3), True, {"dilations": [2, 1], "pads": [1, 1, 1, 1]}),
        ("one_by_one", (1, 6, 5, 4), (3, 6, 1, 1), True, {}), ("groups", (1, 6, 7, 6), (4, 3, 3, 3), True, {"group": 2}),
        ("depthwise", (1, 5, 7, 6), (5, 1, 3, 3), True, {"group": 5, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("depthwise_more", (1, 3, 7, 6), (6, 1, 3, 3), True, {"group": 3}),
        ("same_upper", (1, 2, 8, 7), (3, 2, 3, 3), True, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ("row", (1, 3, 9), (4, 3, 3), True, {"pads": [1, 1]}),
    ]:
        one(name, "Conv", data(*x), [floats(*w)] + ([floats(w[0])] if bias else []), **attributes)
    one("given", "Conv", [data(1, 3, 6, 5), floats(4, 3, 3, 3)])
with together("activated"):
    nodes, inputs, outputs, constants = shared
    for name, then, more in [("relu", "Relu", []), ("relu6", "Clip", [np.float32(0), np.float32(6)])]:
        inputs[f"{name}.x"], constants[f"{name}.w"] = floats(1, 3, 6, 5) * 3, floats(4, 3, 3, 3)
        consts = []
        for i, c in enumerate(more):
            constants[f"{name}.c{i}"] = c
            consts.append(f"{name}.c{i}")
        nodes += [helper.make_node("Conv", [f"{name}.x", f"{name}.w"], [f"{name}.between"], name=name),
                  helper.make_node(then, [f"{name}.between", *consts], [f"{name}.y"], name=f"{name}.after")]
        outputs.append(f"{name}.y")
with together("deconvolutions"):
    for name, x, w, bias, attributes in [
        ("plain", (1, 3, 5, 4), (3, 4, 3, 3), False, {}), ("strides", (2, 3, 5, 4), (3, 4, 3, 3), True, {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("more", (1, 3, 5, 4), (3, 4, 3, 3), True, {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
        ("groups", (1, 4, 5, 4), (4, 3, 3, 2), True, {"group": 2, "strides": [2, 2]}),
        ("depthwise", (1, 4, 5, 4), (4, 1, 4, 4), True, {"group": 4, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("dilated", (1, 2, 5, 4), (2, 3, 3, 3), True, {"dilations": [2, 2]}),
        ("row", (1, 3, 7), (3, 2, 4), True, {"strides": [2]}),
    ]:
        one(name, "ConvTranspose", data(*x), [floats(*w)] + ([floats(w[1] * attributes.get("group", 1))] if bias else []), **attributes)
with together("pooling"):
    for name, kind, attributes in [
        ("max", "MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}), ("max_pad", "MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("max_sides", "MaxPool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [0, 0, 1, 1]}),
        ("max_ceil", "MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("mean", "AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("mean_pad", "AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("mean_pad_counted", "AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
        ("mean_ceil", "AveragePool", {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ("max_same", "MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ("global_max", "GlobalMaxPool", {}), ("global_mean", "GlobalAveragePool", {}),
    ]:
        one(name, kind, data(1, 3, 9, 8), **attributes)
    one("row", "MaxPool", data(1, 3, 9), kernel_shape=[3], strides=[2])
with together("sampling"):
    x = floats(1, 2, 5, 6)
    for mode in ("nearest", "linear", "cubic"):
        for coordinates in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            if (mode, coordinates) in [("nearest", "align_corners"), ("cubic", "half_pixel"), ("cubic", "pytorch_half_pixel")]:
                continue
            nearest = {"nearest_mode": "floor"} if mode == "nearest" else {}
            one(f"{mode}_{coordinates}", "Resize", data(1, 1, 3, 4), [np.float32([1, 1, 2, 1.5])], left_out=(1,), mode=mode,
                coordinate_transformation_mode=coordinates, cubic_coeff_a=-0.75, **nearest)
    one("round", "Resize", data(1, 1, 3, 4), [np.float32([1, 1, 2, 2])], left_out=(1,), mode="nearest", nearest_mode="round_prefer_floor")
    one("sizes", "Resize", data(1, 2, 5, 6), [i64(1, 2, 7, 9)], left_out=(1, 2), mode="linear")
    one("smaller_curve", "Resize", data(1, 2, 8, 6), [i64(1, 2, 3, 4)], left_out=(1, 2), mode="cubic", cubic_coeff_a=-0.75)
    one("smaller", "Resize", data(1, 2, 8, 6), [i64(1, 2, 3, 4)], left_out=(1, 2), mode="linear")
    for mode in ("bilinear", "nearest"):
        for border in ("zeros", "border"):
            one(f"grid_{mode}_{border}", "GridSample", [data(1, 2, 5, 6), floats(1, 4, 3, 2)], mode=mode, padding_mode=border, align_corners=border == "border")

# Norms, reductions.
with together("norms"):
    one("batch", "BatchNormalization", data(1, 3, 5, 4), [positive(3), floats(3), floats(3), positive(3)])
    one("batch_list", "BatchNormalization", data(2, 6), [positive(6), floats(6), floats(6), positive(6)])
    one("instance", "InstanceNormalization", data(2, 3, 5, 4), [positive(3), floats(3)], epsilon=1e-3)
    one("layer", "LayerNormalization", data(2, 3, 8), [positive(8), floats(8)], axis=-1)
    one("layer_two", "LayerNormalization", data(2, 3, 8), [positive(3, 8), floats(3, 8)], axis=1)
    one("lrn", "LRN", data(1, 6, 5, 4), size=3, alpha=0.2, beta=0.6, bias=1.5)
    one("mean_variance", "MeanVarianceNormalization", data(2, 3, 5, 4), axes=[2, 3])
    one("l2", "LpNormalization", data(2, 3, 5), axis=1, p=2)
with together("reductions"):
    for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"):
        name, x = f"Reduce{kind}", above(2, 3, 5)
        axes = lambda *a: {"consts": [i64(*a)]} if kind == "Sum" else {"axes": list(a)}
        one(kind, name, x, **axes(1))
        one(f"{kind}_kept", name, x, keepdims=1, **axes(0, 2))
        one(f"{kind}_gone", name, x, keepdims=0, **axes(-1))
    one("softmax", "Softmax", data(2, 3, 5), axis=1)
    one("softmax_last", "Softmax", data(2, 3, 5), axis=-1)
    one("log_softmax", "LogSoftmax", data(2, 5), axis=1)
    one("softmax_picture", "Softmax", data(1, 3, 4, 5), axis=1)
    one("argmax", "ArgMax", data(2, 5, 3), axis=1, keepdims=0)
    one("argmax_kept", "ArgMax", data(2, 5, 3), axis=2, keepdims=1)
    one("argmin", "ArgMin", data(2, 5, 3), axis=0, keepdims=0)
    one("cumsum", "CumSum", data(2, 5, 3), [np.int32(1)])
    one("cumsum_back", "CumSum", data(2, 5, 3), [np.int32(2)], reverse=1, exclusive=1)
    one("topk", "TopK", data(3, 7), [i64(3)], outs=2)
    one("topk_small", "TopK", data(3, 7), [i64(2)], outs=2, largest=0, axis=1)
    one("topk_first", "TopK", data(7, 3), [i64(2)], outs=2, axis=0)

# Shapes.
with together("arrangement"):
    one("reshape", "Reshape", data(2, 3, 4), [i64(4, -1)])
    one("reshape_kept", "Reshape", data(2, 3, 4), [i64(0, 2, -1)])
    one("flatten", "Flatten", data(2, 3, 4, 5), axis=2)
    one("transpose", "Transpose", data(2, 3, 4), perm=[2, 0, 1])
    one("transpose_all", "Transpose", data(2, 3, 4))
    one("squeeze", "Squeeze", data(2, 1, 3, 1), [i64(1, 3)])
    one("unsqueeze", "Unsqueeze", data(2, 3), [i64(0, -1)])
    one("concat", "Concat", [data(2, 3), floats(2, 4)], axis=1)
    one("concat_pictures", "Concat", [data(1, 3, 4, 5), floats(1, 2, 4, 5)], axis=1)
    one("concat_last", "Concat", [data(2, 1, 3), floats(2, 1, 2)], axis=-1)
    one("split", "Split", data(2, 6, 3), [i64(1, 2, 3)], outs=3, axis=1)
    one("split_equal", "Split", data(2, 6, 3), outs=2, axis=1)
    one("tile", "Tile", data(2, 3), [i64(2, 3)])
    one("expand", "Expand", data(3, 1), [i64(2, 3, 4)])
    one("depth_to_space", "DepthToSpace", data(1, 8, 2, 3), blocksize=2)
    one("depth_to_space_crd", "DepthToSpace", data(1, 8, 2, 3), blocksize=2, mode="CRD")
    one("space_to_depth", "SpaceToDepth", data(1, 2, 4, 6), blocksize=2)
    one("pad", "Pad", data(2, 3), [i64(1, 0, 2, 1), np.float32(0.5)])
    one("pad_reflect", "Pad", data(1, 2, 5, 4), [i64(0, 0, 1, 2, 0, 0, 2, 1)], mode="reflect")
    one("pad_edge", "Pad", data(1, 2, 5, 4), [i64(0, 0, 1, 2, 0, 0, 2, 1)], mode="edge")
    one("slice", "Slice", data(5, 6), [i64(1, -4), i64(4, 6)])
    one("slice_axes", "Slice", data(5, 6, 4), [i64(0), i64(-1), i64(1)])
    one("slice_steps", "Slice", data(7, 6), [i64(1), i64(7), i64(0), i64(2)])
    one("slice_back", "Slice", data(7, 6), [i64(-1), i64(-100), i64(0), i64(-1)])
    one("reverse_sequence", "ReverseSequence", [data(4, 3, 2)], [i64(2, 4, 1)], batch_axis=1, time_axis=0)
with together("places"):
    one("gather", "Gather", data(5, 3), [i64(2, 0, 4)])
    one("gather_axis", "Gather", data(3, 5, 2), [np.array([[1, 0], [4, 2]], np.int64)], axis=1)
    one("gather_one", "Gather", data(3, 5), [np.int64(2)], axis=1)
    one("gather_given", "Gather", [data(6, 4), ints(0, 6, 2, 3)])
    one("gather_elements", "GatherElements", data(3, 4), [random.integers(0, 3, (2, 4))], axis=0)
    one("gather_nd", "GatherND", data(3, 4, 2), [np.array([[0, 1], [2, 3]], np.int64)])
    one("scatter_nd", "ScatterND", [data(4, 3)], [np.array([[1], [3]], np.int64), floats(2, 3)])
    one("scatter_elements", "ScatterElements", [data(4, 3)], [np.array([[1, 0, 2]], np.int64), floats(1, 3)], axis=0)
    one("one_hot", "OneHot", [ints(0, 4, 5)], [np.int64(4), np.float32([0.5, 2])])
    one("one_hot_first", "OneHot", [ints(0, 4, 2, 3)], [np.int64(4), np.float32([0, 1])], axis=0)
with together("products"):
    one("matrices", "MatMul", [data(3, 4), floats(4, 5)])
    one("stacks", "MatMul", [data(2, 3, 4), floats(2, 4, 5)])
    one("broadcast", "MatMul", [data(2, 3, 3, 4), floats(4, 5)])
    one("weights", "MatMul", data(2, 6), [floats(6, 5)])
    one("weights_stack", "MatMul", data(2, 3, 6), [floats(6, 5)])
    one("list", "MatMul", [data(4), floats(4, 5)])
    one("gemm", "Gemm", data(3, 4), [floats(4, 5), floats(5)])
    one("gemm_turned", "Gemm", data(3, 4), [floats(5, 4), floats(5)], transB=1)
    one("gemm_factors", "Gemm", [data(3, 4), floats(3, 5)], transA=1, alpha=0.5)
    one("einsum", "Einsum", [data(2, 3, 4), floats(2, 5, 4)], equation="bid,bjd->bij")

for name, gates in [("lstm", 4), ("gru", 3), ("rnn", 1)]:
    for directions in (1, 2):
        w, r, b = floats(directions, gates * 2, 3) / 2, floats(directions, gates * 2, 2) / 2, floats(directions, gates * 4) / 2
        made = ["y", "h", "c"][:3 if name == "lstm" else 2]
        node = helper.make_node(name.upper(), ["x", "w", "r", "b"], made, hidden_size=2, name=name, direction=["forward", "bidirectional"][directions - 1],
                                **({"linear_before_reset": 1} if name == "gru" else {}))
        case(f"{name}_{directions}", [node], {"x": floats(4, 1, 3)}, ["y"], {"w": w, "r": r, "b": b})
        if name != "gru":
            # The operator itself, not a loop.
            case(f"{name}_{directions}_whole", [node], {"x": floats(4, 1, 3)}, made, {"w": w, "r": r, "b": b}, ["--useOriginRNNImpl"])

# Control flow.
then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"], name="t")], "then", [], [helper.make_tensor_value_info("t", 1, None)])
other = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["e"], name="e")], "else", [], [helper.make_tensor_value_info("e", 1, None)])
w = floats(2, 3)
for number in (-1.0, 1.0):
    nodes = [helper.make_node("Greater", ["a", "zero"], ["c"], name="c"), helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other, name="choice")]
    case(f"branch_{int(number > 0)}", nodes, {"x": floats(2, 3), "a": np.float32([number])}, ["y"], {"w": w, "zero": np.float32([0])})
body = helper.make_graph(
    [helper.make_node("Mul", ["s", "half"], ["next"], name="next"), helper.make_node("Identity", ["go"], ["goes"], name="goes"),
     helper.make_node("Identity", ["next"], ["kept"], name="kept"), helper.make_node("Constant", [], ["half"], value_float=0.5, name="half")],
    "body", [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("go", 9, []), helper.make_tensor_value_info("s", 1, [2, 3])],
    [helper.make_tensor_value_info("goes", 9, []), helper.make_tensor_value_info("next", 1, [2, 3]), helper.make_tensor_value_info("kept", 1, [2, 3])])
case("loop", [helper.make_node("Loop", ["n", "", "x"], ["last", "all"], body=body, name="turns")], {"x": floats(2, 3)}, ["last", "all"], {"n": np.int64(4)})

# Weights in other forms.
net = [helper.make_node("Conv", ["x", "w"], ["a"], name="first", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"], name="then"),
       helper.make_node("Conv", ["b", "v"], ["c"], name="second", group=8), helper.make_node("GlobalAveragePool", ["c"], ["d"], name="mean"),
       helper.make_node("Flatten", ["d"], ["e"], name="list"), helper.make_node("Gemm", ["e", "u", "t"], ["y"], name="last", transB=1)]
weights = {"w": floats(8, 3, 3, 3), "v": floats(8, 1, 3, 3), "u": floats(6, 8), "t": floats(6)}
x = floats(1, 3, 7, 6)
for name, flags in [("network", []), ("halves", ["--fp16"]), ("int8", ["--weightQuantBits", "8"]), ("int8_symmetric", ["--weightQuantBits", "8", "--weightQuantAsymmetric", "0"]),
                    ("int4", ["--weightQuantBits", "4"]), ("int3", ["--weightQuantBits", "3"]), ("int2", ["--weightQuantBits", "2"]),
                    ("beside", ["--saveExternalData", "1"]),
                    ("int8_beside", ["--weightQuantBits", "8", "--saveExternalData", "1"])]:
    case(name, net, {"x": x}, ["y"], weights, flags)
gemm = [helper.make_node("Gemm", ["x", "u"], ["y"], name="product", transB=1)]
case("int4_blocks", gemm, {"x": floats(2, 64)}, ["y"], {"u": floats(6, 64)}, ["--weightQuantBits", "4", "--weightQuantBlock", "32"])
# The converter takes an open batch for 1.
case("open", net, {"x": ["n", 3, "h", "w"]}, ["y"], weights, run_with={"x": floats(1, 3, 9, 8)})
# A shape that is computed: what exporters write for `view`.
chain = [helper.make_node("Shape", ["x"], ["s"], name="s"), helper.make_node("Gather", ["s", "zero"], ["n"], name="n"),
         helper.make_node("Unsqueeze", ["n", "first"], ["m"], name="m"), helper.make_node("Concat", ["m", "rest"], ["t"], axis=0, name="t"),
         helper.make_node("Reshape", ["x", "t"], ["y"], name="y"), helper.make_node("Range", ["start", "n", "step"], ["r"], name="r"),
         helper.make_node("NonZero", ["x"], ["z"], name="z"), helper.make_node("Size", ["x"], ["count"], name="count"),
         helper.make_node("ConstantOfShape", ["s"], ["o"], name="o")]
case("shapes", chain, {"x": ["n", 3, 4]}, ["y", "r", "z", "o"], {"zero": np.int64(0), "first": i64(0), "rest": i64(-1), "start": np.int64(0), "step": np.int64(1)},
     run_with={"x": floats(1, 3, 4)})



# What the converter makes of other formats, or made in older versions: networks in the words of the schema.
def schema_case(name, net, rtol=1e-4, atol=2e-5):
    print(name, file=sys.stderr) if "-v" in sys.argv else None
    try:
        record(name, apart(net.written), b"", net.arrays, net.outputs, rtol, atol)
    except ValueError as error:
        failed.append(f"{name}: {error}")
        network = apart(net.written)
        for output in net.outputs:
            try:
                apart(ran, network, b"", net.arrays, [output], apart(described, network)[2])
            except ValueError as error:
                failed.append(f"{name}, {output}: {error}")


def listed(array):
    return np.asarray(array).ravel().tolist()


def axis(n):
    return {"axis": n}


net = Net()
picture = net.input(floats(1, 4, 5, 6))
for kind, main, table in [
    ("Sigmoid", None, None), ("TanH", None, None), ("Threshold", {"alpha": 0.2}, "ELU"),
    ("PReLU", {"slopeCount": 4, "slope": listed(positive(4))}, "PRelu"), ("Scale", {"channels": 4, "scaleData": listed(floats(4)), "biasData": listed(floats(4))}, None),
    ("Normalize", {"acrossSpatial": 0, "channelShared": 0, "eps": 1e-3, "scale": listed(positive(4))}, None),
    ("Normalize", {"acrossSpatial": 1, "channelShared": 0, "eps": 1e-3, "scale": listed(positive(4))}, None),
    ("LRN", {"regionType": 1, "localSize": 3, "alpha": 0.3, "beta": 0.7, "bias": 1.2}, None), ("ReLU6", {"minValue": -0.3, "maxValue": 0.9}, "Relu6"),
    ("Resize", {"xScale": 2.0, "yScale": 2.0}, None), ("Softmax", axis(1), "Axis"),
    ("Eltwise", {"type": "SUM"}, None), ("Concat", axis(1), "Axis"),
    ("Interp", {"outputWidth": 9, "outputHeight": 7, "resizeType": 2, "alignCorners": True}, None),
    ("Interp", {"widthScale": 1.5, "heightScale": 2.0, "resizeType": 2, "halfPixelCenters": True}, None),
    ("Interp", {"outputWidth": 12, "outputHeight": 10, "resizeType": 1}, None), ("Interp", {"outputWidth": 8, "outputHeight": 9, "resizeType": 3}, None),
    ("Interp", {"outputWidth": 8, "outputHeight": 9, "resizeType": 1, "ctm": "TensorflowHalfPixels"}, None),
    ("Pooling", {"kernelX": 3, "kernelY": 3, "strideX": 2, "strideY": 2, "type": "AVEPOOL", "padType": "SAME"}, "Pool"),
    ("Pooling", {"kernelX": 3, "kernelY": 2, "strideX": 2, "strideY": 2, "type": "MAXPOOL", "padType": "VALID"}, "Pool"),
    ("Pooling", {"kernelX": 3, "kernelY": 3, "strideX": 2, "strideY": 2, "padX": 1, "padY": 1, "type": "AVEPOOL", "ceilModel": False}, "Pool"),
    ("Pooling", {"kernelX": 3, "kernelY": 3, "strideX": 2, "strideY": 2, "padX": 1, "padY": 1, "type": "AVEPOOL", "ceilModel": True}, "Pool"),
    ("Pooling", {"isGlobal": True, "type": "AVEPOOL"}, "Pool"),
    ("Reshape", {"dims": [1, 2, 5, 12], "dimType": "NHWC"}, None), ("Reshape", {"dims": [1, 2, 5, 12], "dimType": "NCHW"}, None),
    ("Reduction", {"operation": "MAXIMUM", "dim": [1], "keepDims": True}, "ReductionParam"),
]:
    inputs = [picture, picture] if kind in ("Eltwise", "Concat") else [picture]
    net.output(f"{kind}{len(net.outputs)}", net.add(kind, inputs, main, table))
parts = net.add("Slice", [picture], {"axis": 1, "slicePoints": [1, 3], "sourceType": "CAFFE"}, outputs=3)
for i, part in enumerate(parts):
    net.output(f"part{i}", part)
schema_case("pictures", net)

net = Net()
picture = net.input(floats(1, 4, 5, 6))
for kind, groups, shape, common in [
    ("Convolution", 1, (3, 4, 3, 3), {"padMode": "SAME", "strideX": 2, "strideY": 2}), ("Convolution", 1, (3, 4, 2, 3), {"padMode": "VALID", "relu6": True}),
    ("Convolution", 1, (3, 4, 3, 3), {"padX": 1, "padY": 0, "relu": True}), ("Convolution", 2, (6, 2, 3, 3), {}),
    ("ConvolutionDepthwise", 4, (4, 1, 3, 3), {"padMode": "SAME"}), ("Deconvolution", 1, (4, 3, 3, 3), {"padX": 1, "padY": 1, "strideX": 2, "strideY": 2}),
    ("Deconvolution", 1, (4, 3, 3, 3), {"padMode": "SAME", "strideX": 2, "strideY": 2}),
    ("DeconvolutionDepthwise", 4, (4, 1, 2, 2), {"strideX": 2, "strideY": 2}),
]:
    outputs = shape[1] if kind == "Deconvolution" else shape[0]
    common = {"kernelY": shape[2], "kernelX": shape[3], "group": groups, "outputCount": outputs, "inputCount": 4, **common}
    main = {"common": common, "weight": listed(floats(*shape) / 2), "bias": listed(floats(outputs))}
    net.output(f"{kind}{len(net.outputs)}", net.add(kind, [picture], main, "Convolution2D"))
rows = net.input(floats(1, 6), "NCHW")
inner = {"outputCount": 3, "biasTerm": 1, "weightSize": 18, "weight": listed(floats(3, 6)), "bias": listed(floats(3)), "axis": 1}
net.output("inner", net.add("InnerProduct", [rows], inner))
schema_case("paddings", net)

# In the layout of TensorFlow.
net = Net()
picture = net.input(floats(1, 5, 6, 4), "NHWC")
common = {"kernelY": 3, "kernelX": 3, "outputCount": 3, "inputCount": 4, "padMode": "SAME", "strideX": 2, "strideY": 1}
packed = net.add("ConvertTensor", [picture], {"source": "NHWC", "dest": "NC4HW4"}, "TensorConvertInfo")
convolved = net.add("Convolution", [packed], {"common": common, "weight": listed(floats(3, 4, 3, 3)), "bias": listed(floats(3))}, "Convolution2D")
net.output("convolved", convolved, "NHWC")
for kind, main, table in [
    ("Pooling", {"kernelX": 2, "kernelY": 3, "strideX": 2, "strideY": 1, "padType": "SAME"}, "Pool"),
    ("Interp", {"outputWidth": 9, "outputHeight": 7, "resizeType": 2}, None), ("Reshape", {"dims": [1, 10, 12], "dimType": "NHWC"}, None),
    ("Permute", {"dims": [0, 3, 1, 2]}, None), ("Softmax", axis(3), "Axis"), ("ArgMax", {"axis": 3}, None), ("ReLU", {"slope": 0.1}, "Relu"),
    ("SpaceToDepth", {"blockSize": 1}, "DepthSpaceParam"), ("DepthToSpace", {"blockSize": 2}, "DepthSpaceParam"),
    ("Reduction", {"operation": "MEAN", "dim": [1, 2], "keepDims": True}, "ReductionParam"), ("Squeeze", {"squeezeDims": [0]}, "SqueezeParam"),
    ("ExpandDims", {"axis": 1}, None), ("ZerosLike", None, None),
]:
    made = net.add(kind, [picture], main, table)
    net.outputs.append(net.tensors[made])
ones = net.constant(np.array([2, 2], np.int32), "NHWC")
pads = net.constant(np.array([[0, 1], [0, 0]], np.int32), "NHWC")
apart_ = net.add("SpaceToBatchND", [picture, ones, pads], {}, "SpaceBatch")
back = net.add("BatchToSpaceND", [apart_, ones, pads], {}, "SpaceBatch")
begin, end, step = (net.constant(np.array(n, np.int32), "NHWC") for n in ([0, 1, -1, 0], [1, 4, 0, 3], [1, 2, 1, 1]))
taken = net.add("StridedSlice", [picture, begin, end, step], {"beginMask": 1, "endMask": 4, "shrinkAxisMask": 1, "fromType": 0}, "StridedSliceParam")
first, last = (net.constant(np.array(n, np.int32), "NHWC") for n in ([1], [3]))
dotted = net.add("StridedSlice", [picture, net.constant(np.array([0, 1], np.int32)), net.constant(np.array([0, 3], np.int32)), net.constant(np.array([1, 1], np.int32))],
                 {"ellipsisMask": 1, "fromType": 0}, "StridedSliceParam")
cut = net.add("SliceTf", [picture, net.constant(np.array([0, 1, 2, 0], np.int32)), net.constant(np.array([1, -1, 3, 2], np.int32))])
sizes = net.constant(np.array([10, 7], np.int32), "NHWC")
larger = net.add("Interp", [picture, sizes], {"resizeType": 2, "halfPixelCenters": True})
net.outputs += [net.tensors[t] for t in (apart_, back, taken, dotted, cut, larger)]
schema_case("channels_last", net)

net = Net()
a, b = net.input(floats(2, 3, 4), "NCHW"), net.input(positive(2, 3, 4), "NCHW")
number = lambda n: net.constant(np.array(n, np.float32))
counted = lambda n: net.constant(np.array(n, np.int32))
for name in ("SUB", "REALDIV", "MAXIMUM", "FLOORDIV", "SquaredDifference", "FLOORMOD", "MOD", "MUL_SILU", "NOTEQUAL"):
    net.outputs.append(net.tensors[net.add("BinaryOp", [a, b], {"opType": name})])
net.outputs.append(net.tensors[net.add("BinaryOp", [a, b], {"opType": "SUB", "activationType": 1})])
for name in ("SQUARE", "RSQRT", "LOG1P", "BNLL", "ERFC", "EXPM1", "GELU", "GELU_STANDARD", "SILU", "HARDSWISH", "ROUND"):
    net.outputs.append(net.tensors[net.add("UnaryOp", [b if name in ("RSQRT", "LOG1P") else a], {"opType": name})])
stacked = net.add("Pack", [a, b], {"axis": 1}, "PackParam")
parts = net.add("Unpack", [a], axis(1), "Axis", outputs=3)
product = net.add("BatchMatMul", [a, b], {"adjY": True}, "BatchMatMulParam")
other = net.add("BatchMatMul", [a, b], {"adjX": True}, "BatchMatMulParam")
steps = net.add("LinSpace", [number(0.5), number(2.5), counted(5)])
filled = net.add("Fill", [counted([2, 3]), number(1.5)], {})
kept = net.add("TrainableParam", [], {"dims": [4], "dataFormat": "NCHW", "float32s": listed(floats(4))}, "Blob")
more = net.add("BinaryOp", [a, kept], {"opType": "ADD"})
whole = net.add("Cast", [a], {"dstT": "DT_INT32"}, "CastParam")
truths = net.add("Cast", [whole], {"dstT": "DT_BOOL"}, "CastParam")
chosen = net.add("Select", [truths, a, b])
every = [net.add("Reduction", [truths], {"operation": kind, "dim": [1], "keepDims": False}, "ReductionParam") for kind in ("ANY", "ALL")]
turned = net.add("Reverse", [a, counted(1)])
rows = net.add("Gather", [a, counted([1, 0])], {}, "Gather")
normed = net.add("LayerNorm", [a], {"axis": [-1], "epsilon": 1e-3, "gamma": listed(positive(4)), "beta": listed(floats(4))})
scaled = net.add("LayerNorm", [a], {"axis": [-1], "epsilon": 1e-3, "gamma": listed(positive(4)), "beta": [0.0] * 4, "useRMSNorm": True})
between = net.add("LayerNorm", [a], {"axis": [1], "epsilon": 1e-3})
grouped = net.add("LayerNorm", [a], {"axis": [1, 2], "epsilon": 1e-3, "group": 3})
count, rank = net.add("Size", [a]), net.add("Rank", [a])
like = net.add("CastLike", [whole, a])
flat = net.add("Flatten", [a], {"axis": 1, "endAxis": 2})
powers = net.add("CumProd", [a], axis(1), "Axis")
net.outputs += [net.tensors[t] for t in (stacked, *parts, product, other, steps, filled, more, truths, chosen, *every, turned, rows, normed, scaled, between, grouped,
                                         count, rank, like, flat, powers)]
schema_case("functions", net)

# MNN's arrays have at most four dimensions: volumes are made of them, and laid flat.
net = Net()
flat = net.input(floats(2, 120), "NCHW")
volume = net.add("Reshape", [flat], {"dims": [1, 2, 5, 4, 6], "dimType": "NCHW"})
volume = net.add("ConvertTensor", [volume], {"source": "NCHW", "dest": "NC4HW4"}, "TensorConvertInfo")
common = {"kernels": [3, 2, 3], "strides": [1, 2, 1], "dilates": [1, 1, 1], "pads": [1, 0, 1], "inputCount": 2, "outputCount": 3}
weights = {"weight": listed(floats(3, 2, 3, 2, 3)), "bias": listed(floats(3))}
for kind, main, table in [
    ("Convolution3D", {"common": common, **weights}, None), ("Convolution3D", {"common": {**common, "relu": True, "pads": [1, 0, 1, 0, 1, 1]}, **weights}, None),
    ("ConvTranspose3D", {"common": common, **weights}, "Convolution3D"), ("Pooling3D", {"strides": [2, 2, 2], "kernels": [2, 2, 2], "pads": [0, 0, 0], "type": "MAXPOOL"}, "Pool3D"),
    ("Pooling3D", {"strides": [2, 1, 2], "kernels": [2, 2, 3], "pads": [0, 0, 0], "type": "AVEPOOL"}, "Pool3D"),
]:
    made = net.add("ConvertTensor", [net.add(kind, [volume], main, table)], {"source": "NC4HW4", "dest": "NCHW"}, "TensorConvertInfo")
    net.outputs.append(net.tensors[net.add("Reshape", [made], {"dims": [3 if kind.startswith("Conv") else 2, -1], "dimType": "NCHW"})])
schema_case("volumes", net)



# Encodings of older converters: every weight as it is, and weights of which most are 0.
def packed(numbers, bits):
    """Numbers of so many bits, from the highest bit of a byte on."""
    text = "".join(f"{n:0{bits}b}" for n in numbers)
    return [int(text[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(text), 8)]


def mostly_zero(weights):
    """A table of values, and for each weight that is not 0 the step to it and the place of its value."""
    flat = weights.ravel().astype(int)
    places = np.flatnonzero(flat)
    steps = np.diff(places, prepend=0)
    values = sorted(set(flat[places].tolist()))
    step_bits, bits = int(steps.max()).bit_length(), max(1, (len(values) - 1).bit_length())
    shape = [len(weights.shape)] + [byte for n in weights.shape for byte in n.to_bytes(2, "little")]
    return [*shape, *len(places).to_bytes(4, "little"), step_bits, *packed(steps, step_bits), len(values), *[v & 255 for v in values],
            *packed([values.index(flat[p]) for p in places], bits)]


net = Net()
picture = net.input(floats(1, 5, 4, 3))
common = {"outputCount": 4, "inputCount": 5}
plain = random.integers(-127, 128, (4, 5, 1, 1))
few = np.where(random.random((4, 5, 1, 1)) < 0.3, plain, 0)
few[0, 0] = 9
signed = lambda numbers: [n - 256 if n > 127 else n for n in numbers]
for quantised in [
    {"type": 4, "buffer": listed(plain), "alpha": listed(positive(4) / 99), "quantScale": 1.0},
    {"type": 4, "buffer": listed(plain), "alpha": listed(np.stack([floats(4), positive(4) / 99], 1))},
    {"type": 2, "buffer": signed(mostly_zero(few)), "alpha": listed(positive(4) / 99), "quantScale": 0.5},
]:
    main = {"common": common, "bias": listed(floats(4)), "quanParameter": quantised}
    net.output(f"encoded{len(net.outputs)}", net.add("Convolution", [picture], main, "Convolution2D"))
schema_case("encodings", net)

net = Net()
picture, small = net.input(floats(1, 3, 6, 7)), net.input(floats(1, 3, 4, 5))
net.output("crop", net.add("Crop", [picture, small], {"axis": 2, "offset": [1, 2]}))
net.output("sum", net.add("Eltwise", [small, small, small], {"type": "PROD"}))
net.output("difference", net.add("Eltwise", [small, small], {"type": "MAXIMUM"}))
dims = net.add("Shape", [picture])
net.outputs.append(net.tensors[dims])
schema_case("crops", net)

cases.write()
print("\n".join(failed), file=sys.stderr)
