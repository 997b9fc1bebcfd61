"""A small model for each rule that rewrites graphs, and what onnxruntime makes of it without any optimisation.

    python tools/references/rules.py

Needs numpy, onnx and onnxruntime. A case has the name of its rule; `dilation` has none, as ONNX has no SpaceToBatch.
"""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from common import Cases

cases = Cases("rules")
random = np.random.default_rng(11)


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


class Model:
    """A graph in the making: inputs are arrays, too."""

    def __init__(self, **inputs):
        self.inputs = inputs
        self.nodes, self.constants = [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, op, *inputs, outputs=1, **attributes):
        """A node; arrays among its inputs are constants."""
        inputs = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        number = len(self.nodes)
        names = [f"{op.lower()}{number}" + (f"_{i}" if i else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}{number}", **attributes))
        return names[0]

    def write(self, rule, *outputs, rtol=1e-4, atol=1e-5):
        info = lambda n, x: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        graph = helper.make_graph(
            self.nodes,
            rule,
            [info(n, x) for n, x in self.inputs.items()],
            [helper.make_empty_tensor_value_info(y) for y in outputs],
            self.constants,
        )
        opsets = [helper.make_opsetid("", 20)]
        if any(node.domain for node in self.nodes):
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        results = session.run(None, self.inputs)
        for value, result in zip(graph.output, results):
            value.CopyFrom(info(value.name, result))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        data = model.SerializeToString()
        cases.add(rule, "onnx", data, list(self.inputs.values()), results, rtol=rtol, atol=atol)


def quantised(model, x, scale=0.05, zero=3):
    return model.op("QuantizeLinear", x, np.float32(scale), np.int8(zero))


def real(model, x, scale=0.05, zero=3):
    return model.op("DequantizeLinear", x, np.float32(scale), np.int8(zero))


def rounded(model, x, **parameters):
    return real(model, quantised(model, x, **parameters), **parameters)


def body(op):
    """What it makes of `x` and `captured`, of the graph around it."""
    y = helper.make_tensor_value_info(op, TensorProto.FLOAT, [3, 4])
    return helper.make_graph([helper.make_node(op, ["x", "captured"], [op], name=op)], op, [], [y])


def branches(model, condition):
    # Importers give bodies the constants of the file; this one is known when it has been computed.
    model.nodes.append(helper.make_node("Exp", [model.constant(floats(4))], ["captured"], name="captured"))
    return model.op("If", condition, then_branch=body("Add"), else_branch=body("Mul"))


image, kernel = floats(2, 3, 7, 6), floats(4, 3, 3, 3)
same = {"pads": [1, 1, 1, 1]}

m = Model(x=floats(3, 4))
half = m.op("Cast", "x", to=TensorProto.FLOAT16)
half = m.op("Add", m.op("Neg", half), floats(4).astype(np.float16))
m.write("widen-half", m.op("Cast", half, to=TensorProto.FLOAT), rtol=2e-3, atol=2e-3)

m = Model(x=floats(3, 4), condition=np.array(False))
m.write("body-constants", branches(m, "condition"))

m = Model(x=floats(3, 4))
m.write("inline-branches", branches(m, m.op("Not", np.array(False))))

m = Model(x=floats(3, 4))
m.write("identities", m.op("Exp", m.op("Identity", m.op("Mul", "x", np.float32(1)))))

m = Model(x=floats(3, 4))
m.write("fold-constants", m.op("Max", "x", m.op("Exp", m.op("Transpose", floats(4, 3), perm=[1, 0]))))

m = Model(x=floats(3, 4))
weights = random.integers(-128, 127, (4, 5), np.int8, endpoint=True)
m.write("dequantize-constants", m.op("MatMul", "x", real(m, m.constant(weights), scale=0.01)))

m = Model(x=floats(3, 4))
left, right = m.op("Exp", m.op("Neg", "x")), m.op("Exp", m.op("Neg", "x"))
m.write("common-subexpressions", m.op("Sub", left, m.op("Mul", right, np.float32(0.5))))

m = Model(x=image)
m.op("Sin", m.op("Cos", "x"))
m.write("dead-code", m.op("MaxPool", "x", outputs=2, kernel_shape=[2, 2], strides=[2, 2]))

m = Model(x=floats(3, 4))
moved = m.op("Transpose", rounded(m, "x"), perm=[1, 0])
m.write("quantized-movement", quantised(m, m.op("Reshape", moved, np.array([2, 6]))), rtol=0, atol=0)

m = Model(x=floats(3, 4), y=floats(4))
total = m.op("Relu", m.op("Add", rounded(m, "x"), rounded(m, "y", scale=0.02, zero=-4)))
m.write("quantized-arithmetic", quantised(m, total, scale=0.07), rtol=0, atol=0)

m = Model(x=floats(3, 4))
swish = m.op("Mul", "x", m.op("Sigmoid", "x"))
erf = m.op("Erf", m.op("Div", swish, np.float32(np.sqrt(2))))
gelu = m.op("Mul", m.op("Mul", swish, m.op("Add", erf, np.float32(1))), np.float32(0.5))
shifted = m.op("Clip", m.op("Add", gelu, np.float32(3)), np.float32(0), np.float32(6))
m.write("activations", m.op("Div", m.op("Mul", gelu, shifted), np.float32(6)))

m = Model(x=floats(3, 8))
mean = m.op("ReduceMean", "x", np.array([-1]))
centred = m.op("Sub", "x", mean)
variance = m.op("ReduceMean", m.op("Pow", centred, np.float32(2)), np.array([-1]))
root = m.op("Sqrt", m.op("Add", variance, np.float32(1e-5)))
m.write("normalisations", m.op("Add", m.op("Mul", m.op("Div", centred, root), floats(8)), floats(8)))

m = Model(x=floats(2, 3, 4))
flat = m.op("Reshape", m.op("Unsqueeze", "x", np.array([1])), np.array([6, 4]))
m.write("views", m.op("Reshape", flat, np.array([4, 6])))

m = Model(x=image)
norm = [floats(4), floats(4), floats(4), np.abs(floats(4)) + 0.5]
m.write("batch-norm", m.op("BatchNormalization", m.op("Conv", "x", kernel, floats(4), **same), *norm))

m = Model(x=image)
m.write("fuse-padding", m.op("Conv", m.op("Pad", "x", np.array([0, 0, 1, 0, 0, 0, 2, 1])), kernel, floats(4)))

m = Model(table=floats(6, 3), x=np.array([[4.0, 0.0], [2.9, 5.0]], np.float32))
m.write("fuse-index-cast", m.op("Gather", "table", m.op("Cast", "x", to=TensorProto.INT64)))

m = Model(x=image)
m.write("fuse-activation", m.op("LeakyRelu", m.op("Conv", "x", kernel, floats(4), **same), alpha=0.1))

m = Model(x=floats(2, 3, 4), w=floats(4, 5))
m.write("fuse-bias", m.op("Add", floats(5), m.op("MatMul", "x", "w")))

m = Model(x=floats(2, 3, 4), w=floats(4, 5))
m.write("fuse-scale", m.op("Div", m.op("MatMul", "x", "w"), np.float32(2.5)))

m = Model(x=image)
m.write("fuse-residual", m.op("Add", "x", m.op("Conv", "x", floats(3, 3, 3, 3), floats(3), **same)))

m = Model(x=image)
pool = m.op("AveragePool", m.op("Conv", "x", kernel, floats(4), strides=[2, 1]), kernel_shape=[2, 2])
m.write("channels-last", pool)

m = Model(x=floats(2, 3, 4))
turned = m.op("Softmax", m.op("Transpose", "x", perm=[2, 0, 1]), axis=1)
m.write("transposes", m.op("Transpose", turned, perm=[1, 2, 0]))

m = Model(q=floats(2, 3, 5, 4), k=floats(2, 3, 6, 4), v=floats(2, 3, 6, 7))
scores = m.op("Mul", m.op("MatMul", "q", m.op("Transpose", "k", perm=[0, 1, 3, 2])), np.float32(0.5))
m.write("attention", m.op("MatMul", m.op("Softmax", m.op("Add", scores, floats(5, 6)), axis=-1), "v"))

# As Transformers writes it: the second half of the numbers, negated, in front of the first.
m = Model(x=floats(2, 3, 5, 8), cosines=floats(1, 1, 5, 8), sines=floats(1, 1, 5, 8))
half = lambda start, stop: m.op("Slice", "x", np.array([start]), np.array([stop]), np.array([3]))
turned = m.op("Concat", m.op("Neg", half(4, 2**31)), half(0, 4), axis=-1)
m.write("rotary", m.op("Add", m.op("Mul", "x", "cosines"), m.op("Mul", turned, "sines")))

# The gate of a language model's feed-forward network.
m = Model(x=floats(3, 48))
sizes = dict(K=48, N=5, bits=4, block_size=16, domain="com.microsoft")
packed = lambda: (random.integers(0, 256, (5, 3, 8), np.uint8), np.abs(floats(5, 3)) / 8)
up, gate = m.op("MatMulNBits", "x", *packed(), **sizes), m.op("MatMulNBits", "x", *packed(), **sizes)
m.write("fuse-factor", m.op("Mul", m.op("Mul", gate, m.op("Sigmoid", gate)), up))

# The scores behind the last word of a text.
m = Model(x=floats(2, 5, 8))
scores = m.op("MatMul", m.op("LayerNormalization", "x", floats(8)), floats(8, 6))
m.write("early-selection", m.op("Gather", scores, np.array(-1), axis=1))

# As onnxruntime's quantize_dynamic writes a layer.
m = Model(x=floats(2, 3, 9))
data = m.op("DynamicQuantizeLinear", "x", outputs=3)
weights, zero = random.integers(-128, 128, (9, 5), np.int8), np.array([0, -3, 7, 1, 0], np.int8)
sums = m.op("Cast", m.op("MatMulInteger", data, weights, data + "_2", zero), to=TensorProto.FLOAT)
scaled = m.op("Mul", sums, m.op("Mul", data + "_1", np.abs(floats(5)) / 64))
m.write("fuse-dequantization", m.op("Add", floats(5), scaled))

cases.write()
