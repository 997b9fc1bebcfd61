"""Small models of com.microsoft operators, and what onnxruntime makes of them.

    python tools/references/microsoft.py

Needs numpy, onnx and onnxruntime.
"""

from math import erf

import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper

from common import Cases

cases = Cases("microsoft")
random = np.random.default_rng(7)
DOMAIN = "com.microsoft"


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


def numbers(dtype, *shape):
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def case(name, op, inputs, outputs=1, constants=(), quantised=False, domain=DOMAIN, like=None, dims={}, pins=None,
         hidden=(), **attributes):
    """`inputs` are arrays, or None where one is left out; those numbered in `constants` stand in the
    file. `outputs` counts them, or says with "" which are left out. `like` computes the results of
    what onnxruntime has no CPU kernel for. `dims` are dimensions, or names of them, that the file declares of inputs
    instead of their own. `pins` say where nodes run that backends may compute in several ways: where it is done as here.
    Outputs that are `hidden` are the node's and not the model's."""
    if isinstance(outputs, int):
        outputs = [f"y{i}" for i in range(outputs)]
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    fed = {f"x{i}": x for i, x in enumerate(inputs) if x is not None and i not in constants}
    kept = [numpy_helper.from_array(inputs[i], f"x{i}") for i in constants]
    node = helper.make_node(op, names, outputs, name=name, domain=domain, **attributes)
    declared = {f"x{i}": d for i, d in dims.items()}
    info = lambda n, x: helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), declared.get(n, x.shape))
    graph = helper.make_graph(
        [node],
        name,
        [info(n, x) for n, x in fed.items()],
        [helper.make_empty_tensor_value_info(y) for y in outputs if y and y not in hidden],
        kept,
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        if like:
            results = like()
        else:
            session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
            results = session.run(None, fed)
    except Exception as error:  # noqa: BLE001: what onnxruntime cannot run has no reference
        print(f"{name}: {str(error)[:200]}")
        return
    for value, result in zip(graph.output, results):
        value.CopyFrom(info(value.name, result))
    # Rounding in another order may turn one step of a quantised result.
    tolerance = {"atol": 1.0} if quantised else {"rtol": 1e-4, "atol": 1e-5}
    if name:
        more = {"pins": pins} if pins else {}
        cases.add(name, "onnx", model.SerializeToString(), list(fed.values()), results, **tolerance, **more)
    return results


# Activations and sums.
x, bias = floats(2, 5, 12), floats(12)
case("gelu", "Gelu", [x])
case("bias_gelu", "BiasGelu", [x, bias])
case("fast_gelu", "FastGelu", [x, bias])
case("quick_gelu", "QuickGelu", [x], alpha=1.5)

# Normalisations.
skip, scale, shift = floats(2, 5, 12), floats(12), floats(12)
case("skip_layer_norm", "SkipLayerNormalization", [x, skip, scale, shift, bias], ["y", "", "", "sum"], epsilon=1e-5)
case("skip_layer_norm_plain", "SkipLayerNormalization", [x, skip, scale])
case("skip_simplified_layer_norm", "SkipSimplifiedLayerNormalization", [x, skip, scale, bias], ["y", "", "", "sum"])
case("simplified_layer_norm", "SimplifiedLayerNormalization", [x, scale], domain="", epsilon=1e-5, axis=-1)
ids = random.integers(0, 9, (2, 5), np.int32)
segments = random.integers(0, 2, (2, 5), np.int32)
mask = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
tables = [floats(9, 12), floats(7, 12), floats(2, 12)]
case("embed_layer_norm", "EmbedLayerNormalization",
     [ids, segments, *tables, scale, shift, mask], ["y", "counts", "sum"], epsilon=1e-5)
case("embed_layer_norm_positions", "EmbedLayerNormalization",
     [ids, None, *tables[:2], None, scale, shift, None, segments], ["y", "counts"])

# Products.
case("fused_matmul", "FusedMatMul", [floats(2, 7, 3), floats(2, 5, 7)], transA=1, transB=1, alpha=0.37)
case("fused_gemm", "FusedGemm", [floats(3, 7), floats(5, 7), floats(5)],
     transB=1, alpha=0.5, beta=2.0, activation="Relu")
case("fused_conv", "FusedConv", [floats(1, 4, 7, 6), floats(5, 4, 3, 3), floats(5), floats(1, 5, 7, 6)],
     pads=[1, 1, 1, 1], activation="HardSigmoid", activation_params=[0.3, 0.4])
image, kernel, bias5 = floats(1, 7, 6, 4), floats(5, 3, 3, 4), floats(5)


def channels_first():
    turned = [image.transpose(0, 3, 1, 2), kernel.transpose(0, 3, 1, 2), bias5]
    return [case("", "Conv", turned, domain="", pads=[1, 1, 1, 1])[0].transpose(0, 2, 3, 1)]


case("nhwc_conv", "NhwcConv", [image, kernel, bias5], pads=[1, 1, 1, 1], like=channels_first)
packed = numbers(np.uint8, 6, 3, 8)
for name, zeros in (("", None), ("_zero_points", numbers(np.uint8, 12))):
    case(f"matmul_4_bits{name}", "MatMulNBits", [floats(2, 3, 40), packed, floats(18), zeros],
         constants=[i for i, c in enumerate([0, 1, 1, zeros is not None]) if c],
         K=40, N=6, bits=4, block_size=16)
case("matmul_8_bits", "MatMulNBits", [floats(2, 32), numbers(np.uint8, 5, 2, 16), floats(10), None, None, floats(5)],
     constants=[1, 2, 5], K=32, N=5, bits=8, block_size=16)
case("gather_block_quantized", "GatherBlockQuantized",
     [numbers(np.uint8, 7, 16), np.array([[3, 0], [6, 1]], np.int64), floats(7, 2), numbers(np.uint8, 7, 1)],
     constants=[0, 2, 3], gather_axis=0, quantize_axis=1, block_size=16, bits=4)
case("gather_block_quantized_8_bits", "GatherBlockQuantized",
     [numbers(np.uint8, 7, 32), np.array([3, 0, 5], np.int64), floats(7, 2)],
     constants=[0, 2], gather_axis=0, quantize_axis=1, block_size=16, bits=8)

# Attention.
wide, weights, bias3 = floats(2, 6, 16), floats(16, 48) / 4, floats(48)
past = floats(2, 2, 4, 3, 4)
lengths = np.array([4, 6], np.int32)
ranges = np.array([5, 6, 1, 2], np.int32)
seen = np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], np.int32)
square = (random.random((2, 6, 6)) < 0.7).astype(np.int32)
case("attention", "Attention", [wide, weights, bias3], num_heads=4)
case("attention_causal_cached", "Attention", [wide, weights, bias3, None, past],
     ["y", "present"], num_heads=4, unidirectional=1)
