"""Cases of ai.onnx.ml: models that converters of scikit-learn write and single operators, with what
ONNX Runtime makes of them.

    pip install onnx==1.23.2 numpy==2.4.6 onnxruntime==1.31.1 scikit-learn==1.9.1 skl2onnx==1.20.0
    python tools/references/ml.py
"""

import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import Int64TensorType, StringTensorType
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, MaxAbsScaler, Normalizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier

from common import Cases

warnings.filterwarnings("ignore")
ort.set_default_logger_severity(4)
random = np.random.default_rng(1)
ROWS = random.normal(size=(60, 4)).astype(np.float32)
TWO = (ROWS[:, 0] + ROWS[:, 1] ** 2 > 0.5).astype(np.int64)
THREE = TWO + (ROWS[:, 2] > 0.3)
NAMES = np.array(["ash", "birch", "cedar"])
REAL = (ROWS @ np.array([1.0, -2.0, 0.5, 0.0]) + np.sin(ROWS[:, 0])).astype(np.float32)
FRESH = random.normal(size=(7, 4)).astype(np.float32)
cases = Cases("ml", bfloat16_rtol=0.015625)


def value_proto(value):
    """A TensorProto, or a SequenceProto of MapProtos for what ZipMap gives."""
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value)
    sequence = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
    for row in value:
        keys = list(row)
        one = sequence.map_values.add()
        if isinstance(keys[0], str):
            one.key_type = TensorProto.STRING
            one.string_keys.extend(key.encode() for key in keys)
        else:
            one.key_type = TensorProto.INT64
            one.keys.extend(keys)
        one.values.elem_type = onnx.SequenceProto.TENSOR
        one.values.tensor_values.append(numpy_helper.from_array(np.array([row[k] for k in keys], np.float32)))
    return sequence


def type_name(value):
    return str(value.dtype) if isinstance(value, np.ndarray) else "seq(map)"


