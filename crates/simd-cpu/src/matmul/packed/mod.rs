//! MatMulNBits of `float32`: weights are widened in registers for a few rows, a panel at a time for many. Where A may be
//! rounded to bytes, they are multiplied as they are.

mod bytes;
mod panel;
mod row;
#[cfg(test)]
mod tests;

use std::array::from_fn;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, MatMulNBits};
use kilim_core::{DType, Result};

use crate::gemm::{Depth, Rows};
use crate::isa::{Isa, Simd};
use crate::math::{ACTIVATION_COST, activate_piece};
use kilim_host::registry::KernelRegistry;
use kilim_host::{CpuRun, Io, Kernel, Scratch, by};

/// Blocks are multiples of this, a multiple of the lanes of every instruction set.
const BLOCK: usize = 16;

/// Rows of A from which on a panel is widened once for all of them instead of once for each.
const MANY_ROWS: usize = 4;

/// Rows of weights that are multiplied with a row of A together: their sums hide each other's latency.
const ROWS: usize = 4;

/// Numbers of rows below `count` that are multiplied together: one of each quarter of them, from its first row to its last. Each quarter is a long stretch of
/// memory, in which machines look ahead; a row is too short for that. Where a quarter has fewer rows, the last of all stands in.
fn spaced(count: usize) -> impl Iterator<Item = [usize; ROWS]> {
    let each = count.div_ceil(ROWS);
    (0..each).map(move |i| from_fn(|r| (r * each + i).min(count - 1)))
}

/// Blocks whose zero points are unpacked at a time; a whole number of vectors of weights.
const SPAN: usize = 64;

/// Operations of widening a number.
const COST: usize = 2;

/// Bytes from weights that are multiplied to those that are fetched, and from scales to scales. Several rows and their
/// scales are more streams than machines look ahead in by themselves.
const AHEAD: usize = 2304;
const SCALES_AHEAD: usize = 576;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add::<MatMulNBits>(
        |op, node| match Plan::of(op, node) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(
                "the SIMD product with packed weights: not float32, listed blocks, blocks that are no multiples of 16, or an empty tensor",
            )),
        },
        |op, node, _| kernel(op, node, Isa::best()),
    );
}

fn kernel(op: &MatMulNBits, node: &NodeSpec, isa: Isa) -> Result<Box<dyn Kernel>> {
    let plan = Plan::of(op, node).ok_or_else(|| unsupported("packed weights of these shapes"))?;
    let joined = [6, 7].iter().any(|&i| node.input(i).is_some());
    let finish = (joined || op.activation != Activation::None).then_some(op.activation);
    Ok(Box::new(Multiplication {
        isa,
        product: product(op, plan, isa),
        finish,
    }))
}

fn product(op: &MatMulNBits, plan: Plan, isa: Isa) -> Box<dyn Product> {
    let few = plan.m < MANY_ROWS;
    if op.int8 && bytes::takes(&plan) {
        return match few {
            true => Box::new(bytes::Few::new(isa, plan)),
            false => Box::new(bytes::Many::new(isa, plan)),
        };
    }
    if few {
        return Box::new(Few { isa, plan });
    }
    let depth = Depth::dense(isa, plan.k);
    Box::new(Many { isa, plan, depth })
}

/// A product with its bias.
trait Product: Send + Sync {
    /// Writes all of `y`.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn multiply(&self, io: &mut Io, y: &mut [f32]) -> Result<()>;

    /// The memory that [`Kernel::scratch`] asks for.
    fn scratch(&self) -> Scratch;
}

/// A product, and what comes behind it.
struct Multiplication {
    isa: Isa,
    product: Box<dyn Product>,
    /// The activation, where there is any, an addend or a factor.
    finish: Option<Activation>,
}

impl Kernel for Multiplication {
    fn run(&self, io: &mut Io) -> Result<()> {
        let y: &mut [f32] = io.output(0);
        self.product.multiply(io, y)?;
        let Some(activation) = self.finish else {
            return Ok(());
        };
        let (addend, factor) = (io.optional::<f32>(6), io.optional::<f32>(7));
        io.cpu()
            .rows(y.len(), by(y, 1), ACTIVATION_COST, |piece, y, _| {
                if let Some(addend) = addend {
                    let pairs = y.iter_mut().zip(&addend[piece.clone()]);
                    pairs.for_each(|(y, addend)| *y += addend);
                }
                activate_piece(self.isa, activation, y);
                if let Some(factor) = factor {
                    let pairs = y.iter_mut().zip(&factor[piece]);
                    pairs.for_each(|(y, factor)| *y *= factor);
                }
                Ok(())
            })
    }

