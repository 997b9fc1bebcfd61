"""Transforms and windows."""

import numpy as np

from peer import operator
from peer.question import Question


@operator("DFT", weight=4)
def dft(d, op):
    dtype = d.pick([np.float32, np.float64])
    parts = d.pick([1, 2])
    shape = (*d.dims(d.int(1, 3), 9), parts)
    axis = d.int(-len(shape), len(shape) - 2)
    if axis == -1:
        axis = -2
    opset = d.pick([17, 20])
    length = np.asarray(d.int(1, 12), np.int64) if d.chance(0.5) else None
    named = d.flags(inverse=[0, 1], onesided=[0, 1])
    if parts == 2:
        # Of half a spectrum onnxruntime makes the transform of the half.
        named.pop("onesided", None)
    if opset == 17:
        return Question(op, [d.floats(shape, dtype=dtype), length], opset=17, kept=[1], near=3, axis=axis % len(shape), **named)
    return Question(op, [d.floats(shape, dtype=dtype), length, np.asarray(axis, np.int64)], opset=20, kept=[1, 2], near=3, **named)


@operator("STFT", weight=2)
def stft(d, op):
    size, parts = d.int(2, 9), d.pick([1, 2])
    x = d.floats((d.int(1, 2), size + d.int(0, 20), parts), dtype=d.pick([np.float32, np.float64]))
    window = d.floats((size,), 0.1, 1, x.dtype) if d.chance(0.6) else None
    length = np.asarray(size, np.int64) if window is None or d.chance(0.6) else None
    return Question(op, [x, np.asarray(d.int(1, 5), np.int64), window, length], kept=[1, 3], near=3, opset=17, **d.flags(onesided=[0, 1]))


@operator("HannWindow", "HammingWindow", "BlackmanWindow")
def window(d, op):
    return Question(op, [np.asarray(d.int(3, 30), np.int64)], opset=17, near=9, kept=[0] if d.chance(0.5) else (), **d.flags(periodic=[0, 1], output_datatype=[1, 11]))


@operator("MelWeightMatrix", weight=2)
def mel(d, op):
    bins, length, rate = d.int(1, 12), d.pick([8, 16, 32, 64]), d.pick([8000, 16000, 22050])
    low = d.pick([0.0, 20.0, 300.0])
    numbers = [np.asarray(v, np.int64) for v in (bins, length, rate)] + [np.asarray(v, np.float32) for v in (low, low + d.pick([1000.0, 3000.0]))]
    return Question(op, numbers, opset=17, kept=range(5) if d.chance(0.5) else (), **d.flags(output_datatype=[1, 11]))
