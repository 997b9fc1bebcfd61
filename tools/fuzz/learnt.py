"""Writes the operators of `ai.onnx.ml`, and TfIdfVectorizer, in every element type and with every attribute that holds their tables, to
standard output in the form of `main.py`.

What they must give follows from the tables themselves; of support vectors and trees, onnx's reference implementation says it, in
float64.
"""

import itertools
import sys

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tables import Table, given, kinds, made
from values import DOUBLE, FLOAT, FLOATS, INT64, NAMES, STORED, STRING

DOMAIN = "ai.onnx.ml"
OPSETS = {"": onnx.defs.onnx_opset_version(), DOMAIN: 5}
KEYS = {INT64: [4, -7, 12], FLOAT: [0.5, -2.0, 3.25], STRING: ["ab", "", "c"]}
# The attribute for a list of some kind.
LISTS = {INT64: "int64s", FLOAT: "floats", STRING: "strings"}


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain=DOMAIN, **attributes)


def listed(kind):
    plain = STRING if kind == STRING else FLOAT if kind in FLOATS else INT64
    return np.array(KEYS[plain], STORED[kind])


def tensor(kind, array):
    return given(kind, np.asarray(array, STORED[kind])).proto("")


def encoders(table):
    for source, target in itertools.product(kinds("LabelEncoder", "T1", domain=DOMAIN), kinds("LabelEncoder", "T2", domain=DOMAIN)):
        keys, values = listed(source), listed(target)[::-1]
        missing = np.array(["?"] if source == STRING else [77], STORED[source])
        x = np.concatenate([keys[[2, 0, 1]], missing]).reshape(2, 2)
        default = {STRING: "none", **dict.fromkeys(FLOATS, -1.5)}.get(target, 9)
        want = np.array([values[2], values[0], values[1], default], STORED[target]).reshape(2, 2)
        feeds, wants = {"x": given(source, x)}, {"y": made(target, want)}
        held = {
            "keys_tensor": tensor(source, keys), "values_tensor": tensor(target, values),
            "default_tensor": tensor(target, [default]),
        }
        table.put("LabelEncoder", source, [node("LabelEncoder", ["x"], ["y"], **held)], feeds, wants, NAMES[target])
        if source in LISTS and target in LISTS:
            held = {f"keys_{LISTS[source]}": keys.tolist(), f"values_{LISTS[target]}": values.tolist()}
            held[f"default_{LISTS[target][:-1]}"] = default
            table.put("LabelEncoder", source, [node("LabelEncoder", ["x"], ["y"], **held)], feeds, wants, NAMES[target])
    texts, numbers = ["x", "y", "z"], [5, -1, 7]
    mapped = {"cats_strings": texts, "cats_int64s": numbers, "default_int64": -3, "default_string": "none"}
    for kind, x, to, y in (
        (STRING, ["z", "?", "x"], INT64, [7, -3, 5]),
        (INT64, [7, 0, 5], STRING, ["z", "none", "x"]),
    ):
        nodes = [node("CategoryMapper", ["x"], ["y"], **mapped)]
        feeds = {"x": given(kind, np.array(x, STORED[kind]))}
        table.put("CategoryMapper", kind, nodes, feeds, {"y": made(to, np.array(y, STORED[to]))})
    for kind in kinds("OneHotEncoder", "T", domain=DOMAIN):
        categories = ["b", "a", "c"] if kind == STRING else [3, 1, 2]
        x = np.array([[categories[2], categories[0]], [categories[1], categories[1]]], STORED[kind])
        want = np.array([[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 1, 0]]])
        held = {"cats_strings" if kind == STRING else "cats_int64s": categories}
        table.put("OneHotEncoder", kind, [node("OneHotEncoder", ["x"], ["y"], **held)], {"x": given(kind, x)}, {"y": made(FLOAT, want)})
        other = np.array(["?"] if kind == STRING else [9], STORED[kind])
        nodes = [node("OneHotEncoder", ["x"], ["y"], zeros=1, **held)]
        table.put("OneHotEncoder", kind, nodes, {"x": given(kind, other)}, {"y": made(FLOAT, np.zeros((1, 3)))})


