//! OneHot.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::value_error;
use kilim_core::ops::{OneHot, normalize_axis};
use kilim_core::{DType, Result};
use kilim_host::by_size;
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules;
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, by};

use crate::reduce::Along;

pub fn accepts(_: &OneHot, node: &NodeSpec) -> Result<(), Refusal> {
    rules::computed(node, 0)?;
    rules::known(node, 1)
}

pub fn build(op: &OneHot, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let indices = required(node, 0)?;
    let out = &node.outputs[0];
    let axis = normalize_axis(op.axis, out.shape.len())?;
    Ok(Box::new(Hot {
        along: Along::new(&out.shape, axis),
        dtype: out.dtype,
        indices: f64::codec(indices.dtype),
    }))
}

struct Hot {
    along: Along,
    dtype: DType,
    indices: Codec<f64>,
}

impl Kernel for Hot {
    fn run(&self, io: &mut Io) -> Result<()> {
        let indices = io.input_bytes(0);
        let Along { outer, n, inner } = self.along;
        let (cpu, block) = (io.cpu(), n * inner);
        by_size!(self.dtype, T => {
            let &[off, on] = io.input::<T>(2) else {
                return Err(value_error("two values are needed, off and on"));
            };
            let y = io.output::<T>(0);
            cpu.fill(y, off)?;
            cpu.rows(outer, by(y, block), 8 * inner, |piece, y, cpu| {
                for (o, y) in piece.zip(y.chunks_exact_mut(block.max(1))) {
                    cpu.pieces(inner, 8, |lines| {
                        for i in lines {
                            let index = self.indices.get(indices, o * inner + i) as i64;
                            // An index out of range is nowhere hot.
                            let index = if index < 0 { index + n as i64 } else { index };
                            if (0..n as i64).contains(&index) {
                                y[i + index as usize * inner] = on;
                            }
                        }
                        Ok(())
                    })?;
                }
                Ok(())
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_f32;
    use kilim_host::testing::tensor;

    #[test]
    fn one_hot_on_any_axis() {
        let i = tensor::<i64>(&[2], &[1, -1]);
        let depth = tensor::<i64>(&[], &[3]);
        let values = tensor::<f32>(&[2], &[-1.0, 5.0]);
        let of = |axis, shape: &[usize]| run_f32(&OneHot { axis }, &[&i, &depth, &values], shape);
        assert_eq!(of(-1, &[2, 3]), [-1.0, 5.0, -1.0, -1.0, -1.0, 5.0]);
        assert_eq!(of(0, &[3, 2]), [-1.0, -1.0, 5.0, -1.0, -1.0, 5.0]);
    }
}
