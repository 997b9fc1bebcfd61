//! Products and convolutions of 8-bit integers with constant weights, in `float32`.
//!
//! Sums of products of small integers are exact in `float32` as long as they stay below 2^24. The
//! weights are known, so the largest sum that any data can give is known, too: convolutions that
//! could pass the bound are refused, products are cut into pieces along their depth that cannot.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, Conv, ConvInteger, MatMulInteger, QLinearConv};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Result};

use super::conv::{Algorithm, Convolve, Operands, Shape};
use super::gemm::{Depth, NO_CLAMP, Panels, Product, RowStarts, Rows, multiply_split, pack};
use super::isa::{Isa, Simd, Task, read, write};
use crate::frame::{Build, CpuRun, Io, Kernel, PackKey};
use crate::registry::KernelRegistry;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<QLinearConv>(
        |op, node| accepts(quantized(&op.conv, node, &Places::Q_LINEAR)),
        |op, node, build| kernel(quantized(&op.conv, node, &Places::Q_LINEAR), node, build),
    );
    registry.add::<ConvInteger>(
        |op, node| accepts(quantized(&op.conv, node, &Places::INTEGER)),
        |op, node, build| kernel(quantized(&op.conv, node, &Places::INTEGER), node, build),
    );
    registry.add::<MatMulInteger>(
        |_, node| accepts(Matrices::of(node)),
        |_, node, build| matrix_kernel(node, build, Isa::best()),
    );
}

/// Sums are exact below.
const EXACT: f32 = (1 << 24) as f32;
/// The largest magnitude of an 8-bit integer without its zero point.
const LARGEST: f32 = 255.0;

fn accepts<T>(plan: Option<T>) -> Result<(), Refusal> {
    match plan {
        Some(_) => Ok(()),
        None => Err(Refusal::new(
            "the SIMD integer products: weights or scales that are not constant, not 8 bits, or \
             sums that may not be exact",
        )),
    }
}

/// Where the inputs of an operator are.
struct Places {
    weights: usize,
    data_zero: usize,
    weights_zero: usize,
    /// Scales of data, weights and output, zero point of the output, bias.
    scales: Option<[usize; 5]>,
}

impl Places {
    const Q_LINEAR: Places = Places {
        weights: 3,
        data_zero: 2,
        weights_zero: 5,
        scales: Some([1, 4, 6, 7, 8]),
    };
    const INTEGER: Places = Places {
        weights: 1,
        data_zero: 2,
        weights_zero: 3,
        scales: None,
    };
}

fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::U8)
}

/// The elements of a known tensor; a missing one is a single zero.
fn known(node: &NodeSpec, i: usize) -> Option<Vec<f32>> {
    match node.input(i) {
        None => Some(vec![0.0]),
        Some(spec) => {
            let values = spec.value.as_ref()?.to_f64s().ok()?;
            Some(values.into_iter().map(|v| v as f32).collect())
        }
    }
}

/// The weights without their zero points, `each` neighbours for each of several.
fn centred(node: &NodeSpec, places: &Places, each: usize) -> Option<Vec<f32>> {
    let mut weights = known(node, places.weights)?;
    let zero = known(node, places.weights_zero)?;
    if zero.len() != 1 && zero.len() * each != weights.len() {
        return None;
    }
    for (i, w) in weights.iter_mut().enumerate() {
        *w -= zero[i / each % zero.len()];
    }
    Some(weights)
}

/// What becomes of a sum.
#[derive(Debug)]
enum Finish {
    /// It is the output, in `int32`.
    Sum,
    /// Scaled for each channel, and rounded to 8 bits around a zero point.
    Scale {
        factors: Vec<f32>,
        zero: f32,
        signed: bool,
    },
}

/// A convolution to build.
struct Quantized {
    shape: Shape,
    channels_last: bool,
    weights: Vec<f32>,
    bias: Option<Vec<f32>>,
    data: Data,
    finish: Finish,
    algorithm: Algorithm,
}

/// The data: 8 bits, and its zero point, known or an input.
#[derive(Clone, Copy, Debug)]
struct Data {
    signed: bool,
    zero: Option<f32>,
    zero_input: usize,
}

impl Data {
    fn of(node: &NodeSpec, zero_input: usize) -> Option<Data> {
        let signed = match node.input(0)?.dtype {
            DType::I8 => true,
            DType::U8 => false,
            _ => return None,
        };
        let zero = match node.input(zero_input) {
            None => Some(0.0),
            Some(spec) if spec.elements() != 1 => return None,
            Some(spec) if spec.value.is_none() => None,
            Some(_) => Some(*known(node, zero_input)?.first()?),
        };
        Some(Data {
            signed,
            zero,
            zero_input,
        })
    }

