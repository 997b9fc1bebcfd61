"""A case of an older operator set: a model of one node, and what the authorities that there are say of it."""

import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter
from onnx.reference import ReferenceEvaluator

from common import Cases

warnings.simplefilter("ignore")
cases = Cases("opsets")
random = np.random.default_rng(28)
NEWEST = onnx.defs.onnx_opset_version()
# Operators of whose old versions the reference implementation has implementations of their own.
VERSIONED = {
    "ArgMax", "ArgMin", "AveragePool", "Clip", "DFT", "Dropout", "Gemm", "Pad",
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare", "Slice", "Split", "Squeeze", "TopK", "Unsqueeze",
}


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


def model_of(name, op, version, inputs, outputs, constants, attributes):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    kept = [numpy_helper.from_array(inputs[i], f"x{i}") for i in constants]
    fed = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in constants}
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, **attributes)
    info = lambda n, x: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    graph = helper.make_graph(
        [node], name, [info(n, x) for n, x in fed.items()],
        [helper.make_empty_tensor_value_info(y) for y in results], kept,
    )
    opsets = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), fed


def converted(model, fed, results):
    """By way of the converter, which wants the types of the outputs."""
    typed = onnx.ModelProto()
    typed.CopyFrom(model)
    for value, result in zip(typed.graph.output, results or []):
        kind = helper.np_dtype_to_tensor_dtype(result.dtype)
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, result.shape))
    if not results:
        typed = onnx.shape_inference.infer_shapes(typed, strict_mode=True)
    newest = version_converter.convert_version(typed, NEWEST)
    return ReferenceEvaluator(newest).run(None, fed)


def case(op, version, *inputs, outputs=1, constants=(), name="", formula=None, trust=True, **attributes):
    """`inputs` are arrays, or None where one is left out; those numbered in `constants` stand in the
    file. Without `trust` the formula alone counts: the converter is known to be wrong here."""
    name = "_".join(filter(None, [op.lower(), str(version), name]))
    attributes = {k: v for k, v in attributes.items() if v is not None}
    model, fed = model_of(name, op, version, inputs, outputs, constants, attributes)
    found = {}
    if formula:
        results = formula(*inputs)
        found["numpy"] = list(results) if isinstance(results, tuple) else [results]
    if trust and op in VERSIONED:
        try:
            found["reference"] = ReferenceEvaluator(model).run(None, fed)
        except Exception as error:  # noqa: BLE001: it does not have the old form
            print(f"  {name}: reference: {str(error)[:90]!r}")
    if trust:
        try:
            found["converter"] = converted(model, fed, found.get("numpy") or found.get("reference"))
        except Exception as error:  # noqa: BLE001: it does not convert this
            print(f"  {name}: converter: {str(error)[:90]!r}")
    assert found, f"{name}: nobody knows"
    (first, results), *others = found.items()
    for other, more in others:
        for a, b in zip(results, more, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape, (name, first, a.dtype, a.shape, other, b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=f"{name}: {first} and {other}")
    print(f"{name}: {', '.join(found)}")
    for value, result in zip(model.graph.output, results):
        result = np.asarray(result)
        kind = helper.np_dtype_to_tensor_dtype(result.dtype)
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, result.shape))
    present = [x for i, x in enumerate(inputs) if x is not None and i not in constants]
    cases.add(name, "onnx", model.SerializeToString(), present, results, rtol=1e-4, atol=1e-5)
