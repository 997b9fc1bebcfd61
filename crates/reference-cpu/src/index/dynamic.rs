//! Operators whose output's shape depends on the data. They are computed when the kernel is built,
//! because only then is the shape known; the kernel has their result.

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::value_error;
use kilim_core::ops::{
    Compress, NonMaxSuppression, NonZero, Unique, non_max_suppression, normalize_axis,
};
use kilim_host::rules;
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, Table};

use super::gather::Pick;
use crate::reduce::Along;

pub fn accepts_data<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 0)
}

/// Results that were computed when the kernel was built.
struct Ready {
    outputs: Vec<Table<i64>>,
}

impl Kernel for Ready {
    fn run(&self, io: &mut Io) -> Result<()> {
        for (o, values) in self.outputs.iter().enumerate() {
            if io.has_output(o) {
                io.cpu().copy(values, io.output::<i64>(o))?;
            }
        }
        Ok(())
    }
}

fn value<'a>(node: &'a NodeSpec, i: usize) -> Result<&'a kilim_core::Tensor> {
    required(node, i)?
        .value
        .as_ref()
        .ok_or_else(|| value_error(format!("the value of input {i} must be known")))
}

pub fn build_non_zero(_: &NonZero, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Ready {
        outputs: vec![build.keep(NonZero::positions(build.cpu(), value(node, 0)?)?)?],
    }))
}

pub fn accepts_boxes(_: &NonMaxSuppression, node: &NodeSpec) -> Result<(), Refusal> {
    (0..5).try_for_each(|i| rules::known(node, i))
}

pub fn build_boxes(
    op: &NonMaxSuppression,
    node: &NodeSpec,
    build: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let chosen = non_max_suppression(build.cpu(), op, node)?;
    Ok(Box::new(Ready {
        outputs: vec![build.table(chosen.as_flattened().iter().copied(), 1)?],
    }))
}

pub fn accepts_compress(_: &Compress, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)
}

pub fn build_compress(
    op: &Compress,
    node: &NodeSpec,
    build: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let along = match op.axis {
        Some(axis) => Along::new(&x.shape, normalize_axis(axis, x.shape.len())?),
        None => Along::new(&[x.elements()], 0),
    };
    Ok(Box::new(Chosen(Pick {
        rows: build.keep(op.selected(build.cpu(), along.n, node)?)?,
        along,
        dtype: x.dtype,
    })))
}

struct Chosen(Pick);

impl Kernel for Chosen {
    fn run(&self, io: &mut Io) -> Result<()> {
        (self.0).run(io.cpu(), io.input_bytes(0), io.output_bytes(0))
    }
}

pub fn build_unique(op: &Unique, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = value(node, 0)?;
    let parts = op.find(build.cpu(), x)?;
    let along = match op.axis {
        Some(axis) => Along::new(x.shape(), normalize_axis(axis, x.rank())?),
        None => Along::new(&[x.len()], 0),
    };
    Ok(Box::new(Distinct {
        pick: Pick {
            rows: build.table(parts.first.iter().map(|&i| i as usize), 1)?,
            along,
            dtype: x.dtype(),
        },
        rest: [
            build.keep(parts.first)?,
            build.keep(parts.inverse)?,
            build.keep(parts.counts)?,
        ],
    }))
}

struct Distinct {
    pick: Pick,
    rest: [Table<i64>; 3],
}

impl Kernel for Distinct {
    fn run(&self, io: &mut Io) -> Result<()> {
        (self.pick).run(io.cpu(), io.input_bytes(0), io.output_bytes(0))?;
        for (i, values) in self.rest.iter().enumerate() {
            if io.has_output(i + 1) {
                io.cpu().copy(values, io.output::<i64>(i + 1))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_as;
    use kilim_host::testing::tensor;

    #[test]
    fn compresses() {
        let x = tensor::<i32>(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let c = kilim_core::Tensor::from_bools(&[2], &[false, true]).unwrap();
        let of = |axis, shape: &[usize]| run_as::<i32>(&Compress { axis }, &[&x, &c], shape);
        assert_eq!(of(Some(-1), &[2, 1]), [2, 5]);
        assert_eq!(of(None, &[1]), [2]);
    }
}
