"""Times a step of a decoder on onnxruntime: one word more each time, with caches that grow.

    python tools/builders/decode.py FOLDER [--threads 1] [--words 200]

FOLDER is one that `build.py` wrote. The prompt has six words; the mean of the steps behind it is printed. `kilim generate` tells its own.
"""

import argparse
import pathlib
import time

import onnxruntime

from steps import Steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--words", type=int, default=200)
    args = parser.parse_args()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(str(args.folder / "model.onnx"), options, ["CPUExecutionProvider"])
    steps = Steps(args.folder, session)

    def step(words):
        results = dict(zip(steps.outputs, session.run(None, steps.feeds(words))))
        steps.fed(words, results)
        return [int(results["logits"][0, -1].argmax())]

    word = step([5, 6, 7, 8, 9, 10])
    begun = time.perf_counter()
    for _ in range(args.words):
        word = step(word)
    print(f"{(time.perf_counter() - begun) / args.words * 1e3:.1f} ms a word")


main()
