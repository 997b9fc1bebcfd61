"""Compares Kilim with onnxruntime on models of the builder, step by step: each feeds its own caches back.

    python tools/builders/compare.py FOLDER --kilim target/release/kilim [--backends cpu] [--steps 8] [--random]

FOLDER is what `build.py` wrote. The first step has five words, each further one the word that onnxruntime finds best, or a random one.
Both round as the products' accuracy levels say; the largest difference of the scores is printed as a part of the largest score.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from steps import Steps, session


def on_kilim(args, model, feeds, scratch):
    command = [args.kilim, "run", str(model), "--backends", args.backends, "--save", str(scratch / "out.npz")]
    for i, (name, value) in enumerate(feeds.items()):
        np.save(scratch / f"{i}.npy", value)
        command += ["--input", f"{name}={scratch / f'{i}.npy'}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with np.load(scratch / "out.npz") as results:
        return dict(results)


def compare(args, folder, scratch):
    model = folder / "model.onnx"
    runtime = session(str(model))
    random = np.random.default_rng(11)
    ours, theirs = Steps(folder, runtime), Steps(folder, runtime)
    words, worst, same = random.integers(4, 384, 5).tolist(), 0.0, 0
    for _ in range(args.steps):
        want = dict(zip(theirs.outputs, runtime.run(None, theirs.feeds(words))))
        got = on_kilim(args, model, ours.feeds(words), scratch)
        theirs.fed(words, want)
        ours.fed(words, got)
        a, b = want["logits"][0, -1].astype(np.float64), got["logits"][0, -1].astype(np.float64)
        worst = max(worst, np.abs(a - b).max() / np.abs(a).max())
        same += int(a.argmax() == b.argmax())
        words = random.integers(4, 384, 1).tolist() if args.random else [int(a.argmax())]
    return worst, same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--kilim", required=True)
    parser.add_argument("--backends", default="cpu")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--random", action="store_true")
    args = parser.parse_args()
    failed = False
    for folder in sorted(path.parent for path in args.folder.glob("*/model.onnx")):
        with tempfile.TemporaryDirectory() as scratch:
            try:
                worst, same = compare(args, folder, pathlib.Path(scratch))
                print(f"{folder.name}: {worst:.1e}, the same best word in {same} of {args.steps} steps", flush=True)
            except Exception as error:  # noqa: BLE001: the next model may do better.
                failed = True
                print(f"{folder.name}: {str(error)[:200]}", flush=True)
    sys.exit(failed)


main()
