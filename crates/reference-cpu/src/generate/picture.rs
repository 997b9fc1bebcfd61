//! ImageDecoder.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{ImageDecoder, unreadable};
use kilim_host::{Build, Io, Kernel};

pub fn build(op: &ImageDecoder, _: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Decode(op.clone())))
}

struct Decode(ImageDecoder);

impl Kernel for Decode {
    fn run(&self, io: &mut Io) -> Result<()> {
        let pixels = (self.0.reader.decode)(io.input::<u8>(0), self.0.pixels)?;
        let y = io.output::<u8>(0);
        if y.len() != pixels.len() {
            return Err(unreadable("its size is not what its header says"));
        }
        io.cpu().copy(&pixels, y)
    }
}
