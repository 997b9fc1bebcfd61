//! Operators that order elements.

use std::cmp::Ordering;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{TopK, normalize_axis};

use crate::by_class;
use crate::common::rules::required;
use crate::common::{Codec, Wide, is_nan, rules};
use crate::frame::{Build, Io, Kernel};
use crate::reduce::Along;
use crate::registry::KernelRegistry;

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
        let Along { n, inner, .. } = self.along;
        let x = io.input_bytes(0);
        let indices = io.scratch::<u64>(n);
        let values = io.output_bytes(0);
        let mut places = io.has_output(1).then(|| io.output::<i64>(1));
        let mut line = 0;
        self.along.lines(|first| {
            for (i, index) in indices.iter_mut().enumerate() {
                *index = i as u64;
            }
            let at = |i: u64| self.codec.get(x, first + i as usize * inner);
            // Behind a pointer: sorting is compiled once, not for every type of element.
            let before: &mut dyn FnMut(&u64, &u64) -> Ordering = &mut |a, b| {
                let by_value = order(&at(*a), &at(*b));
                let by_value = if self.largest {
                    by_value.reverse()
                } else {
                    by_value
                };
                by_value.then(a.cmp(b))
            };
            let k = self.k.min(n);
            if k > 0 && k < n {
                indices.select_nth_unstable_by(k - 1, &mut *before);
            }
            indices[..k].sort_unstable_by(before);
            let base = line / inner * self.k * inner + line % inner;
            for (j, &i) in indices[..k].iter().enumerate() {
                self.codec.set(values, base + j * inner, at(i));
                if let Some(places) = places.as_deref_mut() {
                    places[base + j * inner] = i as i64;
                }
            }
            line += 1;
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.along.n * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{run, tensor};
    use kilim_core::DType;

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