    fn scratch(&self) -> Scratch {
        self.product.scratch()
    }
}

/// Sizes of a product.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    m: usize,
    k: usize,
    n: usize,
    bits: usize,
    /// Columns of a block.
    block: usize,
    /// Blocks of a row of weights.
    blocks: usize,
    /// Bytes of a block.
    bytes: usize,
    /// Bytes of the packed zero points of a row.
    zero_bytes: usize,
    /// Columns of a row of weights with the rest of the last block.
    padded: usize,
    zeros: Option<DType>,
}

impl Plan {
    fn of(op: &MatMulNBits, node: &NodeSpec) -> Option<Plan> {
        let a = node.input(0)?;
        let computes = a.dtype == DType::F32 && node.input(4).is_none();
        let zeros = node.input(3).map(|zeros| zeros.dtype);
        Plan::new(op, a.elements() / op.k, zeros).filter(|_| computes)
    }

    /// The product of `m` rows with zero points of a type, if there are any; `None` where the kernels lack it.
    pub fn new(op: &MatMulNBits, m: usize, zeros: Option<DType>) -> Option<Plan> {
        let (k, n, bits, block) = (op.k, op.n, op.bits, op.block);
        let [blocks, bytes, zero_bytes] = op.row().ok()?;
        let plan = Plan {
            m,
            k,
            n,
            bits,
            block,
            blocks,
            bytes,
            zero_bytes,
            padded: blocks.checked_mul(block)?,
            zeros,
        };
        let fits = block.is_multiple_of(BLOCK) && u32::try_from(k).is_ok();
        (fits && plan.m > 0 && n > 0).then_some(plan)
    }

    /// The product of `m` rows with the same weights.
    pub fn of_rows(&self, m: usize) -> Plan {
        Plan { m, ..self.clone() }
    }

    /// Whether no block ends beyond a row.
    pub fn is_whole(&self) -> bool {
        self.padded == self.k
    }

    /// Scales of all rows of weights.
    pub fn scales(&self) -> usize {
        self.n * self.blocks
    }
}

enum Zeros<'a> {
    /// Half of the range.
    Middle,
    Packed(&'a [u8]),
    Real(&'a [f32]),
}

/// The weights of a run.
pub(super) struct Weights<'a> {
    plan: &'a Plan,
    packed: &'a [u8],
    scales: &'a [f32],
    zeros: Zeros<'a>,
}

/// Neighbouring weights of a row with their scale and zero point.
#[derive(Clone, Copy)]
struct Block<'a> {
    bytes: &'a [u8],
    scale: f32,
    zero: f32,
}

impl<'a> Weights<'a> {
    fn of(plan: &'a Plan, io: &Io<'a>) -> Weights<'a> {
        Weights::at(plan, io, 1, 0)
    }

    /// The weights of a matrix behind others: inputs `first` and the next two hold the numbers, the scales and the zero points of all.
    pub fn at<'b: 'a>(plan: &'a Plan, io: &Io<'b>, first: usize, matrix: usize) -> Weights<'a> {
        let rows = plan.n * matrix;
        let (scale, zeros) = (rows * plan.blocks, first + 2);
        Weights {
            plan,
            packed: &io.input(first)[scale * plan.bytes..],
            scales: &io.input(first + 1)[scale..],
            zeros: match plan.zeros {
                None => Zeros::Middle,
                Some(DType::U8) => Zeros::Packed(&io.input(zeros)[rows * plan.zero_bytes..]),
                Some(_) => Zeros::Real(&io.input(zeros)[scale..]),
            },
        }
    }

    /// A block of row `j`; a number has `BITS` bits.
    #[inline(always)]
    fn block<const BITS: usize>(&self, j: usize, block: usize) -> Block<'a> {
        let p = self.plan;
        let at = j * p.blocks + block;
        Block {
            bytes: &self.packed[at * p.bytes..][..p.bytes],
            scale: self.scales[at],
            zero: match self.zeros {
                Zeros::Middle => (1 << (BITS - 1)) as f32,
                Zeros::Packed(zeros) => {
                    let byte = zeros[j * p.zero_bytes + block / (8 / BITS)];
                    let shift = block % (8 / BITS) * BITS;
                    f32::from((byte >> shift) & (u8::MAX >> (8 - BITS)))
                }
                Zeros::Real(zeros) => zeros[at],
            },
        }
    }
}

