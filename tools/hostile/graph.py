"""Small ONNX models with one node under test."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSETS = {"": 23, "ai.onnx.ml": 5, "com.microsoft": 1}


class Known:
    """An input whose value the model knows: a constant, or one that is computed when the model runs."""

    def __init__(self, value):
        self.value = np.asarray(value)


class Given:
    """An input that whoever runs the model gives."""

    def __init__(self, kind, shape):
        self.kind = kind
        self.shape = shape


def ints(*values):
    return Known(np.array(values, np.int64))


def floats(*shape):
    return Given(TensorProto.FLOAT, list(shape))


def filled(value, *shape):
    return Known(np.full(shape, value, np.float32))


def proto(graph, opsets=None, ir_version=10, functions=()):
    imports = [helper.make_opsetid(d, v) for d, v in (opsets or OPSETS).items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=functions)
    return model.SerializeToString()


def single(op, inputs, attributes=None, outputs=1, domain="", computed=False, opset=None):
    """A model of one node. With `computed`, what it knows is hidden behind an input, so that nothing is folded."""
    nodes, ports, initializers, names = [], [], [], []
    if computed:
        ports.append(helper.make_tensor_value_info("zero", TensorProto.INT64, [1]))
        initializers.append(numpy_helper.from_array(np.array([0], np.int64), "nothing"))
        nodes.append(helper.make_node("Mul", ["zero", "nothing"], ["none"]))
        nodes.append(helper.make_node("Squeeze", ["none"], ["one"]))
    for i, value in enumerate(inputs):
        name = f"x{i}"
        if value is None:
            names.append("")
            continue
        names.append(name)
        if isinstance(value, Given):
            ports.append(helper.make_tensor_value_info(name, value.kind, value.shape))
        elif computed and value.value.dtype in (np.int64, np.float32):
            initializers.append(numpy_helper.from_array(value.value, f"{name}.known"))
            kind = helper.np_dtype_to_tensor_dtype(value.value.dtype)
            nodes.append(helper.make_node("Cast", ["one"], [f"{name}.none"], to=kind))
            nodes.append(helper.make_node("Add", [f"{name}.known", f"{name}.none"], [name]))
        else:
            initializers.append(numpy_helper.from_array(value.value, name))
    results = [f"y{i}" for i in range(outputs)]
    nodes.append(helper.make_node(op, names, results, domain=domain, **(attributes or {})))
    made = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph(nodes, "hostile", ports, made, initializers)
    opsets = dict(OPSETS)
    if opset:
        opsets[""] = opset
    return proto(graph, opsets)
