//! StringConcat.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::StringConcat;

use crate::common::rules::required;
use crate::common::{Walk, broadcast_strides};
use crate::frame::{Build, Io, Kernel};

pub fn build(_: &StringConcat, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = &node.outputs[0].shape;
    let strides = |i| Ok(broadcast_strides(&required(node, i)?.shape, shape));
    let (a, b): (Result<Vec<_>>, Result<Vec<_>>) = (strides(0), strides(1));
    Ok(Box::new(Join(Walk::new(shape, [&a?, &b?]))))
}

struct Join(Walk<2>);

impl Kernel for Join {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (a, b) = (io.input::<u32>(0), io.input::<u32>(1));
        let mut y = io.output::<u32>(0).iter_mut();
        let texts = io.texts();
        let mut joined = String::new();
        let mut done = Ok(());
        self.0.elements(|[i, j]| {
            joined.clear();
            joined.push_str(texts.text(a[i as usize]));
            joined.push_str(texts.text(b[j as usize]));
            match (texts.number(&Arc::from(&*joined)), y.next()) {
                (Ok(number), Some(y)) => *y = number,
                (Err(e), _) => done = Err(e),
                _ => {}
            }
        });
        done
    }
}
