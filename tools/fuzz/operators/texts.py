"""Strings: compared, joined, split, matched, normalised, and read as numbers."""

import re

import numpy as np
from operators import operator
from values import BOOL, DOUBLE, FLOAT, INT32, INT64, STRING, Skip

PATTERNS = [r"a", r"[a-z]+", r"\d+", r".*b.*", r"(a|b)c?", r"\w+", r"a.c", r"[^a]*", r"x-\d"]


def words(b, rank=(0, 3), shape=None):
    return b.tensor((STRING,), rank=rank, shape=shape, specials=True, elements=200)


def apply(function, *arrays):
    """A function of single strings, broadcast; also where there is nothing to apply it to."""
    parts = np.broadcast_arrays(*arrays)
    out = np.empty(parts[0].shape, object)
    for at in np.ndindex(*out.shape):
        out[at] = function(*[p[at] for p in parts])
    return out


@operator("StringConcat", "StringEqual")
def join(b, op):
    x = words(b)
    shape = tuple(1 if b.chance(0.3) else n for n in x.shape[b.random.randint(0, x.rank):])
    y = words(b, shape=shape)
    if op == "StringConcat":
        return b.add(op, [x, y], [(STRING, apply(lambda p, q: p + q, x.array, y.array), None)])
    if b.opset < 19:
        raise Skip("no strings")
    b.add("Equal", [x, y], [(BOOL, apply(lambda p, q: p == q, x.array, y.array).astype(bool), None)])


@operator("RegexFullMatch")
def match(b, op):
    x, pattern = words(b), b.pick(PATTERNS)
    found = apply(lambda s: re.fullmatch(pattern, s, re.ASCII) is not None, x.array)
    b.add(op, [x], [(BOOL, found.astype(bool), None)], pattern=pattern)


@operator("StringSplit")
def split(b, op):
    x = words(b)
    if x.array.size == 0:
        raise Skip("how many parts nothing has is open")
    delimiter = b.pick([None, "", "b", "-", " ", "bc"])
    most = b.pick([None, 1, 2])
    parts = apply(lambda s: s.split(delimiter or None, -1 if most is None else most), x.array)
    width = max((len(p) for p in parts.flat), default=0)
    out = np.full((*x.shape, width), "", object)
    for at in np.ndindex(*x.shape):
        for i, piece in enumerate(parts[at]):
            out[(*at, i)] = piece
    counts = apply(len, parts).astype(np.int64)
    attributes = {} if delimiter is None else {"delimiter": delimiter}
    if most is not None:
        attributes["maxsplit"] = most
    b.add(op, [x], [(STRING, out, None), (INT64, counts, None)], **attributes)


@operator("StringNormalizer")
def normalise(b, op):
    n = max(b.dim(9), 1)
    x = words(b, shape=b.pick([(n,), (1, n)]))
    stop = b.random.sample(["a", "A", "abc", "12", ""], b.random.randint(0, 2))
    sensitive = b.random.randint(0, 1)
    action = b.pick(["LOWER", "UPPER", "NONE"])
    if any(not s.isascii() for s in x.array.flat):
        raise Skip("what the locale makes of it")
    same = (lambda s: s) if sensitive else str.lower
    kept = [s for s in x.array.flat if same(s) not in [same(w) for w in stop]]
    change = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}[action]
    kept = [change(s) for s in kept] or [""]
    array = np.array(kept, object).reshape(*x.shape[:-1], -1)
    attributes = {"stopwords": stop} if stop else {}
    b.add(op, [x], [(STRING, array, None)], is_case_sensitive=sensitive, case_change_action=action, **attributes)


@operator("StringCast")
def cast(b, op):
    """Whole numbers and what reads them; how a fraction is written is open."""
    if b.opset < 9:
        raise Skip("no strings")
    if b.chance(0.5):
        kind = b.pick([INT32, INT64])
        x = b.tensor((kind,), low=-1000, high=1000)
        return b.add("Cast", [x], [(STRING, apply(str, x.array), None)], to=STRING)
    shape = b.shape(0, 2, 60)
    kind = b.pick([INT64, INT32, FLOAT, DOUBLE])
    array = b.numbers.integers(-1000, 1000, shape)
    if kind in (FLOAT, DOUBLE):
        array = array / 8
    form = b.pick(["{}", "{:.3f}", "{:e}"]) if kind in (FLOAT, DOUBLE) else "{}"
    x = b.fresh(STRING, apply(lambda v: form.format(v.item() if hasattr(v, "item") else v), np.asarray(array)))
    if form == "{:e}":
        array = apply(float, x.array).astype(float)
    b.add("Cast", [x], [(kind, array, None)], to=kind)


def table(b, kind):
    """Keys or values of a label encoder."""
    if kind == STRING:
        return ["a", "A", "abc", "12", "é"]
    return [1, 2, 3, -4, 7] if kind == INT64 else [0.5, 1.0, 2.0, -3.5, 4.25]


@operator("LabelEncoder", weight=2)
def labels(b, op):
    names = {STRING: "strings", INT64: "int64s", FLOAT: "floats"}
    source, target = b.pick(list(names)), b.pick(list(names))
    keys, values = table(b, source), table(b, target)
    shape = b.shape(0, 3, 60)
    drawn = b.numbers.integers(0, len(keys) + 2, shape)
    other = {STRING: "other", INT64: 99, FLOAT: 99.5}
    pool = np.array([*keys, other[source], other[source]], object)
    x = pool[drawn] if source == STRING else np.asarray(pool[drawn], np.int64 if source == INT64 else np.float64)
    default = {STRING: "none", INT64: -7, FLOAT: -7.5}[target]
    result = np.array([*values, default, default], object)[drawn]
    if target != STRING:
        result = np.asarray(result, np.int64 if target == INT64 else np.float64)
    word = {STRING: "string", INT64: "int64", FLOAT: "float"}[target]
    attributes = {f"keys_{names[source]}": keys, f"values_{names[target]}": values, f"default_{word}": default}
    b.add(op, [b.fresh(source, np.asarray(x))], [(target, np.asarray(result), None)], domain="ai.onnx.ml", **attributes)
