"""Functions of one element at a time, with broadcasting."""

import math

import numpy as np
from bounds import ELEMENTARY, decided, pointwise
from operators import operator
from values import BOOL, DOUBLE, FLOAT, FLOATS, INTEGERS, SIGNED, UNSIGNED, Skip

erf = np.vectorize(math.erf, otypes=[float])


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# name: function, half units allowed, lowest and highest input, magnitude of the terms
UNARY = {
    "Abs": (np.abs, 0, None, None), "Neg": (np.negative, 0, None, None),
    "Relu": (lambda x: np.maximum(x, 0), 0, None, None),
    "Identity": (lambda x: x, 0, None, None),
    "Sqrt": (np.sqrt, 6, (0, 50), None), "Reciprocal": (lambda x: 1 / x, 6, None, None),
    "Exp": (np.exp, ELEMENTARY, (-20, 20), None),
    "Log": (np.log, ELEMENTARY, (0.001, 100), lambda x: 1),
    "Sin": (np.sin, ELEMENTARY, (-8, 8), lambda x: 1), "Cos": (np.cos, ELEMENTARY, (-8, 8), lambda x: 1),
    "Tan": (np.tan, ELEMENTARY, (-1.4, 1.4), None), "Asin": (np.arcsin, ELEMENTARY, (-1, 1), lambda x: 1),
    "Acos": (np.arccos, ELEMENTARY, (-1, 1), lambda x: 1), "Atan": (np.arctan, ELEMENTARY, (-20, 20), None),
    "Sinh": (np.sinh, ELEMENTARY, (-6, 6), lambda x: 1), "Cosh": (np.cosh, ELEMENTARY, (-6, 6), None),
    "Asinh": (np.arcsinh, ELEMENTARY, (-20, 20), lambda x: 1),
    "Acosh": (np.arccosh, ELEMENTARY, (1, 50), lambda x: 1),
    "Atanh": (np.arctanh, ELEMENTARY, (-0.9, 0.9), lambda x: 1),
    "Erf": (erf, ELEMENTARY, (-4, 4), lambda x: 1), "Sigmoid": (sigmoid, ELEMENTARY, (-20, 20), None),
    "Tanh": (np.tanh, ELEMENTARY, (-12, 12), lambda x: 1),
    "Softplus": (softplus, ELEMENTARY, (-20, 20), lambda x: 1),
    "Softsign": (lambda x: x / (1 + np.abs(x)), 8, (-20, 20), None),
    "HardSwish": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 8, (-8, 8), np.abs),
    "Mish": (lambda x: x * np.tanh(softplus(x)), ELEMENTARY, (-20, 20), np.abs),
}
# Where these are given NaN or infinity, IEEE 754 says what comes out.
SPECIALS = {"Abs", "Neg", "Relu", "Identity", "Sqrt", "Reciprocal", "Exp", "Log", "Sigmoid", "Tanh", "Erf", "Atan"}


def finish(b, op, values, kind, result, **attributes):
    array, error = result
    return b.add(op, values, [(kind, array, error)], **attributes)


@operator(*UNARY)
def unary(b, op):
    function, units, bounds, scale = UNARY[op]
    low, high = bounds or (-6, 6)
    kinds = (b.float_kind(),)
    if op in ("Abs", "Identity", "Neg") and b.chance(0.3):
        kinds = (b.pick(SIGNED if op == "Neg" else INTEGERS),)
    if op == "Relu" and b.chance(0.15):
        kinds = (b.pick(SIGNED),)
    x = b.tensor(kinds, low=low, high=high, specials=op in SPECIALS)
    if op == "Reciprocal" and x.error is not None and (np.abs(x.array) <= 4 * x.error).any():
        raise Skip("a computed zero")
    if not x.is_float:
        return b.add(op, [x], [(x.kind, function(x.array).astype(x.array.dtype), None)])
    size = None if scale is None else scale(x.array)
    # The standard's function body of HardSwish has 1/6 in float32.
    kind = FLOAT if op == "HardSwish" and x.kind == DOUBLE else x.kind
    return finish(b, op, [x], x.kind, pointwise(function, [x], kind, units, size))


