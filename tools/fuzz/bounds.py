"""How far right results may lie from the exact ones: forward error bounds of floating point.

`unit` is half a unit in the last place. None of the factors comes from what a runtime gives.
"""

import itertools

import numpy as np
from values import LARGEST, TINY, UNIT, Skip, rounded

# Elementary functions are computed by approximations, on GPUs by the driver's. The suite allows
# 1e-3; 64 half units in the last place are 4e-6.
ELEMENTARY = 64


def settled(kind, array, error):
    """The error of an output; infinite where the exact value is at the edge of the kind's range."""
    top = LARGEST[kind]
    inner, outer = np.abs(array) - error, np.abs(array) + error
    edge = (outer >= top * (1 - UNIT[kind])) & (inner <= top * (1 + UNIT[kind]))
    error = np.where(edge & np.isfinite(array), np.inf, error)
    error = np.where(np.isnan(error), np.inf, error)
    array = np.where(np.abs(array) > top, np.sign(array) * np.inf, array)
    return array, error


def _corners(value):
    """The arrays between which a value may lie."""
    if not value.is_float or (value.error is None and value.origin != "node"):
        return [value.array]
    slack = value.slack
    # The sign of a computed zero is not defined.
    low = np.where((value.array == 0) & (slack == 0), -0.0, value.array - slack)
    high = np.where((value.array == 0) & (slack == 0), 0.0, value.array + slack)
    return [low, high]


def spread(function, values, exact):
    """The largest difference that the errors of the inputs make."""
    choices = [_corners(v) for v in values]
    if all(len(c) == 1 for c in choices):
        return np.zeros(np.shape(exact))
    worst = np.zeros(np.shape(exact))
    for corner in itertools.product(*choices):
        got = function(*corner)
        same = (got == exact) | (np.isnan(got) & np.isnan(exact))
        step = np.where(same, 0.0, np.abs(got - exact))
        worst = np.maximum(worst, np.where(np.isnan(step), np.inf, step))
    return worst


def pointwise(function, values, kind, units, scale=None):
    """`units` half units of the result, or of `scale` where terms cancel, and the inputs' errors."""
    exact = function(*[v.array for v in values])
    moved = spread(function, values, exact)
    if units <= 1 and not moved.any():
        same = (rounded(kind, exact) == exact) | np.isnan(exact)
        if same.all():
            return exact, None
    size = np.abs(exact) if scale is None else np.maximum(np.abs(exact), scale)
    size = np.where(np.isfinite(size), size, 0)
    error = 2 * moved + units * UNIT[kind] * size + TINY[kind]
    return settled(kind, exact, error)


def decided(function, values):
    """A function with steps: defined only where errors of the inputs do not move the result."""
    exact = function(*[v.array for v in values])
    for corner in itertools.product(*[_corners(v) for v in values]):
        got = function(*corner)
        if not np.array_equal(got, exact, equal_nan=exact.dtype.kind == "f"):
            raise Skip("a step lies within the error")
    return exact


def linear(function, values, kind, terms, weigh=None, magnitude=None):
    """A sum of `terms` products, linear in every input. `weigh` computes it without signs, where
    `function` itself has constants that are negative; `magnitude` bounds the sum of magnitudes
    otherwise than term by term."""
    weigh = weigh or function
    exact = function(*[v.array for v in values])
    sizes = [np.abs(v.array) for v in values]
    if magnitude is None:
        magnitude = weigh(*sizes)
    # Half precision is summed in single precision at least, and rounded once.
    unit = min(UNIT[kind], 2.0**-24)
    error = (terms + 4) * unit * magnitude + 2 * UNIT[kind] * np.abs(exact) + TINY[kind]
    for i, value in enumerate(values):
        if value.error is not None:
            moved = [s + v.slack if j < i else s for j, (s, v) in enumerate(zip(sizes, values))]
            still = list(moved)
            moved[i], still[i] = value.error, np.zeros(value.shape)
            error = error + weigh(*moved) - weigh(*still)
    return settled(kind, exact, error)


def smooth(function, values, kind, generator, units=16):
    """Backward stability: the exact result of inputs that differ by `units` half units.

    `function` gives a list of arrays; so does this, with their errors."""
    exact = function(*[v.array for v in values])
    worst = [np.zeros(e.shape) for e in exact]
    unit = max(UNIT[kind], 2.0**-48)
    for _ in range(3):
        moved = []
        for v in values:
            if not v.is_float:
                moved.append(v.array)
                continue
            step = units * unit * np.abs(v.array) + v.slack
            sign = generator.integers(0, 2, v.shape) * 2.0 - 1
            moved.append(v.array + sign * step)
        for w, got, want in zip(worst, function(*moved), exact):
            np.maximum(w, np.nan_to_num(np.abs(got - want), nan=np.inf, posinf=np.inf), out=w)
    result = []
    for w, want in zip(worst, exact):
        top = np.max(np.abs(want), initial=0)
        error = 4 * w + np.max(w, initial=0) + units * unit * np.abs(want)
        error = error + unit * top + TINY[kind]
        result.append(settled(kind, want, error))
    return result
