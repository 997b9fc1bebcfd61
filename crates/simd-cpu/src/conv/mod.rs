//! Convolutions of channels-last data with constant weights.

mod dense;
mod depthwise;
#[cfg(test)]
mod tests;
mod transposed;
mod winograd;

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::memory::MemoryMode;
use kilim_core::ops::{Activation, Conv, ConvGeometry, WindowAxis};
use kilim_core::tensor::AlignedBytes;
use kilim_core::tuning::Choice;
use kilim_core::{DType, Result, Tensor};

use super::gemm::split_activation;
use super::isa::Isa;
use super::window::Window;
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, CpuRun, Io, Kernel, PackKey, Scratch};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add_with_choice::<Conv>(
        accepts,
        |op, node, build| kernel(op, node, build, Isa::best(), None),
        |op, node, config| {
            let shape = Shape::of(op, node)?;
            let algorithms = algorithms(&shape, Isa::best(), config.memory);
            (algorithms.len() > 1).then(|| choice(&shape, &algorithms))
        },
    );
    transposed::register(registry);
}

/// A convolution, its sizes spelled out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub window: Window,
    pub groups: usize,
    /// Output channels.
    pub m: usize,
}

impl Shape {
    fn of(op: &Conv, node: &NodeSpec) -> Option<Shape> {
        Shape::new(op, &node.input(0)?.shape, &node.input(1)?.shape)
    }

    /// The shape, from those of data and weights; `None` for what the kernels do not compute.
    pub(crate) fn new(op: &Conv, data: &[usize], weights: &[usize]) -> Option<Shape> {
        Shape::of_geometry(&ConvGeometry::new(op, data, weights).ok()?)
    }

    fn of_geometry(g: &ConvGeometry) -> Option<Shape> {
        Some(Shape {
            window: Window::new(g.batch, g.in_channels, &g.axes)?,
            groups: g.groups,
            m: g.out_channels,
        })
    }

    /// Input channels of a group.
    pub(crate) fn group_channels(&self) -> usize {
        self.window.channels / self.groups
    }

    /// Output channels of a group.
    pub(crate) fn group_outputs(&self) -> usize {
        self.m / self.groups
    }

    pub(crate) fn taps(&self) -> usize {
        self.window.y.kernel * self.window.x.kernel
    }
}

/// How a convolution is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// A product over rows of pixels; padding is copied in around strips of the input.
    Dense,
    /// Vectors across channels; for as many groups as channels.
    Depthwise,
    /// Minimal filtering with output tiles of 2x2.
    Winograd2,
    /// Minimal filtering with output tiles of 4x4.
    Winograd4,
}

/// The algorithms that compute a shape, the one that is expected to be the fastest first.
fn algorithms(shape: &Shape, isa: Isa, memory: MemoryMode) -> Vec<Algorithm> {
    let expected = choose(shape, isa.lanes(), memory);
    let mut algorithms = vec![expected];
    if memory == MemoryMode::Normal && fits_winograd(shape) {
        use Algorithm::{Dense, Winograd2, Winograd4};
        let others = [Dense, Winograd2, Winograd4].into_iter();
        algorithms.extend(others.filter(|a| *a != expected));
    }
    algorithms
}

/// The algorithms as a question for a measurement.
fn choice(shape: &Shape, algorithms: &[Algorithm]) -> Choice {
    let w = &shape.window;
    let [n, c, m] = [w.batch, w.channels, shape.m];
    Choice {
        class: format!("Conv 3x3, {n}x{c} to {m}, {}x{}", w.y.output, w.x.output),
        algorithms: algorithms.iter().map(|a| a.name().into()).collect(),
    }
}

/// The algorithm that was measured to be the fastest, else the first.
fn pick(shape: &Shape, isa: Isa, build: &Build) -> Algorithm {
    let algorithms = algorithms(shape, isa, build.memory());
    algorithms[build.tuned().pick(&choice(shape, &algorithms))]
}

/// Whether Winograd's minimal filtering computes it: kernels of 3x3, without strides or groups.
fn fits_winograd(shape: &Shape) -> bool {
    let axes = [shape.window.y, shape.window.x];
    let small = |a: &WindowAxis| (a.kernel, a.stride, a.dilation) == (3, 1, 1) && a.output >= 4;
    shape.groups == 1 && axes.iter().all(small)
}