# name: function of x, alpha, beta (or gamma); attributes with their ranges; magnitude
SHAPED = {
    "LeakyRelu": (lambda x, a: np.where(x < 0, a * x, x), {"alpha": (0.01, -0.5, 1.5)}),
    "Elu": (lambda x, a: np.where(x < 0, a * np.expm1(np.minimum(x, 0)), x), {"alpha": (1.0, 0.2, 2)}),
    "Celu": (lambda x, a: np.maximum(0, x) + np.minimum(0, a * np.expm1(np.minimum(x, 0) / a)), {"alpha": (1.0, 0.5, 2)}),
    "Selu": (
        lambda x, a, g: g * np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))),
        {"alpha": (1.67326319217681884765625, 0.5, 2), "gamma": (1.05070102214813232421875, 0.5, 2)},
    ),
    "HardSigmoid": (lambda x, a, c: np.clip(a * x + c, 0, 1), {"alpha": (0.2, 0.1, 0.5), "beta": (0.5, 0, 1)}),
    "Swish": (lambda x, a: x * sigmoid(a * x), {"alpha": (1.0, 0.5, 2)}),
}


@operator(*SHAPED)
def shaped(b, op):
    function, parameters = SHAPED[op]
    x = b.tensor(low=-8, high=8)
    attributes, values = {}, []
    for name, (default, low, high) in parameters.items():
        value = float(np.float32(default))
        if b.chance(0.6):
            value = float(np.float32(b.random.uniform(low, high)))
            attributes[name] = value
        values.append(value)
    size = 1 + np.abs(x.array)
    finish(b, op, [x], x.kind, pointwise(lambda v: function(v, *values), [x], x.kind, ELEMENTARY, size), **attributes)


@operator("Gelu")
def gelu(b, op):
    x = b.tensor(low=-8, high=8)
    style = b.pick([None, "none", "tanh"])

    def function(v):
        if style == "tanh":
            return 0.5 * v * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))
        return 0.5 * v * (1 + erf(v / np.sqrt(2)))

    attributes = {} if style is None else {"approximate": style}
    finish(b, op, [x], x.kind, pointwise(function, [x], x.kind, ELEMENTARY, np.abs(x.array)), **attributes)


@operator("Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink", "IsNaN", "IsInf")
def stepped(b, op):
    special = op not in ("ThresholdedRelu", "Shrink")
    kinds = (b.pick(INTEGERS),) if op == "Sign" and b.chance(0.25) else None
    x = b.tensor(kinds, low=-6, high=6, specials=special)
    attributes = {}
    if op == "ThresholdedRelu":
        alpha = 1.0
        if b.chance(0.7):
            alpha = attributes["alpha"] = b.pick([0.0, 0.5, 2.0, -1.0])
        decided(lambda v: v > alpha, [x])
        return b.add(op, [x], [(x.kind, np.where(x.array > alpha, x.array, 0), x.error)], **attributes)
    if op == "Shrink":
        bias, lambd = b.pick([0.0, 0.5]), b.pick([0.5, 1.0, 1.5])
        attributes = {"bias": bias, "lambd": lambd}
        decided(lambda v: (v < -lambd) * 2 + (v > lambd), [x])

        def shrink(v):
            return np.where(v < -lambd, v + bias, np.where(v > lambd, v - bias, 0.0))

        return finish(b, op, [x], x.kind, pointwise(shrink, [x], x.kind, 1), **attributes)
    if op == "IsInf":
        up, down = b.random.randint(0, 1), b.random.randint(0, 1)
        if b.chance(0.6):
            attributes = {"detect_positive": up, "detect_negative": down}
        else:
            up = down = 1
        result = decided(lambda v: (up == 1) & (v == np.inf) | (down == 1) & (v == -np.inf), [x])
        return b.add(op, [x], [(BOOL, result, None)], **attributes)
    functions = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign, "IsNaN": np.isnan}
    result = decided(functions[op], [x])
    return b.add(op, [x], [(BOOL if op == "IsNaN" else x.kind, result, None)])


