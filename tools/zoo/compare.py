"""Runs models on Kilim and on the runtimes that they were made for, and compares.

    python tools/zoo/compare.py target/zoo/models --kilim target/release/kilim [--backends wgpu,cpu] [--only NAME]

One line for each model and size of its inputs: by how much an output differs, relative to the largest magnitude in it (of integers in
steps), and what a run takes here and there; onnxruntime and LiteRT are timed on one thread. Needs numpy, onnxruntime and ai-edge-litert.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import sizes


class Onnx:
    TYPES = {"float": "float32", "double": "float64"}

    def __init__(self, file):
        import onnxruntime

        def session(threads):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.log_severity_level = 4
            return onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])

        # DynamicQuantizeLSTM rounds together what one thread computes.
        self.session, self.timed = session(8), session(1)
        self.inputs = []
        for port in self.session.get_inputs():
            name = port.type.removeprefix("tensor(").removesuffix(")")
            shape = [d if isinstance(d, int) else None for d in port.shape]
            self.inputs.append((port.name, shape, np.dtype(self.TYPES.get(name, name))))

    def run(self, feeds):
        outputs = self.session.run(None, feeds)
        return {port.name: np.asarray(value) for port, value in zip(self.session.get_outputs(), outputs)}

    def time(self, feeds):
        return median_ms(lambda: self.timed.run(None, feeds))


class Tflite:
    def __init__(self, file):
        self.file = file
        self.inputs = []
        for port in self.fresh().get_input_details():
            shape = [d if d >= 0 else None for d in port["shape_signature"].tolist()]
            self.inputs.append((port["name"], shape, np.dtype(port["dtype"])))

    def fresh(self, feeds=None):
        """An interpreter that has not run: others keep the states of layers."""
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        kernels = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = Interpreter(self.file, num_threads=1, experimental_op_resolver_type=kernels)
        if feeds is not None:
            ports = interpreter.get_input_details()
            for port in ports:
                if list(port["shape"]) != list(feeds[port["name"]].shape):
                    interpreter.resize_tensor_input(port["index"], feeds[port["name"]].shape)
            interpreter.allocate_tensors()
            for port in ports:
                interpreter.set_tensor(port["index"], feeds[port["name"]])
        return interpreter

    def run(self, feeds):
        interpreter = self.fresh(feeds)
        interpreter.invoke()
        return {p["name"]: interpreter.get_tensor(p["index"]) for p in interpreter.get_output_details()}

    def time(self, feeds):
        return median_ms(self.fresh(feeds).invoke)


def median_ms(run, seconds=2):
    times, start = [], time.perf_counter()
    while len(times) < 11 and (not times or time.perf_counter() - start < seconds):
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return sorted(times)[len(times) // 2] * 1e3


def draw(random, shape, dtype):
    """Floats about zero, bytes and words of all values, small numbers as tokens."""
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    if dtype.itemsize >= 4:
        return random.integers(1, 20, shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def difference(want, got):
    if want.shape != got.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if want.size == 0:
        return "empty"
    a, b = want.astype(np.float64), got.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "other numbers are not finite"
    delta = np.abs(np.where(a == b, 0, a - b)).max()
    if want.dtype.kind != "f":
        return f"{int(delta)} steps"
    return f"{delta / max(np.abs(a).max(), 1e-3):.1e}"


def on_kilim(args, file, feeds, folder):
    """The outputs, and what a run takes."""
    flags = [str(file), "--backends", args.backends]
    for i, (name, value) in enumerate(feeds.items()):
        np.save(folder / f"{i}.npy", value)
        flags += ["--input", f"{name}={folder / f'{i}.npy'}"]

    def call(*command):
        done = subprocess.run([args.kilim, *command, *flags], capture_output=True, text=True, timeout=args.timeout)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return done.stdout

    call("run", "--save", str(folder / "outputs.npz"))
    timed = {} if args.once else json.loads(call("bench", "--json", "--runs", "5", "--warmup", "1"))
    with np.load(folder / "outputs.npz") as outputs:
        return dict(outputs), timed.get("median_ms")


def lines(args, file):
    model = (Onnx if file.suffix == ".onnx" else Tflite)(str(file))
    is_open = any(None in shape for _, shape, _ in model.inputs)
    for dims in sizes.cases(file.name, is_open):
        random = np.random.default_rng(1)
        feeds = {
            name: draw(random, [dims[i] if d is None else d for i, d in enumerate(shape)], dtype)
            for name, shape, dtype in model.inputs
        }
        shapes = " ".join("x".join(map(str, value.shape)) for value in feeds.values())
        want = model.run(feeds)
        with tempfile.TemporaryDirectory() as folder:
            try:
                got, here = on_kilim(args, file, feeds, Path(folder))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                yield shapes, str(error)[:300]
                continue
        found = [difference(value, got[name]) if name in got else f"no {name}" for name, value in want.items()]
        times = "" if args.once else f"; {here:.2f} ms, there {model.time(feeds):.2f} ms"
        yield shapes, ", ".join(found) + times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kilim", default="kilim")
    parser.add_argument("--backends", default="cpu")
    parser.add_argument("--only", default="", help="models whose path contains this")
    parser.add_argument("--once", action="store_true", help="run everything once and time nothing")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a model")
    args = parser.parse_args()
    for file in sorted(args.folder.rglob("*")):
        if file.suffix not in (".onnx", ".tflite") or args.only not in str(file):
            continue
        name = f"{file.parent.name}/{file.name}"
        try:
            for shapes, line in lines(args, file):
                print(f"{name} {shapes}: {line}", flush=True)
        except Exception as error:  # noqa: BLE001: what the other runtime does not run has no reference
            print(f"{name}: not there: {str(error).splitlines()[0][:150]}", flush=True)


if __name__ == "__main__":
    main()
