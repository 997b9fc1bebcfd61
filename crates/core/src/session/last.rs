//! Outputs that are wanted at their last place alone.

use std::collections::BTreeMap;

use crate::error::{Error, ErrorCode, Result};
use crate::fact::Fact;
use crate::graph::{Graph, ValueId};
use crate::ops::Gather;
use crate::tensor::Tensor;

/// Has the graph give the last place alone of these outputs, each along its axis.
///
/// # Errors
/// `Input` for a name that no output has; `Limit` where memory is short.
pub(super) fn keep_last(graph: &mut Graph, wanted: &BTreeMap<String, i64>) -> Result<()> {
    for (name, &axis) in wanted {
        let mut given = graph.given_outputs().iter();
        let Some(at) = given.position(|&v| graph.value(v).name == *name) else {
            let names = graph.given_outputs().iter();
            let names: Vec<_> = names.map(|&v| graph.value(v).name.as_str()).collect();
            let e = Error::new(ErrorCode::Input, format!("there is no output `{name}`"));
            return Err(e.with_expected(names.join(", ")));
        };
        let all = graph.outputs[at];
        let one = give_last(graph, all, axis)?;
        graph.outputs[at] = one;
    }
    Ok(())
}

fn give_last(graph: &mut Graph, all: ValueId, axis: i64) -> Result<ValueId> {
    let name = graph.value(all).name.clone();
    let index = graph.add_constant(format!("{name}/last"), Tensor::from_slice(&[1], &[-1i64])?);
    let out = graph.add_value(name.clone(), Fact::default());
    if !graph.inputs.contains(&all) {
        graph.value_mut(all).name = format!("{name}/all");
    }
    let inputs = [Some(all), Some(index)];
    graph.push(format!("{name}/last"), Gather { axis }, &inputs, &[out]);
    Ok(out)
}
