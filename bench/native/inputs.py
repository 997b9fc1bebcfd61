"""Draws the inputs of a model, a .npy file each, and prints `[{"name": …, "file": …}]`.

    python bench/native/inputs.py MODEL.onnx FOLDER SPECS

SPECS is JSON: what models.json says of the inputs, by their names. Other inputs are drawn as the bench in browsers does: floats from -1
to 1, integers 0 and 1, bytes of all values, free dimensions of 1.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

model, folder, specs = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
draw = np.random.Generator(np.random.PCG64(1))
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
files = []
for i, port in enumerate(session.get_inputs()):
    spec = specs.get(port.name, {})
    kind = spec.get("type", port.type.removeprefix("tensor(").removesuffix(")"))
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(kind, kind))
    shape = spec.get("dims", [d if isinstance(d, int) and d > 0 else 1 for d in port.shape])
    if dtype.kind == "f":
        values = draw.random(shape) * 2 - 1
    else:
        values = draw.integers(spec.get("low", 0), spec.get("high", 256 if dtype == np.uint8 else 2), shape)
    file = folder / f"{i}.npy"
    np.save(file, values.astype(dtype))
    files.append({"name": port.name, "file": str(file)})
print(json.dumps(files))
