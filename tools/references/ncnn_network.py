"""Makes small ncnn networks, in text and in words, and runs them with ncnn."""

import multiprocessing
import pathlib
import struct
import tempfile

import ncnn
import numpy as np

MAGIC = 7767517
HALVES, BYTES = 0x01306B47, 0x000D4B38


def words(array):
    """Numbers as ncnn stores them, up to a multiple of four bytes."""
    data = np.ascontiguousarray(array).tobytes()
    return data + bytes(-len(data) % 4)


def tagged(array):
    """Weights whose storage a tag tells: of the element type of the array."""
    array = np.asarray(array)
    tag = {"float32": 0, "float16": HALVES, "int8": BYTES}[array.dtype.name]
    return struct.pack("<I", tag) + words(array)


def in_table(table, indices):
    """Weights that are indices into 256 numbers. Any tag that is not known says so."""
    return struct.pack("<I", 1) + words(np.float32(table)) + words(np.uint8(indices))


class Network:
    def __init__(self):
        self.layers = []
        self.weights = b""
        self.blobs = []

    def input(self, name, **params):
        return self.layer("Input", [], [name], {int(k[1:]): v for k, v in params.items()})

    def layer(self, kind, bottoms, tops, params=None, weights=()):
        """`weights` are arrays, which have no tag, or bytes."""
        bottoms = [bottoms] if isinstance(bottoms, str) else bottoms
        tops = [tops] if isinstance(tops, str) else tops
        self.layers.append((kind, f"{kind.lower()}{len(self.layers)}", bottoms, tops, params or {}))
        self.blobs += tops
        for part in weights:
            self.weights += part if isinstance(part, bytes) else words(np.float32(part))
        return tops[0] if tops else None

    def text(self):
        """A `.param`."""
        lines = [str(MAGIC), f"{len(self.layers)} {len(self.blobs)}"]
        for kind, name, bottoms, tops, params in self.layers:
            fields = [kind.ljust(24), name.ljust(24), str(len(bottoms)), str(len(tops)), *bottoms, *tops]
            lines.append(" ".join(fields + [written(i, v) for i, v in params.items()]))
        return ("\n".join(lines) + "\n").encode()

    def binary(self, numbers):
        """A `.param.bin`; `numbers` are those of the types of layers."""
        data = struct.pack("<3i", MAGIC, len(self.layers), len(self.blobs))
        for kind, _, bottoms, tops, params in self.layers:
            blobs = [self.blobs.index(b) for b in [*bottoms, *tops]]
            data += struct.pack(f"<{3 + len(blobs)}i", numbers[kind], len(bottoms), len(tops), *blobs)
            for key, value in params.items():
                data += packed(key, value)
            data += struct.pack("<i", -233)
        return data

    def run(self, inputs):
        """The outputs by name, of inputs by name. A process of its own: what ncnn does not check ends that."""
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=self.run_here, args=(inputs, theirs))
        process.start()
        theirs.close()
        try:
            outputs = ours.recv()
        except EOFError:
            outputs = "ncnn crashes"
        process.join()
        if isinstance(outputs, str):
            raise ValueError(outputs)
        return outputs

    def run_here(self, inputs, to):
        """Sends the outputs, or what is wrong. Kernels for plain float32 in the plain layout."""
        try:
            to.send(self.outputs_of(inputs))
        except ValueError as error:
            to.send(str(error))

    def outputs_of(self, inputs):
        net = ncnn.Net()
        for option in dir(net.opt):
            if option.startswith(("use_fp16", "use_bf16", "use_winograd", "use_vulkan", "use_packing", "use_sgemm")):
                setattr(net.opt, option, False)
        net.opt.num_threads = 1
        with tempfile.TemporaryDirectory() as folder:
            param, weights = pathlib.Path(folder) / "m.param", pathlib.Path(folder) / "m.bin"
            param.write_bytes(self.text())
            weights.write_bytes(self.weights)
            if net.load_param(str(param)) != 0 or net.load_model(str(weights)) != 0:
                raise ValueError("ncnn does not load the network")
            extractor = net.create_extractor()
            for name, value in inputs.items():
                extractor.input(name, ncnn.Mat(np.ascontiguousarray(value)).clone())
            outputs = {}
            for name in net.output_names():
                code, blob = extractor.extract(name)
                if code == 0:
                    outputs[name] = np.array(blob, copy=True)
                # Blobs must go before the memory that the network gave them.
                del blob
            del extractor
            net.clear()
            if len(outputs) < 1:
                raise ValueError("ncnn does not run the network")
            return outputs


def number(value):
    return f"{value:e}" if isinstance(value, float) else str(value)


def written(key, value):
    """A parameter in text."""
    if isinstance(value, list):
        return f"{-23300 - key}={','.join([str(len(value)), *map(number, value)])}"
    return f"{key}={number(value)}"


def packed(key, value):
    """A parameter in words."""
    one = lambda v: struct.pack("<f" if isinstance(v, float) else "<i", v)
    if isinstance(value, str):
        data = value.encode()
        return struct.pack("<2i", -23400 - key, len(data)) + words(np.frombuffer(data, np.uint8))
    if isinstance(value, list):
        return struct.pack("<2i", -23300 - key, len(value)) + b"".join(map(one, value))
    return struct.pack("<i", key) + one(value)
