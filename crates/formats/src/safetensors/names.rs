//! What llama.cpp calls the tensors of transformers' models (`gguf-py/gguf/tensor_mapping.py`).

use crate::build::OpTable;

/// The tensors beside those of layers, without `.weight`.
static WHOLE: OpTable<&str, &str> = OpTable(&[
    ("lm_head", "output"),
    ("model.embed_tokens", "token_embd"),
    ("model.norm", "output_norm"),
]);

/// The tensors of a layer, without `.weight` and `.bias`.
static OF_LAYERS: OpTable<&str, &str> = OpTable(&[
    ("input_layernorm", "attn_norm"),
    ("mlp.down_proj", "ffn_down"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.gate_up_proj", "ffn_up"),
    ("mlp.up_proj", "ffn_up"),
    ("post_attention_layernorm", "ffn_norm"),
    ("self_attn.k_norm", "attn_k_norm"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.o_proj", "attn_output"),
    ("self_attn.q_norm", "attn_q_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.qkv_proj", "attn_qkv"),
    ("self_attn.v_proj", "attn_v"),
]);

/// The norms of layers that have one behind each half.
static BEHIND: OpTable<&str, &str> = OpTable(&[
    ("post_attention_layernorm", "post_attention_norm"),
    ("post_feedforward_layernorm", "post_ffw_norm"),
    ("pre_feedforward_layernorm", "ffn_norm"),
]);

/// The name that llama.cpp gives a tensor; `None` of one that it does not know. Some layers have norms behind their halves.
pub fn of(name: &str, norms_behind: bool) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    if !matches!(kind, "weight" | "bias") {
        return None;
    }
    if let Some(whole) = WHOLE.find(stem) {
        return Some(format!("{whole}.{kind}"));
    }
    let (layer, part) = stem.strip_prefix("model.layers.")?.split_once('.')?;
    if layer.is_empty() || !layer.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let behind = BEHIND.find(part).filter(|_| norms_behind);
    let part = behind.or_else(|| OF_LAYERS.find(part))?;
    Some(format!("blk.{layer}.{part}.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_llama_cpp() {
        for table in [&WHOLE, &OF_LAYERS, &BEHIND] {
            assert_eq!(table.misplaced(), None);
        }
        for (name, behind, expected) in [
            ("lm_head.weight", false, Some("output.weight")),
            (
                "model.layers.11.self_attn.q_proj.bias",
                false,
                Some("blk.11.attn_q.bias"),
            ),
            (
                "model.layers.0.post_attention_layernorm.weight",
                false,
                Some("blk.0.ffn_norm.weight"),
            ),
            (
                "model.layers.0.post_attention_layernorm.weight",
                true,
                Some("blk.0.post_attention_norm.weight"),
            ),
            ("model.layers.x.mlp.up_proj.weight", false, None),
            ("model.layers.0.mlp.experts.weight", false, None),
            ("model.norm", false, None),
        ] {
            assert_eq!(of(name, behind).as_deref(), expected, "{name}");
        }
    }
}
