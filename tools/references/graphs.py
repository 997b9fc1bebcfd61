"""Random graphs, and what onnx's reference implementation makes of them: control flow in each other
with what it uses of the graphs around it, functions of the model in each other, sequences, and
shapes that depend on data and may have no elements.

    python tools/references/graphs.py

Needs numpy and onnx.
"""

import random
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from common import Cases

warnings.simplefilter("ignore")
OPSET = 21
CASES = 60
DEPTH = 4
SIZES = (6, 0, 1)
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
# A value is a name and what it is: a vector of any length, or a number.
VECTOR, NUMBER = "vector", "number"
DEFAULT = 0.25
VARIADIC = helper.make_opsetid("", OPSET), helper.make_opsetid("local", 1)


def info(name, kind, elem=FLOAT):
    return helper.make_tensor_value_info(name, elem, [None] if kind == VECTOR else [])


class Block:
    """Nodes of one graph; it sees its own values and those of the blocks around it."""

    def __init__(self, maker, seen, depth):
        self.maker, self.seen, self.depth = maker, list(seen), depth
        self.nodes, self.own = [], []

    def node(self, op, inputs, outputs=1, **attributes):
        names = [self.maker.name() for _ in range(outputs)]
        self.maker.ops.add(op)
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype=np.float32):
        return self.node("Constant", [], value=numpy_helper.from_array(np.array(value, dtype)))

    def keep(self, name, kind):
        self.seen.append((name, kind))
        self.own.append((name, kind))

    def pick(self, kind):
        found = [name for name, k in self.seen if k == kind]
        # Late values are more likely, so that graphs become deep.
        return found[max(random.randrange(len(found)), random.randrange(len(found)))]

    def fill(self, count):
        for _ in range(count):
            names = list(STEPS if self.depth else PLAIN)
            (STEPS | PLAIN)[random.choice(names)](self)

    def result(self, kind):
        """A value of this graph itself: bodies must give what they have made."""
        own = [name for name, k in self.own if k == kind]
        return own[-1] if own else self.node("Identity", [self.pick(kind)])

    def graph(self, inputs, outputs):
        outputs = [info(name, kind, elem) for name, kind, elem in outputs]
        return helper.make_graph(self.nodes, self.maker.name(), inputs, outputs)

    def inner(self, count, extra=(), captures=True):
        """Without captures where the reference implementation cannot give a body any."""
        block = Block(self.maker, self.seen * captures + list(extra), self.depth - 1)
        block.own = list(extra)
        if not captures:
            block.keep(block.constant([1.5, -2]), VECTOR)
            block.keep(block.constant(0.75), NUMBER)
        block.fill(count)
        return block


def unary(b):
    op = random.choice(["Relu", "Neg", "Abs", "Tanh", "Sigmoid", "Identity"])
    kind = random.choice([VECTOR, NUMBER])
    b.keep(b.node(op, [b.pick(kind)]), kind)


def scaled(b):
    op = random.choice(["Add", "Sub", "Mul", "Max", "Min"])
    y = b.node(op, [b.pick(VECTOR), b.pick(NUMBER)])
    b.keep(b.node("Clip", [y, b.constant(-9), b.constant(9)]), VECTOR)


def total(b):
    b.keep(b.node("ReduceSum", [b.pick(VECTOR)], keepdims=0), NUMBER)


def length(b):
    b.keep(b.node("Cast", [b.node("Size", [b.pick(VECTOR)])], to=FLOAT), NUMBER)


def joined(b):
    both = b.node("Concat", [b.pick(VECTOR), b.pick(VECTOR)], axis=0)
    b.keep(b.node("Slice", [both, b.constant([0], np.int64), b.constant([12], np.int64)]), VECTOR)


def tail(b):
    start, end = b.constant([random.choice([1, 2, -2])], np.int64), b.constant([99], np.int64)
    b.keep(b.node("Slice", [b.pick(VECTOR), start, end]), VECTOR)


def compressed(b):
    x = b.pick(VECTOR)
    b.keep(b.node("Compress", [x, b.node("Greater", [x, b.pick(NUMBER)])], axis=0), VECTOR)


def not_zero(b):
    x = b.pick(VECTOR)
    places = b.node("NonZero", [b.node("Relu", [x])])
    b.keep(b.node("Gather", [x, b.node("Squeeze", [places, b.constant([0], np.int64)])]), VECTOR)


def distinct(b):
    b.keep(b.node("Unique", [b.node("Round", [b.pick(VECTOR)])], sorted=1), VECTOR)


def largest(b):
    x = b.pick(VECTOR)
    half = b.node("Div", [b.node("Size", [x]), b.constant(2, np.int64)])
    k = b.node("Unsqueeze", [half, b.constant([0], np.int64)])
    b.keep(b.node("TopK", [x, k], outputs=2)[0], VECTOR)


def sums(b):
    y = b.node("CumSum", [b.pick(VECTOR), b.constant(0, np.int64)], reverse=random.randrange(2))
    b.keep(b.node("Tanh", [y]), VECTOR)


