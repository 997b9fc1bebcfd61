"""Writes TNN networks: a `.tnnproto` in text, and a `.tnnmodel` with the weights. The forms are those of TNN's own readers and writers,
`source/tnn/interpreter/tnn/model_interpreter.cc`, `model_packer.cc` and `objseri.h` (Tencent/TNN at f0cb0812)."""

import struct

import numpy as np

OLD, NEW = 0xFABC0002, 0xFABC0004
TYPES = {"float32": 0, "float16": 1, "int8": 2, "int32": 3, "int64": 5, "uint32": 6}


def text(value):
    data = value.encode()
    return struct.pack("<i", len(data)) + data


def buffer(array, version=NEW):
    """Numbers with their head; nothing for None."""
    if array is None:
        return struct.pack("<Iii", version, 0, 0)
    array = np.ascontiguousarray(array)
    head = struct.pack("<Iii", version, TYPES[array.dtype.name], array.nbytes)
    if version == NEW:
        head += struct.pack(f"<i{array.ndim}i", array.ndim, *array.shape)
    return head + array.tobytes()


class Network:
    def __init__(self, version=NEW):
        self.version = version
        self.inputs = {}
        self.lines = []
        self.stored = []
        self.constants = {}
        self.outputs = {}

    def input(self, name, value):
        self.inputs[name] = value
        return name

    def buffer(self, array):
        return buffer(array, self.version)

    def layer(self, kind, inputs, params=(), stored=b"", results=()):
        """A layer whose outputs are those of the network, with the numbers that they are to be. Their names are returned."""
        name = f"{kind.lower()}{len(self.lines)}"
        inputs = [inputs] if isinstance(inputs, str) else inputs
        outputs = [f"{name}.{i}" for i in range(len(results))]
        self.lines.append([kind, name, len(inputs), len(outputs), *inputs, *outputs, *params])
        if stored:
            self.stored.append((kind, name, stored(name) if callable(stored) else stored))
        self.outputs.update(zip(outputs, results))
        return outputs

    def scale(self, blob, scale, zeros=None):
        """The scale of a blob in 8 bits; older files have no zeros."""
        zeros = b"" if zeros is None else self.buffer(np.int8(zeros))
        data = zeros + self.buffer(np.float32([scale])) + self.buffer(None)
        self.stored.append(("BlobScale", f"{blob}_scale_data_", data))

    def proto(self):
        blobs = [*self.inputs, *self.outputs]

        def declared(name, value):
            dims = " ".join(map(str, value.shape))
            return f"{name} {dims}" if self.version == OLD else f"{name} {value.ndim} {dims} {TYPES[value.dtype.name]}"

        lines = [
            f"1 {len(blobs)} 1 {self.version} ",
            " : ".join(declared(*item) for item in self.inputs.items()) + " ",
            " " + " ".join(blobs) + " ",
            " ".join(self.outputs) + " ",
            f" {len(self.lines)} ",
        ]
        lines += [" ".join(map(str, line)) + " " for line in self.lines]
        return "".join(f'"{line},"\n' for line in lines).encode()

    def model(self):
        data = struct.pack("<Ii", self.version, len(self.stored))
        for kind, name, stored in self.stored:
            # The number of the kind is not read where its name is known.
            data += struct.pack("<i", 1) + text(kind) + text(name) + stored
        if self.constants:
            data += struct.pack("<Ii", self.version, len(self.constants))
            data += b"".join(text(name) + self.buffer(value) for name, value in self.constants.items())
        return data