case("attention_counts", "Attention", [wide, weights, bias3, lengths], num_heads=4)
case("attention_ranges", "Attention", [wide, weights, bias3, ranges], num_heads=4)
case("attention_key_mask", "Attention", [wide, weights, bias3, seen, None, floats(1, 4, 6, 6)], num_heads=4)
case("attention_square_mask", "Attention", [wide, weights, bias3, square], num_heads=4, scale=0.3)
case("attention_sizes", "Attention", [wide, floats(16, 32) / 4, floats(32)], num_heads=4, qkv_hidden_sizes=[12, 12, 8])
byte, byte_weights = numbers(np.uint8, 2, 6, 16), numbers(np.int8, 16, 48)
case("q_attention", "QAttention",
     [byte, byte_weights, bias3, np.float32(0.02), np.float32(0.005), lengths, np.uint8(120), np.int8(0)],
     constants=[1, 2, 3, 4, 6, 7], num_heads=4)

key, value = floats(2, 7, 16), floats(2, 7, 16)
case("multi_head_attention", "MultiHeadAttention", [wide, key, value, bias3], num_heads=4)
case("multi_head_attention_masked", "MultiHeadAttention",
     [wide, key, value, None, (random.random((2, 7)) < 0.7).astype(np.int32), floats(2, 4, 6, 7)], num_heads=4)
case("multi_head_attention_cached", "MultiHeadAttention",
     [wide, floats(2, 6, 16), floats(2, 6, 16), None, None, None, floats(2, 4, 3, 4), floats(2, 4, 3, 4)],
     ["y", "key", "value"], num_heads=4, unidirectional=1)
side_by_side = floats(2, 6, 4, 3, 4)
apart = [side_by_side[:, :, :, i].reshape(2, 6, 16) for i in range(3)]
case("multi_head_attention_packed", "MultiHeadAttention", [side_by_side], num_heads=4,
     like=lambda: case("", "MultiHeadAttention", apart, num_heads=4))
case("multi_head_attention_packed_keys", "MultiHeadAttention", [wide, side_by_side[:, :, :, 1:].copy()], num_heads=4,
     like=lambda: case("", "MultiHeadAttention", [wide, *apart[1:]], num_heads=4))

angles = np.outer(np.arange(20), 100.0 ** -np.linspace(0, 1, 4))
cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
positions = np.array([[0, 1, 2, 3, 4, 5], [3, 4, 5, 6, 7, 8]], np.int64)
case("rotary_embedding", "RotaryEmbedding", [floats(2, 6, 16), positions, cos, sin])
case("rotary_embedding_interleaved", "RotaryEmbedding", [floats(2, 3, 6, 8), np.array([4], np.int64), cos, sin], interleaved=1)
case("rotary_embedding_part", "RotaryEmbedding", [floats(2, 6, 32), positions, cos, sin],
     num_heads=2, rotary_embedding_dim=8)


