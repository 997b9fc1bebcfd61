"""Sizes for the open dimensions of models, by file: cases, each a size for every dimension by its place."""

PICTURES = [{0: 1, 2: 96, 3: 160}, {0: 2, 2: 64, 3: 224}]
LINES = [{3: 101}, {3: 64}]
FRAMES = [{0: 1, 2: 100}, {0: 1, 2: 37}]
TOKENS = [{0: 1, 1: 17}, {0: 3, 1: 33}]
SIZES = {
    "320n.onnx": [{0: 1, 2: 320, 3: 320}, {0: 2, 2: 160, 3: 224}],
    "bilstm.int8.onnx": TOKENS,
    "ch_PP-OCRv4_det_infer.onnx": PICTURES,
    "ch_PP-OCRv4_rec_infer.onnx": [{0: 1, 2: 48, 3: 320}, {0: 3, 2: 48, 3: 101}],
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": [{0: 1, 2: 48, 3: 192}, {0: 5, 2: 48, 3: 192}],
    "common.onnx": LINES,
    "common_old.onnx": LINES,
    "melspectrogram.tflite": [{0: 1, 1: 1280}, {0: 1, 1: 3001}],
    "plcmos_v2.onnx": [{0: 1, 2: 30}, {0: 1, 2: 101}],
    "rawi.int8.onnx": TOKENS,
    "rawi_ensemble.int8.onnx": TOKENS,
    "rawi_v2.int8.onnx": TOKENS,
    "rawi_v3.int8.onnx": TOKENS,
    "Run_1663829550_Stage_0.onnx": FRAMES,
    "Run_1663915512_Stage_0.onnx": FRAMES,
    "Run_1668423760_Stage_0.onnx": FRAMES,
    "voicefilter_lite.int8.onnx": [{0: 1, 1: 1}],
}
OTHERS = [dict.fromkeys(range(8), 1), dict.fromkeys(range(8), 3)]


def cases(name, is_open):
    """One case for a model without open dimensions."""
    return SIZES.get(name, OTHERS)[: None if is_open else 1]
