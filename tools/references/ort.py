"""ONNX models in onnxruntime's ORT format, and what onnxruntime makes of them.

    python tools/references/ort.py

Needs numpy, onnx and onnxruntime.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from common import Cases

cases = Cases("ort")
random = np.random.default_rng(11)
FLOAT, INT64, BOOL, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def converted(model, style):
    """The model in the ORT format, by onnxruntime's own converter."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(model)
        command = [sys.executable, "-m", "onnxruntime.tools.convert_onnx_models_to_ort", str(path), "--optimization_style", style]
        subprocess.run(command, check=True, capture_output=True)
        end = ".with_runtime_opt.ort" if style == "Runtime" else ".ort"
        return path.with_suffix(end).read_bytes()


def case(name, nodes, inputs, outputs, fed, constants={}, style="Fixed", sparse=(), opsets=None):
    """`inputs` and `outputs` as the model declares them, `fed` the inputs by name."""
    kept = [numpy_helper.from_array(value, n) for n, value in constants.items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, kept, sparse_initializer=list(sparse))
    opsets = opsets or [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    file = converted(model, style)
    results = ort.InferenceSession(file, providers=["CPUExecutionProvider"]).run(None, fed)
    results = [np.array(r) for r in results]
    cases.add(name, "ort", file, list(fed.values()), results, rtol=1e-4, atol=1e-5)


node = helper.make_node

# A network with what the optimiser merges: Conv with Relu, MatMul with Add.
network = [
    node("Conv", ["x", "w", "b"], ["conv"], pads=[1, 1, 1, 1]),
    node("Relu", ["conv"], ["relu"]),
    node("MaxPool", ["relu"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
    node("Flatten", ["pool"], ["flat"]),
    node("MatMul", ["flat", "m"], ["product"]),
    node("Add", ["product", "c"], ["sum"]),
    node("Softmax", ["sum"], ["y"]),
]
weights = {"w": floats(4, 3, 3, 3), "b": floats(4), "m": floats(64, 5), "c": floats(5)}
for style in ("Fixed", "Runtime"):
    case(f"network_{style.lower()}", network, [info("x", FLOAT, ["batch", 3, 8, 8])], [info("y", FLOAT, ["batch", 5])],
         {"x": floats(2, 3, 8, 8)}, weights, style)

# Fused nodes of com.microsoft, which stand behind the others in the file: they run in another order.
case("fused", [
    node("Transpose", ["a"], ["t"], perm=[1, 0]),
    node("MatMul", ["t", "w"], ["product"]),
    node("Add", ["product", "b"], ["biased"]),
    node("Div", ["biased", "root"], ["scaled"]),
    node("Erf", ["scaled"], ["erf"]),
    node("Add", ["erf", "one"], ["shifted"]),
    node("Mul", ["biased", "shifted"], ["twice"]),
    node("Mul", ["twice", "half"], ["gelu"]),
    node("Add", ["gelu", "skip"], ["sum"]),
    node("LayerNormalization", ["sum", "scale", "shift"], ["y"], epsilon=1e-5),
], [info("a", FLOAT, [6, 3]), info("skip", FLOAT, [3, 8])], [info("y", FLOAT, [3, 8])],
    {"a": floats(6, 3), "skip": floats(3, 8)},
    {"w": floats(6, 8), "b": floats(8), "root": np.float32(np.sqrt(2)), "one": np.float32(1), "half": np.float32(0.5),
     "scale": floats(8), "shift": floats(8)})

# A quantised convolution, as quantisers write it.
case("quantised", [
    node("QuantizeLinear", ["x", "s", "z"], ["q"]),
    node("DequantizeLinear", ["q", "s", "z"], ["d"]),
    node("DequantizeLinear", ["w", "ws", "wz"], ["dw"]),
    node("Conv", ["d", "dw"], ["conv"]),
    node("QuantizeLinear", ["conv", "s", "z"], ["qy"]),
    node("DequantizeLinear", ["qy", "s", "z"], ["y"]),
], [info("x", FLOAT, [1, 3, 6, 6])], [info("y", FLOAT, [1, 4, 4, 4])], {"x": floats(1, 3, 6, 6)},
    {"s": np.float32(0.05), "z": np.uint8(128), "w": random.integers(-127, 128, (4, 3, 3, 3), np.int8),
     "ws": np.float32(0.01), "wz": np.int8(0)})

# Bodies, which use values from outside, and a type in each place that the format has for one.
then = helper.make_graph([node("Mul", ["x", "x"], ["t"])], "then", [], [info("t", FLOAT, None)])
otherwise = helper.make_graph([node("Neg", ["sum"], ["o"])], "else", [], [info("o", FLOAT, None)])
body = helper.make_graph(
    [node("Add", ["carried", "x"], ["next"]), node("Identity", ["go"], ["again"]), node("Identity", ["next"], ["row"])],
    "body", [info("i", INT64, []), info("go", BOOL, []), info("carried", FLOAT, [3])],
    [info("again", BOOL, []), info("next", FLOAT, [3]), info("row", FLOAT, [3])])
for name, flag in (("then", True), ("else", False)):
    case(f"bodies_{name}", [
        node("Add", ["x", "one"], ["sum"]),
        node("If", ["flag"], ["chosen"], then_branch=then, else_branch=otherwise),
        node("Loop", ["count", "", "chosen"], ["last", "rows"], body=body),
    ], [info("x", FLOAT, [3]), info("flag", BOOL, []), info("count", INT64, [])],
        [info("last", FLOAT, [3]), info("rows", FLOAT, ["n", 3])],
        {"x": floats(3), "flag": np.array(flag), "count": np.array(4, np.int64)}, {"one": np.float32(1)})

# Attributes of every kind, texts, and a sequence.
case("attributes", [
    node("LabelEncoder", ["words"], ["numbers"], domain="ai.onnx.ml",
         keys_strings=["a", "bc", "déf"], values_floats=[0.5, 1.5, -2.0], default_float=9.0),
    node("Constant", [], ["table"], value=numpy_helper.from_array(floats(4, 2))),
    node("Gather", ["table", "indices"], ["rows"], axis=0),
    node("SplitToSequence", ["rows"], ["parts"], axis=0, keepdims=1),
    node("ConcatFromSequence", ["parts"], ["y"], axis=1),
    node("LeakyRelu", ["numbers"], ["z"], alpha=0.3),
], [info("words", STRING, [4]), info("indices", INT64, [3])], [info("y", FLOAT, [1, 6]), info("z", FLOAT, [4])],
    {"words": np.array(["bc", "x", "a", "déf"], object), "indices": np.array([2, 0, 3], np.int64)})

# Elements of other types, and a tensor without elements.
case("types", [
    node("Cast", ["half"], ["wide"], to=FLOAT),
    node("Concat", ["wide", "none"], ["joined"], axis=0),
    node("Where", ["mask", "joined", "x"], ["y"]),
], [info("x", FLOAT, [3])], [info("y", FLOAT, [3])], {"x": floats(3)},
    {"half": floats(3).astype(np.float16), "none": np.zeros(0, np.float32), "mask": np.array([True, False, True])})

cases.write()
