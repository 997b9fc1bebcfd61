"""Resize, Upsample, GridSample, AffineGrid, and regions of interest."""

import numpy as np

from peer import operator
from peer.question import Question


@operator("GridSample", weight=6)
def grid_sample(d, op):
    flat = d.chance(0.75)
    rank = 2 if flat else 3
    x = d.floats((d.int(1, 2), d.int(1, 3), *d.dims(rank, 6)), dtype=d.pick([np.float32, np.float32, np.float64]))
    reach = d.pick([1.0, 1.3, 3.0, 12.0])
    grid = d.floats((x.shape[0], *d.dims(rank, 5), rank), -reach, reach, x.dtype)
    if d.chance(0.2):
        ends = np.asarray([-1, 1, 0, -1.5, 1.5, 1e6, -1e6, 3.0], x.dtype)
        grid = np.where(d.numbers.random(grid.shape) < 0.4, d.numbers.choice(ends, grid.shape), grid)
    modes = {16: ["bilinear", "nearest", "bicubic"], 20: ["linear", "nearest", "cubic"] if flat else ["linear", "nearest"]}
    opset = d.pick([16, 20, 22]) if flat else d.pick([20, 22])
    named = d.flags(mode=modes[min(opset, 20)], padding_mode=["zeros", "border", "reflection"], align_corners=[0, 1])
    return Question(op, [x, grid], opset=opset, **named)


MODES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "half_pixel_symmetric"]


