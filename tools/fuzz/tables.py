"""Small models written out one by one, in the form of `main.py`."""

import json
from typing import NamedTuple

import numpy as np
import onnx
from main import part
from onnx import helper
from values import COMPLEX128, DOUBLE, FLOATS, NAMES, STORED, TYPES, proto

COMPLEX = [k for k, dtype in STORED.items() if dtype.kind == "c"]


class Tensor(NamedTuple):
    kind: int
    array: np.ndarray
    # How far each element, or each part of a complex one, may lie from what is wanted.
    slack: np.ndarray = None

    def proto(self, name):
        return proto(name, self.kind, self.array)


def given(kind, array):
    return Tensor(kind, np.asarray(array))


def made(kind, array, slack=0.0):
    """What is wanted, exactly or nearly."""
    array = np.asarray(array)
    if kind in COMPLEX:
        return Tensor(kind, array.astype(np.complex128), np.full((*array.shape, 2), slack))
    if kind in FLOATS:
        return Tensor(kind, array.astype(np.float64), np.broadcast_to(np.float64(slack), array.shape))
    return Tensor(kind, array.astype(STORED[kind]))


def kinds(op, variable, form="%s", domain=""):
    """The element types that a type variable of the newest schema may have, in this form of a value."""
    schema = onnx.defs.get_schema(op, domain=domain)
    allowed = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable)
    return [kind for kind, text in TYPES.items() if form % text in allowed]


class Table:
    def __init__(self, stream, opsets, ops=()):
        self.stream, self.opsets, self.index = stream, opsets, 0
        self.ops = [op for listed in ops for op in listed.split(",") if op]

    def put(self, op, kind, nodes, feeds, wants, what=""):
        """A case about an operator in some element type."""
        if self.ops and op not in self.ops:
            return
        inputs = [helper.make_tensor_value_info(n, t.kind, t.array.shape) for n, t in feeds.items()]
        outputs = [helper.make_tensor_value_info(n, t.kind, None) for n, t in wants.items()]
        graph = helper.make_graph(nodes, "case", inputs, outputs)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self.opsets.items()]
        model = helper.make_model(graph, opset_imports=opsets)
        header = {
            "name": f"{op}_{NAMES[kind]}_{self.index}" + (f"_{what}" if what else ""),
            "index": self.index,
            "ops": [op],
            "opset": self.opsets[""],
            "inputs": len(feeds),
            "outputs": [NAMES[t.kind] for t in wants.values()],
        }
        part(self.stream, json.dumps(header).encode())
        part(self.stream, model.SerializeToString())
        for name, tensor in feeds.items():
            part(self.stream, tensor.proto(name).SerializeToString())
        for name, tensor in wants.items():
            kept = DOUBLE if tensor.kind in FLOATS else COMPLEX128 if tensor.kind in COMPLEX else tensor.kind
            part(self.stream, proto(name, kept, tensor.array).SerializeToString())
            if tensor.slack is not None:
                part(self.stream, np.ascontiguousarray(tensor.slack, "<f8").tobytes())
        self.index += 1
