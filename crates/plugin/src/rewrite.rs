//! What a library makes of connected nodes: it gives some back and merges others.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use kilim_core::backend::{KernelSpec, Optimizer, Refusal, Replacement, Rewrite, Subgraph};
use kilim_core::error::unsupported;
use kilim_core::ids::{KernelIndex, TensorIndex};
use kilim_core::ops::{Attributes, Custom, CustomOperator};
use kilim_core::{Error, ErrorCode, Result};
use kilim_plugin_abi as abi;

use crate::backend::PluginBackend;
use crate::decode::{attribute, list};
use crate::library::{Message, check, owned};
use crate::stage::SubgraphView;

/// The rewrite while the library makes it.
struct Making<'a> {
    operators: &'a [Arc<CustomOperator>],
    rewrite: Rewrite,
    /// Why the first of the library's nodes that cannot be is none.
    wrong: Option<String>,
}

unsafe extern "C" fn refuse(this: *mut c_void, step: usize, reason: *const c_char) {
    // SAFETY: `this` is what `optimise` put into the rewrite, which nothing else uses during the call.
    let making = unsafe { &mut *this.cast::<Making>() };
    // SAFETY: strings of the interface end with a zero.
    let reason = unsafe { owned(reason) };
    let reason = reason.unwrap_or_else(|| "given back without a reason".to_string());
    let refused = (KernelIndex(step), Refusal::new(reason));
    making.rewrite.refused.push(refused);
}

unsafe extern "C" fn replace(
    this: *mut c_void,
    steps: *const usize,
    count: usize,
    with: *const abi::Step,
) {
    // SAFETY: `this` is what `optimise` put into the rewrite, which nothing else uses during the call.
    let making = unsafe { &mut *this.cast::<Making>() };
    // SAFETY: the library gives as many steps as it says, and a node with its lists.
    match unsafe { node(making.operators, with) } {
        Ok(with) => making.rewrite.replaced.push(Replacement {
            // SAFETY: the library gives as many steps as it says.
            nodes: unsafe { list(steps, count) }
                .iter()
                .map(|&s| KernelIndex(s))
                .collect(),
            with: vec![with],
        }),
        Err(why) => {
            making.wrong.get_or_insert(why);
        }
    }
}

/// The node that the library has made.
///
/// # Safety
/// `with` is NULL or a step with a node; lists are as long as the node says, texts end with a zero.
unsafe fn node(
    operators: &[Arc<CustomOperator>],
    with: *const abi::Step,
) -> std::result::Result<KernelSpec, String> {
    // SAFETY: by the contract of this function.
    let (step, node) = unsafe {
        let step = with.as_ref().ok_or("there is no step")?;
        (step, step.node.as_ref().ok_or("there is no node")?)
    };
    // SAFETY: texts end with a zero.
    let [name, domain, op] =
        [node.name, node.domain, node.op].map(|text| unsafe { owned(text) }.unwrap_or_default());
    let mut own = operators.iter();
    let operator = own
        .find(|o| o.domain() == domain && o.name() == op)
        .ok_or_else(|| format!("`{domain}::{op}` is not an operator of the library's"))?;
    let mut attributes = Attributes::default();
    // SAFETY: the node has as many attributes, inputs and outputs as it says.
    let (told, inputs, outputs) = unsafe {
        (
            list(node.attributes, node.attribute_count),
            list(step.inputs, node.input_count),
            list(step.outputs, node.output_count),
        )
    };
    for a in told {
        // SAFETY: an attribute has as many values of its kind as it says, texts end with a zero.
        let (name, value) = unsafe { (owned(a.name).unwrap_or_default(), attribute(a)) };
        let value = value.ok_or_else(|| format!("the attribute `{name}` is of no kind"))?;
        attributes.set(name, value);
    }
    let input = |&t: &usize| (t != abi::ABSENT).then_some(TensorIndex(t));
    Ok(KernelSpec {
        name,
        op: Arc::new(Custom::new(operator.clone(), attributes)),
        inputs: inputs.iter().map(input).collect(),
        outputs: outputs.iter().map(|&t| TensorIndex(t)).collect(),
    })
}

impl Optimizer for PluginBackend {
    fn optimise(&self, subgraph: &Subgraph) -> Result<Rewrite> {
        let Some(optimise) = self.library.table.optimise else {
            return Ok(Rewrite::default());
        };
        let view = SubgraphView::new(subgraph).map_err(|r| unsupported(r.reason))?;
        let mut making = Making {
            operators: &self.operators,
            rewrite: Rewrite::default(),
            wrong: None,
        };
        let (told, mut message) = (view.raw(), Message::new());
        let takes = abi::Rewrite {
            this: (&raw mut making).cast(),
            refuse: Some(refuse),
            replace: Some(replace),
        };
        // SAFETY: a function of the table; the subgraph points into `view`, and all three live during the call.
        let status = unsafe {
            let this = self.library.table.this;
            optimise(this, &raw const told, &raw const takes, message.raw())
        };
        let id = &self.description.id;
        check(
            status,
            &message,
            &format!("`{id}` did not optimise its nodes"),
        )?;
        match making.wrong {
            None => Ok(making.rewrite),
            Some(why) => {
                let what = format!("`{id}` puts a node into its part of the graph that cannot be");
                Err(Error::new(ErrorCode::State, what).with_got(why))
            }
        }
    }
}
