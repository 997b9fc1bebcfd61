"""Graphs that are deep, wide, cyclic, repeated or made of what is not there."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from graph import OPSETS, proto

FLOAT = TensorProto.FLOAT


def port(name, shape=(2,), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, list(shape))


def made(nodes, inputs=None, outputs=("y",), initializers=(), opsets=None, functions=(), **more):
    inputs = [port("x")] if inputs is None else inputs
    outputs = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "hostile", inputs, outputs, list(initializers))
    return proto(graph, opsets, functions=functions, **more)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def constant(name, values, kind=np.int64):
    return numpy_helper.from_array(np.array(values, kind), name)


def nested(depth, op):
    leaf = helper.make_graph([node("Identity", ["x"], ["z"])], "body", [], [helper.make_empty_tensor_value_info("z")])
    body = leaf
    for _ in range(depth):
        inner = node("If", ["yes"], ["z"], then_branch=body, else_branch=leaf) if op == "If" else body_loop(body)
        body = helper.make_graph([inner], "body", [], [helper.make_empty_tensor_value_info("z")])
    return made(list(body.node), outputs=["z"], initializers=[constant("yes", True, bool), constant("two", 2)])


def field(number, data):
    """A field of a protobuf message; other writers refuse to nest as deeply."""
    length, size = b"", len(data)
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def deep(depth):
    """An If in an If; `yes` is a weight of the model."""
    leaf = field(1, node("Identity", ["x"], ["z"]).SerializeToString()) + field(12, field(1, b"z"))
    body = leaf
    for _ in range(depth):
        branches = [field(5, field(1, name) + field(6, graph) + b"\xa0\x01\x05") for name, graph in ((b"then_branch", body), (b"else_branch", leaf))]
        body = field(1, field(1, b"yes") + field(2, b"z") + field(4, b"If") + b"".join(branches)) + field(12, field(1, b"z"))
    graph = body + field(5, constant("yes", True, bool).SerializeToString()) + field(11, port("x").SerializeToString())
    return b"\x08\x0a" + field(7, graph) + field(8, b"\x10\x17")


def body_loop(body):
    inputs = [port("i", (), TensorProto.INT64), port("go", (), TensorProto.BOOL)]
    nodes = [*body.node, node("Identity", ["go"], ["on"])]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("on", "z")]
    inner = helper.make_graph(nodes, "loop", inputs, outputs)
    return node("Loop", ["two", "yes"], ["z"], body=inner)


def loop(trips, grows):
    """A loop whose carried value doubles, or stays."""
    step = node("Concat", ["v", "v"], ["w"], axis=0) if grows else node("Neg", ["v"], ["w"])
    body = helper.make_graph(
        [step, node("Identity", ["go"], ["on"])],
        "body",
        [port("i", (), TensorProto.INT64), port("go", (), TensorProto.BOOL), port("v", ("n",))],
        [helper.make_empty_tensor_value_info(name) for name in ("on", "w")],
    )
    initializers = [constant("trips", trips), constant("yes", True, bool)]
    return made([node("Loop", ["trips", "yes", "x"], ["y"], body=body)], initializers=initializers)


def functions(levels, calls):
    """Functions that each call the next several times; the last calls the first where it is to recur."""
    all_functions = []
    for level in range(levels):
        inner = f"f{level + 1}" if level + 1 < levels else None
        body, last = [], "a"
        for i in range(calls):
            name = f"v{i}" if i + 1 < calls else "b"
            domain = {"domain": "local"} if inner else {}
            body.append(node(inner or "Neg", [last], [name], **domain))
            last = name
        imports = [helper.make_opsetid("", OPSETS[""]), helper.make_opsetid("local", 1)]
        all_functions.append(helper.make_function("local", f"f{level}", ["a"], ["b"], body, imports))
    return made([node("f0", ["x"], ["y"], domain="local")], opsets={**OPSETS, "local": 1}, functions=all_functions)


def recursion(length):
    imports = [helper.make_opsetid("", OPSETS[""]), helper.make_opsetid("local", 1)]
    ring = [
        helper.make_function(
            "local", f"f{i}", ["a"], ["b"], [node(f"f{(i + 1) % length}", ["a"], ["b"], domain="local")], imports
        )
        for i in range(length)
    ]
    return made([node("f0", ["x"], ["y"], domain="local")], opsets={**OPSETS, "local": 1}, functions=ring)


def chain(count, reverse=False, op="Neg"):
    names = ["x", *[f"v{i}" for i in range(count - 1)], "y"]
    nodes = [node(op, [a], [b]) for a, b in zip(names, names[1:])]
    return made(nodes[::-1] if reverse else nodes)


def tensor(**fields):
    made_of = TensorProto(name="w", data_type=FLOAT, dims=[2])
    for name, value in fields.items():
        if isinstance(value, list):
            del getattr(made_of, name)[:]
            getattr(made_of, name).extend(value)
        else:
            setattr(made_of, name, value)
    return made([node("Add", ["x", "w"], ["y"])], initializers=[made_of])


def external(**entries):
    lies = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        lies.external_data.add(key=key, value=value)
    return made([node("Add", ["x", "w"], ["y"])], initializers=[lies])


def tree(on, over, feature=0, target=0, leaf=1):
    attributes = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [feature, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [on, 0, 0], "nodes_falsenodeids": [over, 0, 0],
        "target_treeids": [0, 0], "target_nodeids": [leaf, 2], "target_ids": [target, 0],
        "target_weights": [1.0, 2.0], "n_targets": 1,
    }  # fmt: skip
    return made([node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes)], [port("x", (1, 1))])


def files():
    yield "empty.onnx", b""
    yield "zeros.onnx", bytes(1000)
    yield "page.onnx", b"<!doctype html><title>a page</title>"
    for depth in (3, 40, 200, 10_000):
        yield f"deep-{depth}.onnx", deep(depth)
    for depth in (2, 10, 20):
        for op in ("If", "Loop"):
            yield f"nested-{op}-{depth}.onnx", nested(depth, op)
    for trips in (0, 10, 40, 2**31, 2**62, -1):
        yield f"loop-{trips}.onnx", loop(trips, False)
        yield f"loop-doubles-{trips}.onnx", loop(trips, True)
    for levels, calls in ((2, 2), (10, 2), (18, 2), (30, 2), (5, 100), (60, 1)):
        yield f"functions-{levels}-{calls}.onnx", functions(levels, calls)
    for length in (1, 2, 50):
        yield f"recursion-{length}.onnx", recursion(length)
    for count in (10, 10_000, 100_000):
        yield f"chain-{count}.onnx", chain(count)
        yield f"chain-reversed-{count}.onnx", chain(count, reverse=True)
        yield f"chain-unknown-{count}.onnx", chain(count, op="Frobnicate")
        inputs = [port(f"x{i}") for i in range(count)]
        yield f"sum-{count}.onnx", made([node("Sum", [p.name for p in inputs], ["y"])], inputs)
        yield f"concat-{count}.onnx", made([node("Concat", ["x"] * count, ["y"], axis=0)])
        outputs = [f"y{i}" for i in range(count)]
        yield f"outputs-{count}.onnx", made([node("Neg", ["x"], [o]) for o in outputs], outputs=outputs)
        parts = [f"p{i}" for i in range(count)]
        split = [node("Split", ["x"], parts, num_outputs=count, axis=0)]
        yield f"split-{count}.onnx", made(split, [port("x", (count,))], outputs=parts)
        weights = [constant(f"w{i}", [1.0, 2.0], np.float32) for i in range(count)]
        yield f"weights-{count}.onnx", made([node("Neg", ["x"], ["y"])], initializers=weights)
    yield "cycle.onnx", made([node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"])], outputs=["b"])
    yield "cycle-of-one.onnx", made([node("Add", ["x", "y"], ["y"])])
    yield "missing.onnx", made([node("Neg", ["nobody"], ["y"])])
    yield "no-output.onnx", made([node("Neg", ["x"], ["z"])])
    yield "twice.onnx", made([node("Neg", ["x"], ["y"]), node("Exp", ["x"], ["y"])])
    yield "outputs-twice.onnx", made([node("Neg", ["x"], ["y"])], outputs=["y", "y"])
    yield "inputs-twice.onnx", made([node("Neg", ["x"], ["y"])], [port("x"), port("x", (3,))])
    yield "no-name.onnx", made([node("Neg", ["x"], [""])], outputs=[""])
    yield "long-name.onnx", made([node("Neg", ["x"], ["y" * 10_000_000])], outputs=["y" * 10_000_000])
    yield "weights-differ.onnx", made(
        [node("Add", ["x", "w"], ["y"])],
        initializers=[constant("w", [1.0, 2.0], np.float32), constant("w", [1.0, 3.0], np.float32)],
    )
    for version in (0, -1, 1, 6, 10**6, 2**63 - 1):
        yield f"opset-{version}.onnx", made([node("Neg", ["x"], ["y"])], opsets={"": version})
        if abs(version) < 2**31:
            yield f"ir-{version}.onnx", made([node("Neg", ["x"], ["y"])], ir_version=version)
    for dims in ([-1], [0], [2**62, 2**62], [2**63 - 1], [1] * 100, [0, 2**63 - 1], [3]):
        yield f"dims-{'x'.join(map(str, dims[:3]))}-{len(dims)}.onnx", tensor(dims=dims, raw_data=bytes(8))
    for size in (0, 1, 7, 9, 100_000):
        yield f"raw-{size}.onnx", tensor(raw_data=bytes(size))
    for kind in (0, 7, 8, 9, 16, 22, 99, -1):
        yield f"type-{kind}.onnx", tensor(data_type=kind, raw_data=bytes(8))
    yield "bool-of-2.onnx", tensor(data_type=9, raw_data=b"\x02\x03")
    yield "not-utf-8.onnx", tensor(data_type=8, string_data=[b"\xff\xfe", b"\xc3"])
    for location in ("../up.bin", "/etc/passwd", "a\\b", "c:d", "nobody.bin", "", ".", "./", "external-size.onnx"):
        yield f"external-{len(location)}-{location.strip('./')[:5].replace('/', '-')}.onnx", external(location=location)
    for offset in ("-1", "9223372036854775807", "99999999999999999999", "x", " 0 ", "1e3"):
        yield f"external-offset-{offset.strip()}.onnx", external(location="page.onnx", offset=offset)
        yield f"external-length-{offset.strip()}.onnx", external(location="page.onnx", length=offset)
    for on, over in ((1, 2), (0, 2), (0, 0), (2, 2), (9, 2), (-1, 1)):
        yield f"tree-{on}-{over}.onnx", tree(on, over)
    for feature in (-1, 1, 2**31, 2**62):
        yield f"tree-feature-{feature}.onnx", tree(1, 2, feature=feature)
        yield f"tree-target-{feature}.onnx", tree(1, 2, target=feature)
        yield f"tree-leaf-{feature}.onnx", tree(1, 2, leaf=feature)
    for count in (3, 20, 40, 60):
        names = ["x", *[f"v{i}" for i in range(count - 1)], "y"]
        texts = [port("x", (2,), TensorProto.STRING)]
        doubles = [node("StringConcat", [a, a], [b]) for a, b in zip(names, names[1:])]
        yield f"texts-double-{count}.onnx", made(doubles, texts)
        doubles = [node("Concat", [a, a], [b], axis=0) for a, b in zip(names, names[1:])]
        yield f"vectors-double-{count}.onnx", made(doubles)
        yield f"folded-double-{count}.onnx", made(doubles, [], initializers=[constant("x", [1.0], np.float32)])
    for equation in ("ab,cd->", "ab,cd,ef,gh,ij->abcdefghij", "a->aa", "....->", "->", "ab,ab,ab", "é->é", "A,a->Aa", "ii->i"):
        count = equation.split("->")[0].count(",") + 1
        inputs = [port(f"x{i}", (64, 64)) for i in range(count)]
        einsum = node("Einsum", [p.name for p in inputs], ["y"], equation=equation)
        yield f"einsum-{equation.encode().hex()}.onnx", made([einsum], inputs)
    for size in (100, 2000, 16384):
        square = [port("x", (size, size))]
        yield f"product-{size}.onnx", made([node("MatMul", ["x", "x"], ["y"])], square)
        shape = [constant("s", [size, size])]
        nodes = [node("ConstantOfShape", ["s"], ["c"]), node("MatMul", ["c", "c"], ["y"])]
        yield f"product-folded-{size}.onnx", made(nodes, [], initializers=shape)
        window = {"kernel_shape": [size + 1, size + 1], "pads": [size // 2] * 4}
        yield f"window-{size}.onnx", made([node("MaxPool", ["x"], ["y"], **window)], [port("x", (1, 1, size, size))])
    for pattern in ("(a*)*b", "(a|a)*b", "a{1000000}", "(?P<n>a)", "[", "\\p{L}{500}{500}", ".*" * 500):
        texts = [port("x", (2,), TensorProto.STRING)]
        full = node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
        yield f"regex-{pattern[:8].encode().hex()}.onnx", made([full], texts)
