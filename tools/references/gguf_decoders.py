"""Small decoders of transformers with random weights, written as GGUF files, and what transformers makes of them step by step:
`tests/references/gguf.zip`.

    python -m pip install -r tools/references/gguf_decoders.txt
    python tools/references/gguf_decoders.py

Tensors get the names and forms that llama.cpp's `convert_hf_to_gguf.py` gives them: queries and keys of Llama with the numbers of a
pair beside each other, norms of Gemma larger by one. What a packed type cannot hold is lost before transformers computes.
"""

import pathlib
import tempfile

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type

from common import Cases

SMALL = dict(
    vocab_size=32,
    hidden_size=16,
    intermediate_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    max_position_embeddings=64,
    tie_word_embeddings=True,
    pad_token_id=0,
)
WINDOWS = dict(sliding_window=4, query_pre_attn_scalar=8)

# Of 32 columns, so that a row is a block.
BLOCKS = {**SMALL, "vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "head_dim": 16, "tie_word_embeddings": False}

# Of 256 columns where weights are in blocks of 256.
SUPERS = {**BLOCKS, "hidden_size": 256, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 32, "tie_word_embeddings": True}

LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16, rope_theta=10000.0)

LONG = [1.0, 1.5, 2.0, 4.0]

# Where each packed type has its half-precision numbers.
HALVES = {
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
    Type.TQ1_0: [52],
    Type.TQ2_0: [64],
    Type.IQ1_S: [0],
    Type.IQ1_M: [],
    Type.IQ2_XXS: [0],
    Type.IQ2_XS: [0],
    Type.IQ2_S: [0],
    Type.IQ3_XXS: [0],
    Type.IQ3_S: [0],
    Type.MXFP4: [],
}

# The largest number that a packed one stands for, where its scale is 1.
LARGEST = {Type.Q2_K: 45, Type.Q3_K: 128, Type.Q4_K: 945, Type.Q5_K: 1953, Type.Q6_K: 4096, Type.IQ4_XS: 4064, Type.IQ4_NL: 127}


