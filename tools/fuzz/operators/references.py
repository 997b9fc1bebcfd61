"""Operators whose authority is onnx's reference implementation, run in float64: samplers, transforms,
losses, and the models of `ai.onnx.ml`. What a runtime may differ by follows from inputs moved by some units."""

import numpy as np
from bounds import smooth
from onnx import helper
from onnx.reference import ReferenceEvaluator
from operators import operator
from values import (
    DOUBLE, FLOAT, HALF, INT8, INT16, INT32, INT64, STORED, UINT8, UINT16, UINT32, UINT64, Skip, rounded,
)

LEARNT = "ai.onnx.ml"


def evaluator(b, op, inputs, attributes, outputs=1, domain="", opset=None):
    """The operator as a function of arrays, which gives a list of them."""
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    port = lambda name: helper.make_value_info(name, helper.make_tensor_type_proto(DOUBLE, None))
    graph = helper.make_graph([node], op, [port(n) for n in names if n], [port(y) for y in results])
    opsets = [helper.make_opsetid("", opset or b.opset), helper.make_opsetid(LEARNT, 5)]
    session = ReferenceEvaluator(helper.make_model(graph, opset_imports=opsets))
    fed = [n for n in names if n]

    def function(*arrays):
        try:
            return session.run(None, dict(zip(fed, arrays)))
        except (RuntimeError, ValueError, OverflowError) as error:
            raise Skip(f"the reference implementation fails: {error}") from None

    return function


def judged(b, op, inputs, kind=None, units=16, outputs=1, domain="", since=None, **attributes):
    """Adds a node; its first outputs are of `kind`, floats. `since` is an operator set and what the
    attributes are called there, where the reference implementation knows that one only."""
    given = [v for v in inputs if v is not None]
    kind = given[0].kind if kind is None else kind
    opset, named = since or (None, {})
    function = evaluator(b, op, inputs, {**attributes, **named}, outputs, domain, opset)
    results = smooth(lambda *a: [np.asarray(y, np.float64) for y in function(*a)], given, kind, b.numbers, units)
    b.add(op, inputs, [(kind, *r) for r in results], domain, **attributes)


def uniform(b, kind, shape, low=-2, high=2, constant=0.25):
    """New numbers that no ties can be made of."""
    return b.fresh(kind, rounded(kind, b.numbers.uniform(low, high, shape)), constant)


def small(b, rank, most=7):
    return tuple(max(b.dim(most), 1) for _ in range(rank))


@operator("GridSample", weight=3)
def grid_sample(b, op):
    if b.opset < 16:
        raise Skip("not there")
    flat = b.opset < 20 or b.chance(0.8)
    spatial, out = small(b, 2 if flat else 3, 5), small(b, 2 if flat else 3, 4)
    n, c = b.pick([1, 2]), b.pick([1, 2, 3])
    x = b.tensor((FLOAT,), shape=(n, c, *spatial))
    grid = uniform(b, FLOAT, (n, *out, len(out)), -1.4, 1.4)
    mode = b.pick(["linear", "nearest", "cubic"] if flat else ["linear", "nearest"])
    named = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode) if b.opset < 20 else mode
    attributes = {"padding_mode": b.pick(["zeros", "border", "reflection"]), "align_corners": b.random.randint(0, 1)}
    if mode != "cubic" or attributes["padding_mode"] != "border":
        return judged(b, op, [x, grid], units=8, since=(20, {"mode": mode}), mode=named, **attributes)
    # Neighbours are clipped each by itself, as PyTorch does: those of an image with a margin.
    inside = evaluator(b, op, [x, grid], {**attributes, "padding_mode": "zeros", "mode": mode}, opset=20)
    corners, sides = attributes["align_corners"], np.array(spatial[::-1], float)

    def function(data, places):
        data = np.pad(data, [(0, 0), (0, 0)] + [(5, 5)] * 2, mode="edge")
        at = (places + 1) / 2 * (sides - 1) if corners else ((places + 1) * sides - 1) / 2
        at, wide = at + 5, sides + 10
        return inside(data, at / (wide - 1) * 2 - 1 if corners else (2 * at + 1) / wide - 1)

    results = smooth(function, [x, grid], FLOAT, b.numbers, 8)
    b.add(op, [x, grid], [(FLOAT, *r) for r in results], mode=named, **attributes)