    fn zero(&self, io: &Io) -> f32 {
        self.zero.unwrap_or_else(|| {
            let byte = io.input_bytes(self.zero_input)[0];
            if self.signed {
                f32::from(byte as i8)
            } else {
                f32::from(byte)
            }
        })
    }
}

fn quantized(op: &Conv, node: &NodeSpec, places: &Places) -> Option<Quantized> {
    let (x, w) = (node.input(0)?, node.input(places.weights)?);
    // The kernels compute channels-last; data in the other layout is turned on the way in and out.
    let spatial = x.shape.get(2..)?;
    let last: Vec<usize> = if op.channels_last {
        x.shape.clone()
    } else {
        let (n, c) = (x.shape[0], x.shape[1]);
        [n].into_iter()
            .chain(spatial.iter().copied())
            .chain([c])
            .collect()
    };
    let turned = Conv {
        channels_last: true,
        ..op.clone()
    };
    let shape = Shape::new(&turned, &last, &w.shape)?;
    let narrow = is_narrow(x.dtype) && is_narrow(w.dtype) && op.activation == Activation::None;
    narrow.then_some(())?;
    let filter = w.shape[1..].iter().product();
    let weights = centred(node, places, filter)?;
    let (mut bias, mut finish) = (None, Finish::Sum);
    if let Some([sx, sw, sy, zero, b]) = places.scales {
        let [sx, sw, sy, zero] = [sx, sw, sy, zero].map(|i| known(node, i));
        let (sx, sw, sy, zero) = (sx?, sw?, sy?, zero?);
        let one = |v: &[f32]| v.len() == 1;
        (one(&sx) && one(&sy) && one(&zero) && (one(&sw) || sw.len() == shape.m)).then_some(())?;
        is_narrow(node.outputs[0].dtype).then_some(())?;
        let factor =
            |i: usize| (f64::from(sx[0]) * f64::from(sw[i % sw.len()]) / f64::from(sy[0])) as f32;
        finish = Finish::Scale {
            factors: (0..shape.m).map(factor).collect(),
            zero: zero[0],
            signed: node.outputs[0].dtype == DType::I8,
        };
        if node.input(b).is_some() {
            bias = Some(known(node, b).filter(|b| b.len() == shape.m)?);
        }
    }
    let sums = weights.chunks_exact(filter.max(1)).enumerate();
    let bound = |(i, w): (usize, &[f32])| {
        let most: f32 = w.iter().map(|w| w.abs()).sum::<f32>() * LARGEST;
        most + bias.as_ref().map_or(0.0, |b| b[i].abs())
    };
    if !sums.map(bound).all(|b| b < EXACT) {
        return None;
    }
    let depthwise = shape.groups == shape.m && shape.groups == shape.window.channels;
    Some(Quantized {
        shape,
        channels_last: op.channels_last,
        weights,
        bias,
        data: Data::of(node, places.data_zero)?,
        finish,
        algorithm: if depthwise {
            Algorithm::Depthwise
        } else {
            Algorithm::Dense
        },
    })
}

fn kernel(plan: Option<Quantized>, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
    convolution(plan, node, build, Isa::best())
}

fn convolution(
    plan: Option<Quantized>,
    node: &NodeSpec,
    build: &mut Build,
    isa: Isa,
) -> Result<Box<dyn Kernel>> {
    let plan = plan.ok_or_else(|| unsupported("an integer convolution of this kind"))?;
    let weights = if matches!(plan.finish, Finish::Sum) {
        Places::INTEGER.weights
    } else {
        Places::Q_LINEAR.weights
    };
    let key = PackKey {
        kind: "integer convolution",
        parameters: [plan.algorithm as usize, isa.lanes(), plan.shape.groups, 0],
    };
    let packed = build.pack(node, weights, key, || {
        plan.algorithm.pack(isa, &plan.shape, &plan.weights)
    })?;
    let convolve =
        plan.algorithm
            .prepare(isa, plan.shape, Activation::None, packed, build.threads());
    Ok(Box::new(Convolution {
        isa,
        shape: plan.shape,
        channels_last: plan.channels_last,
        bias: plan.bias,
        data: plan.data,
        finish: plan.finish,
        convolve,
    }))
}

