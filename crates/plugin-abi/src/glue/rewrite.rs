//! What a guest makes of connected nodes, told to the host.

use std::ffi::c_void;

use super::attributes::Encoded;
use super::{Opened, c_text, guarded, list, node, tensor};
use crate::guest::{Change, Guest, NewNode, Subgraph, SubgraphStep, SubgraphTensor};
use crate::{self as abi, Status};

/// What the interface says of a subgraph.
///
/// # Safety
/// `g` and all that it points to live and stay as they are during `'a`, and lists have as many items as their counts say.
unsafe fn subgraph<'a>(g: &'a abi::Subgraph) -> Subgraph<'a> {
    // SAFETY: there are as many tensors, flags and steps as `g` says, and nodes and their lists are as `abi::Node` says.
    unsafe {
        let escapes = list(g.escapes, g.tensor_count);
        let tensors = list(g.tensors, g.tensor_count).iter().zip(escapes);
        let steps = list(g.steps, g.step_count).iter().map(|step| {
            let (inputs, outputs) = ((*step.node).input_count, (*step.node).output_count);
            let input = |&t: &usize| (t != abi::ABSENT).then_some(t);
            SubgraphStep {
                node: node(step.node),
                inputs: list(step.inputs, inputs).iter().map(input).collect(),
                outputs: list(step.outputs, outputs).to_vec(),
            }
        });
        Subgraph {
            tensors: tensors
                .map(|(t, &escapes)| SubgraphTensor {
                    info: tensor(t),
                    escapes: escapes != 0,
                })
                .collect(),
            steps: steps.collect(),
        }
    }
}

pub unsafe extern "C" fn optimise<G: Guest>(
    this: *mut c_void,
    connected: *const abi::Subgraph,
    rewrite: *const abi::Rewrite,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, the rest Kilim's, which lives during the call.
        let (opened, connected, rewrite) = unsafe {
            let opened = &*this.cast::<Opened<G>>();
            (opened, subgraph(&*connected), &*rewrite)
        };
        let changes = opened.guest.optimise(&connected).map_err(|f| (f, -1))?;
        for change in changes {
            match change {
                Change::GiveBack { step, reason } => {
                    let reason = c_text(&reason);
                    if let Some(refuse) = rewrite.refuse {
                        // SAFETY: a function of Kilim's, with its own `this`.
                        unsafe { refuse(rewrite.this, step, reason.as_ptr()) };
                    }
                }
                Change::Replace { steps, with } => replace(rewrite, &steps, &with),
            }
        }
        Ok(())
    })
}

/// Tells the host of a node that takes the place of others.
fn replace(rewrite: &abi::Rewrite, steps: &[usize], with: &NewNode) {
    let Some(replace) = rewrite.replace else {
        return;
    };
    let [name, domain, op] = [&with.name, &with.domain, &with.op].map(|t| c_text(t));
    let attributes = Encoded::new(&with.attributes);
    let inputs: Vec<usize> = with
        .inputs
        .iter()
        .map(|t| t.unwrap_or(abi::ABSENT))
        .collect();
    let node = abi::Node {
        name: name.as_ptr(),
        domain: domain.as_ptr(),
        op: op.as_ptr(),
        attribute_count: attributes.list.len(),
        attributes: attributes.list.as_ptr(),
        input_count: inputs.len(),
        inputs: std::ptr::null(),
        output_count: with.outputs.len(),
        outputs: std::ptr::null(),
    };
    let step = abi::Step {
        node: &raw const node,
        inputs: inputs.as_ptr(),
        outputs: with.outputs.as_ptr(),
    };
    // SAFETY: a function of Kilim's, with its own `this`; all pointers live during the call, and it reads of the node what the
    // interface says, which are not its tensors.
    unsafe { replace(rewrite.this, steps.as_ptr(), steps.len(), &raw const step) };
}
