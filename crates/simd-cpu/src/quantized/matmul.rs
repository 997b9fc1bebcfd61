//! Matrix products with a constant right-hand side.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, Requantize};
use kilim_core::tensor::AlignedBytes;

use super::bytewise::{Bytewise, form};
use super::finish::{Finish, Floats};
use super::product::{Panels, Product, Run, multiply_split};
use super::weights::{Columns, Order};
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
            terms: places.terms(node, n, Order::ChannelsLast, activation, again)?,
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
    let n = plan.n;
    let bytewise = Bytewise::of(node, build, isa, &plan.terms, n)?;
    let form = form(bytewise.as_ref());
    let shift = bytewise.as_ref().map_or(0, |b| b.shift);
    let panels = Panels::new(isa, form, n);
    let run = Run {
        offset: 0,
        len: plan.k,
    };
    let key = PackKey {
        kind: "integer matrix",
        parameters: [
            isa.integer_sizes().0,
            form.group(),
            plan.terms.weights.name(),
            0,
        ],
    };
    let packed = build.pack(node, plan.terms.place, key, |cpu| {
        let mut room = Vec::new();
        let known = plan.terms.weights.read(cpu, &mut room)?;
        let mut bytes = AlignedBytes::zeroed(panels.bytes(&[run]))?;
        let columns = Columns {
            known,
            first: 0,
            count: n,
            shift,
        };
        panels.pack(cpu, isa, &[run], &columns, |k| k, bytes.as_mut_slice())?;
        Ok(bytes)
    })?;
    Ok(Box::new(Matrices {
        isa,
        starts: build.table((0..plan.m).map(|row| (row * plan.k) as u32), 1)?,
        run,
        n,
        bytewise,
        packed,
        bias: plan.terms.bias.unwrap_or_default(),
        data: plan.terms.data,
        finish: plan.terms.finish,
    }))
}

struct Matrices {
    isa: Isa,
    starts: Table<u32>,
    run: Run,
    n: usize,
    bytewise: Option<Bytewise>,
    packed: Arc<AlignedBytes>,
    /// One for each column, or none.
    bias: Vec<i32>,
    data: Data,
    finish: Finish,
}

impl Matrices {
    /// Whether A is multiplied where it is: no group reaches over the end of a row.
    fn takes_data(&self) -> bool {
        let whole = |b: &Bytewise| self.run.len.is_multiple_of(form(Some(b)).group());
        let bytewise = self.bytewise.as_ref();
        bytewise.is_some_and(|b| b.takes_data() && whole(b))
    }

    /// Elements, in `i32`, of A with room behind it where it is not the input, of what is added to columns and to rows,
    /// of C where that is not the output, and of what makes real numbers of its columns.
    fn sizes(&self) -> [usize; 5] {
        let m = self.starts.len();
        let bytes = (m * self.run.len + SLACK) * form(self.bytewise.as_ref()).size();
        let a = match self.takes_data() {
            true => 0,
            false => bytes.div_ceil(size_of::<i32>()),
        };
        let [columns, rows] = match &self.bytewise {
            Some(bytewise) => [self.n, bytewise.row_biases(m)],
            None => [0, 0],
        };
        let sums = match self.finish.in_place() {
            true => 0,
            false => m.saturating_mul(self.n),
        };
        let real = match self.finish {
            Finish::Floats(_) => Floats::room(self.n),
            _ => 0,
        };
        [a, columns, rows, sums, real]
    }
}

impl Kernel for Matrices {
    fn run(&self, io: &mut Io) -> Result<()> {
        let sizes = self.sizes();
        let (a, rest) = io.scratch::<i32>(sizes.iter().sum()).split_at_mut(sizes[0]);
        let (columns, rest) = rest.split_at_mut(sizes[1]);
        let (row_bias, rest) = rest.split_at_mut(sizes[2]);
        let (mut sums, real) = rest.split_at_mut(sizes[3]);
        let real = match &self.finish {
            Finish::Floats(floats) => Some(floats.read(io, real)),
            _ => None,
        };
        if self.finish.in_place() {
            sums = io.output(0);
        }
        let zero = self.data.zero(io);
        let (cpu, x, runs) = (io.cpu(), io.input_bytes(0), [self.run]);
        let mut bias = self.bias.as_slice();
        let a: &[u8] = match &self.bytewise {
            None => {
                let words: &mut [i16] = bytemuck::cast_slice_mut(a);
                cpu.rows(x.len(), by(&mut words[..x.len()], 1), 1, |piece, a, _| {
                    self.data.widen(self.isa, zero, &x[piece], a);
                    Ok(())
                })?;
                bytemuck::cast_slice(words)
            }
            Some(bytewise) => {
                let a: &[u8] = match self.takes_data() {
                    true => x,
                    false => {
                        let bytes: &mut [u8] = bytemuck::cast_slice_mut(a);
                        cpu.rows(x.len(), by(&mut bytes[..x.len()], 1), 1, |piece, a, _| {
                            bytewise.copy(self.isa, &x[piece], a);
                            Ok(())
                        })?;
                        bytes
                    }
                };
                bytewise.column_bias(bias, zero, columns);
                bias = columns;
                bytewise.row_bias(cpu, a, &self.starts, &runs, row_bias)?;
                a
            }
        };
        let form = form(self.bytewise.as_ref());
        let m = self.starts.len();
        let row = self.run.len.next_multiple_of(form.group());
        assert!(((m - 1) * self.run.len + row) * form.size() <= a.len());
        assert!(m * self.n == sums.len());
        let product = Product {
            form,
            a: a.as_ptr(),
            starts: &self.starts,
            runs: &runs,
            b: self.packed.as_slice().as_ptr(),
            n: self.n,
            c: sums.as_mut_ptr(),
            c_stride: self.n,
            bias: match bias {
                [] => std::ptr::null(),
                bias => bias.as_ptr(),
            },
            row_bias,
            real,
        };
        // SAFETY: all rows are in A, each to the end of its last group; B is packed for one run of `n` columns, and there is
        // a bias for each column; C has `n` elements for each row.
        unsafe { multiply_split(cpu, self.isa, &product)? };
        if self.finish.in_place() {
            return Ok(());
        }
        let n = self.n;
        let both = (by(sums, n), by(io.output_bytes(0), n));
        cpu.rows(m, both, n.saturating_mul(4), |_, (sums, to), _| {
            self.finish.bytes(self.isa, n, sums, to);
            Ok(())
        })
    }

    fn scratch(&self) -> Scratch {
        let sizes = self.sizes();
        Scratch::of::<i32>(sizes.iter().fold(0, |sum, &size| sum.saturating_add(size)))
    }
}
