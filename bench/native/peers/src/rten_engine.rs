//! RTen. It computes with 32-bit integers where ONNX has 64 bits.

use crate::Run;
use crate::input::{Data, Input};
use anyhow::Result;
use rten::{Model, NodeId, RunOptions, ThreadPool, Value};
use rten_tensor::Tensor;
use std::sync::Arc;

pub fn load(model: &str, threads: usize, inputs: Vec<Input>) -> Result<Run> {
    let model = Model::load_file(model)?;
    let mut feeds: Vec<(NodeId, Value)> = Vec::new();
    for Input { name, shape, data } in inputs {
        let value = match data {
            Data::F32(data) => Tensor::from_data(&shape, data).into(),
            Data::I64(data) => {
                let data: Result<Vec<i32>, _> = data.into_iter().map(i32::try_from).collect();
                Tensor::from_data(&shape, data?).into()
            }
        };
        feeds.push((model.node_id(&name)?, value));
    }
    let options = RunOptions::default()
        .with_thread_pool(Some(Arc::new(ThreadPool::with_num_threads(threads))));
    Ok(Box::new(move || {
        let feeds = feeds.iter().map(|(id, value)| (*id, value.into()));
        model.run(feeds.collect(), model.output_ids(), Some(options.clone()))?;
        Ok(())
    }))
}