@operator("Resize", weight=12)
def resize(d, op):
    opset = d.pick([10, 11, 13, 18, 19, 22])
    mode = d.pick(["nearest", "linear", "cubic"] if opset > 10 else ["nearest", "linear"])
    dtype = d.pick([np.float32, np.float32, np.float32, np.uint8, np.int8, np.int32]) if mode == "nearest" else np.float32
    spatial = 2 if mode == "cubic" else d.pick([1, 2, 2, 2, 3])
    shape = (d.int(1, 2), d.int(1, 2), *d.dims(spatial, 7))
    x = d.floats(shape) if dtype == np.float32 else d.integers(shape, dtype, 0, 100)
    named = {"mode": mode}
    # Elements that lie between two steps are rounded otherwise by everyone.
    if opset < 11:
        # Shrinking, onnxruntime rounds up; PyTorch, and onnx's version converter, down.
        least = 1 if mode == "nearest" else 0.5
        scales = np.asarray([1, 1, *[max(d.pick([0.5, 0.6, 1.5, 2, 2.3, 3]), least) for _ in range(spatial)]], np.float32)
        return Question(op, [x, scales], kept=[1], opset=opset, **named)
    named |= d.flags(coordinate_transformation_mode=MODES if opset >= 19 else MODES[:-1])
    where = named.get("coordinate_transformation_mode")
    if mode == "nearest":
        named |= d.flags(nearest_mode=["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic":
        named |= d.flags(cubic_coeff_a=[-0.5, -0.75], exclude_outside=[0, 1])
    if opset >= 18 and mode != "nearest" and where != "tf_crop_and_resize":
        named |= d.flags(antialias=[0, 1, 1], exclude_outside=[0, 1])
    axes = None
    rank = 2 + spatial
    if opset >= 18 and d.chance(0.3) and where != "tf_crop_and_resize":
        axes = d.random.sample(range(2, rank), d.int(1, spatial))
        named["axes"] = axes
    count = rank if axes is None else len(axes)
    over = axes or range(rank)
    resized = [a >= 2 for a in over]
    # Before operator set 13 inputs could not be left out, but be empty.
    roi = np.zeros(0, np.float32) if opset < 13 else None
    if where == "tf_crop_and_resize":
        starts = [d.pick([0.0, 0.2, -0.2]) if r else 0.0 for r in resized]
        ends = [d.pick([1.0, 0.8, 1.3]) if r else 1.0 for r in resized]
        roi = np.asarray(starts + ends, np.float32)
        named |= d.flags(extrapolation_value=[7.5])
    crop = where == "tf_crop_and_resize"
    if crop and mode == "nearest":
        return None  # Ties, in single precision.
    if d.chance(0.5) and not crop:
        # Of corners in a length that shrinks to a fraction the suite has another notion.
        shrunk = [] if where == "align_corners" else [0.3, 0.5, 0.6, 0.8]
        scales = np.asarray([d.pick([*shrunk, 1.0, 1.3, 1.5, 2.0, 2.5, 3.0]) if r else 1.0 for r in resized], np.float32)
        inputs = [x, roi, scales]
    else:
        sizes = np.asarray([d.int(1, 9) if r else shape[a] for r, a in zip(resized, over)], np.int64)
        # onnxruntime crops no axis that keeps its length, against the text.
        if crop:
            sizes += np.asarray([int(r and sizes[i] == shape[a]) for i, (r, a) in enumerate(zip(resized, over))])
        if opset >= 18 and axes and d.chance(0.6):
            named["keep_aspect_ratio_policy"] = d.pick(["stretch", "not_larger", "not_smaller"])
        inputs = [x, roi, np.zeros(0, np.float32) if opset < 13 else None, sizes]
    return Question(op, inputs, kept=range(1, 4) if d.chance(0.6) else (), opset=opset, **named)


@operator("Upsample")
def upsample(d, op):
    spatial = d.pick([1, 2, 2])
    x = d.floats((d.int(1, 2), d.int(1, 2), *d.dims(spatial, 6)))
    scales = [1.0, 1.0, *[d.pick([1.0, 1.5, 2.0, 2.3, 3.0]) for _ in range(spatial)]]
    mode = d.pick(["nearest", "linear"])
    if d.chance(0.5):
        return Question(op, [x], opset=8, mode=mode, scales=scales)
    return Question(op, [x, np.asarray(scales, np.float32)], kept=[1], opset=9, mode=mode)


@operator("AffineGrid")
def affine(d, op):
    rank = d.pick([2, 3])
    n = d.int(1, 2)
    size = np.asarray([n, 3, *d.dims(rank, 5)], np.int64)
    # Of an axis of length 1 PyTorch takes the centre, onnxruntime the end.
    corners = {} if 1 in size[2:] else d.flags(align_corners=[0, 1])
    return Question(op, [d.floats((n, rank, rank + 1)), size], kept=[1], opset=20, **corners)


@operator("RoiAlign", weight=3)
def roi_align(d, op):
    n, c, h, w = d.int(1, 2), d.int(1, 3), *d.dims(2, 9)
    x = d.floats((n, c, h, w), special=0.0)
    count = d.int(1, 4)
    rois = d.floats((count, 4), -4, 14)
    if d.chance(0.6):
        rois = np.concatenate([np.minimum(rois[:, :2], rois[:, 2:]), np.maximum(rois[:, :2], rois[:, 2:])], 1)
    batch = d.integers((count,), np.int64, 0, n - 1)
    opset = d.pick([10, 16])
    named = d.flags(output_height=[1, 2, 3], output_width=[1, 2, 3], sampling_ratio=[0, 1, 2, 3], spatial_scale=[1.0, 0.5, 0.3], mode=["avg", "avg", "max"])
    if opset >= 16:
        named |= d.flags(coordinate_transformation_mode=["half_pixel", "output_half_pixel"])
    return Question(op, [x, rois, batch], opset=opset, **named)


@operator("MaxRoiPool")
def max_roi_pool(d, op):
    n, c, h, w = d.int(1, 2), d.int(1, 3), *d.dims(2, 9)
    count = d.int(1, 4)
    rois = np.concatenate([d.integers((count, 1), np.int64, 0, n - 1), np.sort(d.floats((count, 2, 2), -1, 12), axis=1).reshape(count, 4)], 1)
    return Question(op, [d.floats((n, c, h, w)), rois.astype(np.float32)], pooled_shape=[d.int(1, 3), d.int(1, 3)], **d.flags(spatial_scale=[1.0, 0.5, 0.3]))


@operator("DeformConv")
def deformed(d, op):
    groups, offsets = d.pick([1, 1, 2]), d.pick([1, 1, 2])
    c, m = groups * offsets * d.int(1, 2), groups * d.int(1, 2)
    kernel, (h, w) = d.dims(2, 3), d.dims(2, 6)
    pads, strides, dilations = [d.int(0, 2) for _ in range(4)], [d.int(1, 2) for _ in range(2)], [d.int(1, 2) for _ in range(2)]
    out = [(s + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i, s in enumerate((h, w))]
    if min(out) < 1:
        return None
    n, taps = d.int(1, 2), kernel[0] * kernel[1]
    inputs = [d.floats((n, c, h, w)), d.floats((m, c // groups, *kernel)), d.floats((n, offsets * taps * 2, *out), -3, 3)]
    inputs += [d.floats((m,)) if d.chance(0.5) else None, d.floats((n, offsets * taps, *out), 0, 1) if d.chance(0.5) else None]
    return Question(op, inputs, opset=19, kernel_shape=kernel, pads=pads, strides=strides, dilations=dilations, group=groups, offset_group=offsets)
