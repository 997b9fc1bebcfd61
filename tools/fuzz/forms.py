"""Writes what `recast.py` leaves out to standard output, in the form of `main.py`: values that are no tensors, control flow, constants
and random numbers, in every element type that the newest schemas allow.

Sequences, optional values and bodies only move elements, so what must be given are the very elements. Of random numbers the model
itself takes moments and shares, which must lie within five deviations of what the distribution has.
"""

import sys

import numpy as np
import onnx
from casting import converted
from onnx import TensorProto, helper
from tables import Table, given, kinds, made
from values import BOOL, DOUBLE, E8M0, INT64, NAMES, STORED

NEWEST = onnx.defs.onnx_opset_version()


def data(kind, *shape, first=0):
    """Elements of some kind, of both signs where it has them."""
    n = np.arange(first, first + int(np.prod(shape)))
    numbers = (n * 5 % 7 + 1.0).reshape(shape)
    signs = np.where(n % 3 == 0, -1.0, 1.0).reshape(shape)
    return converted([numbers if kind == E8M0 else numbers * signs], kind)[0]


def graph(nodes, inputs, outputs):
    """A body; `(name, kind, shape)` for each input and output, a kind of `None` where it follows."""
    ports = lambda listed: [
        helper.make_empty_tensor_value_info(n) if k is None else helper.make_tensor_value_info(n, k, s) for n, k, s in listed
    ]
    return helper.make_graph(nodes, "body", ports(inputs), ports(outputs))


node = helper.make_node


def sequences(table):
    for kind in kinds("SequenceConstruct", "T"):
        a, b, c = (data(kind, 2, 3, first=i) for i in range(3))
        for index in kinds("SequenceInsert", "I"):
            at = lambda i: given(index, np.array(i, STORED[index]))
            nodes = [
                node("SequenceConstruct", ["a", "b"], ["s"]),
                node("SequenceInsert", ["s", "c", "i"], ["t"]),
                node("SequenceErase", ["t", "j"], ["u"]),
                node("SequenceAt", ["t", "k"], ["x"]),
                node("ConcatFromSequence", ["t"], ["y"], axis=0),
                node("ConcatFromSequence", ["u"], ["z"], axis=-1, new_axis=1),
                node("SequenceLength", ["u"], ["n"]),
            ]
            feeds = {"a": given(kind, a), "b": given(kind, b), "c": given(kind, c), "i": at(1), "j": at(-1), "k": at(-2)}
            wants = {
                "x": made(kind, c), "y": made(kind, np.concatenate([a, c, b])),
                "z": made(kind, np.stack([a, c], -1)), "n": made(INT64, 2),
            }
            table.put("SequenceInsert", kind, nodes, feeds, wants)
        nodes = [
            node("SequenceEmpty", [], ["e"], dtype=kind),
            node("SequenceInsert", ["e", "a"], ["s"]),
            node("ConcatFromSequence", ["s"], ["y"], axis=1),
        ]
        table.put("SequenceEmpty", kind, nodes, {"a": given(kind, a)}, {"y": made(kind, a)})
    for kind in kinds("SplitToSequence", "T"):
        x = data(kind, 5, 2)
        for index in kinds("SplitToSequence", "I"):
            for split, parts in ((2, [2, 4]), ([1, 4], [1])):
                nodes = [
                    node("SplitToSequence", ["x", "n"], ["s"], axis=0),
                    node("SequenceAt", ["s", "last"], ["y"]),
                    node("SequenceLength", ["s"], ["count"]),
                ]
                feeds = {
                    "x": given(kind, x), "n": given(index, np.array(split, STORED[index])),
                    "last": given(INT64, np.array(-1)),
                }
                wants = {"y": made(kind, np.split(x, parts)[-1]), "count": made(INT64, len(parts) + 1)}
                table.put("SplitToSequence", kind, nodes, feeds, wants)
        nodes = [
            node("SplitToSequence", ["x"], ["s"], axis=1, keepdims=0),
            node("ConcatFromSequence", ["s"], ["y"], axis=0),
        ]
        table.put("SplitToSequence", kind, nodes, {"x": given(kind, x)}, {"y": made(kind, x.T.reshape(-1))})
    for kind in kinds("SequenceMap", "V"):
        a, b, c = (data(kind, 2, 3, first=i) for i in range(3))
        body = graph([node("Concat", ["p", "q"], ["r"], axis=0)], [("p", kind, None), ("q", kind, None)], [("r", kind, None)])
        nodes = [
            node("SequenceConstruct", ["a", "b"], ["s"]),
            node("SequenceMap", ["s", "c"], ["t"], body=body),
            node("ConcatFromSequence", ["t"], ["y"], axis=0),
        ]
        feeds = {"a": given(kind, a), "b": given(kind, b), "c": given(kind, c)}
        table.put("SequenceMap", kind, nodes, feeds, {"y": made(kind, np.concatenate([a, c, b, c]))})


