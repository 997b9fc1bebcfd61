"""What unit tests hold GGUF files against: `tests/references/ggml.zip`.

    python -m pip install -r tools/references/gguf_decoders.txt
    python tools/references/ggml.py

Blocks of every packed type, with the numbers that the package `gguf` makes of them. A decoder with a tokenizer of each kind in its
file: one trained by SentencePiece, and one that joins bytes, trained by `tokenizers`. With each, texts, the words that these packages
make of them, and what transformers goes on with, the best word always.
"""

import json
import pathlib
import tempfile

import gguf
import numpy as np
import sentencepiece
import tokenizers
import torch

from common import ROOT, Cases
from gguf_decoders import F16, HALVES, HEADS, SMALL, Decoder, Type, llama, random_blocks

DOCUMENTS = sorted((ROOT.parents[1] / "docs").glob("*.md"))

TEXTS = [
    "Kilim runs networks.",
    "  two  spaces, a tab\tand\n\nlines ",
    "Größe 12345 and 3.14, it's I'LL \u00e9\u4e2d\U0001f600",
    "",
]

TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"


def write_blocks(cases):
    """Two rows of three blocks of each packed type."""
    for kind in HALVES:
        random = np.random.default_rng(int(kind))
        numbers = gguf.GGML_QUANT_SIZES[kind][0]
        blocks = random_blocks(random, kind, (2, 3 * numbers))
        # A block whose scale is 0 stands for its offset alone.
        if kind in (Type.Q4_1, Type.Q5_1, Type.Q4_K):
            blocks[1, :2] = 0
        values = gguf.quants.dequantize(blocks, kind)
        case = {"name": kind.name, "kind": "ggml", "path": kind.name}
        cases.add_files(case, {"blocks.bin": blocks.tobytes(), "numbers.bin": values.astype("<f4").tobytes()})


def pieces(folder):
    """Words of SentencePiece: keys of a file, what makes words of a text, and what makes text of words."""
    model = str(pathlib.Path(folder) / "pieces")
    sentencepiece.SentencePieceTrainer.train(
        input=[str(file) for file in DOCUMENTS],
        model_prefix=model,
        model_type="bpe",
        vocab_size=400,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        minloglevel=2,
    )
    words = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
    ids = range(words.vocab_size())

    def kind(i):
        is_kind = [words.is_unknown(i), words.is_control(i), words.is_byte(i)]
        kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.BYTE]
        return next((kind for kind, yes in zip(kinds, is_kind) if yes), gguf.TokenType.NORMAL)

    keys = [
        ("add_tokenizer_model", "llama"),
        ("add_tokenizer_pre", "default"),
        ("add_token_list", [words.id_to_piece(i) for i in ids]),
        ("add_token_scores", [words.get_score(i) for i in ids]),
        ("add_token_types", [kind(i) for i in ids]),
        ("add_bos_token_id", words.bos_id()),
        ("add_eos_token_id", words.eos_id()),
        ("add_unk_token_id", words.unk_id()),
    ]
    return keys, lambda text: [words.bos_id(), *words.encode(text)], words.decode, len(ids)


def joined(_):
    """Words that join bytes, split as Llama 3 splits texts."""
    split = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    words = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=True))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(split), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    words.decoder = tokenizers.decoders.ByteLevel()
    special = ["<|begin|>", "<|end_of_text|>", "<|eot_id|>"]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words.train([str(file) for file in DOCUMENTS], trainer)
    begin = words.token_to_id("<|begin|>")
    ids = range(words.get_vocab_size())
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in json.loads(words.to_str())["model"]["merges"]]
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    keys = [
        ("add_tokenizer_model", "gpt2"),
        ("add_tokenizer_pre", "llama-bpe"),
        ("add_token_list", [words.id_to_token(i) for i in ids]),
        ("add_token_types", [control if words.id_to_token(i) in special else normal for i in ids]),
        ("add_token_merges", merges),
        ("add_bos_token_id", begin),
        ("add_eos_token_id", words.token_to_id("<|end_of_text|>")),
    ]
    return keys, lambda text: [begin, *words.encode(text).ids], words.decode, len(ids)


def goes_on(decoder, words, count):
    """The words that follow, the best one always."""
    made = list(words)
    with torch.no_grad():
        for _ in range(count):
            logits = decoder.model(torch.tensor([made]), use_cache=False).logits
            made.append(int(logits[0, -1].argmax()))
    return made[len(words) :]


def write_words(cases):
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("words-pieces", pieces), ("words-joined", joined)):
            keys, encode, decode, count = make(folder)
            decoder: Decoder = llama({**SMALL, "vocab_size": count, "num_hidden_layers": 1}, F16)
            path = pathlib.Path(folder) / f"{name}.gguf"
            decoder.write(path, [*HEADS, *keys, ("add_chat_template", TEMPLATE)])
            words = goes_on(decoder, encode(TEXTS[0]), 12)
            told = {"texts": [{"text": text, "words": encode(text)} for text in TEXTS], "goes_on": words, "says": decode(words)}
            case = {"name": name, "kind": "ggml", "path": name}
            told = json.dumps(told, indent=1).encode()
            cases.add_files(case, {"model.gguf": path.read_bytes(), "words.json": told})


def main():
    cases = Cases("ggml")
    write_blocks(cases)
    write_words(cases)
    cases.write()


if __name__ == "__main__":
    main()
