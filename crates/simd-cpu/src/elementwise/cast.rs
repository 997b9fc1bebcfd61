//! Conversion of element types: by way of `float64` or a 64-bit integer, both of which hold
//! every narrower value, so that a value is rounded once.

use kilim_core::backend::NodeSpec;
use kilim_core::error::shape_error;
use kilim_core::{DType, Result};

use super::unary::Copy;
use crate::common::{BLOCK, Class, Codec, Wide};
use crate::frame::{Build, Io, Kernel};

pub fn build<T>(_: &T, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let from = node
        .input(0)
        .ok_or_else(|| shape_error("an input is missing"))?
        .dtype;
    let to = node.outputs[0].dtype;
    Ok(match Class::of(from) {
        _ if from == to => Box::new(Copy),
        Class::F32 | Class::F64 => converter::<f64>(from, to),
        Class::I64 => converter::<i64>(from, to),
        Class::U64 => converter::<u64>(from, to),
    })
}

fn converter<W: Wide>(from: DType, to: DType) -> Box<dyn Kernel> {
    Box::new(Convert::<W> {
        from: W::codec(from),
        to: W::codec(to),
    })
}

struct Convert<W> {
    from: Codec<W>,
    to: Codec<W>,
}

impl<W: Wide> Kernel for Convert<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, n) = (io.input_bytes(0), io.input_len(0));
        let y = io.output_bytes(0);
        let mut block = [W::zeroed(); BLOCK];
        for start in (0..n).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(n - start)];
            (self.from.load)(x, start, block);
            (self.to.store)(y, start, block);
        }
        Ok(())
    }
}
