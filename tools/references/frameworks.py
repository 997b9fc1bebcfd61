"""Models at which the text of the standard is silent, or leaves a rounding open, and what PyTorch makes of them.

    python tools/references/frameworks.py

Needs numpy, onnx, torch 2.15.0 and onnxruntime 1.32.0. Where onnxruntime has a kernel, it must agree with PyTorch; a case
that says `alone` is PyTorch's only, with the reason beside it.
"""

import numpy as np
import onnxruntime as ort
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

from common import Cases

cases = Cases("frameworks")
random = np.random.default_rng(11)


def floats(*shape, low=-2.0, high=2.0, dtype=np.float32):
    return random.uniform(low, high, shape).astype(dtype)


def case(name, op, inputs, want, kept=(), opset=21, alone=False, **attributes):
    """`want` is what PyTorch gives; inputs numbered in `kept` stand in the file, `None` is left out."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    fed = {n: x for i, (n, x) in enumerate(zip(names, inputs)) if n and i not in kept}
    want = np.asarray(want)
    port = lambda n, x: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
    constants = [numpy_helper.from_array(np.asarray(inputs[i]), names[i]) for i in kept]
    node = helper.make_node(op, names, ["y"], **attributes)
    graph = helper.make_graph([node], name, [port(n, x) for n, x in fed.items()], [port("y", want)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if want.dtype != np.float16 else {"rtol": 2e-3, "atol": 2e-3}
    if not alone:
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        got = ort.InferenceSession(model, options, ["CPUExecutionProvider"]).run(None, fed)[0]
        np.testing.assert_allclose(got, want, **tolerance, err_msg=name)
    cases.add(name, "onnx", model, list(fed.values()), [want], **tolerance)


MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}


def sampled(name, x, grid, mode, padding, align, alone=False):
    tensor = lambda a: torch.tensor(a).double()
    want = F.grid_sample(tensor(x), tensor(grid), mode=MODES[mode], padding_mode=padding, align_corners=bool(align))
    want = want.numpy().astype(x.dtype)
    case(name, "GridSample", [x, grid], want, opset=20, alone=alone, mode=mode, padding_mode=padding, align_corners=align)


# Neighbours are clipped, not the point. onnxruntime has no cubic kernel for volumes.
for align in (0, 1):
    for padding in ("border", "reflection", "zeros"):
        x, grid = floats(2, 3, 5, 4), floats(2, 3, 4, 2, low=-1.8, high=1.8)
        sampled(f"grid_sample_cubic_{padding}_{align}", x, grid, "cubic", padding, align)
    x, grid = floats(2, 2, 3, 4, 5), floats(2, 2, 3, 2, 3, low=-1.8, high=1.8)
    sampled(f"grid_sample_cubic_volume_{align}", x, grid, "cubic", "border", align, alone=True)
    far = floats(1, 3, 6, 2, low=-9, high=9)
    sampled(f"grid_sample_cubic_far_{align}", floats(1, 2, 5, 3), far, "cubic", "border", align)
    sampled(f"grid_sample_cubic_one_{align}", floats(1, 2, 1, 4), far, "cubic", "border", align)
half = floats(1, 2, 5, 4, dtype=np.float16)
sampled("grid_sample_cubic_half", half, floats(1, 3, 4, 2, low=-1.8, high=1.8, dtype=np.float16), "cubic", "border", 0)
sampled("grid_sample_cubic_double", floats(1, 2, 5, 4, dtype=np.float64), floats(1, 3, 4, 2, low=-1.8, high=1.8, dtype=np.float64), "cubic", "border", 1)
# PyTorch documents that NaN counts as -1. onnxruntime reads whatever lies there.
grid = np.zeros((1, 1, 4, 2), np.float32)
grid[0, 0, :, 0] = [np.nan, np.inf, -np.inf, 0.25]
for mode in ("linear", "nearest"):
    for padding in ("border", "reflection"):
        for align in (0, 1):
            sampled(f"grid_sample_not_finite_{mode}_{padding}_{align}", floats(1, 2, 3, 4), grid, mode, padding, align, alone=True)

# The only point of an axis of length 1 is its centre; in onnxruntime it is the end, in onnx's reference the beginning.
for size in ([2, 3, 1, 4], [1, 2, 3, 1, 1]):
    rank = len(size) - 2
    theta = floats(size[0], rank, rank + 1)
    want = F.affine_grid(torch.tensor(theta), size, align_corners=True).numpy()
    case(f"affine_grid_one_{rank}", "AffineGrid", [theta, np.asarray(size, np.int64)], want, kept=[1], opset=20, alone=True, align_corners=1)


def resized(name, x, scales, mode, align=None, **attributes):
    places = {None: "asymmetric" if mode == "nearest" else "half_pixel", True: "align_corners", False: "half_pixel"}[align]
    named = {2: {"linear": "bilinear", "cubic": "bicubic"}, 1: {"linear": "linear"}}[len(scales)].get(mode, mode)
    how = {} if mode == "nearest" else {"align_corners": bool(align), "antialias": "antialias" in attributes}
    want = F.interpolate(torch.tensor(x), scale_factor=tuple(scales), mode=named, **how).numpy()
    case(name, "Resize", [x, None, np.asarray([1, 1, *scales], np.float32)], want, kept=[2], mode=mode,
         coordinate_transformation_mode=places, **attributes)


# Which element is the nearest follows from a quotient in single precision. (PyTorch multiplies by the inverse, which for 1 of 100
# elements is another.)
resized("resize_nearest_by_0_6", floats(1, 2, 10, 7), [0.6, 0.6], "nearest", nearest_mode="floor")
resized("resize_nearest_by_0_7_and_1_2", floats(2, 1, 11, 10), [0.7, 1.2], "nearest", nearest_mode="floor")
# Corners lie at the ends of the output, however long it is.
resized("resize_linear_corners", floats(1, 2, 5, 3), [1.5, 1.3], "linear", True)
resized("resize_cubic_corners", floats(1, 2, 5, 3), [1.5, 2.5], "cubic", True, cubic_coeff_a=-0.75)
# What keeps its shape is copied.
resized("resize_linear_still", floats(1, 2, 2, 3), [1.3, 1.2], "linear")
resized("resize_linear_corners_still", floats(1, 2, 2, 3), [1.3, 1.2], "linear", True)

for mode, named in (("linear", {}), ("cubic", {"cubic_coeff_a": -0.5})):
    resized(f"resize_{mode}_antialias_still", floats(1, 2, 4, 3), [0.5, 1.3], mode, antialias=1, exclude_outside=1, **named)

# What is cropped is not wrapped around to.
x = floats(2, 5)
for name, before, after in (("first", -1, 2), ("last", 3, -2)):
    want = F.pad(torch.tensor(x)[None], (before, after), mode="circular")[0].numpy()
    case(f"pad_wrap_crop_{name}", "Pad", [x, np.asarray([0, before, 0, after], np.int64)], want, kept=[1], mode="wrap")
x = floats(1, 7)
want = F.pad(torch.tensor(x)[None, :, 2:], (0, 4), mode="reflect")[0].numpy()
case("pad_reflect_crop", "Pad", [x, np.asarray([0, -2, 0, 4], np.int64)], want, kept=[1], mode="reflect")

I = np.inf
x = np.asarray([[1, I, 2], [-I, -I, -I], [1, -I, 2], [I, -I, 0], [-I, -I, 1]], np.float32)
for name, data in (("", x), ("_long", np.repeat(x, 30, 1))):
    want = torch.logsumexp(torch.tensor(data), 1).numpy()
    case(f"log_sum_exp_infinite{name}", "ReduceLogSumExp", [data, np.asarray([1], np.int64)], want, kept=[1], keepdims=0)
case("reduce_max_nothing", "ReduceMax", [np.zeros((2, 0), np.int8), np.asarray([1], np.int64)], np.full(2, -128, np.int8), kept=[1], opset=18, keepdims=0)

# Of no elements there are as many in any shape.
case("reshape_nothing", "Reshape", [floats(2, 0, 3), np.asarray([1, 0, 5], np.int64)], np.zeros((1, 0, 5), np.float32), kept=[1])

x = np.asarray([1e30, -1e30, 3e38, -3e38, 1e20, 88.8, -88.8, 104.0, -104.0, 20.5, 0.0, 1e-30], np.float32)
case("mish_large", "Mish", [x], F.mish(torch.tensor(x)).numpy())

# The number of elements in double precision; onnxruntime counts in single.
for name, start, limit, step in (("up", 0.1, 2.2, 0.3), ("down", 0.1, -0.2, -0.1), ("fine", 0.1, 1.55, 0.05)):
    ends = [np.float32(v) for v in (start, limit, step)]
    want = torch.arange(*(torch.tensor(v) for v in ends)).numpy()
    case(f"range_{name}", "Range", [np.asarray(v) for v in ends], want, kept=[0, 1, 2], opset=11, alone=True)

cases.write()
