//! How large a decoder is, by the keys of its architecture (`gguf-py/gguf/constants.py` and `src/llama-arch.cpp` of llama.cpp).

use kilim_core::error::{Result, unsupported};

use super::architecture::{Model, model_of};
use super::invalid;
use super::metadata::Metadata;
use crate::language::{MOST_PLACES, MOST_TURNED, Sizes, Windows};

/// The base of the angles where a file does not say it.
const BASE: f64 = 10_000.0;

/// A number above 0, or none.
fn cap(n: Option<f64>) -> Option<f32> {
    n.map(|n| n as f32).filter(|&n| n > 0.0)
}

/// Reads how large a decoder is; the file has so many `tensors`.
///
/// # Errors
/// `Unsupported` for an architecture that Kilim does not have, or something of it; `InvalidModel` where a key is missing or
/// of another type.
pub fn read(metadata: &Metadata, tensors: usize) -> Result<Sizes> {
    let (name, Model::Decoder(architecture)) = model_of(metadata)? else {
        return Err(unsupported("text of a model that is no decoder"));
    };
    let key = |what: &str| format!("{name}.{what}");
    let float = |what: &str| metadata.float(&key(what));
    let layers = metadata.needed(&key("block_count"))?;
    let width = metadata.needed(&key("embedding_length"))?;
    let experts = metadata.count(&key("expert_count"))?.unwrap_or(0);
    if experts > 0 {
        return Err(unsupported("a mixture of experts"));
    }
    metadata.only_text(&key("rope.scaling.type"), &["none", "linear", "longrope"])?;
    // Each layer has tensors of its own, so that a hostile count fills no memory.
    if layers > tensors {
        return Err(invalid("more layers than tensors").with_got(layers));
    }
    let counts = |what: &str| metadata.counts(&key(what), layers);
    let missing = |what: &str| invalid(format!("the key `{}` is missing", key(what)));
    let heads = counts("attention.head_count")?.ok_or_else(|| missing("attention.head_count"))?;
    let key_heads = counts("attention.head_count_kv")?.unwrap_or_else(|| heads.clone());
    let most = heads.iter().copied().max().unwrap_or(0);
    let even = (most > 0).then(|| width / most);
    let size = |what: &str| {
        let size = metadata.count(&key(what))?.or(even);
        size.filter(|&n| n > 0).ok_or_else(|| missing(what))
    };
    let (key_size, value_size) = (
        size("attention.key_length")?,
        size("attention.value_length")?,
    );
    let turned = metadata
        .count(&key("rope.dimension_count"))?
        .unwrap_or(key_size);
    let most_turned = key_size.min(MOST_TURNED);
    if !turned.is_multiple_of(2) || turned > most_turned {
        return Err(invalid("numbers of a head that turn")
            .with_expected(format!("an even number up to {most_turned}"))
            .with_got(turned));
    }
    let hidden = counts("feed_forward_length")?.ok_or_else(|| missing("feed_forward_length"))?;
    let context = metadata.needed(&key("context_length"))?;
    // Up to so many places the short factors of longrope hold, and the model has tables for them alone.
    let short = metadata.count(&key("rope.scaling.original_context_length"))?;
    let longrope = metadata.text(&key("rope.scaling.type"))? == Some("longrope");
    let context = match short.filter(|_| longrope) {
        Some(short) => context.min(short),
        None => context,
    };
    let window = metadata.count(&key("attention.sliding_window"))?;
    let base = float("rope.freq_base")?.unwrap_or(BASE);
    let own = match architecture.windows {
        Windows::AllBut { base, .. } => base,
        _ => None,
    };
    let epsilon = float("attention.layer_norm_rms_epsilon")?;
    let factor = float("rope.scaling.factor")?.filter(|_| !longrope);
    Ok(Sizes {
        name: name.to_string(),
        architecture,
        layers,
        width,
        context: context.min(MOST_PLACES),
        heads,
        key_heads,
        key_size,
        value_size,
        hidden,
        turned,
        base,
        base_of_windows: float("rope.freq_base_swa")?.or(own).unwrap_or(base),
        slower: factor.filter(|&f| f > 0.0).unwrap_or(1.0),
        stretch: float("rope.scaling.attn_factor")?.unwrap_or(1.0) as f32,
        epsilon: epsilon.ok_or_else(|| missing("attention.layer_norm_rms_epsilon"))? as f32,
        window: window.filter(|&n| n > 0),
        score_size: None,
        factors: None,
        score_cap: cap(float("attn_logit_softcapping")?),
        logit_cap: cap(float("final_logit_softcapping")?),
    })
}
