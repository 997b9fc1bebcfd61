"""Resize and Upsample."""

import numpy as np
from bounds import linear
from operators import operator
from values import FLOAT, Skip

COORDINATES = [
    "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric",
]


def weights(size, out, scale, coordinate, mode, nearest, cubic, antialias, exclude):
    """The matrix that makes `out` elements of `size`, by the standard's text."""
    matrix = np.zeros((out, size))
    for i in range(out):
        if coordinate == "half_pixel":
            at = (i + 0.5) / scale - 0.5
        elif coordinate == "asymmetric":
            at = i / scale
        elif coordinate == "align_corners":
            # The suite's cases take a length that shrinks before it is rounded down.
            length = scale * size if scale < 1 and mode != "nearest" else out
            at = i * (size - 1) / (length - 1) if out > 1 else 0.0
        elif coordinate == "pytorch_half_pixel":
            if out == 1 and scale * size != 1:
                raise Skip("whether the length is 1 is open")
            at = (i + 0.5) / scale - 0.5 if out > 1 else 0.0
        else:
            adjustment = out / (scale * size)
            at = size / 2 * (1 - adjustment) + (i + 0.5) / scale - 0.5
        if mode == "nearest":
            edges = {"floor": 0.0, "ceil": 0.0}.get(nearest, 0.5)
            near = abs((at - edges + 0.5) % 1 - 0.5)
            if near < 1e-4 and (near != 0 or np.log2(scale) % 1):
                raise Skip("at the edge between two elements")
            j = {
                "floor": np.floor(at), "ceil": np.ceil(at),
                "round_prefer_floor": np.ceil(at - 0.5), "round_prefer_ceil": np.floor(at + 0.5),
            }[nearest]
            matrix[i, int(min(max(j, 0), size - 1))] += 1
            continue
        stretch = min(scale, 1.0) if antialias else 1.0
        reach = (1 if mode == "linear" else 2) / stretch
        first, last = int(np.floor(at - reach)) - 1, int(np.ceil(at + reach)) + 1
        taps = []
        for j in range(first, last + 1):
            d = abs((j - at) * stretch)
            if mode == "linear":
                k = max(0.0, 1 - d)
            elif d <= 1:
                k = (cubic + 2) * d**3 - (cubic + 3) * d**2 + 1
            elif d < 2:
                k = cubic * d**3 - 5 * cubic * d**2 + 8 * cubic * d - 4 * cubic
            else:
                k = 0.0
            if exclude and not 0 <= j < size:
                k = 0.0
            taps.append((j, k))
        total = sum(k for _, k in taps)
        if (antialias or exclude) and abs(total) < 1e-3:
            raise Skip("weights that cancel")
        for j, k in taps:
            matrix[i, min(max(j, 0), size - 1)] += k / total if (antialias or exclude) else k
    return matrix


@operator("Resize", "Upsample", weight=3)
def resize(b, op):
    if op == "Upsample" and b.opset > 9 or op == "Resize" and b.opset < 11:
        raise Skip("another opset's")
    kind = b.float_kind()
    rank = b.pick([1, 2, 3, 4, 4, 4, 5])
    lead = min(2, max(rank - 1, 0)) if b.chance(0.8) else 0
    shape = tuple(max(b.dim(4 if i < lead else 9 if rank < 5 else 4), 1) for i in range(rank))
    x = b.tensor((kind,), shape=shape)
    mode = b.pick(["nearest", "linear", "cubic"]) if op == "Resize" else b.pick(["nearest", "linear"])
    if mode == "cubic" and (rank - lead != 2):
        mode = "linear"
    if mode == "linear" and rank - lead > 3:
        raise Skip("more than trilinear")
    scales, sizes = [1.0] * rank, list(shape)
    by_sizes = op == "Resize" and b.chance(0.4)
    for i in range(lead, rank):
        if by_sizes:
            sizes[i] = max(b.dim(14), 1)
            scales[i] = sizes[i] / shape[i]
        else:
            scales[i] = b.pick([2.0, 2.0, 1.0, 3.0, 1.5, 4.0] if op == "Upsample" else [2.0, 2.0, 0.5, 1.0, 3.0, 1.5, 0.75, 0.6, 2.5])
            scales[i] = float(np.float32(scales[i]))
            sizes[i] = int(np.floor(shape[i] * scales[i]))
    if min(sizes) < 1 or int(np.prod(sizes)) > 12000:
        raise Skip("too large or nothing")
    attributes = {"mode": mode}
    coordinate, nearest, cubic, antialias, exclude = "half_pixel", "round_prefer_floor", -0.75, 0, 0
    if op == "Upsample":
        coordinate, nearest = "asymmetric", "floor"
    else:
        coordinate = b.pick(COORDINATES[:4] if b.opset < 19 else COORDINATES)
        attributes["coordinate_transformation_mode"] = coordinate
        if mode == "nearest":
            nearest = b.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
            attributes["nearest_mode"] = nearest
        if mode == "cubic":
            cubic = b.pick([-0.75, -0.5])
            attributes["cubic_coeff_a"] = cubic
            exclude = b.random.randint(0, 1)
            attributes["exclude_outside"] = exclude
        if b.opset >= 18 and mode != "nearest" and b.chance(0.3):
            antialias = attributes["antialias"] = 1
    if coordinate == "half_pixel_symmetric" and by_sizes is False and any(s * n % 1 for s, n in zip(scales, shape)):
        raise Skip("which length the adjustment takes is open")
    # PyTorch and onnxruntime copy what keeps its shape; against aliases also along one axis.
    still = [m == n and (antialias or sizes == list(shape)) for m, n in zip(sizes, shape)]
    matrices = [
        weights(n, m, s, coordinate, mode, nearest, cubic, antialias, exclude) if not k and (m != n or s != 1) else np.eye(n)
        for n, m, s, k in zip(shape, sizes, scales, still)
    ]

    def function(v, parts=matrices):
        for axis, matrix in enumerate(parts):
            v = np.moveaxis(np.tensordot(matrix, v, (1, axis)), 0, axis)
        return v

    taps = 32 if mode != "nearest" else 0
    if mode == "nearest":
        # Nothing is computed: every bit must arrive.
        error = None if x.error is None else function(x.error)
        result = (function(x.array), error)
    else:
        # Weights come from coordinates, which are rounded as numbers of the output's length are.
        result = linear(function, [x], kind, 8 * taps, lambda v: function(v, [np.abs(m) for m in matrices]))
        step = max(sizes + list(shape)) * 16 * 2.0**-24
        result = (result[0], result[1] + step * np.max(np.abs(x.array), initial=0))
    if op == "Upsample":
        if b.opset < 9:
            return b.add(op, [x], [(kind, *result)], scales=scales, **attributes)
        return b.add(op, [x, b.constant(FLOAT, scales)], [(kind, *result)], **attributes)
    roi = None if b.opset >= 13 and b.chance(0.7) else b.constant(FLOAT, np.zeros(0))
    if b.opset >= 18 and lead and b.chance(0.4):
        axes = list(range(lead, rank))
        attributes["axes"] = axes
        scales, sizes = scales[lead:], sizes[lead:]
    if by_sizes:
        empty = None if b.opset >= 13 else b.constant(FLOAT, np.zeros(0))
        inputs = [x, roi, empty, b.ints(sizes)]
    else:
        inputs = [x, roi, b.fresh(FLOAT, np.array(scales), 0.85)]
    b.add(op, inputs, [(kind, *result)], **attributes)