struct Convolution {
    isa: Isa,
    shape: Shape,
    channels_last: bool,
    bias: Option<Vec<f32>>,
    data: Data,
    finish: Finish,
    convolve: Box<dyn Convolve>,
}

impl Convolution {
    /// Elements of input, output, and scratch memory of the convolution.
    fn sizes(&self) -> [usize; 3] {
        let w = &self.shape.window;
        let pixels = w.batch * w.y.output * w.x.output;
        [
            w.batch * w.image(),
            pixels * self.shape.m,
            self.convolve.scratch(),
        ]
    }
}

impl Kernel for Convolution {
    fn run(&self, io: &mut Io) -> Result<()> {
        let [input, output, scratch] = self.sizes();
        let zero = self.data.zero(io);
        let from = io.input_bytes(0);
        let memory = io.scratch::<f32>(input + output + scratch);
        let (data, memory) = memory.split_at_mut(input);
        let (sums, scratch) = memory.split_at_mut(output);
        let w = &self.shape.window;
        let channels = (!self.channels_last).then_some(w.channels);
        for (from, to) in from
            .chunks_exact(w.image())
            .zip(data.chunks_exact_mut(w.image()))
        {
            widen(from, self.data.signed, zero, channels, to);
        }
        let operands = Operands {
            input: data,
            bias: self.bias.as_deref(),
            residual: None,
        };
        self.convolve.convolve(io.cpu(), &operands, sums, scratch);
        let m = (!self.channels_last).then_some(self.shape.m);
        let image = output / w.batch;
        match &self.finish {
            Finish::Sum => {
                let to: &mut [i32] = io.output(0);
                for (from, to) in sums.chunks_exact(image).zip(to.chunks_exact_mut(image)) {
                    narrow(from, m, to, |x| x as i32);
                }
            }
            Finish::Scale {
                factors,
                zero,
                signed,
            } => {
                let (low, high) = if *signed {
                    (-128.0, 127.0)
                } else {
                    (0.0, 255.0)
                };
                self.isa.dispatch(Scale {
                    sums: &mut *sums,
                    factors,
                    zero: *zero,
                    range: (low, high),
                });
                let to = io.output_bytes(0);
                for (from, to) in sums.chunks_exact(image).zip(to.chunks_exact_mut(image)) {
                    // The low byte is the same for both signs.
                    narrow(from, m, to, |x| x as i32 as u8);
                }
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.sizes().iter().sum::<usize>() * size_of::<f32>()
    }
}

/// Pixels that are turned together, so that both layouts stay in the cache.
const PIXELS: usize = 64;

/// Widens 8-bit integers and takes off their zero point. With `channels`, from one image of
/// channels-first data to channels-last.
fn widen(from: &[u8], signed: bool, zero: f32, channels: Option<usize>, to: &mut [f32]) {
    if signed {
        turn_in(from, channels, to, |b| f32::from(b as i8) - zero);
    } else {
        turn_in(from, channels, to, |b| f32::from(b) - zero);
    }
}

#[inline(always)]
fn turn_in(from: &[u8], channels: Option<usize>, to: &mut [f32], widen: impl Fn(u8) -> f32) {
    let Some(channels) = channels.filter(|&c| c > 1) else {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = widen(from);
        }
        return;
    };
    let pixels = from.len() / channels;
    for (block, to) in to.chunks_mut(PIXELS * channels).enumerate() {
        let first = block * PIXELS;
        for c in 0..channels {
            let plane = &from[c * pixels + first..][..to.len() / channels];
            for (to, &from) in to[c..].iter_mut().step_by(channels).zip(plane) {
                *to = widen(from);
            }
        }
    }
}

/// Converts elements; with `channels`, from one image of channels-last data to channels-first.
#[inline(always)]
fn narrow<T: Copy>(
    from: &[f32],
    channels: Option<usize>,
    to: &mut [T],
    convert: impl Fn(f32) -> T,
) {
    let Some(channels) = channels.filter(|&c| c > 1) else {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = convert(from);
        }
        return;
    };
    let pixels = from.len() / channels;
    for (block, from) in from.chunks(PIXELS * channels).enumerate() {
        let first = block * PIXELS;
        for c in 0..channels {
            let plane = &mut to[c * pixels + first..][..from.len() / channels];
            for (to, &from) in plane.iter_mut().zip(from[c..].iter().step_by(channels)) {
                *to = convert(from);
            }
        }
    }
}

