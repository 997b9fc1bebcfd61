//! Many rows of A: each thread widens a panel of weights and multiplies it with all rows.

use kilim_core::Result;
use kilim_host::CpuRun;

use super::{COST, Plan, Weights, numbers};
use crate::gemm::{
    Depth, Matrix, NO_CLAMP, Panels, Product, Reading, RowStarts, Rows, multiply, pack,
};
use crate::isa::{Isa, Simd, Task};

/// Rows of weights in a panel.
fn width(isa: Isa) -> usize {
    isa.tile_vectors() * isa.lanes()
}

/// Elements of scratch memory of a thread: the weights of a panel row by row, and packed.
pub(super) fn room(isa: Isa, plan: &Plan) -> usize {
    let row = plan.padded.saturating_add(plan.k);
    row.saturating_mul(width(isa))
}

/// A product whose weights are widened in panels.
pub(super) struct Panelled<'a> {
    pub isa: Isa,
    pub depth: &'a Depth,
    pub weights: &'a Weights<'a>,
}

impl Panelled<'_> {
    /// `y = a · wᵀ + bias` of some rows of `a`. Of `scratch` each thread has [`room`].
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn multiply(
        &self,
        cpu: &CpuRun,
        a: &[f32],
        rows: Rows,
        bias: Option<&[f32]>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) -> Result<()> {
        let p = self.weights.plan;
        assert!((0..p.m).all(|i| rows.start(i) + p.k <= a.len()) && y.len() == p.m * p.n);
        assert!(bias.is_none_or(|bias| bias.len() == p.n));
        let whole = Product {
            isa: self.isa,
            a: a.as_ptr(),
            rows,
            depth: self.depth,
            b: std::ptr::null::<f32>().into(),
            m: p.m,
            n: p.n,
            c: y.as_mut_ptr(),
            c_stride: p.n,
            bias: bias.map_or(std::ptr::null(), <[f32]>::as_ptr),
            residual: std::ptr::null(),
            clamp: NO_CLAMP,
        };
        let width = width(self.isa);
        let numbers = p.k.saturating_mul(width);
        let products = self.isa.cost(numbers.saturating_mul(p.m));
        let cost = numbers.saturating_mul(COST).saturating_add(products);
        let panels = p.n.div_ceil(width);
        cpu.rows_with(panels, (), scratch, cost, |piece, (), scratch, cpu| {
            for panel in piece {
                let first = panel * width;
                let columns = first..p.n.min(first + width);
                let part = Product {
                    b: self
                        .panel(cpu, first, columns.len(), scratch)?
                        .as_ptr()
                        .into(),
                    ..whole.columns(columns)
                };
                // SAFETY: the sizes of the slices are those of the product, and no other panel has these columns.
                unsafe { multiply(&part, cpu)? }
            }
            Ok(())
        })
    }

    /// `count` rows of weights from `first` on, packed.
    fn panel<'s>(
        &self,
        cpu: &CpuRun,
        first: usize,
        count: usize,
        scratch: &'s mut [f32],
    ) -> Result<&'s [f32]> {
        let p = self.weights.plan;
        let (rows, packed) = scratch.split_at_mut(width(self.isa) * p.padded);
        let rows = &mut rows[..count * p.padded];
        for (j, row) in rows.chunks_exact_mut(p.padded).enumerate() {
            self.isa.dispatch(Widen {
                cpu,
                weights: self.weights,
                j: first + j,
                row,
            })?;
        }
        let panels = Panels::new(self.isa, count);
        let matrix = Matrix {
            rows: RowStarts::even(p.k, 1),
            column_stride: p.padded,
            reading: Reading::PLAIN,
        };
        let packed = &mut packed[..panels.elements(p.k)];
        pack(cpu, panels, matrix, rows, packed)?;
        Ok(packed)
    }
}

/// Writes row `j` of the weights, the rest of the last block too.
struct Widen<'a> {
    cpu: &'a CpuRun<'a>,
    weights: &'a Weights<'a>,
    j: usize,
    row: &'a mut [f32],
}

impl Task for Widen<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Result<()> {
        match self.weights.plan.bits {
            2 => self.of_bits::<S, 2>(s),
            4 => self.of_bits::<S, 4>(s),
            _ => self.of_bits::<S, 8>(s),
        }
    }
}

impl Widen<'_> {
    #[inline(always)]
    fn of_bits<S: Simd, const BITS: usize>(self, s: S) -> Result<()> {
        let block = self.weights.plan.block;
        for (i, out) in self.row.chunks_exact_mut(block).enumerate() {
            self.cpu.spend(block * COST)?;
            let from = self.weights.block::<BITS>(self.j, i);
            let (scale, zero) = (s.splat(from.scale), s.splat(from.zero));
            for at in (0..block).step_by(S::LANES) {
                // SAFETY: blocks are multiples of the lanes, and `out` is as long as a block.
                unsafe {
                    let w = s.sub(numbers::<S, BITS>(s, from.bytes, at), zero);
                    s.store(out.as_mut_ptr().add(at), s.mul(w, scale));
                }
            }
        }
        Ok(())
    }
}
