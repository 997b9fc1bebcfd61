//! Matrix products with a constant right-hand side.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, Requantize};
use kilim_core::tensor::AlignedBytes;

use super::finish::Finish;
use super::product::{Panels, Product, Run, multiply_split};
use super::{Data, Places, SLACK, Terms, is_narrow};
use crate::isa::Isa;
use kilim_host::{Build, Io, Kernel, PackKey, Scratch, Table, by};

/// A matrix product to build.
pub(super) struct Plan {
    m: usize,
    k: usize,
    n: usize,
    /// Terms with weights `[k, n]`.
    terms: Terms,
}

impl Plan {
    pub(super) fn of(
        activation: Activation,
        again: Option<&Requantize>,
        node: &NodeSpec,
        places: &Places,
    ) -> Option<Plan> {
        let (a, b) = (node.input(0)?, node.input(places.weights)?);
        let &[k, n] = b.shape.as_slice() else {
            return None;
        };
        let narrow = is_narrow(a.dtype) && is_narrow(b.dtype);
        let fits = a.shape.len() >= 2 && a.shape.last() == Some(&k) && k > 0 && n > 0;
        (narrow && fits && a.elements() > 0).then_some(())?;
        u32::try_from(a.elements()).ok()?;
        if let Some(zero) = node.input(places.weights_zero) {
            let columns = zero.shape.len() == 1 && zero.elements() == n;
            (columns || zero.elements() == 1).then_some(())?;
        }
        Some(Plan {
            m: a.elements() / k,
            k,
            n,
            terms: places.terms(node, n, |i| i % n, activation, again)?,
        })
    }
}

pub(super) fn kernel(
    plan: Option<Plan>,
    node: &NodeSpec,
    build: &mut Build,
    isa: Isa,
) -> Result<Box<dyn Kernel>> {
    let plan = plan.ok_or_else(|| unsupported("an integer product of this kind"))?;
    let (n, panels) = (plan.n, Panels::new(isa, plan.n));
    let run = Run {
        offset: 0,
        len: plan.k,
    };
    let key = PackKey {
        kind: "integer matrix",
        parameters: [isa.pair_sizes().0, 0, 0, 0],
    };
    let packed = build.pack(node, plan.terms.place, key, |cpu| {
        let mut bytes = AlignedBytes::zeroed(panels.words(&[run]) * size_of::<i16>())?;
        let to = bytemuck::cast_slice_mut(bytes.as_mut_slice());
        panels.pack(
            cpu,
            &[run],
            |k, column| plan.terms.weights[k * n + column],
            to,
        )?;
        Ok(bytes)
    })?;
    Ok(Box::new(Matrices {
        isa,
        starts: build.table((0..plan.m).map(|row| (row * plan.k) as u32), 1)?,
        run,
        n,
        packed,
        bias: plan.terms.bias,
        data: plan.terms.data,
        finish: plan.terms.finish,
    }))
}

struct Matrices {
    isa: Isa,
    starts: Table<u32>,
    run: Run,
    n: usize,
    packed: Arc<AlignedBytes>,
    bias: Option<Vec<i32>>,
    data: Data,
    finish: Finish,
}

impl Matrices {
    /// Elements of A with room behind it, in `i32`, and of C where that is not the output.
    fn sizes(&self) -> [usize; 2] {
        let m = self.starts.len();
        let sums = match self.finish {
            Finish::Sum => 0,
            _ => m.saturating_mul(self.n),
        };
        [(m * self.run.len + SLACK).div_ceil(2), sums]
    }
}

impl Kernel for Matrices {
    fn run(&self, io: &mut Io) -> Result<()> {
        let [a, c] = self.sizes();
        let (a, mut sums) = io.scratch::<i32>(a + c).split_at_mut(a);
        if let Finish::Sum = self.finish {
            sums = io.output(0);
        }
        let a: &mut [i16] = bytemuck::cast_slice_mut(a);
        let zero = self.data.zero(io);
        let (cpu, x) = (io.cpu(), io.input_bytes(0));
        cpu.rows(x.len(), by(&mut a[..x.len()], 1), 1, |piece, a, _| {
            self.data.widen(self.isa, zero, &x[piece], a);
            Ok(())
        })?;
        let runs = [self.run];
        let packed: &[i16] = bytemuck::cast_slice(self.packed.as_slice());
        assert!(self.starts.len() * self.run.len < a.len());
        assert!(self.starts.len() * self.n == sums.len());
        let bias = self.bias.as_ref();
        let product = Product {
            a: a.as_ptr(),
            starts: &self.starts,
            runs: &runs,
            b: packed.as_ptr(),
            n: self.n,
            c: sums.as_mut_ptr(),
            c_stride: self.n,
            bias: bias.map_or(std::ptr::null(), |b| b.as_ptr()),
        };
        // SAFETY: all rows with an element behind them are in A; B is packed for one run of `n` columns, and
        // there is a bias for each column; C has `n` elements for each row.
        unsafe { multiply_split(cpu, self.isa, &product)? };
        if let Finish::Sum = self.finish {
            return Ok(());
        }
        let (rows, n) = (self.starts.len(), self.n);
        let both = (by(sums, n), by(io.output_bytes(0), n));
        cpu.rows(rows, both, n.saturating_mul(4), |_, (sums, to), _| {
            self.finish.bytes(self.isa, n, sums, to);
            Ok(())
        })
    }

    fn scratch(&self) -> Scratch {
        let [a, c] = self.sizes();
        Scratch::of::<i32>(a.saturating_add(c))
    }
}