def features(table):
    for kind in kinds("ArrayFeatureExtractor", "T", domain=DOMAIN):
        x = np.array([["p", "q", "r"], ["s", "", "t"]] if kind == STRING else [[1, 2, 3], [4, 5, 6]], STORED[kind])
        feeds = {"x": given(kind, x), "i": given(INT64, np.array([2, 0, 2]))}
        table.put("ArrayFeatureExtractor", kind, [node("ArrayFeatureExtractor", ["x", "i"], ["y"])], feeds, {"y": made(kind, x[:, [2, 0, 2]])})
    for kind in kinds("Imputer", "T", domain=DOMAIN):
        whole = kind not in FLOATS
        for replaced, imputed in itertools.product([7] if whole else [7.0, np.nan], ([2], [2, 3, -4])):
            x = np.array([[replaced, 1, replaced], [5, replaced, 6]], STORED[kind])
            wanted = np.isnan(x) if replaced != replaced else x == replaced
            want = np.where(wanted, np.broadcast_to(imputed, x.shape), x)
            held = {"imputed_value_int64s": imputed, "replaced_value_int64": replaced} if whole else {
                "imputed_value_floats": [float(v) for v in imputed], "replaced_value_float": replaced,
            }
            table.put("Imputer", kind, [node("Imputer", ["x"], ["y"], **held)], {"x": given(kind, x)}, {"y": made(kind, want)})
    for kind in kinds("TfIdfVectorizer", "T"):
        words = np.array([[2, 3, 3, 4, 2, 3], [9, 2, 3, 2, 4, 4]])
        text = lambda a: np.array([f"w{v}" for v in np.ravel(a)], object).reshape(np.shape(a))
        pool = [2, 3, 4, 2, 3, 4, 4]
        held = {"pool_strings": [*text(pool)]} if kind == STRING else {"pool_int64s": pool}
        columns, given_weights = [4, 0, 1, 2, 3], [0.5, 2.0, 1.5, 3.0, 0.25]
        # The text has a weight for each n-gram of the pool, the evaluator one for each column.
        weights = np.array(given_weights)[np.argsort(columns)]
        for mode, skip in itertools.product(("TF", "IDF", "TFIDF"), (0, 2)):
            attributes = {
                "mode": mode, "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": skip, "ngram_counts": [0, 3],
                "ngram_indexes": columns, "weights": given_weights,
            }
            make = lambda **more: helper.make_node("TfIdfVectorizer", ["x"], ["y"], **{**attributes, **more})
            count = judged(make(pool_int64s=pool, mode="TF"), {"x": words})[0]
            want = {"TF": count, "IDF": (count > 0) * weights, "TFIDF": count * weights}[mode]
            x = text(words) if kind == STRING else words.astype(STORED[kind])
            table.put("TfIdfVectorizer", kind, [make(**held)], {"x": given(kind, x)}, {"y": made(FLOAT, want, 1e-6)}, f"{mode}_{skip}")


def judged(made_node, feeds):
    """What the reference implementation makes of arrays."""
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), None) for n, a in feeds.items()]
    outputs = [helper.make_empty_tensor_value_info(n) for n in made_node.output]
    graph = helper.make_graph([made_node], "case", ports, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(d, v) for d, v in OPSETS.items()])
    return ReferenceEvaluator(model).run(None, feeds)


# Between these, elements of every numeric type decide differently.
ROWS = np.array([[1.0, -2.0], [3.0, 0.0], [-4.0, 5.0], [2.0, 2.0]])


def vectors(table):
    vectors = [1.0, 2.0, -1.0, 0.5, 2.0, -3.0]
    for kernel, kind in itertools.product(("LINEAR", "POLY", "RBF", "SIGMOID"), kinds("SVMRegressor", "T", domain=DOMAIN)):
        attributes = {
            "kernel_type": kernel, "kernel_params": [0.25, 0.5, 2.0], "support_vectors": vectors, "coefficients": [0.5, -1.0, 0.75],
            "rho": [0.3], "n_supports": 3,
        }
        make = node("SVMRegressor", ["x"], ["y"], **attributes)
        want = judged(make, {"x": ROWS})[0]
        feeds = {"x": given(kind, ROWS.astype(STORED[kind]))}
        table.put("SVMRegressor", kind, [make], feeds, {"y": made(FLOAT, want, 1e-5 * (1 + np.abs(want).max()))}, kernel)
    for labels, kind in itertools.product(({"classlabels_ints": [4, -9]}, {"classlabels_strings": ["no", "yes"]}), kinds("SVMClassifier", "T1", domain=DOMAIN)):
        attributes = {
            "kernel_type": "RBF", "kernel_params": [0.25, 0.0, 3.0], "support_vectors": vectors, "coefficients": [0.5, -1.0, 0.75],
            "rho": [0.1], "vectors_per_class": [1, 2],
        }
        make = lambda **labels: node("SVMClassifier", ["x"], ["y", "scores"], **attributes, **labels)
        # It fails where the labels are texts.
        number, scores = judged(make(classlabels_ints=[0, 1]), {"x": ROWS.astype(np.float32)})
        to = STRING if "classlabels_strings" in labels else INT64
        label = np.array([*labels.values()][0], STORED[to])[number]
        feeds = {"x": given(kind, ROWS.astype(STORED[kind]))}
        wants = {"y": made(to, label), "scores": made(FLOAT, scores, 1e-5)}
        table.put("SVMClassifier", kind, [make(**labels)], feeds, wants, NAMES[to])
    for labels, kind in itertools.product(({"classlabels_ints": [4, 0, -9]}, {"classlabels_strings": ["a", "", "c"]}), kinds("LinearClassifier", "T1", domain=DOMAIN)):
        attributes = {"coefficients": [1.0, -0.5, -1.0, 0.25, 0.5, 2.0], "intercepts": [0.1, 0.7, -0.2]}
        make = node("LinearClassifier", ["x"], ["y", "scores"], **attributes, **labels)
        scores = ROWS @ np.array(attributes["coefficients"]).reshape(3, 2).T + np.float32(attributes["intercepts"])
        to = STRING if "classlabels_strings" in labels else INT64
        label = np.array([*labels.values()][0], STORED[to])[scores.argmax(1)]
        feeds = {"x": given(kind, ROWS.astype(STORED[kind]))}
        table.put("LinearClassifier", kind, [make], feeds, {"y": made(to, label), "scores": made(FLOAT, scores, 1e-5)}, NAMES[to])


