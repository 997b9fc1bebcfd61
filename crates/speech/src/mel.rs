//! The log-mel spectrum that a model listens to, as nodes in front of it.

use std::f64::consts::{LN_10, TAU};

use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, Binary, BinaryKind, Cast, Conv, MatMul, Operator, Pad, PadMode, Padding, Reduce,
    ReduceKind, Unary, UnaryKind, Unsqueeze,
};
use kilim_core::{DType, Dim, Error, ErrorCode, Fact, Graph, Result, Shape, Tensor};
use kilim_text::parse_settings;
use serde::Deserialize;

use crate::settings::RATES;

/// The input that takes the samples in place of their spectrum.
pub const SAMPLES: &str = "samples";

/// Below this a power counts as silence.
const SILENCE: f32 = 1e-10;

/// How a model's log-mel spectrum is made, as `preprocessor_config.json` says it of Whisper: powers of a short-time Fourier transform
/// with a Hann window, in bands of the mel scale (Slaney's, each triangle of area 1), as decimal logarithms that end 8 below the loudest one.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default)]
pub struct LogMel {
    /// Bands.
    pub feature_size: usize,
    /// Samples that one transform sees.
    pub n_fft: usize,
    /// Samples from one transform to the next.
    pub hop_length: usize,
    /// Samples a second.
    pub sampling_rate: usize,
    /// Seconds that the model hears at once.
    pub chunk_length: usize,
}

impl Default for LogMel {
    /// The settings of Whisper up to `large-v2`.
    fn default() -> Self {
        LogMel {
            feature_size: 80,
            n_fft: 400,
            hop_length: 160,
            sampling_rate: 16_000,
            chunk_length: 30,
        }
    }
}

impl LogMel {
    /// What `preprocessor_config.json` says.
    ///
    /// # Errors
    /// `InvalidModel` where it cannot be understood, and for numbers out of range.
    pub fn read(text: &str) -> Result<LogMel> {
        let mel: LogMel = parse_settings("preprocessor_config.json", text)?;
        mel.check()?;
        Ok(mel)
    }

    /// Samples that the model hears at once.
    pub fn samples(&self) -> usize {
        self.chunk_length.saturating_mul(self.sampling_rate)
    }

    /// # Errors
    /// `InvalidModel` for numbers out of range.
    pub fn check(&self) -> Result<()> {
        // Bounds far above what any model has keep the tables small.
        let fits = (1..=1024).contains(&self.feature_size)
            && (2..=8192).contains(&self.n_fft)
            && self.n_fft.is_multiple_of(2)
            && (1..=self.n_fft / 2).contains(&self.hop_length)
            && RATES.contains(&self.sampling_rate)
            && (1..=3600).contains(&self.chunk_length)
            && self.samples().is_multiple_of(self.hop_length)
            && self.samples() > self.n_fft;
        match fits {
            true => Ok(()),
            false => {
                let message = "the settings of the log-mel spectrum are out of range";
                Err(Error::new(ErrorCode::InvalidModel, message).with_got(format!("{self:?}")))
            }
        }
    }

    /// The graph with the input `features`, `[1, bands, frames]`, made of samples: [`SAMPLES`], `float32`, `[1, samples]`, from −1 to 1.
    ///
    /// # Errors
    /// `Unsupported` where the graph has no such input, or takes another spectrum; `InvalidModel` for settings out of range.
    pub fn before(&self, mut graph: Graph, features: &str) -> Result<Graph> {
        self.check()?;
        let input = self.input(&graph, features)?;
        let dtype = graph.value(input).fact.dtype;
        let samples = Fact::new(DType::F32, Shape::fixed(&[1, self.samples()]));
        let samples = graph.add_value(SAMPLES, samples);
        for taken in graph.inputs.iter_mut().filter(|id| **id == input) {
            *taken = samples;
        }
        let mut nodes = Nodes { graph: &mut graph };
        let spectrum = self.spectrum(&mut nodes, samples)?;
        let to = dtype.unwrap_or(DType::F32);
        nodes.bind("log_mel", Cast::new(to), &[spectrum], input);
        graph.sort()?;
        Ok(graph)
    }

    fn frames(&self) -> usize {
        self.samples() / self.hop_length
    }

    /// The input of the graph that takes the spectrum.
    fn input(&self, graph: &Graph, features: &str) -> Result<ValueId> {
        let named = graph.inputs.iter().copied();
        let input = named.clone().find(|&id| graph.value(id).name == features);
        let input = input.ok_or_else(|| {
            let names: Vec<&str> = named.map(|id| graph.value(id).name.as_str()).collect();
            let message = format!("an encoder without the input `{features}`");
            Error::new(ErrorCode::Unsupported, message).with_got(names.join(", "))
        })?;
        let fact = &graph.value(input).fact;
        let sizes = [1, self.feature_size, self.frames()];
        let fits = |shape: &Shape| {
            let known = shape.0.iter().map(Dim::known);
            shape.0.len() == 3
                && known
                    .zip(sizes)
                    .all(|(dim, size)| dim.is_none_or(|d| d == size))
        };
        match &fact.shape {
            Some(shape) if !fits(shape) => {
                let message = "an encoder that takes another spectrum than its settings say";
                let e = Error::new(ErrorCode::Unsupported, message).with_input(features);
                Err(e.with_expected(format!("{sizes:?}")).with_got(fact))
            }
            _ => Ok(input),
        }
    }

