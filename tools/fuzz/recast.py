"""Writes the node cases of the ONNX suite in every element type that the newest schemas allow, with what they must give then, to
standard output, in the form of `main.py`.

Of every case, every type variable of its operator takes every type, while the others keep theirs: what is bound to the variable
is converted (`converted`), and so is an attribute that names a type or holds a tensor. onnx's reference implementation computes in
float64 or in the integers' own type; it is believed where it gives the suite's own outputs for the suite's own inputs.
"""

import argparse
import itertools
import json
import pathlib
import sys
import zipfile
import warnings
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import onnx
from bounds import settled
from casting import bits, converted, floating, kind_of, limits, numbers
from main import part
from onnx import AttributeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from values import (
    BOOL, COMPLEX128, DOUBLE, E8M0, FLOATS, NAMES, STORED, STRING, TINY, TYPES, UNIT, Skip, proto,
)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
from models import RANDOM_OPS, stamps  # noqa: E402

warnings.filterwarnings("ignore")
np.seterr(all="ignore")

KINDS = {text: kind for kind, text in TYPES.items()}
# Attributes that say the element type of an output.
NAMING = ("to", "dtype", "output_dtype", "output_datatype")
# They look at the very bits of an element, not at its number.
BITWISE = ("BitCast", "Cast", "CastLike")
# They have types that follow from what a body, an attribute or another value holds.
TIED = ("If", "Imputer", "LabelEncoder", "Loop", "OptionalGetElement", "Scan", "TfIdfVectorizer")
# Without the attribute that names it, the type of the output is that of an input.
FOLLOWS = {"DequantizeLinear": 1, "EyeLike": 0}
# Here the reference implementation computes in less than float64: a polynomial, factors in float32, the output's own type.
COARSE = ("AffineGrid", "DeformConv", "Erf", "Gelu", "HardSwish", "LRN")
# What the shape of an output follows from; its numbers are exact.
SHAPING = ("scales", "roi", "depth")
# They round what they compute to integers, so that the last bit may be a step.
ROUNDING = ("QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul")
# They name the likeliest class. The reference implementation adds its scores in float32 whatever the inputs are, where
# onnxruntime adds them in float64.
LIKELIEST = ("TreeEnsembleClassifier",)
# Weighted sums of elements. The reference implementation makes the weights integers, too, where the elements are, or forgets
# the imaginary parts; so it is asked in float64, of each part. Between two integers its Resize rounds.
INTERPOLATING = ("GridSample", "Resize")


def defined(op, kind, arrays):
    """The inputs of an operator such that the standard says what it gives."""
    if op in ("QuantizeLinear", "DequantizeLinear") and len(arrays) > 2 and "float" in arrays[2].dtype.name:
        arrays[2] = np.zeros_like(arrays[2])
    if STORED[kind].kind in "iu":
        if op in ("Div", "Mod"):
            arrays[1] = np.where(arrays[1] == 0, 1, arrays[1]).astype(arrays[1].dtype)
        if op == "Pow" and len(arrays) > 1:
            arrays[1] = np.clip(arrays[1].astype(np.float64), 0, 3).astype(arrays[1].dtype)
        if op == "BitShift":
            bits = STORED[kind].itemsize * 8
            arrays[1] = np.mod(arrays[1], bits).astype(arrays[1].dtype)
    return arrays


