"""Writes PNNX networks: a `.pnnx.param` in text, and a `.pnnx.bin`, a zip archive with the weights. The forms are those of pnnx's own writers,
`tools/pnnx/src/ir.cpp` and `storezip.cpp` (Tencent/ncnn). `converted` runs pnnx's converter on an ONNX model."""

import importlib.util
import io
import pathlib
import struct
import subprocess
import tempfile
import zipfile
import zlib

import numpy as np

TYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8",
         "bool": "bool"}


def shaped(value, opened=()):
    dims = ",".join("?" if i in opened else str(n) for i, n in enumerate(value.shape))
    return f"({dims}){TYPES[value.dtype.name]}"


def word(value):
    if isinstance(value, (list, tuple)):
        return f"({','.join(map(word, value))})"
    return f"{value:e}" if isinstance(value, float) else str(value)


class Network:
    def __init__(self):
        self.lines = []
        self.inputs = {}
        self.outputs = {}
        self.files = {}
        self.count = 0

    def operand(self):
        self.count += 1
        return str(self.count - 1)

    def input(self, value, opened=()):
        """An input; the sizes of axes in `opened` are not in the file."""
        made, name = self.operand(), f"in{len(self.inputs)}"
        self.inputs[name] = value
        self.lines.append(["pnnx.Input", name, 0, 1, made, f"#{made}={shaped(value, opened)}"])
        return made

    def add(self, kind, inputs=(), outputs=1, named=None, weights=None, **params):
        """An operator, whose outputs are returned: one, or a list. `named` has the arguments that operands are."""
        name = f"op{len(self.lines)}"
        made = [self.operand() for _ in range(outputs)]
        line = [kind, name, len(inputs), outputs, *inputs, *made]
        line += [f"{key}={word(value)}" for key, value in sorted(params.items())]
        for key, value in sorted((weights or {}).items()):
            line.append(f"@{key}={shaped(value)}")
            self.files[f"{name}.{key}"] = np.ascontiguousarray(value).tobytes()
        line += [f"${key}={operand}" for key, operand in (named or {}).items()]
        self.lines.append(line)
        return made[0] if outputs == 1 else made

    def result(self, operand, value):
        """Makes an operand an output of the network, with what it is to be."""
        name = f"out{len(self.outputs)}"
        value = np.asarray(value)
        self.outputs[name] = value.astype(np.float32) if value.dtype == np.float64 else value
        self.lines.append(["pnnx.Output", name, 1, 0, operand])

    def function(self, kind, inputs, values, named=("input",), weights=None, **params):
        """An operator whose outputs are those of the network. Its operands are called `named`."""
        values = values if isinstance(values, list) else [values]
        made = self.add(kind, inputs, len(values), dict(zip(named, inputs)), weights, **params)
        for operand, value in zip([made] if len(values) == 1 else made, values):
            self.result(operand, value)

    def param(self):
        ordered = [line for line in self.lines if line[0] != "pnnx.Output"] + [line for line in self.lines if line[0] == "pnnx.Output"]
        lines = ["7767517", f"{len(ordered)} {self.count}", *(" ".join(map(str, line)) for line in ordered)]
        return ("\n".join(lines) + "\n").encode()

    def bin(self, wide=True):
        """The archive; numbers of 64 bits as pnnx writes them today, or of 32 bits as those of before."""
        if wide:
            return wide_zip(self.files)
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
            for name, content in self.files.items():
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
        return data.getvalue()


def wide_zip(files):
    data, directory = b"", b""
    nothing = 0xFFFFFFFF
    for name, content in files.items():
        name = name.encode()
        said = struct.pack("<5H3I", 0, 0, 0, 0, 0, zlib.crc32(content), nothing, nothing)

        def extra(place):
            return struct.pack("<2H3QI", 1, 28, len(content), len(content), place, 0)

        directory += b"PK\x01\x02\0\0" + said + struct.pack("<5H2I", len(name), 32, 0, 0xFFFF, 0, 0, nothing) + name + extra(len(data))
        data += b"PK\x03\x04" + said + struct.pack("<2H", len(name), 32) + name + extra(0) + content
    end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0, 0, 0, 0, len(files), len(files), len(directory), len(data))
    place = struct.pack("<4sIQI", b"PK\x06\x07", 0, len(data) + len(directory), 1)
    last = struct.pack("<4s4H2IH", b"PK\x05\x06", 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, nothing, nothing, 0)
    return data + directory + end + place + last


def converted(model):
    """The two files that pnnx's converter makes of an ONNX model."""
    # The package itself needs PyTorch, its program does not.
    program = pathlib.Path(importlib.util.find_spec("pnnx").origin).parent / "pnnx"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.onnx"
        path.write_bytes(model.SerializeToString())
        subprocess.run([program, path, "fp16=0"], check=True, capture_output=True, cwd=folder)
        return (path.parent / "m.pnnx.param").read_bytes(), (path.parent / "m.pnnx.bin").read_bytes()
