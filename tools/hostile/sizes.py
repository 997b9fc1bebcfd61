"""Sizes that multiply beyond what fits into 32 or 64 bits, or that no machine has: one number, at all places where
operators take one."""

from onnx import TensorProto

from graph import Given, Known, filled, floats, ints, single

NUMBERS = [0, 1, 3, -1, 2**16, 2**24, 2**29 + 64, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63)]

image = floats(1, 1, 4, 4)
row = floats(1, 8)
text = Given(TensorProto.STRING, [2])


def at_least_one(n):
    return max(n, 1)


def nodes(n):
    """What a number can be: (name, operator, inputs, attributes, number of outputs)."""
    for mode in ("nearest", "linear", "cubic"):
        yield f"resize-{mode}", "Resize", [image, None, None, ints(1, 1, n, 1)], {"mode": mode}, 1
        yield f"resize-scale-{mode}", "Resize", [image, None, filled(float(n), 4)], {"mode": mode}, 1
    yield "resize-antialias", "Resize", [image, None, None, ints(1, 1, n, n)], {"mode": "linear", "antialias": 1}, 1
    weights = filled(0.5, 8, 1, 2, 1)
    yield "conv-pads", "Conv", [image, weights], {"pads": [0, n, 0, n]}, 1
    yield "conv-pads-strides", "Conv", [image, weights], {"pads": [0, n, 0, n], "strides": [1, at_least_one(n)]}, 1
    yield "conv-dilations", "Conv", [image, weights], {"dilations": [n, n]}, 1
    yield "conv-strides", "Conv", [image, weights], {"strides": [n, n]}, 1
    yield "conv-groups", "Conv", [image, weights], {"group": n}, 1
    yield "conv-transpose-strides", "ConvTranspose", [image, filled(0.5, 1, 1, 2, 2)], {"strides": [n, n]}, 1
    yield "conv-transpose-shape", "ConvTranspose", [image, filled(0.5, 1, 1, 2, 2)], {"output_shape": [n, n]}, 1
    yield "conv-transpose-dilations", "ConvTranspose", [image, filled(0.5, 1, 1, 2, 2)], {"dilations": [1, n]}, 1
    for pool in ("MaxPool", "AveragePool", "LpPool"):
        yield f"{pool}-kernel", pool, [image], {"kernel_shape": [n, 1]}, 1
        yield f"{pool}-pads", pool, [image], {"kernel_shape": [2, 2], "pads": [0, n, 0, n]}, 1
        yield f"{pool}-strides", pool, [image], {"kernel_shape": [2, 2], "strides": [n, 1]}, 1
        yield f"{pool}-dilations", pool, [image], {"kernel_shape": [2, 2], "dilations": [n, 1]}, 1
    yield "max-unpool", "MaxUnpool", [image, Known([[[[0]]]]), ints(1, 1, n, n)], {"kernel_shape": [2, 2]}, 1
    yield "top-k", "TopK", [row, ints(n)], {}, 2
    for mode in ("constant", "edge", "reflect", "wrap"):
        yield f"pad-{mode}", "Pad", [row, ints(0, n, 0, n)], {"mode": mode}, 1
        yield f"pad-crop-{mode}", "Pad", [row, ints(0, -max(n, 1 - 2**63), 0, n)], {"mode": mode}, 1
    yield "tile", "Tile", [row, ints(n, n)], {}, 1
    yield "tile-one", "Tile", [row, ints(1, n)], {}, 1
    yield "expand", "Expand", [floats(1, 1), ints(n, n)], {}, 1
    yield "constant-of-shape", "ConstantOfShape", [ints(n)], {}, 1
    yield "constant-of-shapes", "ConstantOfShape", [ints(n, n, 0)], {}, 1
    yield "range", "Range", [Known(0), Known(n), Known(1)], {}, 1
    yield "range-back", "Range", [Known(n), Known(0), Known(-1)], {}, 1
    yield "one-hot", "OneHot", [ints(1, 2), ints(n), filled(1.0, 2)], {}, 1
    yield "reshape", "Reshape", [row, ints(n, -1)], {}, 1
    yield "reshape-empty", "Reshape", [floats(0, 8), ints(n, 0, n)], {"allowzero": 1}, 1
    yield "slice", "Slice", [row, ints(n), ints(2**63 - 1), ints(1)], {}, 1
    yield "slice-step", "Slice", [row, ints(0), ints(8), ints(1), ints(n)], {}, 1
    yield "gather", "Gather", [row, ints(n)], {"axis": 1}, 1
    yield "gather-elements", "GatherElements", [row, Known([[n]])], {"axis": 1}, 1
    yield "gather-nd", "GatherND", [row, ints(n)], {}, 1
    yield "gather-nd-batch", "GatherND", [row, ints(0)], {"batch_dims": n}, 1
    yield "scatter-nd", "ScatterND", [floats(8), Known([[n]]), filled(1.0, 1)], {}, 1
    yield "scatter-elements", "ScatterElements", [floats(8), ints(n), filled(1.0, 1)], {}, 1
    yield "squeeze", "Squeeze", [row, ints(n)], {}, 1
    yield "unsqueeze", "Unsqueeze", [row, ints(n)], {}, 1
    yield "transpose", "Transpose", [row], {"perm": [n, 0]}, 1
    yield "concat", "Concat", [row, row], {"axis": n}, 1
    yield "flatten", "Flatten", [row], {"axis": n}, 1
    yield "split", "Split", [row], {"num_outputs": n, "axis": 1}, 3
    yield "split-sizes", "Split", [row, ints(n, 8 - n if abs(n) < 2**62 else 8)], {"axis": 1}, 2
    for op in ("Softmax", "ArgMax", "Hardmax", "LpNormalization"):
        yield f"{op}-axis", op, [row], {"axis": n}, 1
    yield "reduce", "ReduceSum", [row, ints(n)], {}, 1
    yield "cumsum", "CumSum", [row, Known(n)], {}, 1
    yield "layer-norm", "LayerNormalization", [row, filled(1.0, 8)], {"axis": n}, 1
    yield "group-norm", "GroupNormalization", [image, filled(1.0, 1), filled(0.0, 1)], {"num_groups": n}, 1
    yield "lrn", "LRN", [image], {"size": n}, 1
    yield "lp", "LpNormalization", [row], {"p": n}, 1
    yield "space-to-depth", "SpaceToDepth", [image], {"blocksize": n}, 1
    yield "depth-to-space", "DepthToSpace", [image], {"blocksize": n}, 1
    boxes = filled(1.0, 1, 4)
    for name in ("output_height", "sampling_ratio"):
        yield f"roi-{name}", "RoiAlign", [image, boxes, ints(0)], {name: n}, 1
    yield "roi-batch", "RoiAlign", [image, boxes, ints(n)], {}, 1
    yield "roi-box", "RoiAlign", [image, filled(float(n), 1, 4), ints(0)], {"sampling_ratio": 0}, 1
    yield "nms", "NonMaxSuppression", [floats(1, 3, 4), floats(1, 1, 3), ints(n)], {}, 1
    yield "col2im", "Col2Im", [floats(1, 4, 4), ints(n, n), ints(2, 2)], {}, 1
    yield "col2im-block", "Col2Im", [floats(1, 4, 4), ints(4, 4), ints(n, 1)], {}, 1
    yield "grid", "GridSample", [image, filled(float(n), 1, 2, 2, 2)], {"mode": "cubic"}, 1
    yield "affine-grid", "AffineGrid", [floats(1, 2, 3), ints(1, 1, n, n)], {}, 1
    yield "center-crop-pad", "CenterCropPad", [row, ints(n)], {"axes": [1]}, 1
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        given = [floats(2, 1, 2), filled(0.5, 1, gates * 2, 2), filled(0.5, 1, gates * 2, 2)]
        yield f"{op}-hidden", op, given, {"hidden_size": n}, 1
        yield f"{op}-lengths", op, given + [None, Known([n % 2**31])], {"hidden_size": 2}, 1
    for op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
        yield op, op, [Known(n)], {}, 1
    yield "dft", "DFT", [floats(1, 8, 1), Known(n)], {}, 1
    yield "stft", "STFT", [floats(1, 16, 1), Known(n), None, Known(4)], {}, 1
    yield "stft-length", "STFT", [floats(1, 16, 1), Known(2), None, Known(n)], {}, 1
    yield "mel", "MelWeightMatrix", [Known(n), Known(8), Known(8000), filled(0.0), filled(4000.0)], {}, 1
    yield "eye", "EyeLike", [row], {"k": n}, 1
    yield "trilu", "Trilu", [row, Known(n)], {}, 1
    yield "random", "RandomNormal", [], {"shape": [n, n]}, 1
    yield "random-one", "RandomUniform", [], {"shape": [n]}, 1
    yield "multinomial", "Multinomial", [row], {"sample_size": n}, 1
    yield "shape", "Shape", [row], {"start": n}, 1
    yield "quantize-block", "QuantizeLinear", [row, filled(1.0, 1, 4)], {"axis": 1, "block_size": n}, 1
    yield "dequantize-axis", "DequantizeLinear", [Given(TensorProto.UINT8, [2, 3]), filled(1.0, 3)], {"axis": n}, 1
    heads = {"q_num_heads": n, "kv_num_heads": n}
    yield "attention", "Attention", [floats(1, 2, 8), floats(1, 2, 8), floats(1, 2, 8)], heads, 1
    yield "string-split", "StringSplit", [text], {"maxsplit": n, "delimiter": "a"}, 2
    grams = {"mode": "TF", "min_gram_length": 1, "max_gram_length": n, "max_skip_count": n, "ngram_counts": [0], "ngram_indexes": [0], "pool_int64s": [1]}
    yield "tf-idf", "TfIdfVectorizer", [Given(TensorProto.INT64, [4])], grams, 1
    yield "bit-shift", "BitShift", [Given(TensorProto.UINT8, [2]), Known(bytearray([n % 256]))], {"direction": "LEFT"}, 1
    yield "deform", "DeformConv", [image, filled(0.5, 1, 1, 2, 2), floats(1, 8, 3, 3)], {"pads": [n, n, n, n]}, 1


def files():
    for n in NUMBERS:
        for name, op, inputs, attributes, outputs in nodes(n):
            known = any(isinstance(i, Known) for i in inputs)
            for computed in [False, True] if known else [False]:
                form = "computed" if computed else "constant"
                try:
                    made = single(op, inputs, attributes, outputs, computed=computed)
                except (ValueError, OverflowError, TypeError):
                    # A number that the type of the input does not have.
                    continue
                yield f"size-{name}-{form}-{n}.onnx", made