def broadcast(b, kinds, count=2, specials=False, low=-4, high=4):
    """Values whose shapes broadcast together."""
    first = b.tensor(kinds, specials=specials, low=low, high=high)
    values = [first]
    shape = first.shape
    for _ in range(count - 1):
        draw = b.random.random()
        if draw < 0.35:
            other = shape
        else:
            other = tuple(1 if b.chance(0.35) else n for n in shape[b.random.randint(0, len(shape)) if shape else 0:])
        if draw > 0.92:
            other = tuple(b.dim(4) for _ in range(b.random.randint(1, 2))) + tuple(1 if b.chance(0.3) else n for n in shape)
        if int(np.prod(other, dtype=int)) > 8000 or len(other) > 6:
            other = shape
        values.append(b.tensor((first.kind,), shape=other, specials=specials, low=low, high=high))
        shape = np.broadcast_shapes(shape, other)
    if b.chance(0.4):
        b.random.shuffle(values)
    if np.prod(np.broadcast_shapes(*[v.shape for v in values]), dtype=int) > 20000:
        raise Skip("too large")
    return values


def wrapped(function, values):
    return function(*[v.array for v in values]).astype(values[0].array.dtype)


@operator("Add", "Sub", "Mul", "Div", weight=2)
def arithmetic(b, op):
    whole = b.chance(0.25)
    kind = b.integer_kind() if whole else b.float_kind()
    values = broadcast(b, (kind,), specials=True)
    x, y = values
    if kind in FLOATS:
        functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
        if op == "Div" and y.error is not None and (np.abs(y.array) <= 4 * y.error).any():
            raise Skip("a computed zero")
        size = np.abs(x.array) + np.abs(y.array) if op in ("Add", "Sub") else None
        if size is not None and x.error is None and y.error is None:
            size = None
        return finish(b, op, values, kind, pointwise(functions[op], values, kind, 6 if op == "Div" else 1, size))
    if op == "Div":
        if (y.array == 0).any():
            raise Skip("a division by zero")
        shape = np.broadcast_shapes(x.shape, y.shape)
        left, right = np.broadcast_to(x.array, shape), np.broadcast_to(y.array, shape)
        # Towards zero; the smallest number over -1 wraps.
        result = np.floor_divide(left, right)
        if kind in SIGNED:
            rest = left - result * right
            result = result + ((rest != 0) & ((left < 0) != (right < 0))).astype(left.dtype)
        return b.add(op, values, [(kind, result.astype(left.dtype), None)])
    functions = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
    return b.add(op, values, [(kind, wrapped(functions[op], values), None)])


@operator("Pow")
def power(b, op):
    if b.chance(0.3):
        x = b.tensor((b.pick(INTEGERS[2:4]),), low=-4, high=4)
        y = b.tensor((b.pick(INTEGERS[2:4]),), shape=x.shape if b.chance(0.5) else (), low=0, high=6)
        if y.array.size and y.array.min() < 0:
            raise Skip("a negative power of an integer")
        return b.add(op, [x, y], [(x.kind, (x.array.astype(np.int64) ** y.array.astype(np.int64)).astype(x.array.dtype), None)])
    kind = b.float_kind()
    if b.chance(0.5):
        x = b.tensor((kind,), low=-4, high=4)
        exponent = b.pick([0, 1, 2, 3, 0.5, -1, 2, 4])
        if exponent == 0.5 or exponent == -1:
            x = b.tensor((kind,), low=0.25, high=8)
        y = b.constant(kind, np.full((), exponent))
    else:
        x = b.tensor((kind,), low=0.125, high=6)
        y = b.tensor((kind,), shape=x.shape if b.chance(0.5) else (), low=-3, high=3)
    finish(b, op, [x, y], kind, pointwise(np.power, [x, y], kind, ELEMENTARY * 2))


