"""Writes about 2,000 hostile files into a folder, and `index.json`, which names them: `main.py FOLDER [--seed N]`."""

import argparse
import json
import pathlib

import mutations
import sizes
import structures

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCES = ROOT / "tests/references"
MODELS = (".circle", ".gguf", ".mnn", ".onnx", ".param", ".tflite", ".tmfile", ".tnnproto")
ENDINGS = {**dict.fromkeys(MODELS, "model"), ".npy": "array", ".npz": "array", ".pb": "array"}


def valid():
    """Files to change: (name, bytes, how many changes)."""
    yield "digits.onnx", (ROOT / "assets/digits.onnx").read_bytes(), 120
    yield "digit.png", (ROOT / "assets/digit-3.png").read_bytes(), 60
    for archive, count in (("graphs", 2), ("ml", 2), ("microsoft", 1)):
        for name, data in mutations.archived(REFERENCES / f"{archive}.zip", ".onnx"):
            if len(data) < 50_000:
                yield name, data, count
    for archive, ending, count in (("circle", ".circle", 3), ("tflite", ".tflite", 3), ("mnn", ".mnn", 3), ("tengine", ".tmfile", 6), ("gguf", ".gguf", 6)):
        for name, data in mutations.archived(REFERENCES / f"{archive}.zip", ending):
            yield name, data, count
    arrays = list(mutations.archived(REFERENCES / "graphs.zip", "input_0.pb"))
    for name, data in arrays[:20]:
        yield name, data, 2


def files(seed):
    yield from sizes.files()
    yield from structures.files()
    yield from mutations.pictures()
    yield from mutations.arrays()
    for name, data, count in valid():
        yield from mutations.both(name, data, count, seed)
    yield from mutations.networks(REFERENCES / "ncnn.zip", ".param", ".bin", seed)
    yield from mutations.networks(REFERENCES / "tnn.zip", ".tnnproto", ".tnnmodel", seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    index = {}
    for name, data in files(arguments.seed):
        assert name not in index, name
        # Weights are read with the network beside them.
        if not name.endswith((".bin", ".tnnmodel")):
            index[name] = ENDINGS.get(pathlib.Path(name).suffix, "picture")
        (arguments.folder / name).write_bytes(data)
    (arguments.folder / "index.json").write_text(json.dumps(index, indent=0))
    print(f"{len(index)} files are in {arguments.folder}")


if __name__ == "__main__":
    main()
