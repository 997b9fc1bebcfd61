"""Converts small ONNX graphs to MNN with MNN's own converter, and runs them with MNN."""

import multiprocessing
import pathlib
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper


def graph(nodes, inputs, outputs, constants):
    """An ONNX model of nodes. `inputs` are arrays by name, or lists of dimensions some of which are texts; `outputs` are names."""
    def port(name, of):
        if isinstance(of, np.ndarray):
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(of.dtype), of.shape)
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, of)

    body = helper.make_graph(
        nodes,
        "g",
        [port(name, of) for name, of in inputs.items()],
        [helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model


def apart(function, *args):
    """The result of a function in a process of its own: what MNN does not check ends that."""
    ours, theirs = multiprocessing.Pipe()

    def call():
        try:
            theirs.send((True, function(*args)))
        except Exception as error:  # What went wrong is what the caller asks about.
            theirs.send((False, f"{type(error).__name__}: {error}"))

    process = multiprocessing.get_context("fork").Process(target=call)
    process.start()
    theirs.close()
    try:
        done, result = ours.recv()
    except EOFError:
        done, result = False, "MNN crashes"
    process.join()
    if not done:
        raise ValueError(result)
    return result


def converted(model, flags):
    """The bytes of an MNN file and of the file of its weights, which is empty where there is none."""
    # The converter as such: its Python front end reports what it is used for.
    import _tools

    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "m.onnx", pathlib.Path(folder) / "model.mnn"
        onnx.save(model, str(source))
        _tools.mnnconvert(["mnnconvert", "-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(target), "--bizCode", "kilim", *flags])
        if not target.exists():
            raise ValueError("MNN does not convert the graph")
        weights = pathlib.Path(f"{target}.weight")
        return target.read_bytes(), weights.read_bytes() if weights.exists() else b""


def described(network):
    """The names of the inputs and outputs of an MNN file, in its order."""
    import json

    import _tools

    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "model.mnn", pathlib.Path(folder) / "model.json"
        source.write_bytes(network)
        _tools.mnnconvert(["mnnconvert", "-f", "MNN", "--modelFile", str(source), "--JsonFile", str(target)])
        net = json.loads(target.read_text().replace("nan", "0").replace("inf", "0"))
        names = net["tensorName"]
        inputs = [names[op["outputIndexes"][0]] for op in net["oplists"] if op["type"] == "Input"]
        return inputs, net.get("outputName", [])


def ran(network, weights, inputs, outputs):
    """What MNN gives for inputs by name."""
    import MNN
    from MNN import expr, nn

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.mnn"
        path.write_bytes(network)
        if weights:
            pathlib.Path(f"{path}.weight").write_bytes(weights)
        runtime = nn.create_runtime_manager(({"backend": "CPU", "numThread": 1, "precision": "high", "memory": "high"},))
        if weights:
            runtime.set_external(str(path) + ".weight") if hasattr(runtime, "set_external") else None
        module = nn.load_module_from_file(str(path), list(inputs), list(outputs), runtime_manager=runtime)
        given = []
        for value in inputs.values():
            dtype = expr.int if value.dtype == np.int32 else expr.float
            given.append(expr.const(np.ascontiguousarray(value).ravel().tolist(), list(value.shape), expr.NCHW, dtype))
        made = module.forward(given)
        made = made if isinstance(made, (list, tuple)) else [made]
        results = []
        for value in made:
            if value.data_format == expr.NC4HW4:
                value = expr.convert(value, expr.NCHW)
            if value.shape is None or value.read() is None:
                raise ValueError("MNN does not run the network")
            results.append(np.array(value.read(), copy=True).reshape(value.shape))
        return results