class Subject:
    """A case of the suite: one node, with inputs and outputs that are tensors."""

    def __init__(self, case):
        self.name, self.rtol, self.atol = case.name, case.rtol, case.atol
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        self.node = model.graph.node[0]
        self.domain = self.node.domain
        later = stamps(model) if not self.domain else []
        newest = onnx.defs.onnx_opset_version()
        for opset in model.opset_import:
            if opset.domain == self.domain:
                opset.version = max([v for v in later if v <= newest], default=opset.version)
                self.opset = opset.version
        self.model = model
        self.schema = onnx.defs.get_schema(self.node.op_type, self.opset, self.domain)
        tensors = lambda values: [numpy_helper.to_array(v) if isinstance(v, TensorProto) else np.asarray(v) for v in values]
        inputs, outputs = case.data_sets[0]
        self.inputs, self.outputs = tensors(inputs), tensors(outputs)
        self.input_vars = self.bound(self.node.input, self.schema.inputs)
        self.output_vars = self.bound(self.node.output, self.schema.outputs)

    def bound(self, names, formal):
        """The type variable of every name; of a variadic parameter the last one's."""
        pairs = zip([n for n in names], [*formal, *[formal[-1]] * len(names)] if formal else [])
        return {name: p.type_str for name, p in pairs if name}

    def fed(self):
        return [v.name for v in self.model.graph.input]

    def judge(self, inputs, node=None):
        """What the reference implementation makes of arrays."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        if node is not None:
            model.graph.node[0].CopyFrom(node)
        return ReferenceEvaluator(model).run(None, dict(zip(self.fed(), inputs)))

    def believed(self):
        """Whether the reference implementation is right of the case itself."""
        try:
            got = self.judge(self.inputs)
        except Exception:
            return False
        for a, b in zip(got, self.outputs):
            a = np.asarray(a)
            if a.shape != b.shape:
                return False
            if b.dtype.kind in "OU":
                if not (a == b).all():
                    return False
            elif not np.allclose(numbers(a), numbers(b), self.rtol, max(self.atol, 1e-6), equal_nan=True):
                return False
        return True

    def recasts(self):
        """Every type variable with every type that it may take, but the case's own."""
        for constraint in self.schema.type_constraints:
            variable = constraint.type_param_str
            named = [n for n, v in self.input_vars.items() if v == variable and n in self.fed()]
            places = [self.fed().index(n) for n in named]
            carrier = None if places else self.carrier(variable)
            if not places and carrier is None:
                continue
            own = kind_of(self.inputs[places[0]]) if places else None
            for text in sorted(constraint.allowed_type_strs):
                if text in KINDS and KINDS[text] != own:
                    yield variable, KINDS[text], places, carrier

    def carrier(self, variable):
        """The attribute that an output has its type from."""
        if variable not in self.output_vars.values():
            return None
        named = [a.name for a in self.node.attribute if a.type == AttributeProto.TENSOR]
        named += [a for a in self.schema.attributes if a in NAMING]
        return named[0] if named else None


def undefined(subject, node, inputs, kinds):
    """Whether the standard leaves open what a conversion gives."""
    op, source, target = node.op_type, kind_of(inputs[0]), kinds[0]
    if op == "BitCast":
        return BOOL in (source, target) or bits(source) != bits(target)
    if op in ("Cast", "CastLike"):
        if source == target or (target == E8M0 and not (numbers(inputs[0]) > 0).all()):
            return True
        plain = target in FLOATS or "float" in NAMES[target]
        return (target == STRING and "float" in NAMES[source]) or not (plain or np.isfinite(numbers(inputs[0])).all())
    if op.endswith("Window"):
        return target not in FLOATS
    # With no state before, nothing tells its type.
    return op == "LinearAttention" and not any(node.input[3:4])


def evaluated(subject, variable, kind, places, carrier):
    """The inputs, the model and the outputs (kind, array, slack) of a case in another type."""
    inputs = list(subject.inputs)
    for place, array in zip(places, converted([inputs[p] for p in places], kind)):
        inputs[place] = array
    if places:
        inputs = defined(subject.node.op_type, kind, inputs)
    node = onnx.NodeProto()
    node.CopyFrom(subject.node)
    if carrier in NAMING:
        kept = [a for a in node.attribute if a.name != carrier]
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(carrier, kind)])
    for attribute in node.attribute:
        if attribute.name == carrier and attribute.type == AttributeProto.TENSOR:
            value = converted([numpy_helper.to_array(attribute.t)], kind)[0]
            attribute.t.CopyFrom(proto(attribute.t.name, kind, value))
    outputs, kinds = [], []
    for name, array in zip([o.name for o in subject.model.graph.output], subject.outputs):
        kinds.append(kind if subject.output_vars.get(name) == variable else kind_of(array))
    following = FOLLOWS.get(node.op_type)
    if following is not None and not any(a.name in NAMING for a in node.attribute):
        kinds[0] = kind_of(inputs[following])
        if kinds[0] == E8M0:
            raise Skip("no element type of an output")
    if undefined(subject, node, inputs, kinds):
        raise Skip("the standard leaves it open")
    model = onnx.ModelProto()
    model.CopyFrom(subject.model)
    model.graph.node[0].CopyFrom(node)
    for port, array in zip(model.graph.input, inputs):
        port.type.tensor_type.elem_type = kind_of(array)
    for port, own in zip(model.graph.output, kinds):
        port.type.tensor_type.elem_type = own
    try:
        for array, own in zip(judged(subject, node, inputs, kinds), kinds):
            outputs.append((own, *array))
    except (TypeError, ValueError):
        # Nothing says what it must give: it may be refused, with a reason.
        outputs = []
    return model, inputs, outputs


