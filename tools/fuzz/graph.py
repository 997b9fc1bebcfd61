"""Builds a random graph node by node; the result of every node is known when it is added."""

import random
from functools import lru_cache

import ml_dtypes
import numpy as np
import onnx
from onnx import helper
from values import (
    ANY, BOOL, BRAIN, DOUBLE, E2M1, FLOAT, FLOAT8, FLOATS, HALF, INT64, INTEGERS, LARGEST, NARROW, STORED,
    STRING, TYPES, UNIT, Holder, Skip, Value, held, proto, rounded,
)

NEWEST = onnx.defs.onnx_opset_version()
ELEMENTS = 6000
# The operator sets of the other domains.
DOMAINS = {"ai.onnx.ml": 5}
DIMS = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 7, 7, 8, 9, 16, 17]
WORDS = ["", "a", "A", "b c", "abc", "x-1", "é", "ß", "日本", "  ", "AbC", "12"]


@lru_cache(None)
def schema(op, opset, domain=""):
    """Types that the inputs and the outputs of an operator may have, in order; the last may repeat."""
    try:
        found = onnx.defs.get_schema(op, DOMAINS.get(domain, opset), domain)
    except onnx.defs.SchemaError:
        raise Skip(f"opset {opset} has no {op}") from None
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in found.type_constraints}
    types = lambda ports: [allowed.get(p.type_str, {p.type_str}) for p in ports]
    return types(found.inputs), types(found.outputs), found.deprecated


class Node:
    def __init__(self, op, inputs, outputs, attributes, captures, domain):
        self.op, self.inputs, self.outputs = op, inputs, outputs
        self.attributes, self.captures, self.domain = attributes, captures, domain

    def proto(self):
        names = [v.name if v else "" for v in self.inputs]
        while names and not names[-1]:
            names.pop()
        outputs = [v.name if v else "" for v in self.outputs]
        return helper.make_node(
            self.op, names, outputs, name=f"{outputs[0]}_{self.op}", domain=self.domain,
            **self.attributes,
        )