def random_blocks(random, kind, shape):
    """Bytes of a matrix of any numbers of the type, with scales that make the largest of them 0.2 or so."""
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (shape[0], shape[1] // numbers, size), dtype=np.uint8)
    for at in HALVES[kind]:
        scales = random.uniform(0.1, 0.3, blocks.shape[:2]) / LARGEST.get(kind, 15)
        blocks[..., at : at + 2] = scales.astype(np.float16)[..., None].view(np.uint8)
    if kind == Type.IQ1_M:
        # The highest four bits of each of the last four numbers are the scale, a half.
        scales = random.uniform(0.1, 0.3, blocks.shape[:2]).astype(np.float16).view(np.uint16)
        for i in range(4):
            blocks[..., 49 + 2 * i] = blocks[..., 49 + 2 * i] & 15 | (scales >> 4 * i & 15) << 4
    if kind == Type.MXFP4:
        blocks[..., 0] = random.integers(121, 125, blocks.shape[:2])
    return blocks.reshape(shape[0], -1)


def packed(random, kind, matrix):
    """The bytes of a matrix in a type, and the numbers that they stand for."""
    if kind in (Type.F32, Type.F16, Type.BF16):
        data = gguf.quants.quantize(matrix, kind)
    elif kind in (Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.MXFP4):
        data = gguf.quants.quantize(matrix, kind)
    else:
        data = random_blocks(random, kind, matrix.shape)
    return data, gguf.quants.dequantize(data, kind).reshape(matrix.shape)


class Decoder:
    """A model of transformers, and how its tensors stand in a file. `types` are those of elements, by the ends of tensors' names in the
    file; the first that fits holds."""

    def __init__(self, arch, config, architecture, sizes, types, neighbours=False, more_by_one=False):
        self.arch = arch
        self.config = getattr(transformers, config)(**sizes)
        self.config._attn_implementation = "eager"
        torch.manual_seed(5)
        self.model = getattr(transformers, architecture)(self.config).eval()
        self.head_dim = getattr(self.config, "head_dim", self.config.hidden_size // self.config.num_attention_heads)
        self.types = types
        self.neighbours = neighbours
        self.more_by_one = more_by_one

    def heads(self, name):
        """The heads whose pairs are brought beside each other, where the tensor has such."""
        c = self.config
        if not self.neighbours or "self_attn" not in name:
            return None
        return {"q_proj": c.num_attention_heads, "k_proj": c.num_key_value_heads}.get(name.split(".")[-2])

    def stored(self, name, tensor):
        """A tensor as a file has it."""
        if heads := self.heads(name):
            return tensor.reshape(heads, 2, -1, *tensor.shape[1:]).swapaxes(1, 2).reshape(tensor.shape)
        if self.more_by_one and name.endswith("norm.weight"):
            return tensor + 1
        if name.endswith("conv.conv.weight"):
            return tensor[:, 0]
        return tensor

    def loaded(self, name, tensor, shape):
        """A tensor of a file as transformers has it."""
        if heads := self.heads(name):
            return tensor.reshape(heads, -1, 2, *tensor.shape[1:]).swapaxes(1, 2).reshape(shape)
        if self.more_by_one and name.endswith("norm.weight"):
            return tensor - 1
        return tensor.reshape(shape)

    def write(self, path, keys):
        """Gives the model random weights, and writes them with the keys: calls of methods of `GGUFWriter`."""
        random = np.random.default_rng(17)
        c = self.config
        writer = gguf.GGUFWriter(path, self.arch)
        writer.add_context_length(c.max_position_embeddings)
        writer.add_embedding_length(c.hidden_size)
        writer.add_block_count(c.num_hidden_layers)
        writer.add_feed_forward_length(c.intermediate_size)
        writer.add_head_count(c.num_attention_heads)
        writer.add_key_length(self.head_dim)
        writer.add_value_length(self.head_dim)
        self.add_epsilon(writer)
        for add, value in keys:
            getattr(writer, add)(value)
        arch = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[self.arch]
        names = gguf.get_tensor_name_map(arch, c.num_hidden_layers)
        state = self.model.state_dict()
        for name, parameter in state.items():
            # Files have neither a head that is the embedding nor what classifies texts.
            if name == "lm_head.weight" and c.tie_word_embeddings or name.startswith("pooler."):
                continue
            name_in_file = names.get_name(name, (".weight", ".bias"))
            assert name_in_file, name
            shape = tuple(parameter.shape)
            if len(shape) == 1:
                made = random.normal(0, 0.1, shape) + (name.lower().endswith("norm.weight") and not self.more_by_one)
            else:
                made = random.normal(0, shape[-1] ** -0.5, shape)
            stored = np.ascontiguousarray(self.stored(name, made.astype(np.float32)))
            kind = Type.F32
            if len(shape) == 2:
                kind = next(kind for end, kind in self.types if name_in_file.endswith(end))
            data, stands_for = packed(random, kind, stored)
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(self.loaded(name, stands_for, shape))))
            if kind in (Type.F32, Type.F16):
                writer.add_tensor(name_in_file, data)
            else:
                writer.add_tensor(name_in_file, data, raw_dtype=kind)
        for name, numbers in self.factors():
            writer.add_tensor(name, np.array(numbers, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def add_epsilon(self, writer):
        c = self.config
        writer.add_layer_norm_rms_eps(getattr(c, "rms_norm_eps", None) or c.norm_eps)

    def factors(self):
        """What slows turning down, by tensors' names."""
        rope = getattr(self.config, "rope_parameters", None) or {}
        if rope.get("rope_type") == "llama3":
            usual = rope["rope_theta"] ** (-np.arange(0, self.config.head_dim, 2) / self.config.head_dim)
            yield "rope_freqs.weight", usual / self.model.model.rotary_emb.inv_freq.numpy()
        if rope.get("rope_type") == "longrope":
            yield "rope_factors_long.weight", rope["long_factor"]
            yield "rope_factors_short.weight", rope["short_factor"]

    def steps(self, counts):
        """The words and the caches that each step takes, and what it gives."""
        random = np.random.default_rng(11)
        words = random.integers(1, self.config.vocab_size, sum(counts))
        before, sets, caches = 0, [], self.caches(None)
        for count in counts:
            total = before + count
            cache = self.empty_cache()
            with torch.no_grad():
                made = self.model(torch.from_numpy(words[None, :total]), cache=cache, use_cache=True)
            new = self.caches(cache)
            inputs = [words[None, before:total], np.ones((1, total), np.int64), *caches]
            sets.append((inputs, [made.logits[:, before:].numpy(), *new]))
            before, caches = total, new
        return sets

    def empty_cache(self):
        """A cache that keeps all words, whatever windows the model has."""
        if "conv" in (getattr(self.config, "layer_types", None) or []):
            return transformers.DynamicCache(config=self.config)
        return transformers.DynamicCache()

    def caches(self, cache):
        """Keys and values of each layer, `[1, heads, words, size]`; of a convolution what the next words read, `[1, width, kernel - 1]`."""
        c, all_of_them = self.config, []
        kinds = getattr(c, "layer_types", None) or [""] * c.num_hidden_layers
        for layer, kind in enumerate(kinds):
            if kind == "conv":
                state = np.zeros((1, c.hidden_size, c.conv_L_cache), np.float32)
                if cache is not None:
                    state = cache.get_conv_state(layer, state_idx=0).numpy()
                all_of_them.append(np.ascontiguousarray(state[..., 1:]))
                continue
            if cache is None:
                all_of_them += [np.zeros((1, c.num_key_value_heads, 0, self.head_dim), np.float32)] * 2
                continue
            keys, values = (x.numpy() for x in (cache.layers[layer].keys, cache.layers[layer].values))
            if self.neighbours:
                keys = keys.reshape(*keys.shape[:3], 2, -1).swapaxes(3, 4).reshape(keys.shape)
            all_of_them += [keys, values]
        return all_of_them


class Encoder(Decoder):
    """A model that makes vectors of two texts, of which the second is shorter."""

    def add_epsilon(self, writer):
        writer.add_layer_norm_eps(self.config.layer_norm_eps)

    def steps(self, _):
        words = np.random.default_rng(11).integers(1, self.config.vocab_size, (2, 6))
        mask = np.array([[1] * 6, [1] * 4 + [0] * 2])
        with torch.no_grad():
            made = self.model(torch.from_numpy(words), attention_mask=torch.from_numpy(mask)).last_hidden_state.numpy()
        mean = (made * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return [([words, mask], [made, mean.astype(np.float32)])]


def llama(sizes, types):
    return Decoder("llama", "LlamaConfig", "LlamaForCausalLM", sizes, types, neighbours=True)


HEADS = [("add_head_count_kv", 1), ("add_rope_dimension_count", 8)]
HEADS_OF_16 = [("add_head_count_kv", 1), ("add_rope_dimension_count", 16)]
F16 = [("weight", Type.F16)]


def encoder():
    """An encoder, and further keys of its file."""
    sizes = dict(vocab_size=32, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=24)
    model = Encoder("bert", "BertConfig", "BertModel", sizes, F16)
    return model, [("add_pooling_type", gguf.PoolingType.MEAN), ("add_causal_attention", False)]


def decoders():
    """Names, decoders, further keys of their files, and the tolerance; none where products with packed weights may round."""
    near = dict(rtol=1e-4, atol=1e-5)
    yield "llama-f32", llama({**SMALL, "num_hidden_layers": 1, "tie_word_embeddings": False}, [("weight", Type.F32)]), HEADS, near
    yield "llama-bf16", llama({**SMALL, "rope_parameters": LLAMA3}, [("weight", Type.BF16)]), HEADS, near
    kinds = [
        ("token_embd.weight", Type.Q5_1),
        ("output.weight", Type.Q8_0),
        ("0.attn_q.weight", Type.Q4_0),
        ("0.attn_k.weight", Type.Q4_1),
        ("0.attn_v.weight", Type.Q5_0),
        ("attn_output.weight", Type.Q5_1),
        ("0.ffn_gate.weight", Type.IQ4_NL),
        ("0.ffn_up.weight", Type.MXFP4),
        ("weight", Type.Q4_0),
    ]
    yield "llama-blocks", llama(BLOCKS, kinds), HEADS_OF_16, None
    kinds = [
        ("token_embd.weight", Type.Q4_K),
        ("attn_q.weight", Type.Q2_K),
        ("attn_k.weight", Type.Q3_K),
        ("attn_v.weight", Type.Q6_K),
        ("attn_output.weight", Type.Q8_0),
        ("ffn_gate.weight", Type.Q5_K),
        ("ffn_up.weight", Type.IQ4_XS),
        ("weight", Type.Q4_1),
    ]
    yield "llama-supers", llama(SUPERS, kinds), HEADS_OF_16, None
    yield "qwen2-f16", Decoder("qwen2", "Qwen2Config", "Qwen2ForCausalLM", SMALL, F16), HEADS[:1], near
    yield "qwen3-f16", Decoder("qwen3", "Qwen3Config", "Qwen3ForCausalLM", SMALL, F16), HEADS[:1], near
    smollm3 = {**SMALL, "num_hidden_layers": 4}
    smollm3 = Decoder("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", smollm3, F16, neighbours=True)
    yield "smollm3-f16", smollm3, [*HEADS, ("add_rope_freq_base", smollm3.config.rope_parameters["rope_theta"])], near
    sizes = {key: value for key, value in SMALL.items() if key != "head_dim"}
    lfm2 = {**sizes, "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False}
    keys = [("add_head_count_kv", [0, 1, 0]), ("add_rope_freq_base", 1e6), ("add_shortconv_l_cache", 3)]
    yield "lfm2-f16", Decoder("lfm2", "Lfm2Config", "Lfm2ForCausalLM", lfm2, F16), keys, near
    gemma = {**SMALL, "hidden_activation": "gelu_pytorch_tanh"}
    yield "gemma-f16", Decoder("gemma", "GemmaConfig", "GemmaForCausalLM", gemma, F16, more_by_one=True), HEADS[:1], near
    window = ("add_sliding_window", 4)
    gemma2 = Decoder("gemma2", "Gemma2Config", "Gemma2ForCausalLM", {**SMALL, **WINDOWS}, F16, more_by_one=True)
    keys = [*HEADS[:1], window, ("add_attn_logit_softcapping", 50.0), ("add_final_logit_softcapping", 30.0)]
    yield "gemma2-f16", gemma2, keys, near
    rope = {
        "full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1e6),
        "sliding_attention": dict(rope_type="default", rope_theta=10000.0),
    }
    gemma3 = {**SMALL, **WINDOWS, "num_hidden_layers": 6, "rope_parameters": rope}
    gemma3 = Decoder("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", gemma3, F16, more_by_one=True)
    keys = [*HEADS[:1], window, ("add_rope_freq_base", 1e6), ("add_rope_scaling_type", gguf.RopeScalingType.LINEAR), ("add_rope_scaling_factor", 8.0)]
    yield "gemma3-f16", gemma3, keys, near
    long = dict(rope_type="longrope", short_factor=[1.0, 1.25, 1.5, 2.0], long_factor=LONG, rope_theta=10000.0, original_max_position_embeddings=32)
    phi3 = {**SMALL, "tie_word_embeddings": False, "rope_parameters": long, "original_max_position_embeddings": 32, "sliding_window": 6}
    phi3 = Decoder("phi3", "Phi3Config", "Phi3ForCausalLM", phi3, F16)
    stretch = float(np.sqrt(1 + np.log(64 / 32) / np.log(32)))
    keys = [
        *HEADS,
        ("add_sliding_window", 6),
        ("add_rope_scaling_type", gguf.RopeScalingType.LONGROPE),
        ("add_rope_scaling_orig_ctx_len", 32),
        ("add_rope_scaling_attn_factors", stretch),
    ]
    yield "phi3-f16", phi3, keys, near


def rounded(module, inputs):
    """The left matrix of a product, each block of 32 columns rounded to a 127th of its largest magnitude, as ggml does it."""
    x = inputs[0]
    blocks = x.reshape(*x.shape[:-1], -1, 32)
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    return ((blocks / scale.clamp(min=1e-30)).round() * scale).reshape(x.shape)


def difference(decoder, sets, counts):
    """The most by which results differ where products round."""
    linear = [module for module in decoder.model.modules() if isinstance(module, torch.nn.Linear)]
    hooks = [module.register_forward_pre_hook(rounded) for module in linear]
    others = decoder.steps(counts)
    for hook in hooks:
        hook.remove()
    pairs = [pair for (_, a), (_, b) in zip(sets, others) for pair in zip(a, b)]
    return max(float(np.abs(a - b).max()) for a, b in pairs)


STEPS = [6, 1]


def main():
    cases = Cases("gguf")
    with tempfile.TemporaryDirectory() as folder:
        for name, decoder, keys, tolerance in decoders():
            path = pathlib.Path(folder) / f"{name}.gguf"
            decoder.write(path, keys)
            sets = decoder.steps(STEPS)
            # The caches of a step are what rounded products made in those before: errors of two runs meet.
            tolerance = tolerance or dict(rtol=0.0, atol=round(2 * difference(decoder, sets, STEPS), 3))
            cases.add_sets(name, "gguf", path.read_bytes(), sets, **tolerance)
            print(name, path.stat().st_size, tolerance)
        model, keys = encoder()
        path = pathlib.Path(folder) / "bert-f16.gguf"
        model.write(path, keys)
        cases.add_sets("bert-f16", "gguf", path.read_bytes(), model.steps(None), rtol=1e-4, atol=1e-5)
    cases.write()


if __name__ == "__main__":
    main()
