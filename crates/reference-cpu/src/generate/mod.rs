//! Tensors made from shapes and scalars.

mod picture;
mod random;

use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::ops::{ConstantOfShape, EyeLike, ImageDecoder, Random, Range, ShapeOf, Size};
use kilim_core::{Result, Tensor};
use kilim_host::by_size;
use kilim_host::elements::{Codec, Wide};
use kilim_host::registry::{KernelRegistry, any};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, by};

pub use random::stir;

pub fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<ShapeOf>(any, build_shape);
    registry.add_for_every_type::<Size>(any, build_size);
    registry.add_for_every_type::<ConstantOfShape>(any, build_constant);
    registry.add::<Range>(any, build_range);
    registry.add::<EyeLike>(any, build_eye);
    random::stir_by_time();
    registry.add_for_every_type::<Random>(any, random::build);
    registry.add::<ImageDecoder>(any, picture::build);
}

/// A value that was known when the kernel was built.
struct Known(Vec<i64>);

impl Kernel for Known {
    fn run(&self, io: &mut Io) -> Result<()> {
        io.output::<i64>(0).copy_from_slice(&self.0);
        Ok(())
    }
}

fn build_shape(op: &ShapeOf, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = &required(node, 0)?.shape;
    let rank = shape.len() as i64;
    let bound = |i: i64| (if i < 0 { i.saturating_add(rank) } else { i }).clamp(0, rank) as usize;
    let (start, end) = (bound(op.start), op.end.map_or(shape.len(), bound));
    let dims = shape[start..end.max(start)].iter().map(|&d| d as i64);
    Ok(Box::new(Known(dims.collect())))
}

fn build_size(_: &Size, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Known(vec![required(node, 0)?.elements() as i64])))
}

fn build_constant(op: &ConstantOfShape, _: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Repeat(op.value.clone())))
}

struct Repeat(Tensor);

impl Kernel for Repeat {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, y) = (io.cpu(), io.output_bytes(0));
        if let [text] = self.0.texts().unwrap_or_default() {
            let number = io.texts().number(cpu, text)?;
            return cpu.fill(bytemuck::cast_slice_mut(y), number);
        }
        by_size!(self.0.dtype(), T => match bytemuck::cast_slice::<u8, T>(self.0.read()?) {
            &[value] => cpu.fill(bytemuck::cast_slice_mut(y), value),
            _ => Err(shape_error("one element is needed")),
        })
    }
}

fn build_range(_: &Range, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let dtype = node.outputs[0].dtype;
    if dtype.is_float() {
        return Ok(Box::new(Steps::<f64> {
            codec: f64::codec(dtype),
            at: |start, step, i| start + step * i as f64,
        }));
    }
    Ok(Box::new(Steps::<i64> {
        codec: i64::codec(dtype),
        at: |start, step, i| start.wrapping_add(step.wrapping_mul(i as i64)),
    }))
}

struct Steps<W> {
    codec: Codec<W>,
    at: fn(W, W, usize) -> W,
}

impl<W: Wide> Kernel for Steps<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let start = self.codec.get(io.input_bytes(0), 0);
        let step = self.codec.get(io.input_bytes(2), 0);
        let n = io.output_len(0);
        let y = by(io.output_bytes(0), self.codec.size());
        io.cpu().rows(n, y, 4, |piece, y, _| {
            for i in piece.clone() {
                let value = (self.at)(start, step, i);
                self.codec.set(y, i - piece.start, value);
            }
            Ok(())
        })
    }
}

fn build_eye(op: &EyeLike, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let out = &node.outputs[0];
    let [rows, columns] = out.shape[..] else {
        return Err(shape_error("two dimensions are needed"));
    };
    Ok(Box::new(Diagonal {
        k: op.k,
        rows,
        columns,
        codec: i64::codec(out.dtype),
    }))
}

struct Diagonal {
    k: i64,
    rows: usize,
    columns: usize,
    codec: Codec<i64>,
}

impl Kernel for Diagonal {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, y) = (io.cpu(), io.output_bytes(0));
        cpu.fill(y, 0)?;
        let row = self.columns * self.codec.size();
        cpu.rows(self.rows, by(y, row), 4, |piece, y, _| {
            for row in piece.clone() {
                let column = (row as i64).saturating_add(self.k);
                if (0..self.columns as i64).contains(&column) {
                    let at = (row - piece.start) * self.columns + column as usize;
                    self.codec.set(y, at, 1);
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_as, run_f32};
    use kilim_host::testing::tensor;

    #[test]
    fn ranges_and_diagonals() {
        let s = |v: i32| tensor(&[], &[v]);
        assert_eq!(
            run_as::<i32>(&Range, &[&s(7), &s(0), &s(-3)], &[3]),
            [7, 4, 1]
        );
        let f = |v: f32| tensor(&[], &[v]);
        assert_eq!(
            run_f32(&Range, &[&f(0.5), &f(2.0), &f(0.5)], &[3]),
            [0.5, 1.0, 1.5]
        );
        let like = tensor::<i32>(&[2, 3], &[0; 6]);
        let op = EyeLike { dtype: None, k: -1 };
        assert_eq!(run_as::<i32>(&op, &[&like], &[2, 3]), [0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn shapes() {
        let x = tensor::<f32>(&[2, 3, 0], &[]);
        let op = ShapeOf {
            start: -2,
            end: None,
        };
        assert_eq!(run_as::<i64>(&op, &[&x], &[2]), [3, 0]);
        assert_eq!(run_as::<i64>(&Size, &[&x], &[]), [0]);
    }
}
