"""Writes single operators with inputs and what onnxruntime makes of them, in the form of `main.py`, to standard output.

Needs onnxruntime beside the packages of `tools/requirements.txt`.
"""

import argparse
import json
import random
import sys
import warnings

import numpy as np
import peer
from main import part
from peer.question import Draw, NEAR
from values import DOUBLE, NAMES, proto

warnings.filterwarnings("ignore")
np.seterr(all="ignore")


def write(stream, name, question, results):
    fed = question.fed()
    kinds = [peer.question.kind_of(np.asarray(y)) for y in results]
    header = {
        "name": name,
        "index": int(name.rsplit("_", 1)[1]),
        "ops": [question.op],
        "opset": question.opset,
        "inputs": len(fed),
        "outputs": [NAMES[kind] for kind in kinds],
    }
    part(stream, json.dumps(header).encode())
    part(stream, question.model().SerializeToString())
    for port, x in fed.items():
        part(stream, proto(port, peer.question.kind_of(x), x).SerializeToString())
    for port, kind, y in zip(filter(None, question.outputs), kinds, results):
        y = np.asarray(y)
        judged = y.dtype.name in NEAR
        part(stream, proto(port, DOUBLE if judged else kind, y.astype(np.float64) if judged else y).SerializeToString())
        if judged:
            part(stream, np.ascontiguousarray(question.slack(y), "<f8").tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    parser.add_argument("--step", type=int, default=1, help="from one case's number to the next")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--ops", default="", help="these operators only")
    parser.add_argument("--smaller", action="store_true", help="the first case only: one node has no parts")
    args = parser.parse_args()
    registry = peer.load()
    names = [n for n, (_, weight) in registry.items() for _ in range(weight)]
    if args.ops:
        wanted = args.ops.split(",")
        names = [n for n in names if n in wanted]
        if not names:
            parser.error(f"no such operators: {args.ops}; there are {', '.join(registry)}")
    random.Random(0).shuffle(names)
    stream = sys.stdout.buffer
    for i in range(1 if args.smaller else args.cases):
        index = args.first + i * args.step
        name = names[index % len(names)]
        question = registry[name][0](Draw(args.seed, index), name)
        results = question.answer() if question else ""
        # What the generator or onnxruntime refuses is no case.
        if not isinstance(results, str):
            write(stream, f"{name}_{args.seed}_{index}", question, results)


if __name__ == "__main__":
    main()
