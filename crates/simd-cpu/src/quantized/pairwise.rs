//! Two tensors of small integers combined element by element, in blocks of the numbers that they stand for.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;

use crate::isa::{Isa, Simd, Task};
use kilim_host::elements::{BLOCK, Walk, broadcast_strides};
use kilim_host::rules::required;
use kilim_host::{CpuRun, Io, Kernel};

/// What becomes of the elements of two tensors. Mostly written without vectors: the compiler makes them for each
/// instruction set, so all functions are to be inlined.
pub(super) trait Combine: Send + Sync + 'static {
    type Number: Copy + Default;

    /// The numbers of elements `at`, `at + step`, .. of tensor `which`.
    fn load(&self, which: usize, bytes: &[u8], at: usize, step: usize, to: &mut [Self::Number]);

    /// The result goes to the first.
    fn combine<S: Simd>(&self, s: S, a: &mut [Self::Number], b: &[Self::Number]);

    /// Writes elements from `at` on.
    fn store(&self, values: &mut [Self::Number], bytes: &mut [u8], at: usize);
}

/// The kernel of a node with two inputs and one output, which are broadcast.
pub(super) fn kernel<C: Combine>(combine: C, node: &NodeSpec) -> Result<Box<dyn Kernel>> {
    let shape = &node.outputs[0].shape;
    let a = broadcast_strides(&required(node, 0)?.shape, shape);
    let b = broadcast_strides(&required(node, 1)?.shape, shape);
    Ok(Box::new(Pairwise {
        combine,
        walk: Walk::new(shape, [&a, &b]),
        isa: Isa::best(),
    }))
}

struct Pairwise<C> {
    combine: C,
    walk: Walk<2>,
    isa: Isa,
}

impl<C: Combine> Kernel for Pairwise<C> {
    fn run(&self, io: &mut Io) -> Result<()> {
        self.isa.dispatch(Rows {
            cpu: io.cpu(),
            kernel: self,
            inputs: [io.input_bytes(0), io.input_bytes(1)],
            output: io.output_bytes(0),
        })
    }
}

struct Rows<'a, C> {
    cpu: &'a CpuRun<'a>,
    kernel: &'a Pairwise<C>,
    inputs: [&'a [u8]; 2],
    output: &'a mut [u8],
}

impl<C: Combine> Task for Rows<'_, C> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Result<()> {
        let Pairwise { combine, walk, .. } = self.kernel;
        let (n, steps) = walk.row();
        let zero = C::Number::default();
        let (mut a, mut b) = ([zero; BLOCK], [zero; BLOCK]);
        let mut row = 0;
        walk.rows(|at| {
            for first in (0..n).step_by(BLOCK) {
                let count = BLOCK.min(n - first);
                self.cpu.spend(8 * count)?;
                for (t, block) in [&mut a, &mut b].into_iter().enumerate() {
                    let step = steps[t] as usize;
                    let at = at[t] as usize + first * step;
                    combine.load(t, self.inputs[t], at, step, &mut block[..count]);
                }
                let a = &mut a[..count];
                combine.combine(s, a, &b[..count]);
                combine.store(a, self.output, row + first);
            }
            row += n;
            Ok(())
        })
    }
}
