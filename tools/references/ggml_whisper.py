"""A Whisper model in the file of whisper.cpp: `tests/references/whisper.zip`.

    python -m pip install -r tools/references/gguf_decoders.txt
    python tools/references/ggml_whisper.py

The weights are those of the trained model in `tests/references/speech.zip`, whose index says what transformers hears with it. The words that are no
text stand in the order of OpenAI's tokenizer, where several are that the small model lacks: their rows are that of French, which it has never heard.
Files differ in the types of their elements: floats of 32 bits alone; and as whisper.cpp's programs write them, matrices in halves, those whose rows are
whole blocks packed. `encoder.conv1.bias` and its like stand in two dimensions, as there.
"""

import json
import re
import struct
import zipfile

import gguf
import numpy as np
import onnx
from onnx import numpy_helper

from common import ROOT, Cases

# What a tensor of transformers is called in a file: parts of its name, in this order.
NAMES = [
    (r"^model\.", ""),
    (r"_merged_\d$", ""),
    (r"\.layers\.", ".blocks."),
    (r"self_attn_layer_norm", "attn_ln"),
    (r"encoder_attn_layer_norm", "cross_attn_ln"),
    (r"final_layer_norm", "mlp_ln"),
    (r"self_attn", "attn"),
    (r"encoder_attn", "cross_attn"),
    (r"q_proj", "query"),
    (r"k_proj", "key"),
    (r"v_proj", "value"),
    (r"out_proj", "out"),
    (r"fc1", "mlp.0"),
    (r"fc2", "mlp.2"),
    (r"^encoder\.layer_norm", "encoder.ln_post"),
    (r"^decoder\.layer_norm", "decoder.ln"),
    (r"embed_tokens", "token_embedding"),
    (r"embed_positions\.weight", "positional_embedding"),
]

TEXT = 300
# The languages of the small model, and of how many there are places here: OpenAI's order begins en, zh, de, es, ru, ko, fr.
LANGUAGES = 7
SMALL = {"end": 300, "start": 301, "en": 302, "de": 303, "fr": 304, "translate": 305, "transcribe": 306, "no times": 307}
PLACES = {"end": 300, "start": 301, "en": 302, "de": 304, "fr": 308, "translate": 309, "transcribe": 310, "no times": 314}
FIRST_TIME, TIMES = 308, 101
SIZE = PLACES["no times"] + 1 + TIMES


def named(name):
    for pattern, to in NAMES:
        name = re.sub(pattern, to, name)
    return name


def tensors(model, part):
    """The weights of an ONNX file of Optimum, as transformers has them, under the names of whisper.cpp."""
    found = {}
    initial = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for name, array in initial.items():
        if not name.startswith("onnx::"):
            found[named(name if name.startswith("model.") else f"{part}.{name}")] = array
        elif name.startswith("onnx::Add"):
            found[f"{part}.positional_embedding"] = array
    graphs = [model.graph] + [a.g for node in model.graph.node for a in node.attribute if a.name == "else_branch"]
    for node in (node for graph in graphs for node in graph.node):
        if node.op_type == "MatMul" and node.input[1].startswith("onnx::"):
            path = re.sub(r"^/(model/decoder/)?|/MatMul$", "", node.name).replace("/", ".")
            found[named(f"{part}.{path}.weight")] = initial[node.input[1]].T
    return found


def rows(embedding):
    """The rows of words, where OpenAI's tokenizer would have them."""
    moved = np.repeat(embedding[SMALL["fr"]][None], SIZE, axis=0)
    moved[:TEXT] = embedding[:TEXT]
    for name, place in PLACES.items():
        moved[place] = embedding[SMALL[name]]
    moved[SIZE - TIMES :] = embedding[FIRST_TIME : FIRST_TIME + TIMES]
    return moved


def stored(name, array, packs):
    """The number of a type, and the bytes of a tensor."""
    kind = gguf.GGMLQuantizationType
    if packs and name.endswith("mlp.2.weight"):
        of = kind.Q5_0 if name.startswith("encoder") else kind.Q8_0
        return of, gguf.quants.quantize(np.ascontiguousarray(array), of).tobytes()
    kept = array.ndim < 2 or array.shape[-1] == 1 or name.endswith("positional_embedding")
    if packs and not kept:
        return kind.F16, array.astype("<f2").tobytes()
    return kind.F32, array.astype("<f4").tobytes()


def file(weights, config, filters, words, packs):
    of = lambda name: config[name]
    sizes = [SIZE, of("max_source_positions"), of("d_model"), of("encoder_attention_heads"), of("encoder_layers")]
    sizes += [of("max_target_positions"), of("d_model"), of("decoder_attention_heads"), of("decoder_layers"), of("num_mel_bins"), int(packs)]
    out = [struct.pack("<I11i", 0x67676D6C, *sizes), struct.pack("<2i", *filters.shape), filters.astype("<f4").tobytes()]
    out.append(struct.pack("<i", len(words)))
    out += [struct.pack("<i", len(word)) + word for word in words]
    for name, array in sorted(weights.items()):
        if name in ("encoder.conv1.bias", "encoder.conv2.bias"):
            array = array[:, None]
        kind, data = stored(name, array, packs)
        out.append(struct.pack(f"<3i{array.ndim}i", array.ndim, len(name), kind, *reversed(array.shape)) + name.encode() + data)
    return b"".join(out)


def bytes_of():
    """The bytes that the characters of a tokenizer stand for (GPT-2's `bytes_to_unicode`)."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in shown]
    return {chr(byte): byte for byte in shown} | {chr(256 + i): byte for i, byte in enumerate(others)}


def main():
    archive = zipfile.ZipFile(ROOT / "speech.zip")
    read = lambda name: archive.read(f"whisper/{name}")
    config = json.loads(read("config.json"))
    weights = {}
    for part, name in (("encoder", "encoder_model.onnx"), ("decoder", "decoder_model_merged.onnx")):
        weights |= tensors(onnx.load_from_string(read(name)), part)
    name = "decoder.token_embedding.weight"
    weights[name] = rows(weights[name])
    vocabulary = json.loads(read("tokenizer.json"))["model"]["vocab"]
    to_byte = bytes_of()
    texts = sorted((number, word) for word, number in vocabulary.items() if number < TEXT)
    words = [bytes(to_byte[letter] for letter in word) for _, word in texts]
    assert len(words) == TEXT
    # No reader of this file looks into the filters, which follow from their number.
    filters = np.zeros((config["num_mel_bins"], 201))
    cases = Cases("whisper")
    for name, packs in (("floats", False), ("packed", True)):
        case = {"name": name, "kind": "whisper", "path": name}
        cases.add_files(case, {"ggml-model.bin": file(weights, config, filters, words, packs)})
    cases.write()


if __name__ == "__main__":
    main()
