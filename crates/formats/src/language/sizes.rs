//! How large a decoder is.

use super::architecture::{Architecture, Windows};

/// Places of a text that there are tables of angles for. Longer texts are not taken.
pub const MOST_PLACES: usize = 1 << 20;

/// Numbers of a head that turn at most. Each pair has an angle whatever tensors a file has, so that a hostile count would fill the memory.
pub const MOST_TURNED: usize = 1 << 14;

/// How large a decoder is.
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
    /// What the products of queries and keys are divided by the root of, where that is no head's size.
    pub score_size: Option<f64>,
    /// What slows the turning of each pair down, where no tensor says it.
    pub factors: Option<Vec<f32>>,
    pub score_cap: Option<f32>,
    pub logit_cap: Option<f32>,
}

impl Sizes {
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
        let size = match (self.score_size, by_width) {
            (Some(size), _) => size as f32,
            (None, true) => (self.width / self.heads[layer].max(1)) as f32,
            (None, false) => self.key_size as f32,
        };
        1.0 / size.sqrt()
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