def chosen(b):
    x, limit = b.pick(VECTOR), b.pick(NUMBER)
    b.keep(b.node("Where", [b.node("Less", [x, limit]), x, limit]), VECTOR)


def counted(b):
    size = b.node("Size", [b.pick(VECTOR)])
    all_ = b.node("Range", [b.constant(0, np.int64), size, b.constant(1, np.int64)])
    b.keep(b.node("Cast", [all_], to=FLOAT), VECTOR)


def squared(b):
    x = b.pick(VECTOR)
    column = b.node("Reshape", [x, b.constant([-1, 1], np.int64)], allowzero=0)
    row = b.node("Transpose", [column], perm=[1, 0])
    product = b.node("MatMul", [b.node("Tanh", [column]), b.node("Tanh", [row])])
    b.keep(b.node("ReduceSum", [product, b.constant([0], np.int64)], keepdims=0), VECTOR)


def repeated(b):
    shape = b.node("Concat", [b.constant([2], np.int64), b.node("Shape", [b.pick(VECTOR)])], axis=0)
    y = b.node("Expand", [b.pick(NUMBER), shape])
    flat = b.node("Reshape", [y, b.constant([-1], np.int64)])
    b.keep(b.node("Slice", [flat, b.constant([0], np.int64), b.constant([8], np.int64)]), VECTOR)


def branch(b):
    then, other = b.inner(random.randint(1, 3)), b.inner(random.randint(1, 3))
    graphs = [x.graph([], [(x.result(VECTOR), VECTOR, FLOAT), (x.result(NUMBER), NUMBER, FLOAT)]) for x in (then, other)]
    if random.random() < 0.2:
        condition = b.constant(random.random() < 0.5, bool)
    else:
        condition = b.node("Greater", [b.pick(NUMBER), b.pick(NUMBER)])
    v, s = b.node("If", [condition], outputs=2, then_branch=graphs[0], else_branch=graphs[1])
    b.keep(v, VECTOR)
    b.keep(s, NUMBER)


def loop(b):
    turn, going, v, s = (b.maker.name() for _ in range(4))
    body = b.inner(random.randint(1, 3), [(v, VECTOR), (s, NUMBER)])
    # Of one element: the reference implementation makes a column of numbers that are none.
    each = body.node("Unsqueeze", [body.result(NUMBER), body.constant([0], np.int64)])
    outputs = [
        (body.node("Less", [body.result(NUMBER), body.constant(50)]), NUMBER, BOOL),
        (body.node("Identity", [body.result(VECTOR)]), VECTOR, FLOAT),
        (body.node("Tanh", [body.result(NUMBER)]), NUMBER, FLOAT),
        (each, VECTOR, FLOAT),
    ]
    inputs = [info(turn, NUMBER, INT), info(going, NUMBER, BOOL), info(v, VECTOR), info(s, NUMBER)]
    if random.random() < 0.5:
        trips = b.constant(random.randint(1, 3), np.int64)
    else:
        rest = b.node("Mod", [b.node("Size", [b.pick(VECTOR)]), b.constant(3, np.int64)])
        # The reference implementation cannot join the results of no turns.
        trips = b.node("Add", [rest, b.constant(1, np.int64)])
    start = [trips, b.constant(True, bool), b.pick(VECTOR), b.pick(NUMBER)]
    v, s, all_ = b.node("Loop", start, outputs=3, body=body.graph(inputs, outputs))
    b.keep(v, VECTOR)
    b.keep(s, NUMBER)
    b.keep(b.node("Squeeze", [all_, b.constant([1], np.int64)]), VECTOR)


def scan(b):
    state, item = b.maker.name(), b.maker.name()
    body = b.inner(random.randint(1, 2), [(state, NUMBER), (item, NUMBER)], captures=False)
    outputs = [(body.node("Tanh", [body.result(NUMBER)]), NUMBER, FLOAT), (body.node("Identity", [body.result(NUMBER)]), NUMBER, FLOAT)]
    graph = body.graph([info(state, NUMBER), info(item, NUMBER)], outputs)
    some = b.node("Concat", [b.pick(VECTOR), b.constant([0.5])], axis=0)
    s, v = b.node("Scan", [b.pick(NUMBER), some], outputs=2, body=graph, num_scan_inputs=1)
    b.keep(s, NUMBER)
    b.keep(v, VECTOR)


def sequence(b):
    item = b.maker.name()
    body = b.inner(random.randint(1, 2), [(item, VECTOR)], captures=False)
    graph = body.graph([info(item, VECTOR)], [(body.node("Identity", [body.result(VECTOR)]), VECTOR, FLOAT)])
    some = b.node("Concat", [b.pick(VECTOR), b.constant([0.25])], axis=0)
    parts = b.node("SplitToSequence", [some, b.constant(2, np.int64)], axis=0)
    parts = b.node("SequenceInsert", [parts, b.pick(VECTOR)])
    made = b.node("SequenceMap", [parts], body=graph)
    b.keep(b.node("ConcatFromSequence", [made], axis=0), VECTOR)
    b.keep(b.node("SequenceAt", [made, b.constant(0, np.int64)]), VECTOR)


