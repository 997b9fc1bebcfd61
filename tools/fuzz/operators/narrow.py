"""Types of a byte and less: converted, quantised to and from, to the last bit."""

import numpy as np
from operators import operator
from onnx.numpy_helper import saturate_cast
from values import E2M1, FLOAT, FLOAT8, HALF, INT4, INT64, NARROW, STORED, UINT4, Skip, rounded


def floats(b, shape, kind, high):
    """Numbers up to `high` and beyond the range of every narrow type; none is NaN."""
    x = b.data(FLOAT, shape, -high, high)
    if x.size and b.chance(0.4):
        flat = x.reshape(-1)
        for _ in range(b.random.randint(1, 4)):
            flat[b.random.randrange(x.size)] = b.pick([np.inf, -np.inf, 448, 464, 465, 57344, 61440, -1e30, 2**-10, -0.0])
    return rounded(kind, x)


def narrowed(array, kind, saturate):
    single = np.asarray(array, np.float32)
    if saturate:
        return np.asarray(saturate_cast(single, STORED[kind]))
    return single.astype(STORED[kind])


@operator("NarrowCast", weight=3)
def cast(b, op):
    kind = b.pick(NARROW)
    if b.chance(0.4):
        x = b.tensor((kind,), specials=True)
        to = b.pick([FLOAT, HALF]) if kind in FLOAT8 + (E2M1,) else b.pick([FLOAT, INT64])
        wide = x.array.astype(np.float64 if to != INT64 else np.int64)
        if to != INT64 and not np.array_equal(rounded(to, wide), wide, equal_nan=True):
            raise Skip("half precision holds less")
        return b.add("Cast", [x], [(to, wide, None)], to=to)
    shape = b.shape()
    if kind in FLOAT8 + (E2M1,):
        source = b.pick([FLOAT, HALF])
        x = b.fresh(source, floats(b, shape, source, b.pick([3, 20, 600])))
        if kind == E2M1:
            if not np.isfinite(x.array).all():
                raise Skip("no infinity")
            return b.add("Cast", [x], [(kind, narrowed(x.array, kind, False), None)], to=kind)
        saturate = b.random.randint(0, 1)
        attributes = {"saturate": saturate} if not saturate or b.chance(0.3) else {}
        return b.add("Cast", [x], [(kind, narrowed(x.array, kind, saturate), None)], to=kind, **attributes)
    source = b.pick([FLOAT, INT64])
    low, high = (0, 3) if kind not in (INT4, UINT4) else (0, 15)
    if kind == INT4:
        low, high = -8, 7
    if "uint" not in STORED[kind].name and kind != INT4:
        low, high = -2, 1
    x = b.fresh(source, np.asarray(b.numbers.integers(low, high, shape, endpoint=True)))
    b.add("Cast", [x], [(kind, x.array.astype(STORED[kind]), None)], to=kind)


@operator("NarrowQuantize", weight=3)
def quantise(b, op):
    """QuantizeLinear and DequantizeLinear of types that the standard's other cases have no axis for."""
    kind = b.pick(FLOAT8 + (E2M1, INT4, UINT4))
    rank = b.random.randint(0, 3)
    shape = b.shape(rank, rank)
    attributes, axis = {}, None
    if rank and b.chance(0.6):
        shown, axis = b.axis(rank)
        attributes["axis"] = shown
    scale = np.asarray(b.numbers.choice([0.125, 0.5, 1.0, 2.0, 8.0], () if axis is None else (shape[axis],)))
    spread = (lambda v: v) if axis is None else (lambda v: v.reshape(*[1] * axis, -1, *[1] * (rank - axis - 1)))
    s = b.fresh(FLOAT, scale, constant=0.85)
    zero = np.zeros(scale.shape, STORED[kind])
    if kind in (INT4, UINT4):
        zero = b.data(kind, scale.shape)
    inputs = [s, b.fresh(kind, np.asarray(zero), constant=0.9)]
    if b.chance(0.4):
        x = b.tensor((kind,), shape=shape, specials=True)
        exact = (x.array.astype(np.float64) - spread(np.asarray(zero)).astype(np.float64)) * spread(scale)
        return b.add("DequantizeLinear", [x, *inputs], [(FLOAT, exact, None)], **attributes)
    # Zeros are positive: which sign the sum of -0 and a zero point has is told in two ways.
    x = b.fresh(FLOAT, floats(b, shape, FLOAT, b.pick([3, 20, 600])) + 0.0)
    quotient = x.array / spread(scale)
    if kind in (INT4, UINT4):
        low, high = (-8, 7) if kind == INT4 else (0, 15)
        result = np.clip(np.rint(quotient) + spread(np.asarray(zero)).astype(np.float64), low, high).astype(STORED[kind])
        return b.add("QuantizeLinear", [x, *inputs], [(kind, result, None)], **attributes)
    if kind == E2M1:
        if not np.isfinite(quotient).all():
            raise Skip("no infinity")
        return b.add("QuantizeLinear", [x, *inputs], [(kind, narrowed(quotient, kind, False), None)], **attributes)
    saturate = b.random.randint(0, 1)
    if not saturate or b.chance(0.3):
        attributes["saturate"] = saturate
    b.add("QuantizeLinear", [x, *inputs], [(kind, narrowed(quotient, kind, saturate), None)], **attributes)
