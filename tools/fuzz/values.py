"""Tensors of a random graph: what they hold exactly, and how far a right result may be from it.

Floats of every width are held in float64. `error` bounds, element by element, how far a runtime
that rounds after every operation may be; `None` says that only the very value is right.
"""

import ml_dtypes
import numpy as np
from onnx import TensorProto, numpy_helper

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
HALF, BRAIN = TensorProto.FLOAT16, TensorProto.BFLOAT16
INT8, INT16, INT32, INT64 = (
    TensorProto.INT8,
    TensorProto.INT16,
    TensorProto.INT32,
    TensorProto.INT64,
)
UINT8, UINT16, UINT32, UINT64 = (
    TensorProto.UINT8,
    TensorProto.UINT16,
    TensorProto.UINT32,
    TensorProto.UINT64,
)
BOOL, STRING = TensorProto.BOOL, TensorProto.STRING
E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E2M1 = (
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
    TensorProto.FLOAT4E2M1,
)
E8M0, E2M3, E3M2 = TensorProto.FLOAT8E8M0, TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2
COMPLEX64, COMPLEX128 = TensorProto.COMPLEX64, TensorProto.COMPLEX128
INT4, UINT4, INT2, UINT2 = TensorProto.INT4, TensorProto.UINT4, TensorProto.INT2, TensorProto.UINT2

FLOATS = (FLOAT, DOUBLE, HALF, BRAIN)
SIGNED = (INT8, INT16, INT32, INT64)
UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ANY = NUMBERS + (BOOL,)
FLOAT8 = (E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ)
# Of these nothing is computed; an element is right or wrong.
NARROW = FLOAT8 + (E2M1, INT4, UINT4, INT2, UINT2)

STORED = {
    FLOAT: np.dtype(np.float32),
    DOUBLE: np.dtype(np.float64),
    HALF: np.dtype(np.float16),
    BRAIN: np.dtype(ml_dtypes.bfloat16),
    INT8: np.dtype(np.int8),
    INT16: np.dtype(np.int16),
    INT32: np.dtype(np.int32),
    INT64: np.dtype(np.int64),
    UINT8: np.dtype(np.uint8),
    UINT16: np.dtype(np.uint16),
    UINT32: np.dtype(np.uint32),
    UINT64: np.dtype(np.uint64),
    BOOL: np.dtype(np.bool_),
    STRING: np.dtype(object),
    E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    E5M2: np.dtype(ml_dtypes.float8_e5m2),
    E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    INT4: np.dtype(ml_dtypes.int4),
    UINT4: np.dtype(ml_dtypes.uint4),
    INT2: np.dtype(ml_dtypes.int2),
    UINT2: np.dtype(ml_dtypes.uint2),
    E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    E2M3: np.dtype(ml_dtypes.float6_e2m3fn),
    E3M2: np.dtype(ml_dtypes.float6_e3m2fn),
    COMPLEX64: np.dtype(np.complex64),
    COMPLEX128: np.dtype(np.complex128),
}
NAMES = {kind: dtype.name for kind, dtype in STORED.items()}
NAMES.update({BRAIN: "bfloat16", STRING: "string", E2M1: "float4e2m1"})
NAMES.update({E8M0: "float8e8m0", E2M3: "float6e2m3", E3M2: "float6e3m2"})
NAMES.update({kind: NAMES[kind].replace("_", "") for kind in FLOAT8})
# As the schemas of the standard write them.
TYPES = {
    kind: f"tensor({'float' if kind == FLOAT else 'double' if kind == DOUBLE else name})"
    for kind, name in NAMES.items()
}
# Half a unit in the last place of 1, the smallest normal number (smaller ones may be flushed to
# zero), and the largest number.
UNIT = {FLOAT: 2.0**-24, DOUBLE: 2.0**-53, HALF: 2.0**-11, BRAIN: 2.0**-8}
TINY = {FLOAT: 2.0**-126, DOUBLE: 2.0**-1022, HALF: 2.0**-24, BRAIN: 2.0**-126}
LARGEST = {
    FLOAT: float(np.finfo(np.float32).max),
    DOUBLE: np.finfo(np.float64).max,
    HALF: 65504.0,
    BRAIN: float(ml_dtypes.finfo(ml_dtypes.bfloat16).max),
}


class Skip(Exception):
    """What was drawn makes no case that the standard defines."""


class Value:
    """A named tensor of the graph."""

    __slots__ = ("name", "kind", "array", "error", "origin")

    def __init__(self, name, kind, array, error=None, origin="node"):
        self.name = name
        self.kind = kind
        self.array = array
        self.error = error
        self.origin = origin  # input, initializer, constant or node

    @property
    def type(self):
        return TYPES[self.kind]

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim

    @property
    def is_float(self):
        return self.kind in FLOATS

    @property
    def finite(self):
        return not self.is_float or bool(np.isfinite(self.array).all())

    @property
    def slack(self):
        """The error as an array."""
        return np.zeros(self.shape) if self.error is None else self.error

    def stored(self):
        return stored(self.kind, self.array)


class Holder:
    """A named sequence of tensors, or an optional value of one; it never leaves the graph."""

    kind = error = None
    is_float = False
    origin = "node"

    def __init__(self, name, form, item_kind, items):
        self.name, self.items = name, items
        self.type = form % TYPES[item_kind]


def stored(kind, array):
    """The nearest elements of a kind.

    `ml_dtypes` brings float64 to bfloat16 by way of float32. That step rounds to odd here, so that nothing is rounded twice.
    """
    array = np.asarray(array)
    if kind == BRAIN and array.dtype == np.float64:
        single = np.asarray(array.astype(np.float32))
        back = single.astype(np.float64)
        inexact = np.isfinite(single) & (back != array)
        away = inexact & (np.abs(back) > np.abs(array))
        bits = (single.view(np.uint32) - away.astype(np.uint32)) | inexact.astype(np.uint32)
        array = np.asarray(bits, np.uint32).view(np.float32)
    return array.astype(STORED[kind])


def held(kind, array):
    """An array as a `Value` of this kind holds it."""
    return np.asarray(array, np.float64 if kind in FLOATS else STORED[kind])


def rounded(kind, array):
    """The nearest numbers of a kind."""
    return held(kind, stored(kind, array))


def proto(name, kind, array):
    if kind not in NUMBERS and kind != BOOL:
        return numpy_helper.from_array(np.asarray(array, STORED[kind]), name)
    tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
    tensor.raw_data = np.ascontiguousarray(stored(kind, array)).tobytes()
    return tensor
