"""Writes random models with inputs and what they must give to standard output.

A case is a sequence of parts, each after its length as a little-endian u32: a JSON header, the
model, every input as a TensorProto, and for every output a TensorProto (floats as DOUBLE) and, of
floats, the largest difference allowed of every element as float64.
"""

import argparse
import json
import random
import struct
import sys
import traceback
import warnings

import numpy as np
import onnx
import operators
from graph import Builder, boundary
from values import DOUBLE, FLOATS, NAMES, Value, proto

warnings.filterwarnings("ignore")
np.seterr(all="ignore")


def build(names, registry, seed, index):
    """The graph of a case; its first operator goes round in turn."""
    b = Builder(seed, index)
    for _ in range(40):
        name = names[index % len(names)]
        if b.attempt(lambda b: registry[name][0](b, name)):
            break
    else:
        return None
    first = len(b.nodes)
    every = list(registry)
    for _ in range(b.random.choices(range(8), [40, 14, 12, 10, 8, 6, 5, 5])[0]):
        if len(b.nodes) - first >= 7:
            break
        name = b.pick(every)
        b.attempt(lambda b: registry[name][0](b, name))
    return b


def part(stream, data):
    stream.write(struct.pack("<I", len(data)))
    stream.write(data)


def write(stream, b, name, nodes, outputs, edge=()):
    model, fed = b.model(nodes, outputs)
    header = {
        "name": name,
        "index": int(name.rsplit("_", 1)[1]),
        "ops": [n.op for n in nodes],
        "opset": b.opset,
        "inputs": len(fed),
        "outputs": [NAMES[v.kind] for v in outputs],
    }
    part(stream, json.dumps(header).encode())
    part(stream, model.SerializeToString())
    for value in fed:
        value = boundary(value)
        part(stream, proto(value.name, value.kind, value.array).SerializeToString())
    for value in outputs:
        kind = DOUBLE if value.kind in FLOATS else value.kind
        part(stream, proto(value.name, kind, value.array).SerializeToString())
        if value.kind in FLOATS:
            part(stream, np.ascontiguousarray(value.slack, "<f8").tobytes())


def smaller(stream, b, name):
    """Every part of a case's graph that ends in one node, smallest first."""
    made = {id(v): n for n in b.nodes for v in n.outputs if v}
    parts = []
    for last in b.nodes:
        chosen = {id(last): last}
        while True:
            parts.append([n for n in b.nodes if id(n) in chosen])
            before = [made.get(id(v)) for n in chosen.values() for v in n.inputs + n.captures if v]
            more = {id(n): n for n in before if n and id(n) not in chosen}
            if not more:
                break
            chosen.update(more)
    for nodes in sorted(parts, key=len):
        inside = {id(v): v for n in nodes for v in n.inputs + n.captures if v}
        made = [v for n in nodes for v in n.outputs if v]
        outputs = [v for v in made if id(v) not in inside and isinstance(v, Value)]
        own = {id(v) for v in made}
        # Sequences are not fed.
        whole = all(i in own or isinstance(v, Value) for i, v in inside.items())
        if outputs and whole:
            write(stream, b, name, nodes, outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    parser.add_argument("--step", type=int, default=1, help="from one case's number to the next")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--ops", default="", help="begin with these operators only")
    parser.add_argument("--smaller", action="store_true", help="the parts of the first case instead")
    parser.add_argument("--check", action="store_true", help="have onnx check every model")
    args = parser.parse_args()
    registry = operators.load()
    names = [n for n, (_, weight) in registry.items() for _ in range(weight)]
    if args.ops:
        wanted = args.ops.split(",")
        names = [n for n in names if n in wanted]
        if not names:
            parser.error(f"no such operators: {args.ops}; there are {', '.join(registry)}")
    # Neighbours of one family would share what they find.
    random.Random(0).shuffle(names)
    stream = sys.stdout.buffer
    for i in range(args.cases):
        index = args.first + i * args.step
        try:
            b = build(names, registry, args.seed, index)
        except Exception:
            # A fault of the generator's own: told, and no case.
            print(f"generator: {names[index % len(names)]} {index}", file=sys.stderr)
            traceback.print_exc(limit=-2)
            continue
        if b is None:
            continue
        name = f"{names[index % len(names)]}_{args.seed}_{index}"
        if args.smaller:
            return smaller(stream, b, name)
        outputs = b.outputs()
        if args.check:
            onnx.checker.check_model(b.model(b.nodes, outputs)[0], full_check=True)
        write(stream, b, name, b.nodes, outputs)


if __name__ == "__main__":
    main()
