//! ScatterElements, ScatterND, TensorScatter: the data is copied, unless the output has its memory, then written on.

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{ScatterElements, ScatterNd, TensorScatter, normalize_axis};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel};

use super::combine::{self, Update, Writer, writer};
use super::gather::{ElementLines, Slices, element_lines};
use crate::common::room::{Room, first};

pub fn accepts_elements(op: &ScatterElements, node: &NodeSpec) -> Result<(), Refusal> {
    combine::accepts(op.reduction, node)
}

pub fn accepts_nd(op: &ScatterNd, node: &NodeSpec) -> Result<(), Refusal> {
    combine::accepts(op.reduction, node)
}

pub fn build_elements(
    op: &ScatterElements,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (x, indices) = (required(node, 0)?, required(node, 1)?);
    let axis = normalize_axis(op.axis, x.shape.len())?;
    Ok(Box::new(Elements {
        lines: element_lines(&x.shape, &indices.shape, axis)?,
        indices: i64::codec(indices.dtype),
        writer: writer(op.reduction, x.dtype)?,
    }))
}

struct Elements {
    lines: ElementLines,
    indices: Codec<i64>,
    writer: Box<dyn Writer>,
}

impl Kernel for Elements {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (indices, updates) = (io.input_bytes(1), io.input_bytes(2));
        let index = |i| self.indices.get(indices, i);
        let (cpu, y) = (io.cpu(), io.output_on(0, 0)?);
        let texts = io.texts();
        // One after the other: several updates may name the same element.
        cpu.pieces(self.lines.len(), 16, |piece| {
            self.lines.visit(piece, index, |from, to| {
                let update = Update {
                    meter: cpu,
                    y,
                    to,
                    updates,
                    from,
                };
                self.writer.write(update, texts)
            })
        })
    }

    fn writes_on(&self) -> bool {
        true
    }
}

pub fn build_nd(op: &ScatterNd, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, indices) = (required(node, 0)?, required(node, 1)?);
    Ok(Box::new(Nd {
        slices: Slices::new(&x.shape, &indices.shape, 0)?,
        indices: i64::codec(indices.dtype),
        writer: writer(op.reduction, x.dtype)?,
    }))
}

struct Nd {
    slices: Slices,
    indices: Codec<i64>,
    writer: Box<dyn Writer>,
}

