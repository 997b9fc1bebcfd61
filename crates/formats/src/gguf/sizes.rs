//! How large a decoder is, by the keys of its architecture (`gguf-py/gguf/constants.py` and `src/llama-arch.cpp` of llama.cpp).

use kilim_core::error::{Result, unsupported};

use super::architecture::{Architecture, Model, Windows, model_of};
use super::invalid;
use super::metadata::Metadata;

/// Places of a text that there are tables of angles for. Longer texts are not taken.
const MOST_PLACES: usize = 1 << 20;

/// The base of the angles where a file does not say it.
const BASE: f64 = 10_000.0;

/// What the metadata say of a decoder.
#[derive(Debug)]
pub struct Sizes {
    pub name: String,
    pub architecture: &'static Architecture,
    pub layers: usize,
    /// Numbers of a word between two layers.
    pub width: usize,
    /// Words that a text has at most.
    pub context: usize,
    /// Heads of the queries of each layer.
    pub heads: Vec<usize>,
    /// Heads of the keys of each layer.
    pub key_heads: Vec<usize>,
    /// Numbers of a head of queries and keys.
    pub key_size: usize,
    /// Numbers of a head of values.
    pub value_size: usize,
    /// Numbers of the gated product of each layer.
    pub hidden: Vec<usize>,
    /// Numbers of a head that turn.
    pub turned: usize,
    pub base: f64,
    /// The base of the angles in layers that look back on a window.
    pub base_of_windows: f64,
    /// What divides places in layers that look back on the whole text.
    pub slower: f64,
    /// Multiplies cosines and sines.
    pub stretch: f32,
    /// Added to the mean of squares by norms.
    pub epsilon: f32,
    /// Words that layers of windows look back on, with the word itself.
    pub window: Option<usize>,
    pub score_cap: Option<f32>,
    pub logit_cap: Option<f32>,
}

/// A number above 0, or none.
fn cap(n: Option<f64>) -> Option<f32> {
    n.map(|n| n as f32).filter(|&n| n > 0.0)
}

impl Sizes {
    /// Reads them; the file has so many `tensors`.
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
        let heads =
            counts("attention.head_count")?.ok_or_else(|| missing("attention.head_count"))?;
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
        if !turned.is_multiple_of(2) || turned > key_size {
            return Err(invalid("numbers of a head that turn")
                .with_expected(format!("an even number up to {key_size}"))
                .with_got(turned));
        }
        let hidden =
            counts("feed_forward_length")?.ok_or_else(|| missing("feed_forward_length"))?;
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
            score_cap: cap(float("attn_logit_softcapping")?),
            logit_cap: cap(float("final_logit_softcapping")?),
        })
    }

    /// The window of a layer, where it has one.
    pub fn window_of(&self, layer: usize) -> Option<usize> {
        let looks_back = match self.architecture.windows {
            Windows::None => false,
            Windows::All => true,
            Windows::AllBut { every, .. } => !(layer + 1).is_multiple_of(every),
        };
        self.window.filter(|_| looks_back)
    }

    /// Whether a layer turns its heads.
    pub fn turns(&self, layer: usize) -> bool {
        match self.architecture.unturned {
            0 => true,
            every => !(layer + 1).is_multiple_of(every),
        }
    }

    /// The factor of the products of queries and keys.
    pub fn score_factor(&self, layer: usize) -> f32 {
        let by_width = self.architecture.scores_by_width == Some(self.layers);
        let size = match by_width {
            true => self.width / self.heads[layer].max(1),
            false => self.key_size,
        };
        1.0 / (size as f32).sqrt()
    }

    /// How fast each pair of numbers turns from place to place, in a layer with a window or in another. `factors` divide it.
    pub fn frequencies(&self, window: bool, factors: Option<&[f32]>) -> Vec<f64> {
        let (base, slower) = match window {
            true => (self.base_of_windows, 1.0),
            false => (self.base, self.slower),
        };
        let turned = self.turned as f64;
        let pairs = 0..self.turned / 2;
        pairs
            .map(|i| {
                let factor = factors.map_or(1.0, |factors| f64::from(factors[i]));
                base.powf(-2.0 * i as f64 / turned) / slower / factor
            })
            .collect()
    }
}
