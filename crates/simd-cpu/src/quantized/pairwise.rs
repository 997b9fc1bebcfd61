//! Two tensors of small integers combined element by element, in blocks of the numbers that they stand for.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;

use crate::isa::{Isa, Simd, Task};
use kilim_host::elements::{BLOCK, Span, Walk, broadcast_strides};
use kilim_host::rules::required;
use kilim_host::{Io, Kernel, by};

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
    let output = &node.outputs[0];
    let a = broadcast_strides(&required(node, 0)?.shape, &output.shape);
    let b = broadcast_strides(&required(node, 1)?.shape, &output.shape);
    Ok(Box::new(Pairwise {
        combine,
        walk: Walk::new(&output.shape, [&a, &b]),
        size: output.dtype.size(),
        isa: Isa::best(),
    }))
}

struct Pairwise<C> {
    combine: C,
    walk: Walk<2>,
    /// Bytes of an element of the output.
    size: usize,
    isa: Isa,
}

/// What an element costs, in operations of a `Meter`.
const COST: usize = 4;

impl<C: Combine> Kernel for Pairwise<C> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let inputs = [io.input_bytes(0), io.input_bytes(1)];
        let output = by(io.output_bytes(0), self.size);
        io.cpu()
            .rows(self.walk.len(), output, COST, |piece, output, _| {
                self.walk.spans(piece, |span| {
                    self.isa.dispatch(Stretch {
                        kernel: self,
                        span,
                        inputs,
                        output: &mut *output,
                    });
                    Ok(())
                })
            })
    }
}

/// Neighbours in a row. Instruction sets are chosen for each, not around the loops: nothing is inlined into what these call.
struct Stretch<'a, C> {
    kernel: &'a Pairwise<C>,
    span: Span<2>,
    inputs: [&'a [u8]; 2],
    /// The elements of the piece.
    output: &'a mut [u8],
}

impl<C: Combine> Task for Stretch<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Pairwise { combine, walk, .. } = self.kernel;
        let (span, (_, steps)) = (self.span, walk.row());
        let zero = C::Number::default();
        let (mut a, mut b) = ([zero; BLOCK], [zero; BLOCK]);
        for first in (0..span.len).step_by(BLOCK) {
            let count = BLOCK.min(span.len - first);
            for (t, block) in [&mut a, &mut b].into_iter().enumerate() {
                let step = steps[t] as usize;
                let at = span.start(t) + first * step;
                combine.load(t, self.inputs[t], at, step, &mut block[..count]);
            }
            let a = &mut a[..count];
            combine.combine(s, a, &b[..count]);
            combine.store(a, self.output, span.first + first);
        }
    }
}
