"""What a model of the ONNX suite says of itself: operators, element types, versions, and whether its outputs are random."""
from __future__ import annotations

import re

import numpy as np
import onnx

T = onnx.TensorProto
DTYPE = {
    v: k.lower()
    for k, v in T.DataType.items()
    if k not in ("UNDEFINED",)
}
DTYPE[T.FLOAT] = "float32"
DTYPE[T.DOUBLE] = "float64"
# Attributes whose integer value names a tensor data type.
DTYPE_ATTRS = {"to", "dtype", "output_dtype", "stash_type", "output_datatype",
               "precision", "softmax_precision"}
CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}
# Expected output was drawn from numpy's generator: no runtime reproduces it.
RANDOM_OPS = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike",
              "RandomUniform", "RandomUniformLike"}
TRAINING_DOMAIN = "ai.onnx.preview.training"
# Operators whose meaning changed in this version although the old form is still a valid one.
OTHER_MEANING = {("GroupNormalization", 21), ("Range", 27), ("RoiAlign", 16), ("Split", 18)}
# Versions that are not known yet: models of them are read as of the newest.
UNKNOWN_VERSIONS = 2


def opname(domain: str, op: str) -> str:
    return op if domain in ("", "ai.onnx") else f"{domain}::{op}"


def walk(graph, seen):
    """Collect op types, dtypes and value kinds of a graph and its subgraphs."""
    for vi in (*graph.input, *graph.output, *graph.value_info):
        walk_type(vi.type, seen)
    for t in graph.initializer:
        seen["dtypes"].add(DTYPE[t.data_type])
    for s in graph.sparse_initializer:
        seen["dtypes"].add(DTYPE[s.values.data_type])
        seen["kinds"].add("sparse_tensor")
    walk_nodes(graph.node, seen)


def walk_nodes(nodes, seen):
    for n in nodes:
        seen["ops"].add(opname(n.domain, n.op_type))
        for a in n.attribute:
            if a.type == a.GRAPH:
                seen["subgraph"] = True
                walk(a.g, seen)
            for g in a.graphs:
                seen["subgraph"] = True
                walk(g, seen)
            if a.type == a.TENSOR:
                seen["dtypes"].add(DTYPE[a.t.data_type])
            if a.type == a.SPARSE_TENSOR:
                seen["kinds"].add("sparse_tensor")
            if a.type in (a.STRING, a.STRINGS) and n.op_type == "Constant":
                seen["dtypes"].add("string")
            if a.type == a.INT and a.name in DTYPE_ATTRS and a.i in DTYPE:
                seen["dtypes"].add(DTYPE[a.i])


def walk_type(tp, seen):
    which = tp.WhichOneof("value")
    if which == "tensor_type":
        seen["kinds"].add("tensor")
        if tp.tensor_type.elem_type:
            seen["dtypes"].add(DTYPE[tp.tensor_type.elem_type])
    elif which == "sparse_tensor_type":
        seen["kinds"].add("sparse_tensor")
    elif which == "sequence_type":
        seen["kinds"].add("sequence")
        walk_type(tp.sequence_type.elem_type, seen)
    elif which == "optional_type":
        seen["kinds"].add("optional")
        walk_type(tp.optional_type.elem_type, seen)
    elif which == "map_type":
        seen["kinds"].add("map")
        seen["dtypes"].add(DTYPE[tp.map_type.key_type])
        walk_type(tp.map_type.value_type, seen)


def type_text(tp) -> str:
    which = tp.WhichOneof("value")
    if which == "tensor_type":
        return DTYPE.get(tp.tensor_type.elem_type, "undefined")
    if which == "sequence_type":
        return f"seq({type_text(tp.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({type_text(tp.optional_type.elem_type)})"
    if which == "map_type":
        return (f"map({DTYPE[tp.map_type.key_type]},"
                f"{type_text(tp.map_type.value_type)})")
    return which or "undefined"


