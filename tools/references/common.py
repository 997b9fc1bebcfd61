"""Writes reference cases in the layout of the ONNX suite: a model, inputs and outputs as TensorProto.

All cases of one kind are one archive, `tests/references/KIND.zip`, beside an index in text, `KIND.json`. Entries of
the archive are not compressed: git stores only what differs between two versions of it, and a reader is short. The
index says of every file what it holds and its CRC-32, so that a change of it shows which cases have changed.
"""

import json
import pathlib
import zipfile
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "references"

# The earliest date that the format has: archives of the same cases are the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)


class Cases:
    """The cases of one kind; `write` replaces all of that kind that are there."""

    def __init__(self, kind, bfloat16_rtol=0.02):
        self.kind = kind
        self.bfloat16_rtol = bfloat16_rtol
        self.cases = []
        self.files = {}

    def add(self, name, suffix, model, inputs, outputs, rtol=0.0, atol=0.0, **more):
        """Differences up to `atol + rtol * |output|` are allowed: none, unless said otherwise."""
        self.add_sets(name, suffix, model, [(inputs, outputs)], rtol, atol, **more)

    def add_sets(self, name, suffix, model, sets, rtol=0.0, atol=0.0, **more):
        """With several sets of inputs and their outputs, arrays or messages of onnx. `more` are further fields of
        the case in the index."""
        file = f"model.{suffix}"
        self.add_folder(name, file, {file: model}, sets, rtol, atol, **more)

    def add_folder(self, name, file, given, sets, rtol=0.0, atol=0.0, **more):
        """A model of several files, `given` by their names; `file` is the one that is opened."""
        files = dict(given)
        if len(given) > 1:
            more = {"beside": sorted(set(given) - {file}), **more}
        for number, (inputs, outputs) in enumerate(sets):
            for what, values in (("input", inputs), ("output", outputs)):
                for i, value in enumerate(values):
                    files[f"test_data_set_{number}/{what}_{i}.pb"] = message(value).SerializeToString()
        case = {
            "name": name,
            "kind": self.kind,
            "path": name,
            "model": file,
            "data_sets": len(sets),
            "rtol": rtol,
            "atol": atol,
            "nondeterministic": False,
        }
        self.add_files({**case, **more}, files)

    def add_files(self, case, files):
        """A case of the index, and the bytes of its files by their paths in the case's folder."""
        described = {path: f"{describe(path, data)}, crc32 {zlib.crc32(data):08x}" for path, data in sorted(files.items())}
        self.cases.append({**case, "files": described})
        self.files.update({f"{case['path']}/{path}": data for path, data in files.items()})

    def write(self):
        self.cases.sort(key=lambda case: case["name"])
        with zipfile.ZipFile(ROOT / f"{self.kind}.zip", "w", zipfile.ZIP_STORED) as archive:
            for path, data in sorted(self.files.items()):
                entry = zipfile.ZipInfo(path, DATE)
                entry.create_system = 3  # Unix, on every system.
                archive.writestr(entry, data)
        index = {"bfloat16_rtol": self.bfloat16_rtol, "cases": self.cases}
        (ROOT / f"{self.kind}.json").write_text(json.dumps(index, indent=1) + "\n")
        print(f"{self.kind}: {len(self.cases)} cases")


def message(value):
    """An array as a TensorProto; a message of onnx as it is."""
    if hasattr(value, "SerializeToString"):
        return value
    return numpy_helper.from_array(np.asarray(value, order="C"))


def describe(path, data):
    """Element type and shape of a tensor; of any other file its size."""
    if path.endswith(".pb"):
        try:
            tensor = TensorProto.FromString(data)
            name = helper.tensor_dtype_to_string(tensor.data_type).removeprefix("TensorProto.").lower()
            return f"{name}{list(tensor.dims)}"
        except Exception:  # A sequence or a map; the parser says so in several ways.
            pass
    return f"{len(data)} bytes"
