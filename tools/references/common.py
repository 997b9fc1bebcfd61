"""Writes reference cases in the layout of the ONNX suite: a model, inputs and outputs as TensorProto."""

import json
import pathlib
import shutil

import numpy as np
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "references"


class Cases:
    """The cases of one kind; replaces all of that kind that are there."""

    def __init__(self, kind):
        self.kind = kind
        self.index = ROOT / "index.json"
        old = json.loads(self.index.read_text())["cases"] if self.index.exists() else []
        self.cases = [case for case in old if case["kind"] != kind]
        shutil.rmtree(ROOT / kind, ignore_errors=True)

    def add(self, name, suffix, model, inputs, outputs, rtol=0.0, atol=0.0):
        """Differences up to `atol + rtol * |output|` are allowed: none, unless said otherwise."""
        self.add_sets(name, suffix, model, [(inputs, outputs)], rtol, atol)

    def add_sets(self, name, suffix, model, sets, rtol=0.0, atol=0.0):
        """With several sets of inputs and their outputs."""
        folder = ROOT / self.kind / name
        folder.mkdir(parents=True)
        file = folder / f"model.{suffix}"
        file.write_bytes(model)
        for number, (inputs, outputs) in enumerate(sets):
            data = folder / f"test_data_set_{number}"
            data.mkdir()
            for what, arrays in (("input", inputs), ("output", outputs)):
                for i, array in enumerate(arrays):
                    proto = numpy_helper.from_array(np.asarray(array, order="C"))
                    (data / f"{what}_{i}.pb").write_bytes(proto.SerializeToString())
        self.cases.append(
            {
                "name": name,
                "kind": self.kind,
                "path": f"{self.kind}/{name}",
                "model": file.name,
                "data_sets": len(sets),
                "rtol": rtol,
                "atol": atol,
                "nondeterministic": False,
            }
        )

    def write(self):
        self.cases.sort(key=lambda case: (case["kind"], case["name"]))
        text = json.dumps({"bfloat16_rtol": 0.02, "cases": self.cases}, indent=1)
        self.index.write_text(text + "\n")
        print(f"{self.kind}: {sum(c['kind'] == self.kind for c in self.cases)} cases")
