//! Operators that order elements.

use std::cmp::Ordering;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{TopK, normalize_axis};
use kilim_core::order::sort_first;
use kilim_host::by_class;
use kilim_host::elements::{Codec, Wide};
use kilim_host::registry::KernelRegistry;
use kilim_host::rules;
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

use crate::common::is_nan;
use crate::reduce::Along;

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<TopK>(accepts, build);
}

fn accepts(_: &TopK, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)
}

fn build(op: &TopK, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axis = normalize_axis(op.axis, x.shape.len())?;
    let along = Along::new(&x.shape, axis);
    let k = node.outputs[0].shape[axis];
    by_class!(x.dtype, W => Ok(Box::new(Best::<W> {
        along,
        k,
        largest: op.largest,
        codec: W::codec(x.dtype),
    })))
}

/// The `k` first of each line. Of equal elements the one with the lower index comes first; they are
/// sorted whether that was asked for or not. NaN counts as larger than everything.
struct Best<W> {
    along: Along,
    k: usize,
    largest: bool,
    codec: Codec<W>,
}

fn order<W: PartialOrd>(a: &W, b: &W) -> Ordering {
    a.partial_cmp(b)
        .unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

impl<W: Wide> Kernel for Best<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let Along { outer, n, inner } = self.along;
        let (x, size) = (io.input_bytes(0), self.codec.size());
        let indices = io.thread_scratch::<usize>(n);
        let block = self.k * inner;
        let values = by(io.output_bytes(0), block * size);
        let places = io.has_output(1).then(|| by(io.output::<i64>(1), block));
        let cost = n.saturating_mul(COMPARISON).saturating_mul(inner);
        let outputs = (values, places);
        io.cpu()
            .rows_with(outer, outputs, indices, cost, |piece, out, indices, cpu| {
                let (values, mut places) = out;
                for o in piece.clone() {
                    let before = (o - piece.start) * block;
                    for line in 0..inner {
                        let first = o * n * inner + line;
                        let chosen = self.line(cpu, x, first, indices)?;
                        cpu.pieces(chosen.len(), 8, |part| {
                            for j in part {
                                let (i, to) = (chosen[j], before + j * inner + line);
                                let value = self.codec.get(x, first + i * inner);
                                self.codec.set(values, to, value);
                                if let Some(places) = &mut places {
                                    places[to] = i as i64;
                                }
                            }
                            Ok(())
                        })?;
                    }
                }
                Ok(())
            })
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<usize>(self.along.n)
    }
}

impl<W: Wide> Best<W> {
    /// The places of the `k` first elements of the line that begins with element `first`; `indices` is room for all.
    fn line<'a>(
        &self,
        cpu: &CpuRun,
        x: &[u8],
        first: usize,
        indices: &'a mut [usize],
    ) -> Result<&'a [usize]> {
        let (k, inner) = (self.k.min(indices.len()), self.along.inner);
        cpu.pieces(indices.len(), 1, |piece| {
            for i in piece {
                indices[i] = i;
            }
            Ok(())
        })?;
        let at = |i: usize| self.codec.get(x, first + i * inner);
        sort_first(cpu, indices, k, COMPARISON, &mut |a, b| {
            let by_value = order(&at(a), &at(b));
            match self.largest {
                true => by_value.reverse(),
                false => by_value,
            }
        })?;
        Ok(&indices[..k])
    }
}

/// Operations of a comparison of two elements.
const COMPARISON: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;
    use kilim_core::DType;
    use kilim_host::testing::tensor;

    #[test]
    fn ties_axes_and_directions() {
        let x = tensor::<f32>(&[2, 4], &[3.0, 1.0, 3.0, 2.0, 5.0, 9.0, f32::NAN, 5.0]);
        let k = tensor::<i64>(&[1], &[2]);
        let of = |axis, largest, shape: &[usize]| {
            let op = TopK {
                axis,
                largest,
                sorted: true,
            };
            let out = run(
                &op,
                &[Some(&x), Some(&k)],
                &[(DType::F32, shape), (DType::I64, shape)],
            )
            .unwrap();
            out[1].as_slice::<i64>().unwrap().to_vec()
        };
        assert_eq!(of(1, true, &[2, 2]), [0, 2, 2, 1]);
        assert_eq!(of(-1, false, &[2, 2]), [1, 3, 0, 3]);
        assert_eq!(of(0, true, &[2, 4]), [1, 1, 1, 1, 0, 0, 0, 0]);
    }
}
