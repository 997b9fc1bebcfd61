//! tract.

use crate::Run;
use crate::input::{Data, Input};
use anyhow::{Context, Result, anyhow};
use tract_linalg::multithread::{Executor, set_default_executor};
use tract_onnx::prelude::*;

pub fn load(model: &str, threads: usize, inputs: Vec<Input>) -> Result<Run> {
    if threads > 1 {
        set_default_executor(Executor::multithread(threads));
    }
    let mut graph = onnx().model_for_path(model)?;
    let ports = graph.input_outlets()?.to_vec();
    let mut feeds = TVec::new();
    for (i, port) in ports.iter().enumerate() {
        let name = graph.node(port.node).name.clone();
        let input = inputs.iter().find(|input| input.name == name);
        let Input { shape, data, .. } = input.with_context(|| format!("no input {name}"))?;
        let tensor = match data {
            Data::F32(data) => Tensor::from_shape(shape, data)?,
            Data::I64(data) => Tensor::from_shape(shape, data)?,
        };
        graph.set_input_fact(i, InferenceFact::dt_shape(tensor.datum_type(), shape))?;
        feeds.push(tensor.into_tvalue());
    }
    let model = graph.into_optimized()?.into_runnable()?;
    Ok(Box::new(move || {
        model.run(feeds.clone()).map_err(|e| anyhow!(e))?;
        Ok(())
    }))
}