/// Scales rows of sums, rounds them, and adds the zero point.
struct Scale<'a> {
    sums: &'a mut [f32],
    factors: &'a [f32],
    zero: f32,
    range: (f32, f32),
}

impl Task for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let n = self.factors.len();
        let (low, high) = (s.splat(self.range.0), s.splat(self.range.1));
        let zero = s.splat(self.zero);
        for row in self.sums.chunks_exact_mut(n) {
            for i in (0..n).step_by(S::LANES) {
                // SAFETY: `i` and what is left behind it are inside of the row and the factors.
                unsafe {
                    let (sums, factors) = (row.as_mut_ptr().add(i), self.factors.as_ptr().add(i));
                    if n - i >= S::LANES {
                        let y = s.add(s.round(s.mul(s.load(sums), s.load(factors))), zero);
                        s.store(sums, s.min(s.max(y, low), high));
                    } else {
                        let count = n - i;
                        let x = read::<S, false>(s, sums, count);
                        let f = read::<S, false>(s, factors, count);
                        let y = s.add(s.round(s.mul(x, f)), zero);
                        write::<S, false>(s, sums, s.min(s.max(y, low), high), count);
                    }
                }
            }
        }
    }
}

/// A matrix product to build.
struct Matrices {
    m: usize,
    k: usize,
    n: usize,
    /// `[k, n]`, without its zero points.
    b: Vec<f32>,
    /// Rows of B whose sums are exact.
    pieces: Vec<Range<usize>>,
    data: Data,
}

impl Matrices {
    fn of(node: &NodeSpec) -> Option<Matrices> {
        let (a, b) = (node.input(0)?, node.input(1)?);
        let &[k, n] = b.shape.as_slice() else {
            return None;
        };
        let narrow = is_narrow(a.dtype) && is_narrow(b.dtype);
        let fits = a.shape.len() >= 2 && a.shape.last() == Some(&k) && k > 0 && n > 0;
        (narrow && fits && a.elements() > 0).then_some(())?;
        let zero = known(node, 3)?;
        let columns = zero.len() == 1 || (zero.len() == n && node.input(3)?.shape.len() == 1);
        columns.then_some(())?;
        let mut elements = known(node, 1)?;
        for (i, x) in elements.iter_mut().enumerate() {
            *x -= zero[i % n % zero.len()];
        }
        Some(Matrices {
            m: a.elements() / k,
            k,
            n,
            pieces: pieces(&elements, n),
            b: elements,
            data: Data::of(node, 2)?,
        })
    }
}

/// Cuts a matrix into runs of rows whose columns' sums stay exact.
fn pieces(b: &[f32], n: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut sums = vec![0.0f32; n];
    let mut first = 0;
    for (k, row) in b.chunks_exact(n).enumerate() {
        let over = sums
            .iter()
            .zip(row)
            .any(|(s, x)| (s + x.abs()) * LARGEST >= EXACT);
        if over {
            pieces.push(first..k);
            first = k;
            sums.fill(0.0);
        }
        for (s, x) in sums.iter_mut().zip(row) {
            *s += x.abs();
        }
    }
    pieces.push(first..b.len() / n);
    pieces
}

