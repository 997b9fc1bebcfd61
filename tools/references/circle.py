"""Small Circle models with random weights: the operators that Circle has beside those of TFLite, computed in float64 by the formulas
of ONE's kernels (`compute/cker/include/cker/operation/`, `compiler/luci-interpreter/src/kernels/` and `pal/linux/PALGRU.h`), and a
network of TFLite's operators, by LiteRT.

    python tools/references/circle.py

Needs ai-edge-litert, flatbuffers, numpy and onnx (for the files of the tensors).
"""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from common import Cases
from tflite_model import Model

CIRCLE = b"CIR0"

# The numbers of operators and of their options in `circle_schema.fbs`, version 0.10.
ROPE, RMS_NORM, GRU, INSTANCE_NORM = -7, -6, -5, -2
ROPE_OPTIONS, RMS_NORM_OPTIONS, GRU_OPTIONS, INSTANCE_NORM_OPTIONS = 249, 250, 251, 254

RELU, TANH, RELU6 = 1, 4, 3

cases = Cases("circle")
random = np.random.default_rng(30)


def normal(*shape):
    return random.normal(size=shape).astype(np.float32)


class Options:
    """A table of numbers, each at the slot of its place: floats, enumerations and truth values, integers."""

    def __init__(self, *fields):
        self.fields = fields

    def Pack(self, builder):
        builder.StartObject(len(self.fields))
        for slot, (kind, value) in enumerate(self.fields):
            getattr(builder, f"Prepend{kind}Slot")(slot, value, 0)
        return builder.EndObject()


class Circle(Model):
    def own(self, operator, kind, inputs, outputs, *fields):
        """A node of an operator that is Circle's own."""
        node = self.node(operator, inputs, outputs)
        node.builtinOptionsType, node.builtinOptions = kind, Options(*fields)

    def constant(self, values):
        return self.tensor(values.shape, "float32", data=values)

    def finish(self, *outputs):
        return super().finish(*outputs, identifier=CIRCLE)


def activated(x, activation):
    return {0: x, RELU: np.maximum(x, 0), RELU6: np.clip(x, 0, 6)}[activation]


def case(name, model, inputs, output):
    cases.add(name, "circle", model, inputs, [output.astype(np.float32)], rtol=1e-4, atol=1e-5)


def instance_norm(name, shape, each=True, activation=0, epsilon=1e-3):
    m = Circle()
    x = normal(*shape)
    rank = len(shape)
    axes = (1, 2) if rank == 4 else (2,)
    channel = 3 if rank == 4 else 1
    gamma, beta = normal(shape[channel] if each else 1), normal(shape[channel] if each else 1)
    inputs = [m.input(shape, "float32"), m.constant(gamma), m.constant(beta)]
    y = m.tensor(shape, "float32")
    m.own(INSTANCE_NORM, INSTANCE_NORM_OPTIONS, inputs, [y], ("Float32", epsilon), ("Int8", activation))
    wide = x.astype(np.float64)
    factor, offset = (p.astype(np.float64).reshape(-1, *[1] * (rank - 1 - channel)) for p in (gamma, beta))
    deviation = np.sqrt(wide.var(axes, keepdims=True) + epsilon)
    made = (wide - wide.mean(axes, keepdims=True)) / deviation * factor + offset
    case(name, m.finish(y), [x], activated(made, activation))


instance_norm("instance_norm", (2, 5, 4, 3))
instance_norm("instance_norm_activated", (1, 3, 7, 5), activation=RELU)
instance_norm("instance_norm_of_one_factor", (1, 6, 4, 2), each=False, activation=RELU6)
instance_norm("instance_norm_of_rows", (2, 4, 9))


def rms_norm(name, shape, offsets=True, each=True, epsilon=1e-5):
    m = Circle()
    x = normal(*shape)
    gamma, beta = normal(shape[-1] if each else 1), normal(shape[-1] if each else 1)
    inputs = [m.input(shape, "float32"), m.constant(gamma), m.constant(beta) if offsets else -1]
    y = m.tensor(shape, "float32")
    m.own(RMS_NORM, RMS_NORM_OPTIONS, inputs, [y], ("Float32", epsilon))
    wide = x.astype(np.float64)
    made = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + epsilon) * gamma
    case(name, m.finish(y), [x], made + beta if offsets else made)