impl Weights<'_> {
    /// Where the zero points of row `j` are, from block `first` on: unpacked ones are written to `room`, and what is there stays where there are none.
    #[inline(always)]
    pub fn points<const BITS: usize>(
        &self,
        j: usize,
        first: usize,
        room: &mut [f32; SPAN],
    ) -> *const f32 {
        let p = self.plan;
        match self.zeros {
            Zeros::Middle => {}
            Zeros::Real(zeros) => return zeros[j * p.blocks + first..].as_ptr(),
            Zeros::Packed(zeros) => {
                // Spans begin at a whole byte.
                let bytes = &zeros[j * p.zero_bytes..][..p.zero_bytes][first * BITS / 8..];
                for (to, byte) in room.chunks_exact_mut(8 / BITS).zip(bytes) {
                    for (i, to) in to.iter_mut().enumerate() {
                        *to = f32::from((byte >> (i * BITS)) & (u8::MAX >> (8 - BITS)));
                    }
                }
            }
        }
        room.as_ptr()
    }
}

/// Numbers `at..at + LANES` of `BITS` bits.
///
/// # Safety
/// `bytes` holds them.
#[inline(always)]
unsafe fn numbers<S: Simd, const BITS: usize>(s: S, bytes: &[u8], at: usize) -> S::V {
    let p = bytes.as_ptr().wrapping_add(at * BITS / 8);
    // SAFETY: `bytes` holds the numbers `at..at + LANES`, which begin at `p`.
    unsafe {
        match BITS {
            2 => s.load_u2(p),
            4 => s.load_u4(p),
            _ => s.load_u8(p),
        }
    }
}

/// A product with few rows.
struct Few {
    isa: Isa,
    plan: Plan,
}

impl Product for Few {
    fn multiply(&self, io: &mut Io, y: &mut [f32]) -> Result<()> {
        let a: &[f32] = io.input(0);
        let scratch = io.scratch::<f32>(row::room(self.isa, &self.plan));
        let (weights, bias) = (Weights::of(&self.plan, io), io.optional(5));
        let (k, n) = (self.plan.k, self.plan.n);
        for (a, y) in a.chunks_exact(k).zip(y.chunks_exact_mut(n)) {
            row::multiply(io.cpu(), self.isa, &weights, a, bias, y, scratch)?;
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<f32>(row::room(self.isa, &self.plan))
    }
}

/// A product with many rows.
struct Many {
    isa: Isa,
    plan: Plan,
    depth: Depth,
}

impl Product for Many {
    fn multiply(&self, io: &mut Io, y: &mut [f32]) -> Result<()> {
        let a: &[f32] = io.input(0);
        let scratch = io.thread_scratch(panel::room(self.isa, &self.plan));
        let (weights, bias) = (Weights::of(&self.plan, io), io.optional(5));
        let product = panel::Panelled {
            isa: self.isa,
            depth: &self.depth,
            weights: &weights,
        };
        product.multiply(io.cpu(), a, Rows::Strided(self.plan.k), bias, y, scratch)
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<f32>(panel::room(self.isa, &self.plan))
    }
}

/// A product with some rows of A, and whole blocks.
pub(super) struct Listed<'a> {
    pub isa: Isa,
    pub depth: &'a Depth,
    pub weights: &'a Weights<'a>,
    pub a: &'a [f32],
    /// Where the rows of A begin.
    pub starts: &'a [u32],
    pub bias: Option<&'a [f32]>,
}

impl Listed<'_> {
    /// Elements of scratch memory of each thread.
    pub fn room(isa: Isa, plan: &Plan) -> usize {
        match plan.m < MANY_ROWS {
            true => row::room(isa, plan),
            false => panel::room(isa, plan),
        }
    }

    /// Writes the rows of the product behind each other. Of `scratch` each thread has [`Listed::room`].
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn multiply(&self, cpu: &CpuRun, y: &mut [f32], scratch: &mut [f32]) -> Result<()> {
        let plan = self.weights.plan;
        if self.starts.len() < MANY_ROWS {
            for (&start, y) in self.starts.iter().zip(y.chunks_exact_mut(plan.n)) {
                let a = &self.a[start as usize..][..plan.k];
                row::multiply(cpu, self.isa, self.weights, a, self.bias, y, scratch)?;
            }
            return Ok(());
        }
        let product = panel::Panelled {
            isa: self.isa,
            depth: self.depth,
            weights: self.weights,
        };
        product.multiply(
            cpu,
            self.a,
            Rows::Listed(self.starts),
            self.bias,
            y,
            scratch,
        )
    }
}