impl Kernel for Nd {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (indices, updates) = (io.input_bytes(1), io.input_bytes(2));
        let (cpu, y) = (io.cpu(), io.output_on(0, 0)?);
        let slice = self.slices.slice;
        for t in 0..self.slices.tuples {
            cpu.spend(8)?;
            let at = self.slices.at(t, |i| self.indices.get(indices, i))?;
            cpu.pieces(slice, 8, |piece| {
                for i in piece {
                    let update = Update {
                        meter: cpu,
                        y,
                        to: at + i,
                        updates,
                        from: t * slice + i,
                    };
                    self.writer.write(update, io.texts())?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn writes_on(&self) -> bool {
        true
    }
}

pub fn build_cache(op: &TensorScatter, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (cache, update) = (required(node, 0)?, required(node, 1)?);
    let axis = normalize_axis(op.axis, cache.shape.len())?;
    let room = node.outputs.first().and_then(|y| y.shape.get(axis));
    let (Some(&room), true) = (room, axis > 0 && update.shape.len() == cache.shape.len()) else {
        return Err(shape_error("the update does not fit the cache"));
    };
    Ok(Box::new(Cache {
        circular: op.circular,
        batch: cache.shape[0],
        outer: cache.shape[1..axis].iter().product(),
        room: Room {
            held: cache.shape[axis],
            room,
            row: cache.shape[axis + 1..].iter().product::<usize>() * cache.dtype.size(),
        },
        steps: update.shape[axis],
        starts: node.input(2).map(|s| i64::codec(s.dtype)),
    }))
}

struct Cache {
    circular: bool,
    batch: usize,
    outer: usize,
    room: Room,
    steps: usize,
    starts: Option<Codec<i64>>,
}

impl Kernel for Cache {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, update, y) = (io.cpu(), io.input_bytes(1), self.room.begun(io, 0, 0)?);
        let Room { room, row, .. } = self.room;
        if y.is_empty() {
            return Ok(());
        }
        for b in 0..self.batch {
            let start = match &self.starts {
                Some(codec) => codec.get(io.input_bytes(2), b),
                None => 0,
            };
            let start = first(start)?;
            for step in 0..self.steps {
                let at = match self.circular {
                    true => start.saturating_add(step) % room.max(1),
                    false => self.room.place(start, step)?,
                };
                for o in 0..self.outer {
                    let lead = b * self.outer + o;
                    let from = (lead * self.steps + step) * row;
                    let to = (lead * room + at) * row;
                    cpu.spend(8)?;
                    cpu.copy(&update[from..from + row], &mut y[to..to + row])?;
                }
            }
        }
        Ok(())
    }

    fn writes_on(&self) -> bool {
        self.room.stays()
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::ops::ScatterReduction;
    use kilim_host::testing::tensor;

    use super::*;
    use crate::testing::{run_as, run_f32};

    #[test]
    fn scatters_elements_with_reductions() {
        let x = tensor::<f32>(&[1, 5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let i = tensor::<i64>(&[1, 3], &[1, 1, -1]);
        let u = tensor::<f32>(&[1, 3], &[1.5, 7.0, 2.0]);
        let of = |reduction| {
            run_f32(
                &ScatterElements { axis: 1, reduction },
                &[&x, &i, &u],
                &[1, 5],
            )
        };
        assert_eq!(of(ScatterReduction::None), [1.0, 7.0, 3.0, 4.0, 2.0]);
        assert_eq!(of(ScatterReduction::Add), [1.0, 10.5, 3.0, 4.0, 7.0]);
        assert_eq!(of(ScatterReduction::Mul), [1.0, 21.0, 3.0, 4.0, 10.0]);
        assert_eq!(of(ScatterReduction::Max), [1.0, 7.0, 3.0, 4.0, 5.0]);
        assert_eq!(of(ScatterReduction::Min), [1.0, 1.5, 3.0, 4.0, 2.0]);
    }

    #[test]
    fn scatters_slices() {
        let x = tensor::<i32>(&[3, 2], &[0; 6]);
        let i = tensor::<i64>(&[2, 1], &[2, 0]);
        let u = tensor::<i32>(&[2, 2], &[1, 2, 3, 4]);
        let op = ScatterNd {
            reduction: ScatterReduction::None,
        };
        assert_eq!(
            run_as::<i32>(&op, &[&x, &i, &u], &[3, 2]),
            [3, 4, 0, 0, 1, 2]
        );
    }

    #[test]
    fn a_circular_cache_wraps() {
        let x = tensor::<i32>(&[1, 3, 1], &[7, 8, 9]);
        let u = tensor::<i32>(&[1, 2, 1], &[1, 2]);
        let at = tensor::<i64>(&[1], &[2]);
        let op = TensorScatter {
            axis: -2,
            circular: true,
        };
        assert_eq!(run_as::<i32>(&op, &[&x, &u, &at], &[1, 3, 1]), [2, 8, 1]);
    }

    #[test]
    fn a_longer_cache_ends_in_zeros() {
        let x = tensor::<i32>(&[1, 2, 2, 1], &[1, 2, 3, 4]);
        let u = tensor::<i32>(&[1, 2, 1, 1], &[8, 9]);
        let (at, length) = (tensor::<i64>(&[1], &[2]), tensor::<i64>(&[1], &[4]));
        let op = TensorScatter {
            axis: 2,
            circular: false,
        };
        let longer = run_as::<i32>(&op, &[&x, &u, &at, &length], &[1, 2, 4, 1]);
        assert_eq!(longer, [1, 2, 8, 0, 3, 4, 9, 0]);
    }
}