class Builder:
    def __init__(self, seed, index):
        self.random = random.Random(f"{seed}/{index}")
        self.numbers = np.random.default_rng([seed, index])
        self.opset = NEWEST if self.random.random() < 0.6 else self.random.randint(7, NEWEST)
        self.zeros = self.random.random() < 0.04
        self.nodes, self.values = [], []
        self.count = 0

    # Drawing

    def chance(self, p):
        return self.random.random() < p

    def pick(self, options):
        return self.random.choice(options)

    def dim(self, most=17):
        if self.zeros and self.chance(0.15):
            return 0
        return min(self.pick(DIMS), most)

    def shape(self, lowest=0, highest=4, elements=ELEMENTS):
        while True:
            rank = self.random.randint(lowest, highest)
            shape = tuple(self.dim() for _ in range(rank))
            if np.prod(shape, dtype=int) <= elements:
                return shape

    def axis(self, rank, negative=0.4):
        """An axis, sometimes counted from the end, and its number."""
        if rank == 0:
            raise Skip("no axis")
        axis = self.random.randrange(rank)
        return (axis - rank if self.chance(negative) else axis), axis

    def float_kind(self):
        return self.random.choices([FLOAT, DOUBLE, HALF, BRAIN], [76, 9, 11, 4])[0]

    def integer_kind(self):
        return self.random.choices(INTEGERS, [2, 1, 4, 6, 3, 1, 1, 1])[0]

    def any_kind(self, kinds=ANY):
        while True:
            draw = self.random.random()
            kind = self.float_kind() if draw < 0.6 else self.integer_kind() if draw < 0.92 else BOOL
            if kind in kinds:
                return kind

    def moved_kind(self):
        """A kind for what moves elements, and looks at none."""
        draw = self.random.random()
        return STRING if draw < 0.06 else self.pick(NARROW) if draw < 0.16 else self.any_kind()

    def data(self, kind, shape, low=-4, high=4, specials=False):
        """Random numbers of a kind between two bounds."""
        g = self.numbers
        if kind == STRING:
            return np.array(WORDS, object)[g.integers(0, len(WORDS), shape)]
        if kind in FLOAT8:
            return g.integers(0, 256, shape, dtype=np.uint8).view(STORED[kind])
        if kind in NARROW:
            info = ml_dtypes.finfo if kind == E2M1 else ml_dtypes.iinfo
            info = info(STORED[kind])
            return np.asarray(g.integers(int(info.min), int(info.max), shape, endpoint=True)).astype(STORED[kind])
        if kind == BOOL:
            return g.integers(0, 2, shape).astype(np.bool_)
        if kind not in FLOATS:
            info = np.iinfo(STORED[kind])
            low, high = max(low, info.min), min(high, info.max)
            out = g.integers(int(low), int(high), shape, dtype=np.int64, endpoint=True)
            out = np.asarray(out).astype(STORED[kind])
            if specials and out.size:
                flat = out.reshape(-1)
                for _ in range(self.random.randint(1, 3)):
                    flat[self.random.randrange(out.size)] = self.pick([info.min, info.max, 0])
            return out
        style = self.random.random()
        if style < 0.5:
            out = g.uniform(low, high, shape)
        elif style < 0.85:
            out = np.round(g.uniform(low, high, shape) * 8) / 8
        else:
            out = np.round(g.uniform(low, high, shape))
        out = np.clip(rounded(kind, out), low, high)
        out = np.asarray(rounded(kind, out))
        if specials and out.size:
            flat = out.reshape(-1)
            for _ in range(self.random.randint(1, 4)):
                special = self.pick([np.nan, np.inf, -np.inf, -0.0, 0.0, LARGEST[kind], 1.0])
                flat[self.random.randrange(out.size)] = special
        return out

    # Values

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def fresh(self, kind, array, constant=0.25):
        origin = "input"
        if self.chance(constant):
            origin = self.pick(["initializer", "constant"])
        value = Value(self.name(), kind, held(kind, array), None, origin)
        self.values.append(value)
        return value

    def constant(self, kind, array):
        return self.fresh(kind, np.asarray(array), constant=1)

    def ints(self, numbers, kind=INT64, fed=0.15):
        """Axes, sizes and the like: mostly constants."""
        return self.fresh(kind, np.asarray(numbers), constant=1 - fed)

    def tensor(
        self, kinds=None, shape=None, rank=(0, 4), low=-4, high=4, specials=False, exact=False,
        constant=0.25, elements=ELEMENTS, reuse=0.75,
    ):
        """A value of the graph that fits, or a new one."""
        kinds = (self.float_kind(),) if kinds is None else kinds

        def fits(v):
            if v.kind not in kinds or (shape is not None and v.shape != tuple(shape)):
                return False
            if not rank[0] <= v.rank <= rank[1] or v.array.size > elements:
                return False
            if exact and v.error is not None:
                return False
            if v.origin in ("initializer", "constant") and v.kind not in FLOATS:
                return False
            if v.error is not None and not np.isfinite(v.error).all():
                return False
            if specials or v.kind == BOOL:
                return True
            if not v.finite:
                return False
            if v.array.size == 0:
                return True
            bottom, top = v.array - v.slack if v.error is not None else v.array, v.array
            return bool((bottom >= 2 * low).all() and (top <= 2 * high).all()) if low < 0 else bool(
                (bottom >= low).all() and (top <= high).all()
            )

        if self.chance(reuse):
            found = [v for v in self.values[-12:] if fits(v)]
            if found:
                return found[-1] if self.chance(0.6) else self.pick(found)
        kind = kinds[0] if len(kinds) == 1 else self.any_kind(kinds)
        if shape is None:
            shape = self.shape(*rank, elements=elements)
        special = specials and self.chance(0.3)
        return self.fresh(kind, self.data(kind, shape, low, high, special), constant)

    # Nodes

    def check(self, op, inputs, outputs, domain=""):
        """`Skip` where the operator takes or gives nothing of these types."""
        takes, gives, deprecated = schema(op, self.opset, domain)
        if deprecated:
            raise Skip(f"{op} is deprecated")
        for found, allowed in (([v and v.type for v in inputs], takes), (outputs, gives)):
            for i, name in enumerate(found):
                if name is None:
                    continue
                if not allowed:
                    raise Skip("no such input")
                if name not in allowed[min(i, len(allowed) - 1)]:
                    raise Skip(f"{op} of opset {self.opset} has no {name}")

    def hold(self, op, inputs, kind, items, form="seq(%s)", **attributes):
        """Adds a node that gives a sequence of tensors of one kind, or an optional of one."""
        holder = Holder(self.name(), form, kind, items)
        self.check(op, inputs, [holder.type])
        self.nodes.append(Node(op, list(inputs), [holder], attributes, [], ""))
        return holder

    def add(self, op, inputs, results, domain="", captures=(), **attributes):
        """Adds a node. `results` holds for each output its kind, array and error, or `None` where
        the output has no name."""
        self.check(op, inputs, [result and TYPES[result[0]] for result in results], domain)
        outputs = []
        for result in results:
            if result is None:
                outputs.append(None)
                continue
            kind, array, error = result
            array = held(kind, array)
            if array.size > 8 * ELEMENTS:
                raise Skip("too large")
            if kind in (HALF, BRAIN) and array.size and (np.abs(array) + (error if error is not None else 0)).max() > LARGEST[kind] / 4:
                # Kilim may keep half precision in single precision between nodes.
                if np.isfinite(array).all():
                    raise Skip("overflow of half precision")
            if error is not None:
                error = np.broadcast_to(np.asarray(error, np.float64), array.shape)
                most = np.max(error, initial=0, where=np.isfinite(error))
                top = np.max(np.abs(array), initial=0, where=np.isfinite(array))
                if most > 0.25 * top + 4 * UNIT[kind]:
                    raise Skip("nothing would be judged")
            outputs.append(Value(self.name(), kind, array, error))
        self.nodes.append(Node(op, list(inputs), outputs, attributes, list(captures), domain))
        self.values.extend(v for v in outputs if v)
        return outputs[0] if len(outputs) == 1 else outputs

    def attempt(self, generator):
        """Runs a generator; what it left is taken back when it gives up."""
        nodes, values = len(self.nodes), len(self.values)
        try:
            generator(self)
            return len(self.nodes) > nodes
        except Skip:
            del self.nodes[nodes:], self.values[values:]
            return False

    def outputs(self):
        """What nothing reads, and some of what is read."""
        read = {id(v) for n in self.nodes for v in n.inputs + n.captures if v}
        made = [v for n in self.nodes for v in n.outputs if isinstance(v, Value)]
        return [v for v in made if id(v) not in read or self.chance(0.1)]

    # Models

    def model(self, nodes, outputs):
        """A model of some of the nodes, and the values to feed."""
        made = {id(v) for n in nodes for v in n.outputs if v}
        read = {id(v): v for n in nodes for v in n.inputs + n.captures if v and id(v) not in made}
        fed, initializers, protos = [], [], []
        for value in read.values():
            if value.origin == "initializer":
                initializers.append(proto(value.name, value.kind, value.array))
            elif value.origin == "constant":
                tensor = proto("", value.kind, value.array)
                protos.append(helper.make_node("Constant", [], [value.name], value=tensor))
            else:
                fed.append(value)
        protos += [n.proto() for n in nodes]
        draw = random.Random(f"{fed and fed[0].name}/{self.opset}/{len(protos)}")
        inputs = [declared(v, draw) for v in fed]
        results = [declared(v, draw) for v in outputs]
        graph = helper.make_graph(protos, "fuzz", inputs, results, initializers)
        domains = {n.domain for n in nodes} | {""}
        opsets = [helper.make_opsetid(d, self.opset if d == "" else DOMAINS[d]) for d in sorted(domains)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10 if self.opset < 23 else 13)
        return model, fed


def declared(value, draw):
    """A port: its shape in numbers, in names, in both, or its rank alone."""
    style = draw.random()
    if style < 0.6:
        shape = value.shape
    elif style < 0.9:
        shape = [f"{value.name}_{i}" if draw.random() < 0.5 else n for i, n in enumerate(value.shape)]
    else:
        shape = [None] * value.rank
    return helper.make_tensor_value_info(value.name, value.kind, shape)


def boundary(value):
    """A value as a model's input: rounded to its kind, and from then on exact."""
    array = rounded(value.kind, value.array) if value.is_float else value.array
    return Value(value.name, value.kind, array, None, "input")