def trees(table):
    # A split that float32 would round to the number that is asked.
    split = 0.1
    asked = np.array([[split], [np.nextafter(split, 1)], [split - 1e-12], [5.0]])
    for kind in kinds("TreeEnsemble", "T", domain=DOMAIN):
        x = asked.astype(STORED[kind])
        modes = given(onnx.TensorProto.UINT8, np.zeros(1, np.uint8)).proto("")
        make = node(
            "TreeEnsemble", ["x"], ["y"], n_targets=1, tree_roots=[0], nodes_splits=tensor(kind, [split]), nodes_featureids=[0],
            nodes_modes=modes, nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1],
            leaf_targetids=[0, 0], leaf_weights=tensor(kind, [1.25, -3.0]),
        )
        want = np.where(x.astype(np.float64) <= np.float64(np.array(split, STORED[kind])), 1.25, -3.0)
        table.put("TreeEnsemble", kind, [make], {"x": given(kind, x)}, {"y": made(kind, want)})
    common = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
    }
    for kind in kinds("TreeEnsembleRegressor", "T", domain=DOMAIN):
        double = kind == DOUBLE
        x = asked.astype(STORED[kind])
        splits = {"nodes_values_as_tensor": tensor(DOUBLE, [split, 0, 0])} if double else {"nodes_values": [split, 0.0, 0.0]}
        targets = {"target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0]}
        weights = {"target_weights_as_tensor": tensor(DOUBLE, [1.25, -3.0])} if double else {"target_weights": [1.25, -3.0]}
        make = node("TreeEnsembleRegressor", ["x"], ["y"], n_targets=1, **common, **splits, **targets, **weights)
        low = x.astype(np.float64) <= (split if double else np.float64(np.float32(split)))
        table.put("TreeEnsembleRegressor", kind, [make], {"x": given(kind, x)}, {"y": made(FLOAT, np.where(low, 1.25, -3.0))})
    for labels, kind in itertools.product(({"classlabels_int64s": [4, -9]}, {"classlabels_strings": ["no", "yes"]}), kinds("TreeEnsembleClassifier", "T1", domain=DOMAIN)):
        double = kind == DOUBLE
        x = asked.astype(STORED[kind])
        splits = {"nodes_values_as_tensor": tensor(DOUBLE, [split, 0, 0])} if double else {"nodes_values": [split, 0.0, 0.0]}
        classes = {"class_treeids": [0, 0, 0, 0], "class_nodeids": [1, 1, 2, 2], "class_ids": [0, 1, 0, 1]}
        shares = [0.75, 0.25, 0.125, 0.875]
        weights = {"class_weights_as_tensor": tensor(DOUBLE, shares)} if double else {"class_weights": shares}
        make = node("TreeEnsembleClassifier", ["x"], ["y", "scores"], **common, **splits, **classes, **weights, **labels)
        low = (x.astype(np.float64) <= (split if double else np.float64(np.float32(split))))[:, 0]
        to = STRING if "classlabels_strings" in labels else INT64
        names = np.array([*labels.values()][0], STORED[to])
        wants = {"y": made(to, names[1 - low.astype(int)]), "scores": made(FLOAT, np.where(low[:, None], shares[:2], shares[2:]))}
        table.put("TreeEnsembleClassifier", kind, [make], {"x": given(kind, x)}, wants, NAMES[to])


def main():
    table = Table(sys.stdout.buffer, OPSETS, sys.argv[1:])
    for family in (encoders, features, vectors, trees):
        family(table)


if __name__ == "__main__":
    main()