/// The algorithm for a shape and so many lanes. In [`MemoryMode::Limit`] weights are packed in their own size only.
pub(crate) fn choose(shape: &Shape, lanes: usize, memory: MemoryMode) -> Algorithm {
    let (c, m, w) = (shape.window.channels, shape.m, &shape.window);
    if shape.groups == m && shape.groups == c && m > 1 {
        return Algorithm::Depthwise;
    }
    let pays = c * m > INPUT_TRANSFORM * c + OUTPUT_TRANSFORM * m;
    if !fits_winograd(shape) || !pays || memory == MemoryMode::Limit {
        return Algorithm::Dense;
    }
    let tiles = |size: usize| w.y.output.div_ceil(size) * w.x.output.div_ceil(size) * w.batch;
    let cost = |points: usize, size| points * (tiles(size) + READ * lanes);
    let [dense, two, four] =
        [(TAPS, 1), (POINTS_2, 2), (POINTS_4, 4)].map(|(n, size)| cost(n, size));
    match c * m {
        pairs if pairs < SMALL => Algorithm::Winograd4,
        pairs if pairs <= MIDDLE && four < two => Algorithm::Winograd4,
        pairs if pairs <= LARGE && two + two / MARGIN < dense => Algorithm::Winograd2,
        _ => Algorithm::Dense,
    }
}

// Where nothing was measured (`Choice`), these estimates decide. Points and sizes follow from the algorithm; what transforms
// and reads cost are estimates in multiplications, which `kilim bench --kernels` puts to the test.

/// Weights of a pair of channels.
const TAPS: usize = 9;
/// Points of a tile of the input for output tiles of 2x2 and of 4x4, where a pair of channels takes a multiplication and a
/// transformed weight each (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015).
const POINTS_2: usize = 16;
const POINTS_4: usize = 36;
/// What transforming a channel of the input costs, in what is saved for a pair of channels.
const INPUT_TRANSFORM: usize = 6;
/// What transforming a channel of the output back costs, in the same measure.
const OUTPUT_TRANSFORM: usize = 4;
/// Pairs of channels below which transformed weights, `POINTS_4` floats a pair, are at most 4.5 MiB and cost little to read.
const SMALL: usize = 1 << 15;
/// Pairs up to which tiles of 4x4 may pay: 9 MiB.
const MIDDLE: usize = 1 << 16;
/// Pairs up to which tiles of 2x2 may pay, `POINTS_2` floats a pair: 64 MiB.
const LARGE: usize = 1 << 20;
/// Products of all lanes that take as long as reading a weight from memory.
const READ: usize = 1;
/// The share that large weights have to save: they take more memory.
const MARGIN: usize = 4;

/// The tensors of a run.
pub(crate) struct Operands<'a> {
    pub input: &'a [f32],
    pub bias: Option<&'a [f32]>,
    pub residual: Option<&'a [f32]>,
}

impl Operands<'_> {
    fn bias_from(&self, channel: usize) -> *const f32 {
        self.bias
            .map_or(std::ptr::null(), |b| b[channel..].as_ptr())
    }

    fn residual_from(&self, element: usize) -> *const f32 {
        self.residual
            .map_or(std::ptr::null(), |r| r[element..].as_ptr())
    }
}

/// All inputs are `float32`, and the weights are known.
fn known_float(node: &NodeSpec) -> bool {
    let float = |i: usize| node.input(i).is_none_or(|s| s.dtype == DType::F32);
    (0..4).all(float) && node.input(1).is_some_and(|w| w.value.is_some())
}

fn accepts(op: &Conv, node: &NodeSpec) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(format!("the SIMD convolution: {why}")));
    if !op.channels_last {
        return refuse("data is not channels-last");
    }
    if !known_float(node) {
        return refuse("not float32, or weights that are not constant");
    }
    let Some(shape) = Shape::of(op, node) else {
        return refuse("three spatial axes, or an empty tensor");
    };
    let same = |i: usize, n: usize| node.input(i).is_none_or(|s| s.elements() == n);
    if !same(2, shape.m) || !same(3, node.outputs[0].elements()) {
        return refuse("bias or residual is broadcast");
    }
    Ok(())
}

