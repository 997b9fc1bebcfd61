//! How large a decoder is, by its settings (`configuration_*.py` of transformers).

use kilim_core::error::{Result, unsupported};
use serde_json::Value;

use super::config::{Config, of_type};
use super::invalid;
use super::models::Model;
use super::rope::{self, Turning};
use crate::language::{Gate, MOST_PLACES, Sizes, Windows};

/// Settings that change the network, with what Kilim does not have.
const OTHERS: [(&str, &str); 3] = [
    ("quantization_config", "quantised weights"),
    ("use_sliding_window", "windows in some layers"),
    ("use_bidirectional_attention", "attention to later words"),
];

/// Reads how large a model is, of whose files there are so many `tensors`.
///
/// # Errors
/// `Unsupported` for what Kilim does not have, `InvalidModel` where a setting is missing or of another type.
pub fn read(config: &Config, model: &'static Model, tensors: usize) -> Result<Sizes> {
    for (key, what) in OTHERS {
        if config
            .get(key)
            .is_some_and(|value| *value != Value::Bool(false))
        {
            return Err(unsupported(format!("{what} (`{key}`)")));
        }
    }
    check_gate(config, model)?;
    let layers = config.needed("num_hidden_layers")?;
    // Each layer has tensors of its own, so that a hostile count fills no memory.
    if layers > tensors {
        return Err(invalid("more layers than tensors").with_got(layers));
    }
    let width = config.needed("hidden_size")?;
    let heads = config.needed("num_attention_heads")?;
    let key_heads = config.count("num_key_value_heads")?.unwrap_or(heads);
    let size = head_size(config)?;
    let turning = turning(config, model)?;
    let epsilon = config.float("rms_norm_eps")?;
    let epsilon = epsilon.ok_or_else(|| of_type("rms_norm_eps", "a number"))?;
    let own = match model.architecture.windows {
        Windows::AllBut { base, .. } => base,
        _ => None,
    };
    let cap = |key| {
        let cap = config.float(key)?.map(|n| n as f32);
        Ok::<_, kilim_core::Error>(cap.filter(|&n| n > 0.0))
    };
    let score_size = config.float("query_pre_attn_scalar")?;
    let sizes = Sizes {
        name: config.text("model_type")?.unwrap_or_default(),
        architecture: &model.architecture,
        layers,
        width,
        context: turning.context,
        heads: vec![heads; layers],
        key_heads: vec![key_heads; layers],
        key_size: size,
        value_size: size,
        hidden: vec![config.needed("intermediate_size")?; layers],
        turned: turning.turned,
        base: turning.base,
        base_of_windows: turning.base_of_windows.or(own).unwrap_or(turning.base),
        slower: turning.slower,
        stretch: turning.stretch,
        epsilon: epsilon as f32,
        window: config.count("sliding_window")?.filter(|&n| n > 0),
        score_size: score_size.filter(|&n| n > 0.0),
        factors: turning.factors,
        score_cap: cap("attn_logit_softcapping")?,
        logit_cap: cap("final_logit_softcapping")?,
    };
    check_layers(config, &sizes)?;
    Ok(sizes)
}

/// Numbers of a head.
fn head_size(config: &Config) -> Result<usize> {
    let own = config.count("head_dim")?;
    Ok(own.unwrap_or(config.needed("hidden_size")? / config.needed("num_attention_heads")?))
}

/// How heads turn, in texts that are as long as the tables of angles at most.
///
/// # Errors
/// `Unsupported` for angles that Kilim does not have, `InvalidModel` where a setting is missing or of another type.
pub fn turning(config: &Config, model: &Model) -> Result<Turning> {
    let context = config.needed("max_position_embeddings")?;
    let mut turning = rope::read(config, model, head_size(config)?, context)?;
    turning.context = turning.context.min(MOST_PLACES);
    Ok(turning)
}

/// Refuses another function in the gated product than the model has.
fn check_gate(config: &Config, model: &Model) -> Result<()> {
    let given = match config.text("hidden_activation")? {
        Some(given) => Some(given),
        None => config.text("hidden_act")?,
    };
    let own = match model.architecture.gate {
        Gate::Silu => "silu",
        Gate::Gelu => "gelu_pytorch_tanh",
    };
    match given {
        Some(given) if given != own => {
            Err(unsupported(format!("`hidden_act` is `{given}`")).with_expected(own))
        }
        _ => Ok(()),
    }
}

/// Refuses layers of another kind than the model has in their place.
fn check_layers(config: &Config, sizes: &Sizes) -> Result<()> {
    let kinds = config.texts("layer_types")?.unwrap_or_default();
    for (layer, kind) in kinds.iter().enumerate().take(sizes.layers) {
        let own = match sizes.window_of(layer) {
            Some(_) => "sliding_attention",
            None => "full_attention",
        };
        if kind != own {
            let e = unsupported(format!("layer {layer} of the kind `{kind}`"));
            return Err(e.with_expected(own));
        }
    }
    let turned = config.floats("no_rope_layers")?.unwrap_or_default();
    for (layer, &turned) in turned.iter().enumerate().take(sizes.layers) {
        if (turned != 0.0) != sizes.turns(layer) {
            return Err(unsupported(format!(
                "layer {layer}, which turns its heads otherwise"
            )));
        }
    }
    Ok(())
}
