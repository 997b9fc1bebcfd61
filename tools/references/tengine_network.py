"""Writes Tengine networks: `.tmfile` of version 2, as `source/serializer/tmfile/tm2_format.h` describes them (OAID/Tengine at c73708ce), and
of version 1, as `serializer/include/tengine/v1/tm1_format.h` does (at 17f0e15c)."""

import struct

import numpy as np

TYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 4}
FIRST_TYPES = {"float32": 0, "float16": 1, "int32": 2, "int8": 3}
VARIABLE, CONSTANT, INPUT = 1, 2, 3


class Network:
    """Tensors and nodes by number."""

    def __init__(self, version=2):
        self.is_first = version == 1
        self.tensors = []
        self.nodes = []
        self.inputs = {}
        self.outputs = {}

    def tensor(self, name, kind, array):
        self.tensors.append((name, kind, array))
        return len(self.tensors) - 1

    def input(self, name, value):
        number = self.tensor(name, INPUT, value)
        self.inputs[name] = value
        self.nodes.append((12, name, [], [number], None, False))
        return number

    def constant(self, value):
        number = self.tensor(f"constant{len(self.tensors)}", CONSTANT, np.asarray(value))
        self.nodes.append((4, f"constant{number}", [], [number], None, False))
        return number

    def node(self, operator, inputs, params=None, results=()):
        """A node whose outputs are those of the network, with the numbers that they are to be. `params` are bytes, or floats, integers and
        lists of integers, which stand elsewhere. The numbers of its tensors are returned."""
        name = f"node{len(self.nodes)}"
        outputs = [self.tensor(f"{name}.{i}", VARIABLE, result) for i, result in enumerate(results)]
        self.outputs.update({self.tensors[t][0]: result for t, result in zip(outputs, results)})
        self.nodes.append((operator, name, inputs, outputs, params, True))
        return outputs

    def file(self):
        data = bytearray(12)

        def put(part):
            data.extend(bytes(-len(data) % 4))
            at = len(data)
            data.extend(part)
            return at

        def vector(numbers):
            numbers = [int(n) for n in numbers]
            return put(struct.pack(f"<{1 + len(numbers)}i", len(numbers), *numbers))

        def text(value):
            value = value.encode() + b"\0"
            return put(struct.pack("<2I", len(value), put(value)))

        def params(values):
            if values is None or isinstance(values, bytes):
                return 0 if values is None else put(values)
            words = b""
            for value in values:
                value = vector(value) if isinstance(value, list) else value
                words += struct.pack("<f" if isinstance(value, float) else "<i", value)
            return put(words)

        tensors, buffers, nodes = [], [], []
        for number, (name, kind, array) in enumerate(self.tensors):
            buffer = 0
            if kind == CONSTANT:
                raw = np.ascontiguousarray(array).tobytes()
                buffer = len(buffers)
                buffers.append(put(struct.pack("<2I", len(raw), put(raw))))
            dtype = np.asarray(array).dtype.name
            words = [number, buffer, vector(np.shape(array)), text(name)]
            if self.is_first:
                tensors.append(put(struct.pack("<4i2Bxx", *words, kind, FIRST_TYPES.get(dtype, 0))))
            else:
                tensors.append(put(struct.pack("<8i", *words, 0, 0, kind, TYPES.get(dtype, 0))))
        for number, (operator, name, inputs, outputs, values, _) in enumerate(self.nodes):
            words = [operator, params(values), 0] if self.is_first else [1, operator, params(values)]
            operator = put(struct.pack("<3I", *words))
            words = [number, vector(inputs) if inputs else 0, vector(outputs), operator, text(name), 0, 0]
            nodes.append(put(struct.pack("<7I", *words)))
        inputs = [i for i, node in enumerate(self.nodes) if node[0] == 12]
        outputs = [i for i, node in enumerate(self.nodes) if node[5] and node[3]]
        words = [vector(inputs), vector(outputs), vector(nodes), vector(tensors), vector(buffers), text("graph")]
        if self.is_first:
            graph = put(struct.pack("<7I", 0, *words))
            model = put(struct.pack("<2I", vector([graph]), text("model")))
        else:
            graph = put(struct.pack("<10I", 0, 0, 0, *words, 0))
            model = put(struct.pack("<4I", 3, 0, vector([graph]), text("model")))
        data[:12] = struct.pack("<3HxxI", *((0, 1) if self.is_first else (2, 0)), 0, model)
        return bytes(data)