def call(b):
    """A function of the model, of one name in two overloads, with an attribute that it may leave to
    its default."""
    function, overload = b.maker.function()
    attributes = {"alpha": round(random.uniform(0.1, 2), 2)} if random.random() < 0.7 else {}
    names = [b.maker.name(), b.maker.name()]
    node = helper.make_node(function, [b.pick(VECTOR), b.pick(NUMBER)], names, domain="local", **attributes)
    node.overload = overload
    b.nodes.append(node)
    b.keep(names[0], VECTOR)
    b.keep(names[1], NUMBER)


PLAIN = {f.__name__: f for f in (unary, scaled, total, length, joined, tail, compressed, not_zero, distinct, largest,
                                 sums, chosen, counted, squared, repeated)}
NESTED = {f.__name__: f for f in (branch, loop, scan, sequence, call)}
# Half of the steps of a graph that may hold others are such.
STEPS = NESTED | {name: PLAIN[name] for name in ("scaled", "compressed", "joined", "not_zero", "total")}


class Maker:
    def __init__(self):
        self.count, self.ops, self.functions, self.level = 0, set(), {}, 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def function(self):
        """The name and overload of a function that may be called here: those made before."""
        known = list(self.functions)
        if known and (random.random() < 0.5 or self.level >= 2):
            return random.choice(known)
        if self.level >= 2 and not known:
            self.level = 1
        key = (f"F{random.randrange(3)}", random.choice(["", "other"]))
        if key in self.functions:
            return key
        self.level += 1
        body = Block(self, [("x", VECTOR), ("k", NUMBER)], 2)
        alpha = helper.make_node("Constant", [], [self.name()])
        value = helper.make_attribute_ref("value_float", onnx.AttributeProto.FLOAT)
        value.ref_attr_name = "alpha"
        alpha.attribute.append(value)
        body.nodes.append(alpha)
        body.keep(body.node("Mul", ["x", alpha.output[0]]), VECTOR)
        body.keep(body.node("Identity", ["k"]), NUMBER)
        body.fill(3)
        outputs = [body.node("Identity", [body.result(kind)]) for kind in (VECTOR, NUMBER)]
        self.level -= 1
        if key not in self.functions:
            function = helper.make_function(
                "local", key[0], ["x", "k"], outputs, body.nodes, VARIADIC,
                attribute_protos=[helper.make_attribute("alpha", DEFAULT)],
            )
            function.overload = key[1]
            self.functions[key] = function
        return key


def made(seed):
    random.seed(seed)
    maker = Maker()
    block = Block(maker, [("x", VECTOR), ("k", NUMBER)], DEPTH)
    block.fill(random.randint(4, 7))
    outputs = [(name, kind, FLOAT) for name, kind in block.own[-4:]]
    graph = block.graph([helper.make_tensor_value_info("x", FLOAT, ["n"]), info("k", NUMBER)], outputs)
    model = helper.make_model(graph, opset_imports=VARIADIC, functions=list(maker.functions.values()), ir_version=10)
    return model, maker


def spelled_out(model):
    """With the attributes that calls leave to their defaults, which the reference implementation
    does not fill in, and other names for overloads, which it does not tell apart."""
    def walk(nodes):
        for node in nodes:
            if node.domain == "local":
                node.op_type, node.overload = node.op_type + node.overload, ""
                if not node.attribute:
                    node.attribute.append(helper.make_attribute("alpha", DEFAULT))
            for attribute in node.attribute:
                walk(attribute.g.node)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    walk(copy.graph.node)
    for function in copy.functions:
        function.name, function.overload = function.name + function.overload, ""
        walk(function.node)
    return copy


def main():
    cases, numbers = Cases("graphs"), np.random.default_rng(5)
    ops, seed, count = {}, 0, 0
    while count < CASES and seed < 300:
        seed += 1
        model, maker = made(seed)
        if len(model.SerializeToString()) > 24_000 or not maker.ops & {"If", "Loop", "Scan", "SequenceMap"}:
            continue
        sets = []
        try:
            onnx.checker.check_model(model)
            reference = ReferenceEvaluator(spelled_out(model))
            for n in SIZES:
                x, k = numbers.normal(size=n).astype(np.float32) * 3, np.float32(numbers.normal())
                results = [np.asarray(y) for y in reference.run(None, {"x": x, "k": k})]
                if all(y.dtype == np.float32 and np.isfinite(y).all() for y in results):
                    sets.append(([x, k], results))
        except Exception as error:  # noqa: BLE001: what the reference cannot run has no result
            while error.__cause__:
                error = error.__cause__
            print(f"{seed}: {str(error)[-160:]!r}")
        if len(sets) >= 2:
            cases.add_sets(f"random_{seed}", "onnx", model.SerializeToString(), sets, rtol=1e-4, atol=1e-5)
            count += 1
            for op in maker.ops:
                ops[op] = ops.get(op, 0) + 1
    cases.write()
    print(dict(sorted(ops.items())))


main()