def describe(model) -> dict:
    seen = {"ops": set(), "dtypes": set(), "kinds": set(), "subgraph": False}
    walk(model.graph, seen)
    for f in model.functions:
        walk_nodes(f.node, seen)
    inits = {t.name for t in model.graph.initializer}
    opset = {(o.domain or "ai.onnx"): o.version for o in model.opset_import}
    return {
        "ir_version": model.ir_version,
        "opset": opset,
        "ops": sorted(seen["ops"]),
        "nodes": len(model.graph.node),
        "dtypes": sorted(seen["dtypes"]),
        "value_kinds": sorted(seen["kinds"]),
        "control_flow": sorted(CONTROL_FLOW & seen["ops"]),
        "subgraph": seen["subgraph"],
        "local_functions": len(model.functions),
        "inputs": [{"name": v.name, "type": type_text(v.type)}
                   for v in model.graph.input if v.name not in inits],
        "outputs": [{"name": v.name, "type": type_text(v.type)}
                    for v in model.graph.output],
    }


def target_op(entry: dict, model, ops_of: dict) -> str | None:
    """The operator a node case is about; expanded cases borrow their parent's."""
    base = re.sub(r"_expanded(_ver\d+)?$", "", entry["name"])
    if base != entry["name"] and base in ops_of:
        return ops_of[base]
    if len(model.graph.node) == 1:
        n = model.graph.node[0]
        return opname(n.domain, n.op_type)
    return None


def nondeterministic(model) -> bool:
    def scan(graph) -> bool:
        for n in graph.node:
            if n.op_type in RANDOM_OPS:
                return True
            if n.op_type == "Dropout" and len(n.input) > 2 and n.input[2]:
                return True  # training_mode supplied; refined by the caller
            for a in n.attribute:
                if a.type == a.GRAPH and scan(a.g):
                    return True
        return False
    return scan(model.graph)


def dropout_is_random(model, inputs) -> bool:
    """Dropout draws a mask only with training_mode=true and ratio > 0."""
    names = [v.name for v in model.graph.input]
    vals = dict(zip(names, inputs, strict=False))
    for n in model.graph.node:
        if n.op_type != "Dropout":
            continue
        mode = len(n.input) > 2 and n.input[2] in vals and bool(np.asarray(vals[n.input[2]]))
        ratio = 0.5
        if len(n.input) > 1 and n.input[1] in vals:
            ratio = float(np.asarray(vals[n.input[1]]))
        if mode and ratio > 0:
            return True
    return False


def nodes_of(model):
    def walk(nodes):
        for n in nodes:
            yield n
            for a in n.attribute:
                for g in (a.g, *a.graphs):
                    yield from walk(g.node)
    yield from walk(model.graph.node)
    for f in model.functions:
        yield from walk(f.node)


def form(schema) -> tuple:
    """What a node of this version looks like."""
    attributes = {k: (str(a.type), a.required, a.default_value.SerializeToString())
                  for k, a in schema.attributes.items()}
    return ([i.name for i in schema.inputs], [o.name for o in schema.outputs], attributes)


def extends(new, old) -> bool:
    """Whether every node of the old version means the same in the new one: it only takes more
    element types, more optional inputs or more attributes with defaults."""
    if (new.name, new.since_version) in OTHER_MEANING or new.deprecated:
        return False
    (ins, outs, attrs), (old_ins, old_outs, old_attrs) = form(new), form(old)
    return (ins[:len(old_ins)] == old_ins and outs[:len(old_outs)] == old_outs
            and all(attrs.get(k) == a for k, a in old_attrs.items())
            and all(i.option != onnx.defs.OpSchema.FormalParameterOption.Single
                    for i in new.inputs[len(old_ins):])
            and not any(a.required for k, a in new.attributes.items() if k not in old_attrs))


def stamps(model) -> list[int]:
    """The later versions of the standard's operator set under which the model means the same."""
    own = {o.domain: o.version for o in model.opset_import}.get("")
    if own is None or model.functions:
        return []
    newest = onnx.defs.onnx_opset_version()
    ops = {n.op_type for n in nodes_of(model) if n.domain in ("", "ai.onnx")}
    out = []
    for version in range(own + 1, newest + 1):
        for op in ops:
            new, old = (onnx.defs.get_schema(op, v, "") for v in (version, version - 1))
            if new.since_version != old.since_version and not extends(new, old):
                return out
        out.append(version)
    return out + [newest + i + 1 for i in range(UNKNOWN_VERSIONS)]