@operator("AffineGrid")
def affine_grid(b, op):
    if b.opset < 20:
        raise Skip("not there")
    flat = b.chance(0.6)
    n, size = b.pick([1, 2]), small(b, 2 if flat else 3, 5)
    theta = uniform(b, FLOAT, (n, 2, 3) if flat else (n, 3, 4))
    # Of an axis of length 1 everyone takes another place.
    judged(b, op, [theta, b.ints([n, 3, *size])], align_corners=0 if 1 in size else b.random.randint(0, 1))


@operator("RoiAlign", weight=2)
def roi_align(b, op):
    if b.opset < 10:
        raise Skip("not there")
    n, c, (h, w) = b.pick([1, 2]), b.pick([1, 2, 3]), small(b, 2, 9)
    count = b.random.randint(1, 3)
    x = b.tensor((FLOAT,), shape=(n, c, h, w))
    corners = b.numbers.uniform(0, 1, (count, 2)) * [w * 0.6, h * 0.6]
    sizes = b.numbers.uniform(0.1, 0.5, (count, 2)) * [w, h]
    scale = b.pick([1.0, 0.5, 0.25])
    rois = b.fresh(FLOAT, rounded(FLOAT, np.concatenate([corners, corners + sizes], 1) / scale))
    batches = b.ints(b.numbers.integers(0, n, count))
    named = {"coordinate_transformation_mode": b.pick(["half_pixel", "output_half_pixel"])}
    if b.opset < 16:
        # What there was before the attribute.
        named, attributes = {"coordinate_transformation_mode": "output_half_pixel"}, {}
    else:
        attributes = named
    judged(b, op, [x, rois, batches], since=(max(b.opset, 16), named), output_height=b.random.randint(1, 3), output_width=b.random.randint(1, 3),
           sampling_ratio=b.random.randint(0, 3), spatial_scale=scale, mode="avg", units=8, **attributes)


