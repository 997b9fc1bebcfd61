//! A library's backend as Kilim's other parts see it.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{
    Allocator, Backend, BackendContext, BackendId, ContextConfig, Description, NodeSpec, Refusal,
};
use kilim_core::ops::{Cost, CustomOperator};
use kilim_plugin_abi as abi;

use crate::context::PluginContext;
use crate::description::describe;
use crate::encode::{Arena, TensorView};
use crate::library::{Library, Message};
use crate::memory::PluginAllocator;
use crate::operators::operators;

/// See [`Backend`].
pub struct PluginBackend {
    description: Description,
    operators: Vec<Arc<CustomOperator>>,
    library: Arc<Library>,
}

impl PluginBackend {
    /// The backend of an open library under a name.
    ///
    /// # Errors
    /// `NoBackend` where the backend describes itself in a way that cannot be.
    pub fn new(id: BackendId, library: Library) -> Result<PluginBackend> {
        let library = Arc::new(library);
        let description = describe(id, &library)?;
        let operators = operators(&library);
        Ok(PluginBackend {
            description,
            operators,
            library,
        })
    }
}

impl Backend for PluginBackend {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        let estimate = node.cost();
        let mut cost = abi::Cost {
            flops: estimate.flops,
            bytes: estimate.bytes,
        };
        let inputs = node.inputs.iter().map(|s| s.as_ref().map(TensorView::of));
        let inputs: Vec<_> = inputs.collect();
        let outputs: Vec<_> = node
            .outputs
            .iter()
            .map(|s| Some(TensorView::of(s)))
            .collect();
        let mut arena = Arena::default();
        let encoded = arena.node(node.name, node.op, &inputs, &outputs)?;
        let Some(supports) = self.library.table.supports else {
            return Err(Refusal::new("the backend supports nothing"));
        };
        let mut message = Message::new();
        // SAFETY: a function of the table; the node points into the arena, which lives.
        let status = unsafe {
            let this = self.library.table.this;
            supports(this, &raw const encoded, &raw mut cost, message.raw())
        };
        if status != abi::OK {
            let text = message.text();
            return Err(Refusal::new(match text.is_empty() {
                true => format!("the backend refuses it with status {status} and no reason"),
                false => text,
            }));
        }
        let sound = |x: f64, estimate: f64| {
            if x.is_finite() && x >= 0.0 {
                x
            } else {
                estimate
            }
        };
        Ok(Cost {
            flops: sound(cost.flops, estimate.flops),
            bytes: sound(cost.bytes, estimate.bytes),
        })
    }

    fn operators(&self) -> &[Arc<CustomOperator>] {
        &self.operators
    }

    fn allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(PluginAllocator {
            id: self.description.id.clone(),
            library: self.library.clone(),
        })
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        let context =
            PluginContext::new(&self.description, &self.library, self.allocator(), config)?;
        Ok(Box::new(context))
    }
}
