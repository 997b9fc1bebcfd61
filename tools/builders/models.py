"""The models that `build.py` makes: architectures and sizes of transformers, and what the builder makes of them.

Sizes are multiples of the builder's blocks of 32 weights. The small ones fit into a few kB at 4 bits; `llama135m` has
the sizes of SmolLM2-135M.
"""

from dataclasses import dataclass, field

SMALL = dict(
    vocab_size=384,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=16,
    max_position_embeddings=128,
    tie_word_embeddings=True,
)

# Of two layers one looks back on a few words only. The builder does not read what transformers 5 says of Gemma 3's angles.
WINDOWS = dict(sliding_window=8, layer_types=["sliding_attention", "full_attention"])

EXPERTS = dict(num_experts_per_tok=2)

LLAMA_135M = dict(
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    head_dim=64,
    max_position_embeddings=2048,
    tie_word_embeddings=True,
)


@dataclass
class Model:
    """`config` and `architecture` are names of classes of transformers, `sizes` what the config is made with."""

    config: str
    architecture: str
    sizes: dict
    precision: str
    options: list = field(default_factory=list)


def llama(precision, *options, **sizes):
    return Model("LlamaConfig", "LlamaForCausalLM", {**SMALL, **sizes}, precision, list(options))


MODELS = {
    "llama-int4": llama("int4"),
    "llama-int4-unshared": llama("int4", tie_word_embeddings=False),
    "llama-int4-asymmetric": llama("int4", "is_symmetric=false", tie_word_embeddings=False),
    "llama-int8": llama("int8"),
    "llama-fp32": llama("fp32"),
    "llama-fp16": llama("fp16"),
    "qwen2-int4": Model("Qwen2Config", "Qwen2ForCausalLM", SMALL, "int4"),
    "qwen3-int4": Model("Qwen3Config", "Qwen3ForCausalLM", SMALL, "int4"),
    "phi3-int4": Model(
        "Phi3Config",
        "Phi3ForCausalLM",
        {**SMALL, "original_max_position_embeddings": SMALL["max_position_embeddings"], "pad_token_id": 0, "tie_word_embeddings": False},
        "int4",
    ),
    "smollm3-int4": Model("SmolLM3Config", "SmolLM3ForCausalLM", {**SMALL, "pad_token_id": 0}, "int4"),
    "gemma2-int4": Model("Gemma2Config", "Gemma2ForCausalLM", {**SMALL, **WINDOWS, "query_pre_attn_scalar": 16}, "int4"),
    "lfm2-int4": Model(
        "Lfm2Config",
        "Lfm2ForCausalLM",
        {**SMALL, "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
        "int4",
    ),
    "gptoss-fp32": Model(
        "GptOssConfig",
        "GptOssForCausalLM",
        {**SMALL, **EXPERTS, **WINDOWS, "num_local_experts": 4, "intermediate_size": 32, "initial_context_length": 128, "rope_scaling": None, "tie_word_embeddings": False},
        "fp32",
    ),
    "lfm2moe-int4": Model(
        "Lfm2MoeConfig",
        "Lfm2MoeForCausalLM",
        {**SMALL, **EXPERTS, "num_experts": 4, "moe_intermediate_size": 32, "num_dense_layers": 1, "layer_types": ["conv", "full_attention"]},
        "int4",
    ),
    "llama135m-int4": llama("int4", **LLAMA_135M),
    "llama135m-fp32": llama("fp32", **LLAMA_135M),
}