@operator("Mod")
def modulo(b, op):
    if b.chance(0.6):
        kind = b.pick(INTEGERS)
        x, y = broadcast(b, (kind,), low=-50, high=50)
        if (y.array == 0).any():
            raise Skip("a division by zero")
        fmod = b.random.randint(0, 1)
        function = np.fmod if fmod else np.mod
        attributes = {"fmod": fmod} if fmod or b.chance(0.5) else {}
        return b.add(op, [x, y], [(kind, function(x.array, y.array).astype(x.array.dtype), None)], **attributes)
    kind = b.float_kind()
    x, y = broadcast(b, (kind,), low=-20, high=20)
    if x.error is not None or y.error is not None or (y.array == 0).any():
        raise Skip("a step may lie within the error")
    return finish(b, op, [x, y], kind, pointwise(np.fmod, [x, y], kind, 1), fmod=1)


@operator("Min", "Max", "Sum", "Mean")
def variadic(b, op):
    kinds = (b.integer_kind(),) if op in ("Min", "Max") and b.chance(0.25) else (b.float_kind(),)
    values = broadcast(b, kinds, count=b.random.randint(1, 4), specials=op in ("Min", "Max"))
    kind = values[0].kind

    def function(*arrays):
        arrays = np.broadcast_arrays(*arrays)
        if op in ("Min", "Max"):
            join = np.minimum if op == "Min" else np.maximum
            out = arrays[0]
            for a in arrays[1:]:
                out = join(out, a)
            return out
        total = arrays[0] * 1.0
        for a in arrays[1:]:
            total = total + a
        return total / len(arrays) if op == "Mean" else total

    if kind not in FLOATS:
        return b.add(op, values, [(kind, wrapped(function, values), None)])
    if op in ("Min", "Max"):
        return finish(b, op, values, kind, pointwise(function, values, kind, 0))
    size = function(*[np.abs(v.array) for v in values])
    return finish(b, op, values, kind, pointwise(function, values, kind, 8, size))


@operator("Clip", weight=2)
def clip(b, op):
    kind = b.integer_kind() if b.chance(0.2) else b.float_kind()
    x = b.tensor((kind,), low=-6, high=6, specials=kind in FLOATS)
    low = b.pick([None, 0, -1, 1, 2]) if kind not in UNSIGNED else b.pick([None, 0, 1])
    high = b.pick([None, 6, 1, 0, 3]) if kind not in UNSIGNED else b.pick([None, 1, 5])
    if low is not None and high is not None and low > high:
        if b.opset < 11:
            raise Skip("crossed bounds")

    def function(v):
        if low is not None:
            v = np.maximum(v, v.dtype.type(low))
        if high is not None:
            v = np.minimum(v, v.dtype.type(high))
        return v

    result = pointwise(function, [x], kind, 0) if kind in FLOATS else (function(x.array), None)
    if b.opset < 11:
        attributes = {k: float(v) for k, v in (("min", low), ("max", high)) if v is not None}
        return finish(b, op, [x], kind, result, **attributes)
    bounds = [None if v is None else b.fresh(kind, np.array(v), constant=0.7) for v in (low, high)]
    return finish(b, op, [x, *bounds], kind, result)


@operator("PRelu")
def prelu(b, op):
    kind = b.float_kind()
    x = b.tensor((kind,), rank=(1, 4))
    shape = tuple(1 if b.chance(0.4) else n for n in x.shape[b.random.randint(0, x.rank):])
    slope = b.tensor((kind,), shape=shape, low=-2, high=2)
    finish(b, op, [x, slope], kind, pointwise(lambda v, s: np.where(v < 0, v * s, v), [x, slope], kind, 1))