@operator("Col2Im")
def col2im(b, op):
    if b.opset < 18:
        raise Skip("not there")
    n = b.pick([1, 2, 2])
    image = [b.random.randint(3, 7) for _ in range(n)]
    block = [b.random.randint(1, 3) for _ in range(n)]
    strides, dilations = [b.pick([1, 1, 2]) for _ in range(n)], [b.pick([1, 1, 2]) for _ in range(n)]
    pads = [b.random.randint(0, 1) for _ in range(n)] * 2
    counts = [(i + 2 * p - (k - 1) * d - 1) // s + 1 for i, p, k, d, s in zip(image, pads, block, dilations, strides)]
    if min(counts) < 1:
        raise Skip("no block fits")
    x = b.tensor((FLOAT,), shape=(b.pick([1, 2]), b.pick([1, 3]) * int(np.prod(block)), int(np.prod(counts))))
    judged(b, op, [x, b.ints(image), b.ints(block)], strides=strides, dilations=dilations, pads=pads)


@operator("DeformConv", weight=2)
def deformed(b, op):
    if b.opset < 19:
        raise Skip("not there")
    groups, offsets = b.pick([1, 1, 2]), b.pick([1, 1, 2])
    c, m = groups * offsets, groups * b.pick([1, 2])
    kernel, (h, w) = small(b, 2, 3), small(b, 2, 5)
    pads = [b.random.randint(0, 1) for _ in range(4)]
    strides = [b.pick([1, 1, 2]) for _ in range(2)]
    out = [(s + pads[i] + pads[i + 2] - kernel[i]) // strides[i] + 1 for i, s in enumerate((h, w))]
    if min(out) < 1:
        raise Skip("no window fits")
    taps = kernel[0] * kernel[1]
    n = b.pick([1, 2])
    x = b.tensor((FLOAT,), shape=(n, c, h, w))
    inputs = [x, uniform(b, FLOAT, (m, c // groups, *kernel)), uniform(b, FLOAT, (n, offsets * taps * 2, *out), -1.5, 1.5)]
    if b.chance(0.5):
        inputs.append(uniform(b, FLOAT, (m,)))
        if b.chance(0.6):
            inputs.append(uniform(b, FLOAT, (n, offsets * taps, *out), 0, 1))
    judged(b, op, inputs, kernel_shape=list(kernel), pads=pads, strides=strides, group=groups, offset_group=offsets, units=8)


@operator("DFT", weight=2)
def dft(b, op):
    if b.opset < 17:
        raise Skip("not there")
    kind = b.pick([FLOAT, FLOAT, DOUBLE])
    parts = b.pick([1, 2])
    lead = small(b, b.random.randint(1, 3), 9)
    axis = b.random.randrange(len(lead))
    inverse = int(parts == 2 and b.chance(0.4))
    onesided = int(parts == 1 and b.chance(0.5))
    x = b.tensor((kind,), shape=(*lead, parts))
    length = b.random.randint(1, 12) if b.chance(0.4) else None
    inputs = [x, None if length is None else b.fresh(INT64, np.array(length), 0.6)]
    attributes = {"inverse": inverse, "onesided": onesided}
    if b.opset < 20:
        attributes["axis"] = axis
    else:
        inputs.append(b.fresh(INT64, np.array(axis), 0.6))
    while inputs[-1] is None:
        inputs.pop()
    judged(b, op, inputs, kind, units=32, **attributes)


@operator("STFT")
def stft(b, op):
    if b.opset < 17:
        raise Skip("not there")
    size = b.random.randint(2, 9)
    total, step = size + b.random.randint(0, 20), b.random.randint(1, 5)
    x = b.tensor((FLOAT,), shape=(b.pick([1, 2]), total, 1))
    window = uniform(b, FLOAT, (size,), 0.1, 1) if b.chance(0.6) else None
    inputs = [x, b.fresh(INT64, np.array(step), 0.8), window, b.fresh(INT64, np.array(size), 0.8)]
    judged(b, op, inputs, units=32, onesided=b.random.randint(0, 1))


@operator("HannWindow", "HammingWindow", "BlackmanWindow")
def window(b, op):
    if b.opset < 17:
        raise Skip("not there")
    size = b.random.randint(2, 40)
    kind = b.pick([FLOAT, FLOAT, DOUBLE])
    periodic = b.random.randint(0, 1)
    turn = 2 * np.pi * np.arange(size) / (size if periodic else size - 1)
    array = {
        "HannWindow": 0.5 - 0.5 * np.cos(turn),
        "HammingWindow": 25 / 46 - 21 / 46 * np.cos(turn),
        "BlackmanWindow": 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn),
    }[op]
    # The angle in single precision is right to some units of a turn.
    error = np.full(size, 1e-5 if kind == FLOAT else 1e-12)
    b.add(op, [b.fresh(INT64, np.array(size), 0.7)], [(kind, array, error)], periodic=periodic, output_datatype=kind)


@operator("Det")
def determinant(b, op):
    if b.opset < 11:
        raise Skip("not there")
    n = b.random.randint(1, 5)
    x = uniform(b, b.pick([FLOAT, FLOAT, DOUBLE]), (*b.shape(0, 2, 12), n, n))
    judged(b, op, [x], units=64)


@operator("RotaryEmbedding", weight=2)
def rotary(b, op):
    if b.opset < 23:
        raise Skip("not there")
    n, heads, length, pairs = b.pick([1, 2]), b.pick([1, 2, 3]), b.random.randint(1, 5), b.random.randint(1, 4)
    size = 2 * pairs
    attributes = {"interleaved": b.random.randint(0, 1)}
    if b.chance(0.3):
        attributes["rotary_embedding_dim"] = size
        size += 2 * b.random.randint(1, 2)
    packed = b.chance(0.5)
    if packed:
        attributes["num_heads"] = heads
    x = b.tensor((b.pick([FLOAT, FLOAT, HALF]),), shape=(n, length, heads * size) if packed else (n, heads, length, size))
    placed = b.chance(0.6)
    tables = [uniform(b, x.kind, (9, pairs) if placed else (n, length, pairs), -1, 1) for _ in range(2)]
    positions = [b.fresh(INT64, b.numbers.integers(0, 9, (n, length)))] if placed else []
    judged(b, op, [x, *tables, *positions], **attributes)


@operator("SwiGLU")
def gated(b, op):
    if b.opset < 28:
        raise Skip("not there")
    x = b.tensor((FLOAT,))
    y = b.tensor((FLOAT,), shape=x.shape)
    judged(b, op, [x, y], units=64, alpha=b.pick([1.0, 0.5, 1.75]))


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", weight=2)
def loss(b, op):
    if b.opset < 12:
        raise Skip("not there")
    n, c = max(b.dim(5), 1), b.random.randint(2, 5)
    rest = small(b, b.random.randint(0, 2), 4)
    x = b.tensor((b.pick([FLOAT, FLOAT, DOUBLE]),), shape=(n, c, *rest))
    target = b.numbers.integers(0, c, (n, *rest))
    attributes = {"reduction": b.pick(["mean", "sum", "none"])}
    if b.chance(0.4):
        attributes["ignore_index"] = ignored = b.pick([0, c - 1, 99])
        target = np.where(b.numbers.random(target.shape) < 0.3, ignored, target)
        if (target == ignored).all():
            raise Skip("a mean of nothing")
    inputs = [x, b.fresh(b.pick([INT64, INT32]), target)]
    if b.chance(0.5):
        inputs.append(uniform(b, x.kind, (c,), 0.2, 2))
    outputs = 2 if op == "SoftmaxCrossEntropyLoss" and b.chance(0.4) else 1
    judged(b, op, inputs, units=64, outputs=outputs, **attributes)


@operator("NonMaxSuppression", weight=2)
def suppression(b, op):
    if b.opset < 10:
        raise Skip("not there")
    n, classes, count = b.pick([1, 2]), b.pick([1, 2, 3]), b.random.randint(1, 12)
    corner, size = b.numbers.uniform(0, 3, (n, count, 2)), b.numbers.uniform(0.3, 2, (n, count, 2))
    centre = b.random.randint(0, 1)
    boxes = np.concatenate([corner, size if centre else corner + size], -1)
    scores = b.numbers.permutation(n * classes * count).reshape(n, classes, count) / 64 + 0.013
    inputs = [b.fresh(FLOAT, rounded(FLOAT, boxes)), b.fresh(FLOAT, rounded(FLOAT, scores))]
    inputs.append(b.fresh(INT64, np.array([b.random.randint(0, 6)]), 0.6))
    inputs.append(b.fresh(FLOAT, rounded(FLOAT, [b.random.uniform(0.1, 0.8)]), 0.6))
    if b.chance(0.5):
        inputs.append(b.fresh(FLOAT, rounded(FLOAT, [b.random.uniform(0, 0.4)]), 0.6))
    attributes = {"center_point_box": centre}
    chosen = evaluator(b, op, inputs, attributes)(*[v.array for v in inputs])[0]
    b.add(op, inputs, [(INT64, np.asarray(chosen, np.int64).reshape(-1, 3), None)], **attributes)


@operator("TensorScatter")
def into_cache(b, op):
    if b.opset < 24:
        raise Skip("not there")
    n, heads, total, size = b.pick([1, 2, 3]), b.pick([1, 2]), b.random.randint(2, 7), b.random.randint(1, 4)
    new = b.random.randint(1, total)
    cache = b.tensor((b.any_kind(),), shape=(n, heads, total, size), specials=True)
    update = b.tensor((cache.kind,), shape=(n, heads, new, size), specials=True)
    mode = b.pick(["linear", "circular"])
    first = b.numbers.integers(0, total if mode == "circular" else total - new + 1, n)
    array, slack = cache.array.copy(), cache.slack.copy() if cache.is_float else None
    for i in range(n):
        for j in range(new):
            array[i, :, (first[i] + j) % total] = update.array[i, :, j]
            if slack is not None:
                slack[i, :, (first[i] + j) % total] = update.slack[i, :, j]
    exact = slack is None or not slack.any()
    b.add(op, [cache, update, b.fresh(INT64, first)], [(cache.kind, array, None if exact else slack)], mode=mode)


@operator("BitCast")
def same_bits(b, op):
    if b.opset < 26:
        raise Skip("not there")
    family = b.pick([(INT8, UINT8), (INT16, UINT16, HALF), (INT32, UINT32, FLOAT), (INT64, UINT64, DOUBLE)])
    x = b.tensor((b.pick(family),), exact=True, specials=True)
    to = b.pick(family)
    bits = np.ascontiguousarray(x.stored())
    b.add(op, [x], [(to, bits.view(STORED[to]).reshape(x.shape), None)], to=to)


def table(b, rows=(1, 6), columns=(1, 5), kind=FLOAT):
    return b.tensor((kind,), shape=(b.random.randint(*rows), b.random.randint(*columns)))


def numbers(b, count, low=-2, high=2):
    return [float(np.float32(v)) for v in b.numbers.uniform(low, high, count)]


@operator("Scaler", "LinearRegressor", "Normalizer", "Imputer", weight=2)
def linear_models(b, op):
    x = table(b)
    n = x.shape[1]
    if op == "Scaler":
        many = n if b.chance(0.6) else 1
        attributes = {"offset": numbers(b, many), "scale": numbers(b, many)}
    elif op == "LinearRegressor":
        targets = b.random.randint(1, 3)
        attributes = {"coefficients": numbers(b, n * targets), "targets": targets}
        if b.chance(0.6):
            attributes["intercepts"] = numbers(b, targets)
    elif op == "Normalizer":
        x = uniform(b, FLOAT, x.shape, 0.1, 3)
        attributes = {"norm": b.pick(["MAX", "L1", "L2"])}
    else:
        x = uniform(b, FLOAT, x.shape)
        missing = float(x.array.flat[0])
        attributes = {"imputed_value_floats": numbers(b, n), "replaced_value_float": missing}
        values = np.array(attributes["imputed_value_floats"])
        array = np.where(x.array == missing, values, x.array)
        return b.add(op, [x], [(FLOAT, array, None)], LEARNT, **attributes)
    judged(b, op, [x], FLOAT, units=32, domain=LEARNT, **attributes)


@operator("Binarizer", "ArrayFeatureExtractor")
def features(b, op):
    x = table(b)
    if op == "Binarizer":
        x = uniform(b, FLOAT, x.shape)
        edge = numbers(b, 1)[0]
        return b.add(op, [x], [(FLOAT, (x.array > edge).astype(float), None)], LEARNT, threshold=edge)
    columns = b.numbers.integers(0, x.shape[1], b.random.randint(1, 4))
    error = None if x.error is None else x.error[:, columns]
    b.add(op, [x, b.ints(columns)], [(FLOAT, x.array[:, columns], error)], LEARNT)


@operator("TreeEnsembleRegressor", weight=2)
def trees(b, op):
    """Complete trees with random splits; their sums by walking down."""
    x = uniform(b, FLOAT, (b.random.randint(1, 5), b.random.randint(1, 4)))
    count, depth = b.random.randint(1, 3), b.random.randint(0, 3)
    names = ("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values",
             "nodes_truenodeids", "nodes_falsenodeids", "target_treeids", "target_nodeids", "target_ids", "target_weights")
    a = {name: [] for name in names}
    targets = b.random.randint(1, 2)
    total = np.zeros((x.shape[0], targets))
    mode = b.pick(["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"])
    test = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GT": np.greater, "BRANCH_GTE": np.greater_equal}[mode]
    for tree in range(count):
        inner = 2**depth - 1
        splits = [(b.random.randrange(x.shape[1]), numbers(b, 1)[0]) for _ in range(inner)]
        leaves = [(b.random.randrange(targets), numbers(b, 1)[0]) for _ in range(inner + 1)]
        for i in range(2 * inner + 1):
            branch = i < inner
            feature, value = splits[i] if branch else (0, 0.0)
            row = (tree, i, feature, mode if branch else "LEAF", value, 2 * i + 1 if branch else 0, 2 * i + 2 if branch else 0)
            for name, item in zip(names, row):
                a[name].append(item)
            if not branch:
                for name, item in zip(names[7:], (tree, i, *leaves[i - inner])):
                    a[name].append(item)
        for r in range(x.shape[0]):
            i = 0
            while i < inner:
                feature, value = splits[i]
                i = 2 * i + (1 if test(x.array[r, feature], value) else 2)
            target, weight = leaves[i - inner]
            total[r, target] += weight
    if b.chance(0.5):
        a["base_values"] = numbers(b, targets)
        total = total + a["base_values"]
    error = np.full(total.shape, (count + 2) * 2.0**-22 * 4)
    b.add(op, [x], [(FLOAT, total, error)], LEARNT, n_targets=targets, **a)
