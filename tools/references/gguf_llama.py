"""Compares the decoders of `gguf_decoders.py` with llama.cpp: its logarithms of probabilities behind five words with those of transformers.

    python -m pip install -r tools/references/gguf_decoders.txt xllamacpp==2026.10.11549
    python tools/references/gguf_llama.py

llama.cpp keeps caches in half precision, and rounds what it multiplies with packed weights: results differ by 0.01 and 0.1 at most. The
windows of Phi 3, which it leaves away, are longer than the words.
"""

import pathlib
import tempfile

import gguf
import torch
import xllamacpp

from gguf_decoders import decoders

WORDS = [4, 7, 9, 11, 5]
# The most that it tells of.
SHOWN = 20


def vocabulary(size):
    """Keys of a tokenizer of so many words, which llama.cpp does not read a file without."""
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL] + [gguf.TokenType.NORMAL] * (size - 3)
    return [
        ("add_tokenizer_model", "llama"),
        ("add_tokenizer_pre", "default"),
        ("add_token_list", ["<unk>", "<s>", "</s>", *(f"word{i}" for i in range(3, size))]),
        ("add_token_scores", [0.0] * size),
        ("add_token_types", kinds),
    ]


def by_llama(path, context):
    """Logarithms of the largest probabilities by words."""
    params = xllamacpp.CommonParams()
    params.model.path, params.n_ctx, params.n_gpu_layers, params.warmup = str(path), context, 0, False
    told = xllamacpp.Server(params).handle_completions({"prompt": WORDS, "max_tokens": 1, "temperature": 0, "logprobs": SHOWN})
    return {word["id"]: word["logprob"] for word in told["choices"][0]["logprobs"]["content"][0]["top_logprobs"]}


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, decoder, keys, tolerance in decoders():
            path = pathlib.Path(folder) / f"{name}.gguf"
            decoder.write(path, [*keys, *vocabulary(decoder.config.vocab_size)])
            with torch.no_grad():
                logits = decoder.model(torch.tensor([WORDS]), use_cache=False).logits[0, -1]
            own = torch.log_softmax(logits, -1)
            llama = by_llama(path, context=32)
            off = max(abs(number - float(own[word])) for word, number in llama.items())
            most = 0.1 if tolerance is None else 0.03
            print(f"{name}: {len(llama)} words, at most {off:.4f} off{'' if off < most else ', WRONG'}")


if __name__ == "__main__":
    main()