    /// `[1, bands, frames]` of `[1, samples]`.
    fn spectrum(&self, nodes: &mut Nodes<'_>, samples: ValueId) -> Result<ValueId> {
        let axes = nodes.constant("axes", Tensor::from_slice(&[1], &[1i64])?);
        let x = nodes.apply("channel", Unsqueeze, &[samples, axes]);
        // Frames are centred on multiples of the hop. The last one, centred on the end, is left out.
        let (begin, end) = (self.n_fft / 2, self.n_fft / 2 - self.hop_length);
        let pads = [0, 0, begin as i64, 0, 0, end as i64];
        let pads = nodes.constant("pads", Tensor::from_slice(&[6], &pads)?);
        let mode = PadMode::Reflect;
        let x = nodes.apply("reflected", Pad { mode }, &[x, pads]);
        let waves = nodes.constant("waves", self.waves()?);
        let transform = Conv {
            strides: vec![self.hop_length],
            dilations: vec![1],
            padding: Padding::Valid,
            groups: 1,
            channels_last: false,
            activation: Activation::None,
        };
        let x = nodes.apply("transform", transform, &[x, waves]);
        let x = nodes.binary("powers", BinaryKind::Mul, x, x);
        let bands = nodes.constant("bands", self.bands()?);
        let product = MatMul {
            transpose_b: false,
            alpha: None,
            activation: Activation::None,
        };
        let x = nodes.apply("mel", product, &[bands, x]);
        let silence = nodes.number("silence", SILENCE)?;
        let x = nodes.binary("heard", BinaryKind::Max, x, silence);
        let x = nodes.apply("log", Unary(UnaryKind::Log), &[x]);
        let scale = nodes.number("log_10", (1.0 / LN_10) as f32)?;
        let x = nodes.binary("decimal", BinaryKind::Mul, x, scale);
        let loudest = Reduce {
            kind: ReduceKind::Max,
            keep_dims: true,
            noop_with_empty_axes: false,
        };
        let loudest = nodes.apply("loudest", loudest, &[x]);
        let range = nodes.number("range", 8.0)?;
        let floor = nodes.binary("floor", BinaryKind::Sub, loudest, range);
        let x = nodes.binary("audible", BinaryKind::Max, x, floor);
        let four = nodes.number("four", 4.0)?;
        let x = nodes.binary("raised", BinaryKind::Add, x, four);
        let quarter = nodes.number("quarter", 0.25)?;
        Ok(nodes.binary("scaled", BinaryKind::Mul, x, quarter))
    }

    /// The transform as a convolution, `[2 bins, 1, n_fft]`: cosines, then sines, under a periodic Hann window.
    fn waves(&self) -> Result<Tensor> {
        let (n, bins) = (self.n_fft, self.n_fft / 2 + 1);
        let angle = |k: usize| TAU * (k % n) as f64 / n as f64;
        let mut waves = Vec::with_capacity(2 * bins * n);
        for wave in [f64::cos, f64::sin] {
            for bin in 0..bins {
                let value = |t: usize| 0.5 * (1.0 - angle(t).cos()) * wave(angle(bin * t));
                waves.extend((0..n).map(|t| value(t) as f32));
            }
        }
        Tensor::from_slice(&[2 * bins, 1, n], &waves)
    }

    /// What each power adds to each band, `[bands, 2 bins]`: powers of cosines and of sines alike.
    fn bands(&self) -> Result<Tensor> {
        let bins = self.n_fft / 2 + 1;
        let highest = self.sampling_rate as f64 / 2.0;
        let step = mel(highest) / (self.feature_size + 1) as f64;
        let corner = |i: usize| hertz(i as f64 * step);
        let mut bands = Vec::with_capacity(self.feature_size * 2 * bins);
        for band in 0..self.feature_size {
            let [low, middle, high] = [corner(band), corner(band + 1), corner(band + 2)];
            let weight = |bin: usize| {
                let f = highest * bin as f64 / (bins - 1) as f64;
                let (rise, fall) = ((f - low) / (middle - low), (high - f) / (high - middle));
                (rise.min(fall).max(0.0) * 2.0 / (high - low)) as f32
            };
            bands.extend((0..bins).chain(0..bins).map(weight));
        }
        Tensor::from_slice(&[self.feature_size, 2 * bins], &bands)
    }
}

/// Slaney's mel scale (Auditory Toolbox, 1998): 3 in 200 Hz up to 1,000 Hz, logarithmic above, 27 to a factor of 6.4.
fn mel(hertz: f64) -> f64 {
    match hertz < 1000.0 {
        true => hertz * 3.0 / 200.0,
        false => 15.0 + (hertz / 1000.0).ln() * 27.0 / 6.4f64.ln(),
    }
}

fn hertz(mel: f64) -> f64 {
    match mel < 15.0 {
        true => mel * 200.0 / 3.0,
        false => 1000.0 * ((mel - 15.0) * 6.4f64.ln() / 27.0).exp(),
    }
}

/// Nodes in front of a graph, with names of their own.
struct Nodes<'a> {
    graph: &'a mut Graph,
}

impl Nodes<'_> {
    fn apply(&mut self, name: &str, op: impl Operator, inputs: &[ValueId]) -> ValueId {
        self.graph.apply(named(name), op, inputs)
    }

    /// A node that makes the value `to`, which is there already.
    fn bind(&mut self, name: &str, op: impl Operator, inputs: &[ValueId], to: ValueId) {
        let inputs: Vec<_> = inputs.iter().copied().map(Some).collect();
        self.graph.push(named(name), op, &inputs, &[to]);
    }

    fn binary(&mut self, name: &str, kind: BinaryKind, a: ValueId, b: ValueId) -> ValueId {
        self.apply(name, Binary::new(kind), &[a, b])
    }

    fn constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        self.graph.add_constant(named(name), tensor)
    }

    fn number(&mut self, name: &str, number: f32) -> Result<ValueId> {
        Ok(self.constant(name, Tensor::scalar(number)?))
    }
}

fn named(name: &str) -> String {
    format!("speech/{name}")
}
