"""TFLite models, written tensor by tensor and operator by operator."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int32": schema.TensorType.INT32,
    "uint8": schema.TensorType.UINT8,
    "int64": schema.TensorType.INT64,
    "bool": schema.TensorType.BOOL,
    "int16": schema.TensorType.INT16,
    "int8": schema.TensorType.INT8,
    "complex64": schema.TensorType.COMPLEX64,
}


class Model:
    """A model of one subgraph, tensor by tensor."""

    def __init__(self):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.model.subgraphs = []
        self.subgraph()

    def subgraph(self):
        """Begins another subgraph; what comes next is in it."""
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs, self.graph.outputs = [], []
        self.model.subgraphs.append(self.graph)

    def tensor(self, shape, dtype, scale=None, zero=0, axis=0, data=None, variable=False):
        t = schema.TensorT()
        t.shape, t.type, t.name = list(shape), TYPES[dtype], f"t{len(self.graph.tensors)}"
        t.buffer, t.isVariable = 0, variable
        if scale is not None:
            q = schema.QuantizationParametersT()
            q.scale = np.atleast_1d(np.float32(scale))
            q.zeroPoint = np.broadcast_to(np.int64(zero), q.scale.shape).copy()
            q.quantizedDimension = axis
            t.quantization = q
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data, dtype).tobytes(), np.uint8)
            self.model.buffers.append(buffer)
            t.buffer = len(self.model.buffers) - 1
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def input(self, *args, **kwargs):
        index = self.tensor(*args, **kwargs)
        self.graph.inputs.append(index)
        return index

    def ints(self, values):
        values = np.array(values, np.int32)
        return self.tensor(values.shape, "int32", data=values)

    def node(self, number, inputs, outputs, version=1):
        """A node of the operator of a number, without options."""
        code = schema.OperatorCodeT()
        code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
        code.version = version
        self.model.operatorCodes.append(code)
        o = schema.OperatorT()
        o.opcodeIndex = len(self.model.operatorCodes) - 1
        o.inputs, o.outputs = list(inputs), list(outputs)
        self.graph.operators.append(o)
        return o

    def op(self, name, inputs, outputs, options=None, intermediates=None, **fields):
        number = getattr(schema.BuiltinOperator, name)
        o = self.node(number, inputs, outputs, fields.pop("version", 1))
        o.intermediates = intermediates
        if options is not None:
            o.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            o.builtinOptions = getattr(schema, options + "T")()
            for field, value in fields.items():
                assert hasattr(o.builtinOptions, field), field
                setattr(o.builtinOptions, field, value)

    def output(self, *outputs):
        self.graph.outputs = list(outputs)

    def finish(self, *outputs, identifier=b"TFL3"):
        if outputs:
            self.output(*outputs)
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), identifier)
        return bytes(builder.Output())
