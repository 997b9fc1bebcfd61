"""What a generator of `peer` draws with, what it returns, and how onnxruntime answers."""

import random

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

ort.set_default_logger_severity(4)
DOMAINS = {"": None, "com.microsoft": 1}
# What onnxruntime hands out as bytes.
FLOAT8 = {f"tensor({name.replace('_', '')})": np.dtype(getattr(ml_dtypes, name)) for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")}
# Differences allowed, relative to the largest magnitude of an output: onnxruntime computes in the element type itself.
NEAR = {"float64": 1e-6, "float32": 3e-5, "float16": 4e-3, "bfloat16": 3e-2}


class Draw:
    def __init__(self, seed, index):
        self.random = random.Random(f"{seed}/{index}")
        self.numbers = np.random.default_rng([seed, index])

    def chance(self, share):
        return self.random.random() < share

    def pick(self, choices):
        return self.random.choice(list(choices))

    def int(self, low, high):
        return self.random.randint(low, high)

    def dims(self, rank, most=6, empty=0.0):
        """Extents, small and often odd."""
        weights = [0.2] + [0.8 / (most - 1)] * (most - 1) if most > 1 else [1]
        shape = self.random.choices(range(1, most + 1), weights, k=rank)
        if rank and self.chance(empty):
            shape[self.int(0, rank - 1)] = 0
        return tuple(shape)

    def floats(self, shape, low=-2.0, high=2.0, dtype=np.float32, special=0.0):
        x = np.asarray(self.numbers.uniform(low, high, shape)).astype(dtype)
        if special:
            odd = np.asarray([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 1e-30, 0.5, -0.5, 1.5, 2.5]).astype(dtype)
            x = np.where(self.numbers.random(shape) < special, self.numbers.choice(odd, shape), x)
        return np.asarray(x, dtype)

    def ties(self, shape, dtype=np.float32, most=3):
        """Few different numbers."""
        return np.asarray(self.numbers.integers(0 if np.dtype(dtype).kind == "u" else -most, most + 1, shape)).astype(dtype)

    def integers(self, shape, dtype, low=None, high=None):
        info = np.iinfo(dtype)
        low, high = info.min if low is None else low, info.max if high is None else high
        return np.asarray(self.numbers.integers(low, high, shape, dtype, endpoint=True), dtype)

    def axis(self, rank):
        return self.int(-rank, rank - 1)

    def axes(self, rank, some=1):
        chosen = self.random.sample(range(rank), self.int(min(some, rank), rank))
        return [a - rank if self.chance(0.4) else a for a in chosen]

    def flags(self, **names):
        """Attributes, each left out about as often as drawn."""
        return {name: self.pick(choices) for name, choices in names.items() if self.chance(0.7)}


class Question:
    """A node, and the arrays it is asked about; `None` for an input that is left out. `kept` numbers the inputs that
    stand in the file. `outputs` counts them, or names them with "" for those left out."""

    def __init__(self, op, inputs, outputs=1, kept=(), opset=21, domain="", near=1.0, **attributes):
        self.op, self.inputs, self.opset = op, [None if x is None else np.asarray(x) for x in inputs], opset
        while self.inputs and self.inputs[-1] is None:
            self.inputs.pop()
        self.kept = {i for i in kept if i < len(self.inputs) and self.inputs[i] is not None}
        self.outputs = [f"y{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.domain, self.near, self.attributes = domain, near, attributes

    def names(self):
        return ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]

    def fed(self):
        return {n: x for i, (n, x) in enumerate(zip(self.names(), self.inputs)) if n and i not in self.kept}

    def model(self):
        attributes = {k: v for k, v in self.attributes.items() if v is not None}
        node = helper.make_node(self.op, self.names(), self.outputs, domain=self.domain, **attributes)
        ports = [helper.make_tensor_value_info(n, kind_of(x), x.shape) for n, x in self.fed().items()]
        kept = [numpy_helper.from_array(np.asarray(self.inputs[i]), f"x{i}") for i in sorted(self.kept)]
        results = [helper.make_empty_tensor_value_info(y) for y in self.outputs if y]
        graph = helper.make_graph([node], self.op, ports, results, kept)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def answer(self):
        """What onnxruntime gives, or its reason for giving nothing."""
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.intra_op_num_threads = 1
        try:
            session = ort.InferenceSession(self.model().SerializeToString(), options, ["CPUExecutionProvider"])
            results = zip(session.get_outputs(), session.run(None, self.fed()))
            return [np.asarray(y).view(FLOAT8[port.type]) if port.type in FLOAT8 else np.asarray(y) for port, y in results]
        except Exception as error:  # noqa: BLE001: onnxruntime has no type of its own for a refusal
            return str(error)

    def slack(self, want):
        """The largest difference of every element, for floats."""
        near = NEAR[want.dtype.name] * self.near
        wide = want.astype(np.float64)
        top = np.max(np.abs(wide), initial=0, where=np.isfinite(wide) & (np.abs(wide) < 1e20))
        return near * (0.02 + np.minimum(top, 1e20) + np.abs(np.nan_to_num(wide, nan=0, posinf=0, neginf=0)))


def kind_of(array):
    if array.dtype.kind in "OU":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def texts(*words):
    return np.array(words, dtype=object)


BRAIN = ml_dtypes.bfloat16
