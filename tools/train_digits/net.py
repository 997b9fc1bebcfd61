"""A small convolutional network in numpy: forward, backward, Adam, and its ONNX form.

Images are [N,H,W,C] while training; the exported model takes ONNX's [N,C,H,W].
"""
from __future__ import annotations

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper


class Conv:
    """A square convolution with zero padding and ReLU; weights [k,k,in,out]."""

    def __init__(self, r, k: int, inputs: int, outputs: int, stride: int):
        self.k, self.stride = k, stride
        self.w = r.normal(0, np.sqrt(2 / (k * k * inputs)), (k, k, inputs, outputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def forward(self, x):
        k, s, p = self.k, self.stride, self.k // 2
        self.padded = np.pad(x, ((0, 0), (p, p), (p, p), (0, 0)))
        windows = sliding_window_view(self.padded, (k, k), axis=(1, 2))[:, ::s, ::s]  # [N,h,w,C,k,k]
        self.shape = windows.shape[:3]
        self.columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.w[..., 0].size)
        self.y = np.maximum(self.columns @ self.w.reshape(-1, self.w.shape[3]) + self.b, 0)
        return self.y.reshape(*self.shape, -1)

    def backward(self, dy):
        k, s, p = self.k, self.stride, self.k // 2
        dy = dy.reshape(self.y.shape) * (self.y > 0)
        self.dw = (self.columns.T @ dy).reshape(self.w.shape)
        self.db = dy.sum(axis=0)
        columns = (dy @ self.w.reshape(-1, self.w.shape[3]).T).reshape(*self.shape, k, k, -1)
        dx = np.zeros_like(self.padded)
        n, h, w = self.shape
        for i in range(k):
            for j in range(k):
                dx[:, i : i + s * h : s, j : j + s * w : s][:, :h, :w] += columns[:, :, :, i, j]
        return dx[:, p : dx.shape[1] - p, p : dx.shape[2] - p]


class Dense:
    """A fully connected layer, with ReLU if asked; weights [in,out]."""

    def __init__(self, r, inputs: int, outputs: int, relu: bool):
        self.relu = relu
        self.w = r.normal(0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)

    def forward(self, x):
        self.shape = x.shape
        self.x = x.reshape(len(x), -1)
        y = self.x @ self.w + self.b
        self.y = np.maximum(y, 0) if self.relu else y
        return self.y

    def backward(self, dy):
        if self.relu:
            dy = dy * (self.y > 0)
        self.dw, self.db = self.x.T @ dy, dy.sum(axis=0)
        return (dy @ self.w.T).reshape(self.shape)


class Net:
    """Three convolutions, two fully connected layers, ten classes."""

    def __init__(self, seed: int):
        r = np.random.default_rng(seed)
        self.layers = [Conv(r, 5, 1, 8, 2), Conv(r, 3, 8, 16, 1), Conv(r, 3, 16, 24, 2), Dense(r, 7 * 7 * 24, 32, True), Dense(r, 32, 10, False)]
        self.moments = [[np.zeros_like(p) for p in (l.w, l.b) for _ in range(2)] for l in self.layers]
        self.steps = 0

    def logits(self, images):
        x = images[..., None]
        for layer in self.layers:
            x = layer.forward(x)
        return x

    def accuracy(self, images, labels) -> float:
        parts = [self.logits(images[i : i + 500]).argmax(axis=1) for i in range(0, len(images), 500)]
        return float((np.concatenate(parts) == labels).mean())

    def step(self, images, labels, rate: float, smoothing: float = 0.05) -> float:
        """One Adam step on the mean cross-entropy with smoothed labels; returns the loss."""
        z = self.logits(images)
        z = z - z.max(axis=1, keepdims=True)
        logp = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
        target = np.full_like(z, smoothing / 10)
        target[np.arange(len(z)), labels] += 1 - smoothing
        grad = (np.exp(logp) - target) / len(z)
        for layer in reversed(self.layers):
            grad = layer.backward(grad)
        self.steps += 1
        fix1, fix2 = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        for layer, (mw, vw, mb, vb) in zip(self.layers, self.moments, strict=True):
            for p, g, m, v in ((layer.w, layer.dw, mw, vw), (layer.b, layer.db, mb, vb)):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= (rate * (m / fix1) / (np.sqrt(v / fix2) + 1e-8)).astype(np.float32)
        return float(-(target * logp).sum(axis=1).mean())

    def onnx(self) -> onnx.ModelProto:
        """The model: `image` [N,1,28,28] float32 in 0..1 → `probabilities` [N,10]."""
        nodes, weights, x = [], [], "image"

        def constant(name, value):
            weights.append(numpy_helper.from_array(np.ascontiguousarray(value, np.float32), name))
            return name

        def node(op, inputs, name, **attributes):
            nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
            return name

        convs = [l for l in self.layers if isinstance(l, Conv)]
        for i, l in enumerate(convs, 1):
            w = constant(f"conv{i}.weight", l.w.transpose(3, 2, 0, 1))
            b = constant(f"conv{i}.bias", l.b)
            x = node("Conv", [x, w, b], f"conv{i}", kernel_shape=[l.k] * 2, strides=[l.stride] * 2, pads=[l.k // 2] * 4)
            x = node("Relu", [x], f"relu{i}")
        x = node("Flatten", [x], "flatten", axis=1)
        channels = convs[-1].w.shape[3]
        for i, l in enumerate((l for l in self.layers if isinstance(l, Dense)), 1):
            w = l.w
            if i == 1:  # rows were in the order of [h,w,c]; Flatten gives [c,h,w]
                w = w.reshape(7, 7, channels, -1).transpose(2, 0, 1, 3).reshape(w.shape)
            x = node("Gemm", [x, constant(f"dense{i}.weight", w), constant(f"dense{i}.bias", l.b)], f"dense{i}")
            if l.relu:
                x = node("Relu", [x], f"dense{i}.relu")
        node("Softmax", [x], "probabilities", axis=1)
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 28, 28])
        out = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])
        graph = helper.make_graph(nodes, "digits", [image], [out], weights, doc_string="Handwritten digits, bright ink on black, centred by mass.")
        model = helper.make_model(graph, producer_name="kilim train_digits", opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model
