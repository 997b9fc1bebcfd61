"""Small decoders with random weights as transformers saves them, and what transformers makes of them step by step:
`tests/references/safetensors.zip`.

    python -m pip install -r tools/references/gguf_decoders.txt
    python tools/references/transformers_decoders.py

The decoders are those of `gguf_decoders.py`. One folder has its weights in several files, one has settings as transformers 4 wrote
them, and one is opened by its weights.
"""

import copy
import json
import pathlib
import tempfile

import numpy as np
import torch

from common import Cases
from gguf_decoders import LLAMA3, LONG, SMALL, STEPS, WINDOWS, Decoder

CONFIG, WEIGHTS = "config.json", "model.safetensors"


class Saved(Decoder):
    """A decoder whose weights have the type `dtype` in files."""

    def __init__(self, name, config, architecture, sizes, dtype, more_by_one=False):
        super().__init__(name, config, architecture, sizes, None, more_by_one=more_by_one)
        random = np.random.default_rng(7)
        self.dtype = dtype
        with torch.no_grad():
            for name, parameter in self.model.state_dict().items():
                shape = tuple(parameter.shape)
                if len(shape) == 1:
                    made = random.normal(0, 0.1, shape) + (name.endswith("norm.weight") and not more_by_one)
                else:
                    made = random.normal(0, shape[-1] ** -0.5, shape)
                parameter.copy_(torch.from_numpy(made.astype(np.float32)).to(dtype).float())

    def files(self, **options):
        """The files of the folder by their names."""
        with tempfile.TemporaryDirectory() as folder:
            # The angles of the model itself stay as they are.
            copy.deepcopy(self.model).to(self.dtype).save_pretrained(folder, **options)
            files = {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        return {name: data for name, data in files.items() if name == CONFIG or "safetensors" in name}


def older(files):
    """Settings as transformers 4 wrote them: the base of the angles apart from what scales them."""
    config = json.loads(files[CONFIG])
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    config.pop("layer_types", None)
    return {**files, CONFIG: json.dumps(config, indent=2).encode()}


def older_of_gemma(files):
    """Settings of Gemma 3 as transformers 4 wrote them."""
    config = json.loads(files[CONFIG])
    rope = config.pop("rope_parameters")
    whole = rope["full_attention"]
    config["rope_theta"] = whole.pop("rope_theta")
    config["rope_scaling"] = whole
    config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
    return {**files, CONFIG: json.dumps(config, indent=2).encode()}


def folders():
    """Names, decoders, the files of their folders and the file that is opened."""
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    untied = {**SMALL, "tie_word_embeddings": False}
    llama = Saved("llama", "LlamaConfig", "LlamaForCausalLM", {**untied, "attention_bias": True, "mlp_bias": True}, f32)
    yield "llama-f32", llama, llama.files(), CONFIG
    llama = Saved("llama", "LlamaConfig", "LlamaForCausalLM", {**SMALL, "rope_parameters": LLAMA3}, bf16)
    yield "llama-bf16", llama, llama.files(), CONFIG
    yield "llama-bf16-older", llama, older(llama.files()), CONFIG
    yield "llama-bf16-by-weights", llama, llama.files(), WEIGHTS
    yield "llama-bf16-in-parts", llama, llama.files(max_shard_size=2000), CONFIG
    mistral = Saved("mistral", "MistralConfig", "MistralForCausalLM", {**untied, "sliding_window": 4}, f16)
    yield "mistral-f16", mistral, mistral.files(), CONFIG
    qwen2 = Saved("qwen2", "Qwen2Config", "Qwen2ForCausalLM", SMALL, bf16)
    yield "qwen2-bf16", qwen2, qwen2.files(), CONFIG
    qwen3 = Saved("qwen3", "Qwen3Config", "Qwen3ForCausalLM", SMALL, bf16)
    yield "qwen3-bf16", qwen3, qwen3.files(), CONFIG
    smollm3 = Saved("smollm3", "SmolLM3Config", "SmolLM3ForCausalLM", {**SMALL, "num_hidden_layers": 4}, bf16)
    yield "smollm3-bf16", smollm3, smollm3.files(), CONFIG
    gelu = {**SMALL, "hidden_activation": "gelu_pytorch_tanh"}
    gemma = Saved("gemma", "GemmaConfig", "GemmaForCausalLM", gelu, bf16, more_by_one=True)
    yield "gemma-bf16", gemma, gemma.files(), CONFIG
    gemma2 = Saved("gemma2", "Gemma2Config", "Gemma2ForCausalLM", {**SMALL, **WINDOWS}, f16, more_by_one=True)
    yield "gemma2-f16", gemma2, gemma2.files(), CONFIG
    rope = {
        "full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1e6),
        "sliding_attention": dict(rope_type="default", rope_theta=10000.0),
    }
    sizes = {**SMALL, **WINDOWS, "query_pre_attn_scalar": 12, "num_hidden_layers": 6, "rope_parameters": rope}
    gemma3 = Saved("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", sizes, bf16, more_by_one=True)
    yield "gemma3-bf16", gemma3, gemma3.files(), CONFIG
    yield "gemma3-bf16-older", gemma3, older_of_gemma(gemma3.files()), CONFIG
    long = dict(rope_type="longrope", short_factor=[1.0, 1.25, 1.5, 2.0], long_factor=LONG, rope_theta=10000.0, original_max_position_embeddings=32)
    sizes = {**untied, "rope_parameters": long, "original_max_position_embeddings": 32, "sliding_window": 6}
    phi3 = Saved("phi3", "Phi3Config", "Phi3ForCausalLM", sizes, bf16)
    yield "phi3-bf16", phi3, phi3.files(), CONFIG
    part = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)
    phi4 = Saved("phi3", "Phi3Config", "Phi3ForCausalLM", {**SMALL, "rope_parameters": part}, f32)
    yield "phi4-f32", phi4, phi4.files(), CONFIG


def main():
    cases = Cases("safetensors")
    for name, decoder, files, model in folders():
        cases.add_folder(name, model, files, decoder.steps(STEPS), rtol=1e-4, atol=1e-5)
        print(name, {other: len(data) for other, data in files.items()})
    cases.write()


if __name__ == "__main__":
    main()
