"""Comparisons, logic, bits, Where and conversions: results without rounding."""

import numpy as np
from bounds import decided
from operators import operator
from operators.pointwise import broadcast
from values import (
    ANY, BOOL, BRAIN, FLOATS, HALF, INTEGERS, LARGEST, NUMBERS, STORED, TINY, UNIT, UNSIGNED, Skip, rounded,
)

COMPARE = {
    "Equal": np.equal, "Less": np.less, "Greater": np.greater,
    "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal,
}


@operator(*COMPARE)
def compare(b, op):
    kinds = ANY if op == "Equal" else NUMBERS
    x, y = broadcast(b, (b.any_kind(kinds),), specials=True)
    if op == "Equal" and x.is_float:
        # Between two corners that differ may be a number that is the same.
        slack = x.slack + y.slack
        if ((slack > 0) & (np.abs(x.array - y.array) <= slack)).any():
            raise Skip("they may be equal")
    b.add(op, [x, y], [(BOOL, decided(COMPARE[op], [x, y]), None)])


@operator("And", "Or", "Xor", "Not")
def logic(b, op):
    if op == "Not":
        x = b.tensor((BOOL,))
        return b.add(op, [x], [(BOOL, ~x.array, None)])
    x, y = broadcast(b, (BOOL,))
    function = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[op]
    return b.add(op, [x, y], [(BOOL, function(x.array, y.array), None)])


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot")
def bits(b, op):
    kind = b.pick(INTEGERS)
    if op == "BitwiseNot":
        x = b.tensor((kind,), low=-200, high=200, specials=True)
        return b.add(op, [x], [(kind, ~x.array, None)])
    x, y = broadcast(b, (kind,), specials=True, low=-200, high=200)
    function = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[op]
    return b.add(op, [x, y], [(kind, function(x.array, y.array), None)])


@operator("BitShift")
def shift(b, op):
    """Shifts by the width and more give zero: what C leaves open, the standard's reference says."""
    kind = b.pick(UNSIGNED)
    x = b.tensor((kind,), low=0, high=250)
    width = STORED[kind].itemsize * 8
    y = b.tensor((kind,), shape=b.pick([x.shape, ()]), low=0, high=width + 4)
    direction = b.pick(["LEFT", "RIGHT"])
    left, right = np.broadcast_arrays(x.array, y.array)
    inside = np.minimum(right, width - 1)
    result = np.left_shift(left, inside) if direction == "LEFT" else np.right_shift(left, inside)
    result = np.where(right >= width, 0, result).astype(left.dtype)
    b.add(op, [x, y], [(kind, result, None)], direction=direction)


@operator("Where", weight=2)
def where(b, op):
    kind = b.any_kind()
    x, y = broadcast(b, (kind,), specials=True)
    shape = np.broadcast_shapes(x.shape, y.shape)
    shape = shape if b.chance(0.5) else tuple(1 if b.chance(0.4) else n for n in shape)
    condition = b.tensor((BOOL,), shape=shape)
    array = np.where(condition.array, x.array, y.array)
    error = None
    if x.error is not None or y.error is not None:
        error = np.where(condition.array, x.slack, y.slack)
    b.add(op, [condition, x, y], [(kind, array, error)])


def converted(x, kind):
    """The value of Cast, or `Skip` where the standard leaves it open."""
    if kind == BOOL:
        return decided(lambda v: v != 0, [x]), None
    if kind in FLOATS:
        array = rounded(kind, x.array)
        if x.error is None:
            if kind in (HALF, BRAIN) and not x.is_float and np.abs(array).max(initial=0) > 2**24:
                raise Skip("rounded twice")
            if kind == HALF and x.is_float and (np.abs(x.array) > LARGEST[HALF]).any() and np.isfinite(x.array).all():
                pass
            return array, None
        error = x.error + UNIT[kind] * np.abs(x.array) + TINY[kind]
        if (np.abs(x.array) + x.error > LARGEST[kind] / 2).any():
            raise Skip("near overflow")
        return x.array, error
    if not x.is_float:
        with np.errstate(all="ignore"):
            return x.array.astype(STORED[kind]), None
    info = np.iinfo(STORED[kind])
    whole = decided(np.trunc, [x])
    if not np.isfinite(whole).all() or (whole < float(info.min)).any() or (whole >= float(info.max)).any():
        raise Skip("out of the range of the integer")
    return whole.astype(STORED[kind]), None


@operator("Cast", "CastLike", weight=2)
def cast(b, op):
    x = b.tensor((b.any_kind(),), low=-120 if b.chance(0.3) else 0, high=120, specials=b.chance(0.3))
    kind = b.any_kind()
    array, error = converted(x, kind)
    if x.kind == BOOL and kind == BRAIN and b.opset < 13:
        raise Skip("no bfloat16")
    if kind == BRAIN and b.opset < 13:
        raise Skip("no bfloat16")
    if op == "Cast":
        return b.add(op, [x], [(kind, array, error)], to=kind)
    like = b.fresh(kind, b.data(kind, (1,)))
    return b.add(op, [x, like], [(kind, array, error)])