def judged(subject, node, inputs, kinds):
    """Exact outputs and how far a right result may lie from each, by what moving the floats by some units does."""
    if node.op_type.endswith("Window"):
        # In the type of the output it would round every step.
        wide_node = onnx.NodeProto()
        wide_node.CopyFrom(node)
        for attribute in wide_node.attribute:
            if attribute.name in NAMING:
                attribute.i = DOUBLE
        node = wide_node
    bitwise = node.op_type in BITWISE
    if node.op_type in INTERPOLATING and STORED[kinds[0]].kind in "iuc":
        return interpolated(subject, node, inputs, kinds[0])
    learnt = node.domain == "ai.onnx.ml"
    widened = lambda a: (floating(a) and not bitwise) or (learnt and np.asarray(a).dtype.kind in "iu")
    wide = [a.astype(np.float64) if widened(a) else a for a in inputs]
    exact = subject.judge(wide, node)
    if node.op_type in LIKELIEST:
        scores = np.sort(numbers(exact[1]), axis=-1)
        if scores.shape[-1] > 1 and np.min(scores[..., -1] - scores[..., -2]) < 1e-5:
            raise Skip("the likeliest class lies within the error")
    involved = [k for k in kinds if k in FLOATS] + [kind_of(a) for a in inputs if floating(a)]
    # What is narrower than float32 is computed in it.
    unit = max((min(UNIT[k], UNIT[TensorProto.FLOAT]) for k in involved), default=0.0)
    if "stash_type" in subject.schema.attributes or node.op_type in COARSE:
        unit = UNIT[TensorProto.FLOAT]
    unit = max(unit, 2.0**-48)
    random = np.random.default_rng(0)
    worst = [np.zeros(np.shape(y)) for y in exact]
    for _ in range(0 if bitwise else 3):
        moved = [
            w * (1 + 16 * unit * random.choice([-1.0, 1.0], np.shape(w))) if floating(a) and n not in SHAPING else w
            for w, a, n in zip(wide, inputs, subject.fed())
        ]
        for i, (got, want) in enumerate(zip(subject.judge(moved, node), exact)):
            if np.shape(got) != np.shape(want):
                raise Skip("the shape lies within the error")
            if kinds[i] in FLOATS:
                step = np.nan_to_num(np.abs(numbers(got) - numbers(want)), nan=0.0, posinf=np.inf)
                worst[i] = np.maximum(worst[i], step)
            elif node.op_type in ROUNDING and not (np.asarray(got) == np.asarray(want)).all():
                raise Skip("a step lies within the error")
    results = []
    for own, want, w in zip(kinds, exact, worst):
        want = np.asarray(want)
        if own not in FLOATS:
            if own == STRING and not all(isinstance(t, str) for t in want.flat):
                raise Skip("no texts")
            if own != STRING and STORED[own].kind in "iu" and want.dtype.kind == "f":
                want = np.trunc(want)
                if not np.isfinite(want).all():
                    raise Skip("an integer of what is not finite")
                want = want.astype(np.int64)
            results.append((want.astype(STORED[own]), *[np.zeros((*want.shape, 2))][: STORED[own].kind == "c"]))
            continue
        want = numbers(want)
        top = np.max(np.abs(want[np.isfinite(want)]), initial=0)
        size = np.where(np.isfinite(want), np.abs(want), 0)
        slack = 4 * w + np.max(w, initial=0) + 2 * UNIT[own] * size + 16 * unit * (size + top) + TINY[own]
        results.append(settled(own, want, slack))
    return results