def case(name, model, feeds):
    """Writes one case; what ONNX Runtime gives is the reference."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, dict(zip([i.name for i in session.get_inputs()], feeds)))
    outputs = [{"name": o.name, "type": type_name(v)} for o, v in zip(session.get_outputs(), wanted)]
    results = [value_proto(value) for value in wanted]
    cases.add(name, "onnx", model.SerializeToString(), feeds, results, rtol=1e-4, atol=1e-5, outputs=outputs)


def learned(name, model, labels, rows=ROWS, fresh=FRESH, **options):
    model.fit(rows) if labels is None else model.fit(rows, labels)
    options = {id(model): options} if options else None
    case(name, to_onnx(model, rows[:1], options=options, target_opset={"": 17, "ai.onnx.ml": 3}), [fresh])


def operator(name, op, inputs, outputs, version=3, **attributes):
    """One operator; outputs are (element type, rank)."""
    elements = {np.dtype(np.float32): 1, np.dtype(np.float64): 11, np.dtype(np.int64): 7, np.dtype(object): 8}
    formals = [helper.make_tensor_value_info(f"x{i}", elements[x.dtype], x.shape) for i, x in enumerate(inputs)]
    results = [helper.make_tensor_value_info(f"y{i}", e, [None] * rank) for i, (e, rank) in enumerate(outputs)]
    domain = "" if op == "TfIdfVectorizer" else "ai.onnx.ml"
    node = helper.make_node(op, [f.name for f in formals], [r.name for r in results], domain=domain, **attributes)
    graph = helper.make_graph([node], name, formals, results)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    case(name, helper.make_model(graph, opset_imports=opsets, ir_version=8), inputs)


def trees(classes, weights):
    """Two trees of one question each; a leaf says `weights[leaf]`, a list of (class, weight)."""
    said = [(leaf // 2, 1 + leaf % 2, c, w) for leaf, pairs in enumerate(weights) for c, w in pairs]
    return dict(
        nodes_treeids=[0, 0, 0, 1, 1, 1], nodes_nodeids=[0, 1, 2] * 2, nodes_featureids=[0, 0, 0, 1, 0, 0],
        nodes_values=[0.0] * 6, nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 2,
        nodes_truenodeids=[1, 0, 0] * 2, nodes_falsenodeids=[2, 0, 0] * 2,
        nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 0], nodes_hitrates=[1.0] * 6,
        class_treeids=[s[0] for s in said], class_nodeids=[s[1] for s in said],
        class_ids=[s[2] for s in said], class_weights=[s[3] for s in said], classlabels_int64s=classes)


def main():
    logistic = lambda: LogisticRegression(max_iter=200)
    learned("logistic_two", logistic(), TWO, zipmap=False)
    learned("logistic_three_zipmap", logistic(), THREE)
    learned("logistic_strings_zipmap", logistic(), NAMES[THREE])
    learned("linear_regression", LinearRegression(), REAL)
    learned("linear_regression_two_targets", LinearRegression(), np.stack([REAL, -2 * REAL + 1], 1))
    learned("linear_svc", LinearSVC(), THREE)
    learned("scaled_logistic", make_pipeline(StandardScaler(), logistic()), THREE, zipmap=False)
    for norm in ["l1", "l2"]:
        learned(f"normalizer_{norm}", Normalizer(norm=norm), None)
    # ONNX Runtime takes the largest element here, scikit-learn and the reference of ONNX the largest magnitude.
    learned("normalizer_max", Normalizer(norm="max"), None, fresh=np.abs(FRESH))
    learned("max_abs_scaler", MaxAbsScaler(), None)
    learned("binarizer", Binarizer(threshold=0.2), None)
    holes = FRESH.copy()
    holes[[0, 3, 5], [1, 2, 0]] = np.nan
    learned("imputer", SimpleImputer(), None, fresh=holes)
    learned("tree", DecisionTreeClassifier(max_depth=4), THREE, zipmap=False)
    learned("forest_two", RandomForestClassifier(5, max_depth=3), TWO, zipmap=False)
    learned("forest_three_zipmap", RandomForestClassifier(5, max_depth=3), NAMES[THREE])
    learned("forest_regressor", RandomForestRegressor(5, max_depth=3), REAL)
    learned("boosting_two", GradientBoostingClassifier(n_estimators=5, max_depth=2), TWO, zipmap=False)
    learned("boosting_three", GradientBoostingClassifier(n_estimators=5, max_depth=2), THREE, zipmap=False)
    learned("boosting_regressor", GradientBoostingRegressor(n_estimators=5, max_depth=2), REAL)
    few, fewer = ROWS[:30], slice(0, 30)
    for kernel in ["linear", "rbf", "poly", "sigmoid"]:
        learned(f"svc_{kernel}", SVC(kernel=kernel), THREE[fewer], rows=few, zipmap=False)
        learned(f"svr_{kernel}", SVR(kernel=kernel), REAL[fewer], rows=few)
    learned("svc_two", SVC(), TWO[fewer], rows=few, zipmap=False)
    learned("svc_probabilities", SVC(probability=True, random_state=1), NAMES[THREE[fewer]], rows=few, zipmap=False)
    learned("svc_probabilities_two", SVC(probability=True, random_state=1), TWO[fewer], rows=few, zipmap=False)
    learned("one_class_svm", OneClassSVM(), None, rows=few)
    learned("network", MLPClassifier((5,), max_iter=50), THREE, zipmap=False)
    learned("neighbours", KNeighborsClassifier(3), THREE[fewer], rows=few, zipmap=False)

    words = np.array([["ash", "red"], ["cedar", "blue"], ["birch", "red"], ["ash", "blue"]], object)
    encoder = OneHotEncoder(handle_unknown="ignore").fit(words)
    kinds = [("words", StringTensorType([None, 2]))]
    case("one_hot_strings", to_onnx(encoder, initial_types=kinds, target_opset=17), [np.array([["birch", "green"], ["ash", "blue"]], object)])
    encoder = OrdinalEncoder().fit(words)
    case("ordinal_strings", to_onnx(encoder, initial_types=kinds, target_opset=17), [words[[2, 0]]])
    numbers = random.integers(0, 4, (20, 2))
    encoder = OneHotEncoder(handle_unknown="ignore").fit(numbers)
    case("one_hot_integers", to_onnx(encoder, initial_types=[("x", Int64TensorType([None, 2]))], target_opset=17), [np.array([[1, 9], [3, 0]])])

    both = FRESH[:4, :2] * 3
    both[2, 0] = np.nan
    positive = [[(0, 0.1)], [(0, 0.3)], [(0, 0.2)], [(0, 0.5)]]
    mixed = [[(0, -0.4)], [(0, 0.3)], [(0, 0.2)], [(0, 0.5)]]
    second = [[(1, -0.4)], [(1, 0.3)], [(1, 0.2)], [(1, 0.5)]]
    three = [[(0, 0.7), (1, 0.3)], [(1, 0.8), (2, 0.4)], [(0, 0.6), (2, 0.4)], [(2, 0.9)]]
    classified = [(7, 1), (1, 2)]
    for name, weights, post, extra in [
        ("positive", positive, "NONE", {}), ("positive_logistic", positive, "LOGISTIC", {}), ("mixed", mixed, "NONE", {}),
        ("mixed_logistic", mixed, "LOGISTIC", dict(base_values=[0.25])), ("second_logistic", second, "LOGISTIC", {}), ("second_softmax", second, "SOFTMAX", {}),
    ]:
        operator(f"trees_two_{name}", "TreeEnsembleClassifier", [both], classified, post_transform=post, **trees([10, 20], weights), **extra)
    for post in ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"]:
        operator(f"trees_three_{post.lower()}", "TreeEnsembleClassifier", [both], classified, post_transform=post, base_values=[0.1, 0.2, 0.3], **trees([10, 20, 30], three))

    vectors = [FRESH[:3, :1], FRESH[:3]]
    operator("feature_vectorizer", "FeatureVectorizer", vectors, [(1, 2)], inputdimensions=[1, 4])
    colours = dict(cats_strings=["red", "green", "blue"], cats_int64s=[5, 6, 7])
    operator("category_to_number", "CategoryMapper", [np.array([["blue", "none", "red"]], object)], [(7, 2)], default_int64=-9, **colours)
    operator("category_to_text", "CategoryMapper", [np.array([6, 1])], [(8, 1)], default_string="?", **colours)
    operator("labels_float_to_text", "LabelEncoder", [np.array([1.5, np.nan, 9], np.float32)], [(8, 1)], version=4, keys_floats=[1.5, np.nan], values_strings=["a", "b"], default_string="c")
    text = np.array([["the", "cat", "the", "dog", "cat", "the"]], object)
    grams = dict(min_gram_length=1, max_gram_length=2, max_skip_count=1, ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 4, 3], pool_strings=["the", "cat", "dog", "the", "cat", "cat", "the"])
    for mode in ["TF", "IDF", "TFIDF"]:
        operator(f"ngrams_{mode.lower()}", "TfIdfVectorizer", [text], [(1, 2)], mode=mode, weights=[0.5, 2.0, 3.0, 4.0, 0.25], **grams)
    cases.write()


main()
