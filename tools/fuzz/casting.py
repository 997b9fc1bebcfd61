"""Arrays in other element types."""

import ml_dtypes
import numpy as np
from onnx import helper
from values import BOOL, FLOATS, STORED, STRING, rounded


def floating(array):
    """Whether the elements are of a type that operators compute with as floats."""
    return np.asarray(array).dtype in [STORED[kind] for kind in FLOATS]


def kind_of(array):
    return helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)


def numbers(array):
    """The elements as float64; of texts, a number each."""
    array = np.asarray(array)
    if array.dtype.kind in "OUS":
        texts = sorted({str(t) for t in array.flat})
        return np.array([texts.index(str(t)) for t in array.flat], np.float64).reshape(array.shape)
    return np.asarray(array.real if array.dtype.kind == "c" else array).astype(np.float64)


def limits(kind):
    """The ends of an integer type."""
    info = ml_dtypes.iinfo(STORED[kind])
    return int(info.min), int(info.max)


def converted(arrays, kind):
    """The arrays of one type variable in another type: the same numbers where it has them, and such as keep their order and
    their sign where it does not."""
    stored = STORED[kind]
    if kind == STRING:
        return [np.array([f"{v:g}" for v in numbers(a).flat], object).reshape(np.shape(a)) for a in arrays]
    if stored.kind == "c":
        # The conjugates of no two elements that differ are equal.
        return [(numbers(a) + 0.5j * numbers(a)).astype(stored) for a in arrays]
    if kind == BOOL:
        return [numbers(a) > 0 for a in arrays]
    if kind in FLOATS:
        return [rounded(kind, numbers(a)).astype(stored) for a in arrays]
    wide = [numbers(a) for a in arrays]
    if "float" in stored.name:
        top = float(ml_dtypes.finfo(stored).max)
        return [np.clip(a, -top, top).astype(stored) for a in wide]
    low, high = limits(kind)
    wide = [np.abs(a) if low == 0 else a for a in wide]
    exact = all((a == np.floor(a)).all() and (a >= low).all() and (a <= high).all() for a in wide)
    if not exact:
        size = max(np.max(np.abs(np.nan_to_num(a)), initial=0) for a in wide)
        scale = min(high, 20) / max(size, 1e-9)
        wide = [np.clip(np.rint(np.nan_to_num(a) * scale), low, high) for a in wide]
    return [a.astype(np.int64).astype(stored) for a in wide]


def bits(kind):
    """The size of an element."""
    dtype = STORED[kind]
    if kind == BOOL or dtype.kind == "c":
        return dtype.itemsize * 8
    return ml_dtypes.finfo(dtype).bits if "float" in dtype.name else ml_dtypes.iinfo(dtype).bits
