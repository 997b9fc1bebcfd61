//! StringConcat.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::StringConcat;
use kilim_host::elements::{Walk, broadcast_strides};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel};

pub fn build(_: &StringConcat, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = &node.outputs[0].shape;
    let strides = |i| Ok(broadcast_strides(&required(node, i)?.shape, shape));
    let (a, b): (Result<Vec<_>>, Result<Vec<_>>) = (strides(0), strides(1));
    Ok(Box::new(Join(Walk::new(shape, [&a?, &b?]))))
}

struct Join(Walk<2>);

impl Kernel for Join {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, a, b) = (io.cpu(), io.input::<u32>(0), io.input::<u32>(1));
        let y = io.output::<u32>(0);
        let (texts, (_, steps)) = (io.texts(), self.0.row());
        self.0.spans(0..y.len(), |span| {
            let mut at = span.at;
            for y in &mut y[span.first..][..span.len] {
                let [i, j] = at.map(|v| v as usize);
                let (left, right) = (texts.text(a[i]).clone(), texts.text(b[j]).clone());
                *y = texts.number_of(cpu, &[&left, &right])?;
                for (at, step) in at.iter_mut().zip(steps) {
                    *at += step;
                }
            }
            Ok(())
        })
    }
}