def optionals(table):
    for kind in kinds("Optional", "V"):
        x = data(kind, 2, 2)
        tensor = helper.make_tensor_type_proto(kind, None)
        nodes = [
            node("Optional", ["x"], ["o"]),
            node("OptionalHasElement", ["o"], ["h"]),
            node("OptionalGetElement", ["o"], ["y"]),
            node("OptionalGetElement", ["x"], ["z"]),
            node("Optional", [], ["none"], type=tensor),
            node("OptionalHasElement", ["none"], ["g"]),
        ]
        wants = {"h": made(BOOL, True), "y": made(kind, x), "z": made(kind, x), "g": made(BOOL, False)}
        table.put("Optional", kind, nodes, {"x": given(kind, x)}, wants)
    for kind in kinds("Optional", "V", "seq(%s)"):
        x, z = data(kind, 2), data(kind, 3, first=4)
        nodes = [
            node("SequenceConstruct", ["x", "z"], ["s"]),
            node("Optional", ["s"], ["o"]),
            node("OptionalHasElement", ["o"], ["h"]),
            node("OptionalGetElement", ["o"], ["t"]),
            node("ConcatFromSequence", ["t"], ["y"], axis=0),
        ]
        wants = {"h": made(BOOL, True), "y": made(kind, np.concatenate([x, z]))}
        table.put("Optional", kind, nodes, {"x": given(kind, x), "z": given(kind, z)}, wants)


def control(table):
    for kind in kinds("If", "V"):
        x, z = data(kind, 2), data(kind, 2, first=3)
        take = lambda name: graph([node("Identity", [name], ["out"])], [], [("out", kind, None)])
        nodes = [
            node("If", ["c"], ["y"], then_branch=take("x"), else_branch=take("z")),
            node("Not", ["c"], ["d"]),
            node("If", ["d"], ["w"], then_branch=take("x"), else_branch=take("z")),
        ]
        feeds = {"c": given(BOOL, np.array(True)), "x": given(kind, x), "z": given(kind, z)}
        table.put("If", kind, nodes, feeds, {"y": made(kind, x), "w": made(kind, z)})
    for kind in kinds("Loop", "V"):
        x, z = data(kind, 2), data(kind, 2, first=3)
        steps = [node("Identity", ["s"], ["was"]), node("Identity", ["z"], ["next"]), node("Identity", ["c"], ["d"])]
        inputs = [("i", INT64, []), ("c", BOOL, []), ("s", kind, None)]
        body = graph(steps, inputs, [("d", BOOL, []), ("next", kind, None), ("was", kind, None)])
        feeds = {"n": given(INT64, np.array(3)), "x": given(kind, x), "z": given(kind, z)}
        wants = {"y": made(kind, z), "all": made(kind, np.stack([x, z, z]))}
        table.put("Loop", kind, [node("Loop", ["n", "", "x"], ["y", "all"], body=body)], feeds, wants)
    for kind in kinds("Loop", "V", "seq(%s)"):
        x, z = data(kind, 2), data(kind, 2, first=3)
        steps = [node("SequenceInsert", ["s", "z"], ["t"]), node("Identity", ["c"], ["d"])]
        body = graph(steps, [("i", INT64, []), ("c", BOOL, []), ("s", None, None)], [("d", BOOL, []), ("t", None, None)])
        held = helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None))
        body.input[2].type.CopyFrom(held)
        body.output[1].type.CopyFrom(held)
        nodes = [
            node("SequenceConstruct", ["x"], ["s"]),
            node("Loop", ["n", "", "s"], ["t"], body=body),
            node("ConcatFromSequence", ["t"], ["y"], axis=0),
        ]
        feeds = {"n": given(INT64, np.array(2)), "x": given(kind, x), "z": given(kind, z)}
        table.put("Loop", kind, nodes, feeds, {"y": made(kind, np.concatenate([x, z, z]))})
    for kind in kinds("Scan", "V"):
        x, z = data(kind, 2), data(kind, 3, 2, first=3)
        steps = [node("Identity", ["e"], ["next"]), node("Identity", ["s"], ["was"])]
        body = graph(steps, [("s", kind, [2]), ("e", kind, [2])], [("next", kind, [2]), ("was", kind, [2])])
        for back in (0, 1):
            nodes = [node("Scan", ["x", "z"], ["y", "all"], body=body, num_scan_inputs=1, scan_input_directions=[back])]
            row = z[::-1] if back else z
            wants = {"y": made(kind, row[2]), "all": made(kind, np.stack([x, row[0], row[1]]))}
            table.put("Scan", kind, nodes, {"x": given(kind, x), "z": given(kind, z)}, wants)
    for kind in kinds("Constant", "T"):
        x = data(kind, 2, 3)
        nodes = [node("Constant", [], ["c"], value=given(kind, x).proto("c")), node("Identity", ["c"], ["y"])]
        table.put("Constant", kind, nodes, {}, {"y": made(kind, x)})


