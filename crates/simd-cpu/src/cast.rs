//! `int32` to `float32`, which is how sums of dynamically quantised products go on.

use kilim_core::backend::Refusal;
use kilim_core::ops::Cast;
use kilim_core::{DType, Result};

use kilim_host::registry::KernelRegistry;
use kilim_host::{Io, Kernel, by};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Cast>(
        |op, node| match node.input(0) {
            Some(x) if x.dtype == DType::I32 && op.to == DType::F32 => Ok(()),
            _ => Err(Refusal::new("the SIMD Cast: not int32 to float32")),
        },
        |_, _, _| Ok(Box::new(ToReal)),
    );
}

struct ToReal;

impl Kernel for ToReal {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (from, to) = (io.input::<i32>(0), io.output::<f32>(0));
        io.cpu().rows(to.len(), by(to, 1), 1, |piece, to, _| {
            // The compiler makes vectors of it.
            let both = to.iter_mut().zip(&from[piece]);
            both.for_each(|(to, &x)| *to = x as f32);
            Ok(())
        })
    }
}