/// Builds the kernel; `forced` is for tests.
pub(crate) fn kernel(
    op: &Conv,
    node: &NodeSpec,
    build: &mut Build,
    isa: Isa,
    forced: Option<Algorithm>,
) -> Result<Box<dyn Kernel>> {
    let shape = Shape::of(op, node).ok_or_else(|| unsupported("a convolution of these shapes"))?;
    let weights = node.input(1).and_then(|w| w.value.as_ref());
    let weights = weights.ok_or_else(|| unsupported("weights that are not constant"))?;
    let algorithm = forced.unwrap_or_else(|| pick(&shape, isa, build));
    let key = PackKey {
        kind: "convolution",
        parameters: [algorithm as usize, isa.lanes(), shape.groups, 0],
    };
    let packed = build.pack(node, 1, key, |cpu| {
        algorithm.pack(cpu, isa, &shape, weights)
    })?;
    let convolution = algorithm.prepare(build, isa, shape, op.activation, packed)?;
    Ok(Box::new(Convolution(convolution)))
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Algorithm::Dense => "dense",
            Algorithm::Depthwise => "depthwise",
            Algorithm::Winograd2 => "Winograd 2x2",
            Algorithm::Winograd4 => "Winograd 4x4",
        }
    }

    /// The weights in the form that the algorithm wants.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub(crate) fn pack(
        self,
        cpu: &CpuRun,
        isa: Isa,
        shape: &Shape,
        weights: &Tensor,
    ) -> Result<AlignedBytes> {
        match self {
            Algorithm::Dense => dense::pack_weights(cpu, isa, shape, weights),
            Algorithm::Depthwise => {
                weights.read_on(cpu)?;
                depthwise::pack_weights(cpu, isa, shape, weights.as_slice()?)
            }
            Algorithm::Winograd2 => winograd::pack_weights::<4>(cpu, isa, shape, weights),
            Algorithm::Winograd4 => winograd::pack_weights::<6>(cpu, isa, shape, weights),
        }
    }

    /// Prepares the computation, `packed` being what [`Algorithm::pack`] made.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub(crate) fn prepare(
        self,
        build: &Build,
        isa: Isa,
        shape: Shape,
        activation: Activation,
        packed: Arc<AlignedBytes>,
    ) -> Result<Box<dyn Convolve>> {
        macro_rules! new {
            ($t:ty $(, $threads:expr)?) => {
                Box::new(<$t>::new(isa, shape, activation, packed $(, $threads)?))
            };
        }
        let threads = build.threads();
        Ok(match self {
            Algorithm::Dense => Box::new(dense::Dense::new(build, isa, shape, activation, packed)?),
            Algorithm::Depthwise => new!(depthwise::Depthwise),
            Algorithm::Winograd2 => new!(winograd::Winograd<4>, threads),
            Algorithm::Winograd4 => new!(winograd::Winograd<6>, threads),
        })
    }
}

/// A prepared convolution.
pub(crate) trait Convolve: Send + Sync {
    /// Computes the output; all tensors have the sizes of the shape, `scratch` what
    /// [`Convolve::scratch`] says for each thread.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn convolve(
        &self,
        cpu: &CpuRun,
        operands: &Operands,
        out: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()>;

    /// Elements of scratch memory of a thread.
    fn scratch(&self) -> usize;
}

struct Convolution(Box<dyn Convolve>);

impl Kernel for Convolution {
    fn run(&self, io: &mut Io) -> Result<()> {
        let operands = Operands {
            input: io.input(0),
            bias: io.optional(2),
            residual: io.optional(3),
        };
        let scratch = io.thread_scratch(self.0.scratch());
        let out = io.output(0);
        self.0.convolve(io.cpu(), &operands, out, scratch)
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<f32>(self.0.scratch())
    }
}

/// Packed weights and what follows from the activation.
pub(crate) struct Common {
    pub isa: Isa,
    pub shape: Shape,
    pub weights: Arc<AlignedBytes>,
    pub clamp: (f32, f32),
    /// What the bounds do not do.
    pub rest: Activation,
}

impl Common {
    fn new(isa: Isa, shape: Shape, activation: Activation, weights: Arc<AlignedBytes>) -> Common {
        let (clamp, rest) = split_activation(activation);
        Common {
            isa,
            shape,
            weights,
            clamp,
            rest,
        }
    }
}