def grouped(name, queries, before, batch, **attributes):
    total = queries + before
    last = np.full((batch,), total - 1, np.int32)
    query, key, value = floats(batch, queries, 64), floats(batch, queries, 32), floats(batch, queries, 32)
    inputs = [query, key, value, floats(batch, 2, before, 16), floats(batch, 2, before, 16), last, np.array(total, np.int32)]
    if attributes.get("do_rotary"):
        inputs += [np.hstack([cos, cos]), np.hstack([sin, sin])]
    case(name, "GroupQueryAttention", inputs, ["y", "key", "value"], constants=[6],
         num_heads=4, kv_num_heads=2, **attributes)


grouped("group_query_attention", 1, 5, 1)
grouped("group_query_attention_rotary", 1, 5, 2, do_rotary=1)
grouped("group_query_attention_prompt", 6, 0, 1, do_rotary=1, rotary_interleaved=1)
grouped("group_query_attention_window", 6, 0, 1, local_window_size=3)
grouped("group_query_attention_softcap", 1, 5, 1, softcap=2.0, scale=0.4)

# Quantised operators.
for dtype in (np.uint8, np.int8):
    middle = 128 if dtype == np.uint8 else 0
    kind = np.dtype(dtype).name
    q = lambda scale, zero: [np.float32(scale), dtype(middle + zero)]
    a, b = numbers(dtype, 2, 3, 4, 5), numbers(dtype, 4, 5)
    image = numbers(dtype, 1, 3, 6, 6)
    both = [a, *q(0.02, 5), b, *q(0.03, -7), *q(0.04, 2)]
    kept = [1, 2, 4, 5, 6, 7]
    case(f"qlinear_add_{kind}", "QLinearAdd", both, constants=kept, quantised=True)
    case(f"qlinear_mul_{kind}", "QLinearMul", both, constants=kept, quantised=True)
    one = [a, *q(0.05, 9)]
    case(f"qlinear_sigmoid_{kind}", "QLinearSigmoid", [*one, np.float32(1 / 256), dtype(middle - 128)], constants=[1, 2, 3, 4], quantised=True)
    case(f"qlinear_leaky_relu_{kind}", "QLinearLeakyRelu", [*one, *q(0.04, 3)], constants=[1, 2, 3, 4], quantised=True, alpha=0.2)
    case(f"qlinear_softmax_{kind}", "QLinearSoftmax", [*one, np.float32(1 / 256), dtype(middle - 128)], constants=[1, 2, 3, 4], quantised=True, opset=13, axis=-1)
    case(f"qlinear_average_pool_{kind}", "QLinearAveragePool", [image, *q(0.05, 9), *q(0.04, 3)],
         constants=[1, 2, 3, 4], quantised=True, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    case(f"qlinear_global_average_pool_{kind}", "QLinearGlobalAveragePool", [image, *q(0.05, 9), *q(0.02, 3)],
         constants=[1, 2, 3, 4], quantised=True, channels_last=0)
    case(f"qlinear_concat_{kind}", "QLinearConcat",
         [*q(0.05, 1), a, *q(0.05, 1), numbers(dtype, 2, 3, 4, 2), *q(0.02, 30)],
         constants=[0, 1, 3, 4, 6, 7], quantised=True, axis=-1)
    case(f"qlinear_where_{kind}", "QLinearWhere",
         [random.random((2, 3, 4, 5)) < 0.5, a, *q(0.02, 5), b, *q(0.03, -7), *q(0.04, 2)],
         constants=[2, 3, 5, 6, 7, 8], quantised=True)
case("dynamic_quantize_matmul", "DynamicQuantizeMatMul",
     [floats(3, 20), numbers(np.int8, 20, 7), random.random(7, np.float32), np.zeros(7, np.int8), floats(7)],
     constants=[1, 2, 3, 4])
case("matmul_integer_to_float", "MatMulIntegerToFloat",
     [numbers(np.uint8, 3, 20), numbers(np.int8, 20, 7), np.array(0.03, np.float32), random.random(7, np.float32), np.array(100, np.uint8), numbers(np.int8, 7), floats(7)],
     constants=[1, 3, 5, 6])

# Caches of a fixed size, sinks, and what is known only at run time.
def roomy(name, queries, lengths, room, extra=(), dims={}, constants=(), outputs=("y", "key", "value"), **attributes):
    """Grouped attention with a cache of `room` keys; `lengths` are those of the sequences, the new keys included."""
    batch, total = len(lengths), max(lengths)
    # Behind what a sequence holds onnxruntime writes zeros, unless it is told to leave what is there.
    held = np.arange(room) < np.array(lengths)[:, None] - queries
    caches = [floats(batch, 2, room, 16) * held[:, None, :, None] for _ in range(2)]
    inputs = [floats(batch, queries, 64), floats(batch, queries, 32), floats(batch, queries, 32), *caches,
              np.array(lengths, np.int32) - 1, np.array(total, np.int32)]
    inputs += [None] * (16 - len(inputs))
    for i, x in dict(extra).items():
        inputs[i] = x
    case(name, "GroupQueryAttention", inputs, [*outputs], constants, num_heads=4, kv_num_heads=2, dims=dims, **attributes)


wider = {7: np.hstack([cos, cos]), 8: np.hstack([sin, sin])}
open_cache = {3: ["batch", 2, "past", 16], 4: ["batch", 2, "past", 16]}
one_open = {3: [1, 2, "past", 16], 4: [1, 2, "past", 16]}
roomy("group_query_attention_room", 1, [6], 9)
roomy("group_query_attention_room_two", 1, [6, 4], 9, wider, do_rotary=1)
roomy("group_query_attention_room_total", 1, [6, 4], 9, constants=[6])
roomy("group_query_attention_two_lengths", 1, [6, 4], 5, dims=open_cache)
roomy("group_query_attention_grows", 1, [6], 5, wider, one_open, do_rotary=1)
roomy("group_query_attention_smooth", 1, [6], 5, smooth_softmax=1)
roomy("group_query_attention_sinks", 2, [6], 7, {11: floats(4)})
roomy("group_query_attention_both_ways", 3, [6], 3, causal=0)
roomy("group_query_attention_angles", 1, [6], 5, wider, {7: [20, "half"], 8: [20, "half"]}, do_rotary=1)
case("attention_counts_open", "Attention", [wide, weights, bias3, lengths], num_heads=4,
     dims={0: ["batch", 6, 16], 3: ["batch"]})
room = floats(2, 2, 4, 12, 4)


def without_room():
    y, present = case("", "Attention", [wide, weights, bias3, None, room[:, :, :, :3].copy()], ["y", "present"],
                      num_heads=4, unidirectional=1)
    return [y, np.concatenate([present, room[:, :, :, 9:]], 3)]


case("attention_room", "Attention", [wide, weights, bias3, None, room, None, np.array([3], np.int32)],
     ["y", "present"], num_heads=4, unidirectional=1, past_present_share_buffer=1, like=without_room)
narrow, norms = [floats(1, 1, 64), floats(1, 1, 32), floats(1, 1, 32)], [floats(16), floats(16)]
caches = [floats(1, 2, 5, 16), floats(1, 2, 5, 16), np.array([5], np.int32), np.array(6, np.int32)]


def normalised():
    heads = [x.reshape(1, 1, -1, 16) for x in narrow[:2]]
    heads = [x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * w for x, w in zip(heads, norms)]
    flat = [x.reshape(1, 1, -1).astype(np.float32) for x in heads]
    return case("", "GroupQueryAttention", [*flat, narrow[2], *caches], 3, num_heads=4, kv_num_heads=2)


case("group_query_attention_norms", "GroupQueryAttention", [*narrow, *caches, *[None] * 7, *norms], 3,
     num_heads=4, kv_num_heads=2, qk_norm_epsilon=1e-3, like=normalised)
groups = random.permutation(np.arange(40) // 16).astype(np.int32)
for name, extra in (("columns", [None, groups]), ("real_zeros", [floats(18)]), ("columns_real_zeros", [floats(18), groups])):
    inputs = [floats(2, 3, 40), packed, floats(18), *extra]
    case(f"matmul_4_bits_{name}", "MatMulNBits", inputs, constants=[i for i, x in enumerate(inputs) if i and x is not None],
         K=40, N=6, bits=4, block_size=16)
case("gather_block_quantized_open", "GatherBlockQuantized",
     [numbers(np.uint8, 7, 16), np.array([[3, 0], [6, 1]], np.int64), floats(7, 2)],
     constants=[0], gather_axis=0, quantize_axis=1, block_size=16, bits=4, dims={2: ["rows", "blocks"]})
# A bias beside a cache with room, and the shares of the keys.
roomy("group_query_attention_bias_room", 1, [6, 4], 9, {10: floats(1, 4, 1, 6)})
roomy("group_query_attention_shares", 3, [5], 2, {11: floats(4)}, one_open, outputs=["y", "key", "value", "shares"], qk_output=2, local_window_size=3)

# Recurrent layers of 8 bits.
steps, hidden = floats(5, 2, 7), 6
for name, directions, dtype, columns in (("", 1, np.int8, False), ("_columns", 2, np.int8, True), ("_uint8", 1, np.uint8, False)):
    layer = []
    for n in (7, hidden):
        shape = (directions, 4 * hidden) if columns else (directions,)
        scales = random.uniform(0.002, 0.006, shape).astype(np.float32)
        layer.append((numbers(dtype, directions, n, 4 * hidden), scales, np.full(shape, 120 if dtype == np.uint8 else 0, dtype)))
    (w, w_scale, w_zero), (r, r_scale, r_zero) = layer
    state = [floats(directions, 2, hidden) if columns else None for _ in range(2)]
    case(f"dynamic_quantize_lstm{name}", "DynamicQuantizeLSTM",
         [steps, w, r, floats(directions, 8 * hidden), None, *state, None, w_scale, w_zero, r_scale, r_zero], 3,
         constants=[1, 2, 8, 9, 10, 11], hidden_size=hidden, direction="bidirectional" if directions == 2 else "forward")

# The quantiser's Gemm and convolution.
for name, dtype, real, columns in (("", np.uint8, False, False), ("_int8_columns", np.int8, False, True),
                                   ("_real", np.uint8, True, False)):
    middle = 128 if dtype == np.uint8 else 0
    scales = np.full(5, 0.02, np.float32) + np.arange(5, dtype=np.float32) / 500 if columns else np.float32(0.02)
    zeros = np.zeros(5, np.int8) if columns else np.int8(3)
    inputs = [numbers(dtype, 3, 7), np.float32(0.03), dtype(middle + 2), numbers(np.int8, 5, 7), scales, zeros,
              random.integers(-900, 900, (5,), np.int32)]
    inputs += [] if real else [np.float32(0.3), dtype(middle - 4)]
    case(f"q_gemm{name}", "QGemm", inputs, constants=range(1, len(inputs)), quantised=not real, alpha=0.5, transB=1)
case("q_gemm_plain", "QGemm",
     [numbers(np.uint8, 7, 3), np.float32(0.03), np.uint8(130), numbers(np.uint8, 7, 5), np.float32(0.02), np.uint8(120),
      None, np.float32(0.3), np.uint8(128)], constants=[1, 2, 4, 5, 7, 8], quantised=True, transA=1)
case("qlinear_conv_channels_last", "QLinearConv",
     [numbers(np.uint8, 1, 7, 6, 4), np.float32(0.05), np.uint8(120), numbers(np.int8, 5, 4, 3, 3), np.float32(0.02), np.int8(0),
      np.float32(0.8), np.uint8(128), random.integers(-900, 900, (5,), np.int32)],
     constants=range(1, 9), quantised=True, channels_last=1, pads=[1, 1, 1, 1], strides=[2, 1])

# What exporters write of rotary embeddings: heads counted where they stand apart, too.
case("rotary_embedding_counted", "RotaryEmbedding", [floats(2, 4, 6, 8), positions, cos, sin],
     num_heads=4, scale=1.0, is_packed_batching=0)
case("rotary_embedding_heads", "RotaryEmbedding", [floats(2, 6, 32), positions, cos, sin], num_heads=4)

# With accuracy level 4 blocks of the left matrix may be rounded to bytes, as on the CPU: one row, many rows, with zero points and a bias. Weights are at
# most about one, as in models: of larger ones onnxruntime's own sums in float32 are further from float64 than the cases allow.
for rows, bits in ((1, 4), (1, 8), (9, 4), (9, 8)):
    for name, zeros in (("", None), ("_zero_points", numbers(np.uint8, 70 if bits == 4 else 105))):
        inputs = [floats(rows, 90), numbers(np.uint8, 35, 3, 4 * bits), floats(105) / np.float32(2**bits), zeros, None,
                  floats(35)]
        case(f"matmul_{bits}_bits_rounded_{rows}{name}", "MatMulNBits", inputs,
             constants=[i for i, x in enumerate(inputs) if i and x is not None],
             pins=["op:MatMulNBits=cpu"], K=90, N=35, bits=bits, block_size=32, accuracy_level=4)

# Attention with a state, and what stands around it.
x, kernel, history = floats(2, 6, 5), floats(6, 1, 4), floats(2, 6, 3)
case("causal_conv", "CausalConvWithState", [x, kernel, floats(6), history], 2, activation="silu")
case("causal_conv_without_past", "CausalConvWithState", [x, kernel], 2)
case("causal_conv_open", "CausalConvWithState", [x, kernel, None, history], 2, dims={0: [2, 6, "length"], 1: [6, 1, "kernel"], 3: [2, 6, "before"]})
case("causal_conv_apart", "CausalConvWithState", [floats(2, 6, 5), kernel, None, floats(2, 6, 6)], 2, dilation=2)
case("causal_conv_channels_last", "CausalConvWithState", [floats(2, 5, 2, 3), kernel, floats(6), floats(2, 3, 2, 3)], 2,
     channels_last=1, activation="swish")
case("gated_rms_norm", "GatedRMSNorm", [floats(2, 5, 12), floats(4), floats(2, 5, 12)], epsilon=1e-3)
case("gated_rms_norm_plain", "GatedRMSNorm", [floats(2, 5, 12) / 99, floats(12), floats(2, 5, 12)])
case("linear_attention_gate", "LinearAttentionGate", [floats(2, 5, 3) * 9, floats(3), floats(3), floats(2, 5, 3)], 2)
case("linear_attention_gate_alone", "LinearAttentionGate", [floats(2, 5, 3), floats(3), floats(3)])


def linear(name, queries, keys, values, rule, past=True, **attributes):
    """Heads of `queries`, `keys` and `values`: queries and keys of 8 numbers, values of 6."""
    length = lambda heads, size: floats(2, 5, heads * size)
    near = lambda heads: length(heads, 8) / np.float32(3)
    decay = -np.abs(length(values, 1)) if "gated" in rule else None
    rate = random.random((2, 5, values), np.float32) if "delta" in rule else None
    state = floats(2, values, 8, 6) if past else None
    case(f"linear_attention_{name}", "LinearAttention", [near(queries), near(keys), length(values, 6), state, decay, rate], 2,
         q_num_heads=queries, kv_num_heads=values, update_rule=rule, **attributes)


for rule in ("linear", "gated", "delta", "gated_delta"):
    linear(rule, 2, 2, 2, rule, scale=0.3)
linear("shared_queries", 4, 2, 2, "gated_delta")
linear("shared_values", 2, 2, 4, "gated_delta", past=False)
linear("shared_values_of_keys", 2, 4, 4, "gated")

three = random.integers(0, 20, (3, 2, 6), np.int64)
sections = dict(mrope_section=[2, 1, 1], rotary_embedding_dim=8)
case("m_rotary_embedding", "MRotaryEmbedding", [floats(2, 6, 32), three, cos, sin], num_heads=4, **sections)
case("m_rotary_embedding_mixed", "MRotaryEmbedding", [floats(2, 4, 6, 8), three, cos, sin], mrope_layout=1, interleaved=1,
     mrope_section=[2, 1, 1])


def windowed(name, queries, tokens, places, window, extra=(), hidden=(), **attributes):
    """Grouped attention with caches of `places` keys that hold at least the last `window` of each sequence. `tokens` are those of the sequences, the new
    ones included. What is behind the keys of a cache is anything."""
    before = np.array(tokens) - queries
    at_once = places - window + 1
    held = before - at_once * np.maximum(0, -((places - before) // at_once))
    kept = np.arange(places) < held[:, None]
    caches = [floats(len(tokens), 2, places, 16) * kept[:, None, :, None] for _ in range(2)]
    inputs = [floats(len(tokens), queries, 64), floats(len(tokens), queries, 32), floats(len(tokens), queries, 32), *caches,
              np.array(tokens, np.int32) - 1, np.array(max(tokens), np.int32)]
    inputs += [None] * (16 - len(inputs))
    for i, given in dict(extra).items():
        inputs[i] = given
    case(f"group_query_attention_window_{name}", "GroupQueryAttention", inputs, ["y", "key", "value"], num_heads=4, kv_num_heads=2,
         hidden=hidden, local_window_size=window, sliding_window_cache=1, **attributes)


caches = ("key", "value")
windowed("full", 1, [9, 7], 4, 4, wider, do_rotary=1)
windowed("becomes_full", 3, [5], 4, 4)
windowed("moves", 7, [9], 4, 4)
windowed("not_full", 1, [4], 6, 3, hidden=caches)
windowed("spare", 1, [8, 11], 6, 3, hidden=caches)
windowed("spare_moves", 4, [9], 6, 3, hidden=caches)
windowed("spare_full", 2, [10], 6, 3)


def counted(name, queries, lengths, places, bits, kind, extra=(), dims={}, **attributes):
    """Grouped attention with caches of integers, which have `places` keys."""
    before, batch = np.array(lengths) - queries, len(lengths)
    held = np.arange(places) < before[:, None]
    size, dtype = (16, np.int8) if bits == 8 else (8, np.uint8)
    caches = [numbers(dtype, batch, 2, places, size) * held[:, None, :, None].astype(dtype) for _ in range(2)]
    steps = [(random.random((1, 2, 1, 16) if kind == "PER_CHANNEL" else (1,), np.float32) + 0.5) * 4 / 2 ** bits for _ in range(2)]
    inputs = [floats(batch, queries, 64), floats(batch, queries, 32), floats(batch, queries, 32), *caches,
              np.array(lengths, np.int32) - 1, np.array(max(lengths), np.int32)]
    inputs += [None] * 5 + steps
    for i, given in dict(extra).items():
        inputs[i] = given
    case(f"group_query_attention_{bits}_bits_{name}", "GroupQueryAttention", inputs, ["y", "key", "value"], dims=dims, constants=[12, 13],
         num_heads=4, kv_num_heads=2, k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits, **attributes)


for bits in (8, 4):
    open_cache = {3: [1, 2, "past", 16 * bits // 8], 4: [1, 2, "past", 16 * bits // 8]}
    counted("channels", 1, [6], 5, bits, "PER_CHANNEL")
    counted("channels_grow", 1, [6], 5, bits, "PER_CHANNEL", wider, open_cache, do_rotary=1)
    counted("tensor", 3, [8], 5, bits, "PER_TENSOR", wider, do_rotary=1)
    counted("prompt", 7, [7], 0, bits, "PER_CHANNEL", wider, do_rotary=1)
    counted("room", 1, [6, 4], 9, bits, "PER_CHANNEL", wider, do_rotary=1)
counted("window", 1, [6], 5, 8, "PER_TENSOR", local_window_size=3, softcap=2.0)

# What onnxruntime had before the standard.
for metric in ("euclidean", "sqeuclidean"):
    case(f"distances_{metric}", "CDist", [floats(5, 7), floats(3, 7)], metric=metric)
case("expand_dims", "ExpandDims", [floats(2, 3), np.array(-1, np.int32)], constants=[1])
case("gather_nd", "GatherND", [floats(2, 3, 4), np.array([[1, 2], [0, 0]], np.int64)])
case("grid_sample", "GridSample", [floats(1, 2, 4, 5), floats(1, 3, 2, 2)], mode="bicubic", padding_mode="border", align_corners=1)
case("matmul_integer_16", "MatMulInteger16", [numbers(np.int16, 2, 3, 4), numbers(np.int16, 4, 5)])
case("pad_reflected", "Pad", [floats(3, 4), np.array([0, 2, 1, 0], np.int64)], mode="reflect")
case("pad_with_a_value", "Pad", [floats(3, 4), np.array([[1, 0, 0, 2]], np.int64), np.array([7], np.float32)])
case("range_of_one", "Range", [np.array([3], np.float32), np.array([9], np.float32), np.array([1.5], np.float32)])
case("range_plain", "Range", [np.array(2, np.int64), np.array(6, np.int64)])
case("trilu", "Trilu", [floats(2, 4, 5), np.array(1, np.int64)], upper=0)
case("unfold", "UnfoldTensor", [floats(2, 9, 3)], dim=1, size=4, step=2)
case("unique", "Unique", [np.array([2, 1, 1, 3, 4, 3], np.float32)], 3)
pairs = floats(3, 4, 2), floats(3, 4, 2)


def complex_of(x):
    return x[..., 0] + 1j * x[..., 1]


def parts(z):
    return [np.stack([z.real, z.imag], -1)]


case("complex_product", "ComplexMul", pairs, like=lambda: parts(complex_of(pairs[0]) * complex_of(pairs[1])))
case("complex_product_of_conjugate", "ComplexMulConj", pairs, like=lambda: parts(complex_of(pairs[0]) * complex_of(pairs[1]).conj()))
bytes_ = numbers(np.uint8, 2, 3, 4), numbers(np.uint8, 4)
case("products_of_bytes", "MulInteger", [bytes_[0], np.uint8(9), bytes_[1], np.uint8(200)], constants=[1, 3],
     like=lambda: [(bytes_[0].astype(np.int32) - 9) * (bytes_[1].astype(np.int32) - 200)])
case("sum_of_bytes", "ReduceSumInteger", [bytes_[0]], like=lambda: [bytes_[0].sum((0, 2), dtype=np.uint32)], axes=[0, 2], keepdims=0)
table = floats(6, 3)
case("embedding", "TorchEmbedding", [table, np.array([[4, 0], [5, 1]], np.int64)], constants=[0], like=lambda: [table[[[4, 0], [5, 1]]]])

# Sums for networks that make pictures: onnxruntime's CPU has none of them; the formulas are those of its documentation.
image, channels, past_layer = floats(2, 3, 4, 8), floats(8), floats(2, 3, 4, 8)
gelu = lambda x: x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))
swish = lambda x: x / (1 + np.exp(-x))
rows = [x.reshape(2, 12, 8) for x in (image, past_layer)]
case("bias_add", "BiasAdd", [rows[0], channels, rows[1]], constants=[1], like=lambda: [rows[0] + channels + rows[1]])
case("bias_split_gelu", "BiasSplitGelu", [rows[0], channels], constants=[1],
     like=lambda: [((rows[0] + channels)[..., :4] * gelu((rows[0] + channels)[..., 4:])).astype(np.float32)])
gate = floats(2, 12, 1)
case("gated_add", "GatedAdd", [*rows, gate], like=lambda: [rows[0] + rows[1] * gate])
case("scaled_silu", "ScaledSiLU", [rows[0]], like=lambda: [swish(rows[0] * np.float32(0.7))], alpha=0.7)
heads_bias = floats(2, 1, 8)


def softmaxed():
    e = np.exp(rows[0] + heads_bias)
    return [e / e.sum(-1, keepdims=True)]


case("bias_softmax", "BiasSoftmax", [rows[0], heads_bias], like=softmaxed, axis=2, is_inner_broadcast=1)
gamma, beta = floats(8), floats(8)


def group_normed(x, active):
    groups = x.reshape(2, 12, 2, 4)
    centred = groups - groups.mean((1, 3), keepdims=True)
    y = (centred / np.sqrt((centred ** 2).mean((1, 3), keepdims=True) + 1e-3)).reshape(x.shape) * gamma + beta
    return swish(y) if active else y


case("group_norm", "GroupNorm", [image, gamma, beta], constants=[1, 2], like=lambda: [group_normed(image, True)], groups=2,
     epsilon=1e-3, activation=1)
turned = image.transpose(0, 3, 1, 2).copy()
case("group_norm_channels_first", "GroupNorm", [turned, gamma, beta], constants=[1, 2],
     like=lambda: [group_normed(image, False).transpose(0, 3, 1, 2)], groups=2, epsilon=1e-3, activation=0, channels_last=0)
each = floats(2, 8)


def skip_normed():
    total = image + each[:, None, None] + channels
    return [group_normed(total, True), total]


case("skip_group_norm", "SkipGroupNorm", [image, gamma, beta, each, channels], 2, constants=[1, 2, 4], like=skip_normed, groups=2,
     epsilon=1e-3, activation=1)
left, right = floats(2, 7, 3), floats(2, 5, 7)
case("fused_matmul_activation", "FusedMatMulActivation", [left, right],
     like=lambda: [np.maximum(np.float32(0.37) * left.transpose(0, 2, 1) @ right.transpose(0, 2, 1), 0)], transA=1, transB=1, alpha=0.37,
     activation="Relu")
matrix = floats(8, 5)
fast = lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))
case("gemm_fast_gelu", "GemmFastGelu", [rows[0], matrix, matrix[0]], constants=[1, 2], like=lambda: [fast(rows[0] @ matrix + matrix[0]).astype(np.float32)])

# Mixtures of experts: onnxruntime's CPU has swiglu only with both matrices in one, column by column.
tokens, scores = floats(2, 5, 16), floats(10, 4)
both, down = floats(4, 24, 16) / 4, floats(4, 16, 12) / 4
both_bias, down_bias = floats(4, 24), floats(4, 16)
swiglu = dict(k=2, activation_type="swiglu", activation_alpha=1.702, activation_beta=1.0, swiglu_limit=1.5)


def mixture(name, inputs, op="MoE", **attributes):
    case(name, op, inputs, constants=[i for i, x in enumerate(inputs) if i > 1 and x is not None and x.shape[0] != 10], **attributes)


mixture("moe", [tokens, scores, both, both_bias, down, down_bias], swiglu_fusion=1, **swiglu)
mixture("moe_normalised", [tokens, scores, both, both_bias, down, None], swiglu_fusion=1, normalize_routing_weights=1, **swiglu)
mixture("moe_one", [tokens[0], scores[:5], both, None, down, down_bias], swiglu_fusion=1, activation_type="swiglu", k=1)
up, down24 = floats(4, 24, 16) / 4, floats(4, 16, 24) / 4
for activation in ("relu", "gelu", "silu", "identity"):
    mixture(f"moe_{activation}", [tokens, scores, up, both_bias, down24, down_bias], k=3, activation_type=activation)


def interleaved():
    inputs = [tokens, scores, both, both_bias, down, down_bias]
    return [case("", "MoE", inputs, swiglu_fusion=1, **swiglu)[0]]


halves = np.concatenate([both[:, 0::2], both[:, 1::2]], 1), np.concatenate([both_bias[:, 0::2], both_bias[:, 1::2]], 1)
case("moe_halves", "MoE", [tokens, scores, halves[0], halves[1], down, down_bias], constants=[2, 3, 4, 5], like=interleaved,
     swiglu_fusion=2, **swiglu)
case("moe_three_matrices", "MoE", [tokens, scores, both[:, 0::2], both_bias[:, 0::2], down, down_bias, both[:, 1::2],
     both_bias[:, 1::2]], constants=[2, 3, 4, 5, 6, 7], like=interleaved, **swiglu)

tokens = floats(2, 5, 32)
for bits, block, zeros in ((4, 32, False), (4, 16, True), (4, None, False), (8, None, True)):
    scale = lambda rows, columns: random.random((4, rows, *([columns // block] if block else [])), np.float32) / 2 ** bits
    packed = lambda rows, columns: numbers(np.uint8, 4, rows, columns * bits // 8)
    point = lambda rows, columns: numbers(np.uint8, 4, rows, *([columns // block * bits // 8] if block else [])) if zeros else None
    inputs = [tokens, scores, packed(64, 32), scale(64, 32), floats(4, 64), packed(32, 32), scale(32, 32), None]
    inputs += [None] * 3 + [point(64, 32), point(32, 32)]
    mixture(f"qmoe_{bits}_bits_{block or 'rows'}{'_zero_points' if zeros else ''}", inputs, "QMoE", expert_weight_bits=bits, swiglu_fusion=1,
            **dict(block_size=block) if block else {}, **swiglu)
shares = random.random((10, 4), np.float32)
for normalised in (0, 1):
    mixture(f"qmoe_shares_{normalised}", inputs[:11] + [None] * 3 + [shares], "QMoE", expert_weight_bits=8, swiglu_fusion=1,
            normalize_routing_weights=normalised, **swiglu)
cases.write()