rms_norm("rms_norm", (1, 3, 2, 8))
rms_norm("rms_norm_without_offsets", (2, 5, 16), offsets=False)
rms_norm("rms_norm_of_one_factor", (2, 3, 6), each=False)


def rope(name, shape, place):
    m = Circle()
    x = normal(*shape)
    size = shape[-1]
    angles = place * 10000.0 ** (-np.arange(0, size, 2) / size)
    angles = np.concatenate([angles, angles]).reshape(1, 1, 1, size)
    sines, cosines = np.sin(angles).astype(np.float32), np.cos(angles).astype(np.float32)
    inputs = [m.input(shape, "float32"), m.constant(sines), m.constant(cosines)]
    y = m.tensor(shape, "float32")
    m.own(ROPE, ROPE_OPTIONS, inputs, [y], ("Int32", 0))
    wide, half = x.astype(np.float64), size // 2
    made = np.empty_like(wide)
    for i in range(half):
        first, second = wide[..., i], wide[..., i + half]
        made[..., i] = first * cosines[..., i] - second * sines[..., i]
        made[..., i + half] = first * sines[..., i + half] + second * cosines[..., i + half]
    case(name, m.finish(y), [x], made)


rope("rope", (1, 4, 3, 16), 5.0)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(name, time, size, hidden):
    m = Circle()
    x = normal(time, 1, size)
    of_data, of_state = normal(3 * hidden, size), normal(3 * hidden, hidden)
    biases = normal(3 * hidden), normal(3 * hidden)
    before = normal(1, hidden)
    inputs = [m.input(x.shape, "float32")]
    inputs += [m.constant(values) for values in (of_data, biases[0], of_state, biases[1], before)]
    y = m.tensor(before.shape, "float32")
    m.own(GRU, GRU_OPTIONS, inputs, [y], ("Int8", TANH), ("Int8", 0), ("Int8", 1))
    h = before[0].astype(np.float64)
    for row in x[:, 0].astype(np.float64):
        ours, states = of_data @ row + biases[0], of_state @ h + biases[1]
        ours, states = ours.reshape(3, hidden), states.reshape(3, hidden)
        update, reset = sigmoid(ours[0] + states[0]), sigmoid(ours[1] + states[1])
        h = h * update + np.tanh(reset * states[2] + ours[2]) * (1 - update)
    case(name, m.finish(y), [x], h[None])


gru("gru", 7, 5, 6)


def network(name):
    """A convolution, a pooling, a dense layer and a softmax, which LiteRT runs from the same tables."""
    m = Circle()
    shape = (1, 8, 8, 3)
    x = m.input(shape, "float32")
    conv = m.tensor((1, 8, 8, 6), "float32")
    m.op("CONV_2D", [x, m.constant(normal(6, 3, 3, 3)), m.constant(normal(6))], [conv], "Conv2DOptions",
         strideH=1, strideW=1, fusedActivationFunction=RELU)
    pool = m.tensor((1, 4, 4, 6), "float32")
    m.op("MAX_POOL_2D", [conv], [pool], "Pool2DOptions", padding=1, strideH=2, strideW=2, filterHeight=2, filterWidth=2)
    flat = m.tensor((1, 10), "float32")
    m.op("FULLY_CONNECTED", [pool, m.constant(normal(10, 96)), -1], [flat], "FullyConnectedOptions")
    y = m.tensor((1, 10), "float32")
    m.op("SOFTMAX", [flat], [y], "SoftmaxOptions", beta=1.0)
    model, value = m.finish(y), normal(*shape)
    interpreter = Interpreter(model_content=model.replace(CIRCLE, b"TFL3", 1))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
    interpreter.invoke()
    case(name, model, [value], interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


network("network")
cases.write()
