"""Converts small ONNX graphs to MNN with MNN's own converter, and runs them with MNN."""

import contextlib
import json
import multiprocessing
import os
import pathlib
import re
import sys
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


class Net:
    """A network in the words of MNN's schema, for what its converter makes of no ONNX graph."""

    def __init__(self):
        self.ops = []
        self.tensors = []
        self.arrays = {}
        self.outputs = []

    def add(self, kind, inputs, main=None, table=None, outputs=1, **more):
        """The numbers of what an operator gives. `main` are its parameters, a table of the schema."""
        name = more.pop("name", f"t{len(self.tensors)}")
        made = list(range(len(self.tensors), len(self.tensors) + outputs))
        self.tensors += [name if i == 0 else f"{name}.{i}" for i in range(outputs)]
        op = {"type": kind, "name": name, "inputIndexes": list(inputs), "outputIndexes": made, **more}
        if main is not None:
            op |= {"main_type": table or kind, "main": main}
        self.ops.append(op)
        return made if outputs > 1 else made[0]

    def input(self, array, layout="NC4HW4"):
        dtype = "DT_INT32" if array.dtype == np.int32 else "DT_FLOAT"
        # MNN's Python package crashes on inputs that are in NC4HW4 themselves.
        own = "NCHW" if layout == "NC4HW4" else layout
        made = self.add("Input", [], {"dims": list(array.shape), "dtype": dtype, "dformat": own})
        self.arrays[self.tensors[made]] = array
        if layout == own:
            return made
        return self.add("ConvertTensor", [made], {"source": own, "dest": layout}, "TensorConvertInfo")

    def constant(self, array, layout="NCHW", kind="Const"):
        array = np.asarray(array)
        field, dtype = ("int32s", "DT_INT32") if array.dtype.kind == "i" else ("float32s", "DT_FLOAT")
        blob = {"dims": list(array.shape), "dataFormat": layout, "dataType": dtype, field: array.ravel().tolist()}
        return self.add(kind, [], blob, "Blob")

    def output(self, name, made, layout="NCHW"):
        """Makes a tensor an output, with its dimensions in the order that MNN's arrays have."""
        made = self.add("ConvertTensor", [made], {"source": "NC4HW4", "dest": layout}, "TensorConvertInfo", name=name)
        self.outputs.append(name)
        return made

    def written(self):
        """The bytes of the MNN file."""
        net = {"oplists": self.ops, "tensorName": self.tensors, "outputName": self.outputs, "sourceType": "ONNX"}
        return _written(json.dumps(net))


def _written(text):
    import _tools

    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "model.json", pathlib.Path(folder) / "model.mnn"
        source.write_text(text)
        _tools.mnnconvert(["mnnconvert", "-f", "JSON", "--modelFile", str(source), "--MNNModel", str(target)])
        return target.read_bytes()


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
        # Every conversion has a number of its own.
        network = re.sub(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", b"00000000-0000-0000-0000-000000000000", target.read_bytes())
        return network, weights.read_bytes() if weights.exists() else b""


def described(network):
    """The names of the inputs and outputs of an MNN file, in its order, and of the inputs in the order of NHWC."""
    import _tools

    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "model.mnn", pathlib.Path(folder) / "model.json"
        source.write_bytes(network)
        _tools.mnnconvert(["mnnconvert", "-f", "MNN", "--modelFile", str(source), "--JsonFile", str(target)])
        net = json.loads(target.read_text().replace("nan", "0").replace("inf", "0"))
        names = net["tensorName"]
        inputs = [op for op in net["oplists"] if op["type"] == "Input"]
        name = lambda op: names[op["outputIndexes"][0]]
        last = [name(op) for op in inputs if op["main"].get("dformat") == "NHWC"]
        return [name(op) for op in inputs], net.get("outputName", []), last


@contextlib.contextmanager
def heeded():
    """Makes what MNN only prints of an operator that it cannot run an error."""
    sys.stdout.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        said = file.read().decode(errors="replace")
        if "rror" in said or "Don't support" in said:
            raise ValueError(said.strip())


def ran(network, weights, inputs, outputs, channels_last=()):
    """What MNN gives for inputs by name, some of which are in the order of NHWC."""
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
        # An array is in the order of NCHW unless its input is in that of NHWC.
        layouts = {name: expr.NHWC for name in channels_last}
        given = []
        for name, value in inputs.items():
            dtype = expr.int if value.dtype == np.int32 else expr.float
            given.append(expr.const(np.ascontiguousarray(value).ravel().tolist(), list(value.shape), layouts.get(name, expr.NCHW), dtype))
        with heeded():
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