def interpolated(subject, node, inputs, kind):
    """The exact output, and how far a right result may lie from it, of an operator whose weights are no integers."""
    data, rest = inputs[0], [a.astype(np.float64) if floating(a) else a for a in inputs[1:]]
    flat = onnx.NodeProto()
    flat.CopyFrom(node)
    kept = [a for a in flat.attribute if a.name != "extrapolation_value"]
    del flat.attribute[:]
    flat.attribute.extend(kept)
    part = lambda a, n: np.asarray(subject.judge([a.astype(np.float64), *rest], n)[0])
    exact = part(data.real, node)
    unit = UNIT[TensorProto.FLOAT]
    if STORED[kind].kind == "c":
        exact = exact + 1j * part(data.imag, flat)
        size = np.max(np.abs(exact), initial=0)
        return [(exact, np.full((*exact.shape, 2), 64 * unit * size))]
    off = np.abs(exact - np.floor(exact) - 0.5)
    if (off < 1e-4).any() and node.op_type == "GridSample":
        raise Skip("a step lies within the error")
    low, high = limits(kind)
    return [(np.clip(np.rint(exact), low, high).astype(STORED[kind]),)]


def write(stream, name, index, subject, model, inputs, outputs):
    header = {
        "name": name,
        "index": index,
        "ops": [subject.node.op_type],
        "opset": subject.opset,
        "inputs": len(inputs),
        "outputs": [NAMES[kind] for kind, *_ in outputs],
    }
    part(stream, json.dumps(header).encode())
    part(stream, model.SerializeToString())
    for port, array in zip(model.graph.input, inputs):
        part(stream, proto(port.name, kind_of(array), array).SerializeToString())
    for port, (kind, array, *slack) in zip(model.graph.output, outputs):
        as_written = DOUBLE if kind in FLOATS else COMPLEX128 if STORED[kind].kind == "c" else kind
        part(stream, proto(port.name, as_written, array).SerializeToString())
        for s in slack:
            part(stream, np.ascontiguousarray(s, "<f8").tobytes())


def learnt():
    """The cases of `tests/references/ml.zip`, of whose operators the suite has next to none."""
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests" / "references"
    archive = zipfile.ZipFile(folder / "ml.zip")
    for entry in json.loads((folder / "ml.json").read_text())["cases"]:
        path = entry["path"]
        model = onnx.load_model_from_string(archive.read(f"{path}/model.onnx"))
        files = [f"{path}/{file}" for file in sorted(entry["files"])]
        read = lambda side: [onnx.load_tensor_from_string(archive.read(f)) for f in files if f"/{side}_" in f]
        sets = [(read("input"), read("output"))] if len(model.graph.node) == 1 else []
        yield SimpleNamespace(name=f"ml_{entry['name']}", model=model, data_sets=sets, rtol=entry["rtol"], atol=entry["atol"])


def subjects(ops, learned=True):
    """The suite's cases of one node between tensors whose results are no matter of chance, by operator; of `ml.zip` too, if
    they are wanted."""
    from onnx.backend.test.loader import load_node_model_tests

    found = defaultdict(list)
    for case in itertools.chain(load_node_model_tests(), learnt() if learned else []):
        graph = case.model.graph
        if len(graph.node) != 1 or case.model.functions or not case.data_sets:
            continue
        node = graph.node[0]
        if node.op_type in TIED:
            continue
        ports = [*graph.input, *graph.output]
        if any(p.type.WhichOneof("value") != "tensor_type" for p in ports) or node.op_type in RANDOM_OPS:
            continue
        if node.domain not in ("", "ai.onnx.ml") or (ops and node.op_type not in ops):
            continue
        found[node.op_type].append(case)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="", help="only these operators, separated by commas")
    parser.add_argument("--each", type=int, default=3, help="cases of every operator and type")
    parser.add_argument("--verbose", action="store_true", help="say what is left out, and why")
    args = parser.parse_args()
    say = lambda *what: args.verbose and print(*what, file=sys.stderr)
    stream, index = sys.stdout.buffer, 0
    for op, cases in sorted(subjects(args.ops.split(",") if args.ops else []).items()):
        done = defaultdict(int)
        # Neighbours in the suite are alike.
        for case in [c for i in range(8) for c in cases[i::8]]:
            subject = Subject(case)
            wanted = [r for r in subject.recasts() if done[(r[0], r[1])] < args.each]
            if not wanted:
                continue
            if not subject.believed():
                say("unbelieved", op, case.name)
                continue
            for variable, kind, places, carrier in wanted:
                name = f"{op}_{variable}_{NAMES[kind]}_{case.name}"
                try:
                    made = evaluated(subject, variable, kind, places, carrier)
                except Exception as why:
                    say("left out", name, type(why).__name__, str(why)[:120].replace("\n", " "))
                    continue
                write(stream, name, index, subject, *made)
                index += 1
                done[(variable, kind)] += 1


if __name__ == "__main__":
    main()