def drawn(table, op, name, source, kind, mean, variance, shares, feeds=(), shape=(64, 64)):
    """Checks what the node `source` draws as `y`: its shape, its type, its first two moments, and how much lies below some bounds."""
    nodes = [
        source,
        node("Shape", ["y"], ["shape"]),
        node("Xor" if kind == BOOL else "Sub", ["y", "y"], ["nothing"]),
        node("Cast", ["y"], ["wide"], to=DOUBLE),
        node("ReduceMean", ["wide"], ["mean"], keepdims=0),
        node("Sub", ["wide", "mean"], ["off"]),
        node("ReduceSumSquare", ["off"], ["squares"], keepdims=0),
    ]
    n = int(np.prod(shape))
    # Five deviations of a mean of `n`; of the squares, by the fourth moment, which no distribution here has above 3 * variance^2.
    wants = {
        "shape": made(INT64, np.array(shape)),
        "nothing": made(kind, np.zeros(shape, STORED[kind])),
        "mean": made(DOUBLE, mean, 5 * np.sqrt(variance / n) + 2e-3 * abs(mean)),
        "squares": made(DOUBLE, variance * n, 5 * variance * np.sqrt(3 * n) + 4e-3 * variance * n),
    }
    feeds = dict(feeds)
    for i, (bound, share) in enumerate(shares):
        feeds[f"b{i}"] = given(DOUBLE, np.array(bound))
        nodes += [
            node("Less", ["wide", f"b{i}"], [f"l{i}"]),
            node("Cast", [f"l{i}"], [f"f{i}"], to=DOUBLE),
            node("ReduceMean", [f"f{i}"], [f"share{i}"], keepdims=0),
        ]
        wants[f"share{i}"] = made(DOUBLE, share, 5 * np.sqrt(share * (1 - share) / n) + 4e-3 * (0 < share < 1))
    table.put(op, kind, nodes, feeds, wants, name)


def chances(table):
    normal = [(1.0, 0.02275), (2.0, 0.15866), (3.0, 0.5), (4.0, 0.84134), (-9.0, 0.0), (15.0, 1.0)]
    even = [(-1.0, 0.0), (0.0, 0.25), (2.0, 0.75), (3.01, 1.0)]
    for op, law, mean, variance, shares in (
        ("RandomNormal", {"mean": 3.0, "scale": 1.0}, 3.0, 1.0, normal),
        ("RandomUniform", {"low": -1.0, "high": 3.0}, 1.0, 16 / 12, even),
    ):
        for kind in kinds(op, "T"):
            for seed in ({}, {"seed": 7.0}):
                source = node(op, [], ["y"], dtype=kind, shape=[64, 64], **law, **seed)
                drawn(table, op, f"seed{len(seed)}", source, kind, mean, variance, shares)
        like = op + "Like"
        for kind in kinds(like, "T1"):
            x = given(kind, data(kind, 64, 64))
            source = node(like, ["x"], ["y"], dtype=TensorProto.FLOAT, **law)
            drawn(table, like, NAMES[kind], source, TensorProto.FLOAT, mean, variance, shares, {"x": x})
        for kind in kinds(like, "T2"):
            x = given(kind, data(kind, 64, 64))
            drawn(table, like, "own", node(like, ["x"], ["y"], **law), kind, mean, variance, shares, {"x": x})
    for kind in kinds("Bernoulli", "T1"):
        x = given(kind, np.full((64, 64), 0.25, STORED[kind]))
        for to in kinds("Bernoulli", "T2"):
            source = node("Bernoulli", ["x"], ["y"], dtype=to)
            drawn(table, "Bernoulli", NAMES[kind], source, to, 0.25, 0.1875, [(0.5, 0.75), (1.5, 1.0)], {"x": x})
    for kind in kinds("Multinomial", "T1"):
        # Logarithms of 1/8, 3/8 and 1/2, moved, which changes nothing.
        x = np.tile(np.log([0.125, 0.375, 0.5]) + 1, (4, 1)).astype(STORED[kind])
        p = np.exp(x[0].astype(np.float64))
        p /= p.sum()
        mean = p[1] + 2 * p[2]
        for to in kinds("Multinomial", "T2"):
            source = node("Multinomial", ["x"], ["y"], dtype=to, sample_size=1024)
            shares = [(0.5, p[0]), (1.5, p[0] + p[1]), (2.5, 1.0)]
            variance = p[1] + 4 * p[2] - mean**2
            drawn(table, "Multinomial", NAMES[kind], source, to, mean, variance, shares, {"x": given(kind, x)}, (4, 1024))


def main():
    table = Table(sys.stdout.buffer, {"": NEWEST}, sys.argv[1:])
    for family in (sequences, optionals, control, chances):
        family(table)


if __name__ == "__main__":
    main()