fn matrix_kernel(node: &NodeSpec, build: &mut Build, isa: Isa) -> Result<Box<dyn Kernel>> {
    let plan = Matrices::of(node).ok_or_else(|| unsupported("an integer product of this kind"))?;
    let panels = Panels::new(isa, plan.n);
    let key = PackKey {
        kind: "integer matrix",
        parameters: [isa.lanes(), 0, 0, 0],
    };
    let packed = build.pack(node, 1, key, || {
        let bytes = panels.elements(plan.k) * size_of::<f32>();
        let mut bytes = AlignedBytes::zeroed(bytes)?;
        let to: &mut [f32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
        for piece in &plan.pieces {
            let to = &mut to[panels.elements(piece.start)..panels.elements(piece.end)];
            let rows = RowStarts::even(piece.len(), plan.n);
            pack(panels, &plan.b[piece.start * plan.n..], rows, 1, |x| x, to);
        }
        Ok(bytes)
    })?;
    let depths = plan
        .pieces
        .iter()
        .map(|p| Depth::dense(isa, p.len()))
        .collect();
    Ok(Box::new(IntegerProduct {
        isa,
        m: plan.m,
        k: plan.k,
        n: plan.n,
        pieces: plan.pieces,
        depths,
        panels,
        packed,
        data: plan.data,
        threads: build.threads(),
    }))
}

struct IntegerProduct {
    isa: Isa,
    m: usize,
    k: usize,
    n: usize,
    pieces: Vec<Range<usize>>,
    depths: Vec<Depth>,
    panels: Panels,
    packed: Arc<AlignedBytes>,
    data: Data,
    threads: usize,
}

impl IntegerProduct {
    fn sums(&self, cpu: CpuRun, piece: usize, a: &[f32], sums: &mut [f32]) {
        let rows = &self.pieces[piece];
        let packed: &[f32] = bytemuck::cast_slice(self.packed.as_slice());
        let b = self.panels.elements(rows.start)..self.panels.elements(rows.end);
        assert!(a.len() == self.m * self.k && sums.len() == self.m * self.n);
        let product = Product {
            isa: self.isa,
            a: a[rows.start..].as_ptr(),
            rows: Rows::Strided(self.k),
            depth: &self.depths[piece],
            b: packed[b].as_ptr(),
            m: self.m,
            n: self.n,
            c: sums.as_mut_ptr(),
            c_stride: self.n,
            bias: std::ptr::null(),
            residual: std::ptr::null(),
            clamp: NO_CLAMP,
        };
        // SAFETY: A and C have the sizes asserted above; the piece's rows are columns of A.
        unsafe { multiply_split(&product, cpu, self.threads) }
    }
}

impl Kernel for IntegerProduct {
    fn run(&self, io: &mut Io) -> Result<()> {
        let zero = self.data.zero(io);
        let from = io.input_bytes(0);
        let (a, c) = (self.m * self.k, self.m * self.n);
        let (a, sums) = io.scratch::<f32>(a + c).split_at_mut(a);
        widen(from, self.data.signed, zero, None, a);
        let to: &mut [i32] = io.output(0);
        for piece in 0..self.pieces.len() {
            self.sums(io.cpu(), piece, a, sums);
            for (to, &sum) in to.iter_mut().zip(sums.iter()) {
                *to = if piece == 0 { 0 } else { *to } + sum as i32;
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.m * (self.k + self.n) * size_of::<f32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{noise, tensor};
    use crate::frame::run_candidate;
    use crate::simd::testing::Made;
    #[cfg(target_arch = "wasm32")]
    use crate::simd::testing::test;
    use kilim_core::Tensor;
    use kilim_core::backend::TensorSpec;
    use kilim_core::ops::Padding;

    fn bytes(n: usize, seed: u32) -> Vec<u8> {
        noise(n, seed)
            .iter()
            .map(|v| ((v + 1.0) * 127.5) as u8)
            .collect()
    }

    fn run(
        op: &dyn kilim_core::Operator,
        inputs: &[Option<&Tensor>],
        output: TensorSpec,
        make: impl Fn(&NodeSpec, &mut Build) -> Result<Box<dyn Kernel>> + Send + Sync,
    ) -> Tensor {
        let inputs: Vec<_> = inputs.iter().map(|i| i.map(TensorSpec::of)).collect();
        let node = NodeSpec {
            name: "test",
            op,
            inputs: &inputs,
            outputs: &[output],
        };
        run_candidate(&Made(make), &node)
            .expect("the kernel runs")
            .remove(0)
    }

    #[test]
    fn matrices() {
        // The last is so deep that sums must be taken apart.
        for (m, k, n) in [(1, 7, 5), (6, 64, 33), (3, 1000, 20)] {
            let (a, b) = (bytes(m * k, 1), bytes(k * n, 2));
            let (za, zb) = (131i32, bytes(n, 3));
            let want: Vec<i32> = (0..m * n)
                .map(|i| {
                    let (row, column) = (i / n, i % n);
                    let term = |x: usize| {
                        (i32::from(a[row * k + x]) - za)
                            * (i32::from(b[x * n + column] as i8) - i32::from(zb[column] as i8))
                    };
                    (0..k).map(term).sum()
                })
                .collect();
            let signed = |v: &[u8]| v.iter().map(|&b| b as i8).collect::<Vec<_>>();
            let (a, b) = (tensor(&[m, k], &a), tensor(&[k, n], &signed(&b)));
            let (za, zb) = (tensor(&[], &[za as u8]), tensor(&[n], &signed(&zb)));
            let inputs = [Some(&a), Some(&b), Some(&za), Some(&zb)];
            for isa in Isa::available() {
                let output = TensorSpec::new(DType::I32, &[m, n]);
                let got = run(&MatMulInteger, &inputs, output, |node, build| {
                    matrix_kernel(node, build, isa)
                });
                assert_eq!(
                    got.as_slice::<i32>().expect("int32"),
                    want,
                    "{m} {k} {n} {isa:?}"
                );
            }
        }
    }

    #[test]
    fn deep_sums_are_taken_apart() {
        assert_eq!(pieces(&[255.0; 600], 1), [0..258, 258..516, 516..600]);
        assert_eq!(pieces(&[1.0; 600], 2), vec![0..300; 1]);
    }

    #[test]
    fn convolutions() {
        for (channels_last, groups, c, m, padded) in [
            (false, 1, 3, 10, 1),
            (true, 1, 8, 9, 0),
            (false, 12, 12, 12, 1),
            (true, 2, 6, 4, 1),
        ] {
            let (h, w, k) = (7, 9, 3);
            let (oh, ow) = (h + 2 * padded - 2, w + 2 * padded - 2);
            let x = bytes(2 * h * w * c, 1);
            let weights: Vec<i8> = bytes(m * c / groups * k * k, 2)
                .iter()
                .map(|&b| b as i8)
                .collect();
            let bias: Vec<i32> = (0..m as i32).map(|i| i * 1000 - 3000).collect();
            let scales: Vec<f32> = (0..m).map(|i| 0.001 * (i + 1) as f32).collect();
            let at = |n: usize, y: usize, x: usize, ch: usize| {
                if channels_last {
                    ((n * h + y) * w + x) * c + ch
                } else {
                    ((n * c + ch) * h + y) * w + x
                }
            };
            let (zx, zy) = (120u8, 7u8);
            let mut want = vec![0u8; 2 * oh * ow * m];
            for i in 0..want.len() {
                let (rest, o) = (i / m, i % m);
                let (n, oy, ox) = (rest / ow / oh, rest / ow % oh, rest % ow);
                let mut sum = i64::from(bias[o]);
                for (ky, kx, ch) in (0..k * k * c / groups)
                    .map(|t| (t / (k * c / groups), t / (c / groups) % k, t % (c / groups)))
                {
                    let y = (oy + ky).wrapping_sub(padded);
                    let xx = (ox + kx).wrapping_sub(padded);
                    if y < h && xx < w {
                        let v = x[at(n, y, xx, o / (m / groups) * (c / groups) + ch)];
                        let weight = weights[((o * (c / groups) + ch) * k + ky) * k + kx];
                        sum += (i64::from(v) - i64::from(zx)) * i64::from(weight);
                    }
                }
                let v = (sum as f64 * 0.02 * f64::from(scales[o]) / 0.5).round_ties_even();
                let to = if channels_last {
                    i
                } else {
                    ((n * m + o) * oh + oy) * ow + ox
                };
                want[to] = (v + f64::from(zy)).clamp(0.0, 255.0) as u8;
            }
            let shape = |n, h, w, c| {
                if channels_last {
                    [n, h, w, c]
                } else {
                    [n, c, h, w]
                }
            };
            let op = QLinearConv {
                conv: Conv {
                    strides: vec![1; 2],
                    dilations: vec![1; 2],
                    padding: Padding::Explicit(vec![padded; 4]),
                    groups,
                    channels_last,
                    activation: Activation::None,
                },
            };
            let x = tensor(&shape(2, h, w, c), &x);
            let weights = tensor(&[m, c / groups, k, k], &weights);
            let inputs = [
                x,
                tensor(&[], &[0.02f32]),
                tensor(&[], &[zx]),
                weights,
                tensor(&[m], &scales),
                tensor(&[], &[0i8]),
                tensor(&[], &[0.5f32]),
                tensor(&[], &[zy]),
                tensor(&[m], &bias),
            ];
            let inputs: Vec<_> = inputs.iter().map(Some).collect();
            for isa in Isa::available() {
                let output = TensorSpec::new(DType::U8, &shape(2, oh, ow, m));
                let got = run(&op, &inputs, output, |node, build| {
                    convolution(
                        quantized(&op.conv, node, &Places::Q_LINEAR),
                        node,
                        build,
                        isa,
                    )
                });
                let got = got.as_slice::<u8>().expect("uint8");
                let off = got.iter().zip(&want).filter(|(g, w)| g != w).count();
                assert_eq!(off, 0, "{channels_last} {groups} {isa:?}: {off} differ");
            }
        }
    }
}
