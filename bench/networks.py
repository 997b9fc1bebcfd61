"""Well-known architectures with random weights, for benches: the work is that of the trained network, the answers mean nothing."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Network:
    """Nodes and weights, one after another. Weights are drawn from one generator, so that a network is the same in every run."""

    def __init__(self, name):
        self.name = name
        self.nodes = []
        self.weights = []
        self.draw = np.random.Generator(np.random.PCG64(20261124))

    def weight(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def random(self, *shape, fan_in):
        """Of a spread that keeps the spread of activations. Uniform: that is exact on every machine."""
        return self.weight(((self.draw.random(shape) - 0.5) * np.sqrt(24 / fan_in)).astype(np.float32))

    def add(self, op, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def write(self, path, inputs, output, opset=17):
        ports = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, ports, [out], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="kilim-bench")
        save(model, path)


def mobilenet_v2(path):
    """MobileNetV2 1.0 at 224 (Sandler et al. 2018, table 2), batch norms folded."""
    net = Network("mobilenet-v2")

    def conv(x, given, made, size, stride=1, groups=1, clamp=True):
        weight = net.random(made, given // groups, size, size, fan_in=given // groups * size * size)
        bias = net.weight(np.zeros(made, np.float32))
        x = net.add("Conv", x, weight, bias, strides=[stride] * 2, pads=[size // 2] * 4, group=groups, kernel_shape=[size] * 2)
        return net.add("Clip", x, low, high) if clamp else x

    low, high = net.weight(np.float32(0)), net.weight(np.float32(6))
    x, channels = conv("image", 3, 32, 3, 2), 32
    for expansion, made, repeats, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(repeats):
            step = stride if i == 0 else 1
            wide = channels * expansion
            y = conv(x, channels, wide, 1) if expansion > 1 else x
            y = conv(y, wide, wide, 3, step, wide)
            y = conv(y, wide, made, 1, clamp=False)
            x = net.add("Add", x, y) if step == 1 and channels == made else y
            channels = made
    x = conv(x, channels, 1280, 1)
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    x = net.add("Gemm", x, net.random(1000, 1280, fan_in=1280), net.weight(np.zeros(1000, np.float32)), transB=1)
    net.write(path, [("image", TensorProto.FLOAT, [1, 3, 224, 224])], x)


def encoder(path):
    """Six layers of a transformer's encoder of MiniLM's size (hidden 384, 12 heads), 128 positions, without the table of words."""
    net = Network("encoder")
    length, hidden, heads = 128, 384, 12
    size = hidden // heads
    split = net.weight(np.array([1, length, heads, size], np.int64))
    merge = net.weight(np.array([1, length, hidden], np.int64))
    scale = net.weight(np.float32(size**-0.5))
    ones, zeros = net.weight(np.ones(hidden, np.float32)), net.weight(np.zeros(hidden, np.float32))

    def linear(x, given, made):
        return net.add("Add", net.add("MatMul", x, net.random(given, made, fan_in=2 * given)), net.weight(np.zeros(made, np.float32)))

    def part(x, order):
        return net.add("Transpose", net.add("Reshape", linear(x, hidden, hidden), split), perm=order)

    def gelu(x):
        erf = net.add("Erf", net.add("Div", x, net.weight(np.float32(np.sqrt(2)))))
        return net.add("Mul", net.add("Mul", x, net.add("Add", erf, net.weight(np.float32(1)))), net.weight(np.float32(0.5)))

    def norm(x):
        return net.add("LayerNormalization", x, ones, zeros, axis=-1, epsilon=1e-12)

    x = "embeddings"
    for _ in range(6):
        query, key, value = part(x, [0, 2, 1, 3]), part(x, [0, 2, 3, 1]), part(x, [0, 2, 1, 3])
        scores = net.add("Softmax", net.add("Mul", net.add("MatMul", query, key), scale), axis=-1)
        mixed = net.add("Transpose", net.add("MatMul", scores, value), perm=[0, 2, 1, 3])
        x = norm(net.add("Add", x, linear(net.add("Reshape", mixed, merge), hidden, hidden)))
        x = norm(net.add("Add", x, linear(gelu(linear(x, hidden, 4 * hidden)), 4 * hidden, hidden)))
    net.write(path, [("embeddings", TensorProto.FLOAT, [1, length, hidden])], x)


NETWORKS = {"mobilenet_v2": mobilenet_v2, "encoder": encoder}


def write(name, path):
    NETWORKS[name](path)
