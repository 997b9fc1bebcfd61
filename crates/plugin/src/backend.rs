//! A library's backend as Kilim's other parts see it.

use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{
    Allocator, Backend, BackendContext, BackendId, ContextConfig, Description, DeviceOption,
    LocalFuture, MemoryKind, NodeLayouts, NodeSpec, Optimizer, Refusal,
};
use kilim_core::error::unsupported;
use kilim_core::ops::{Cost, CustomOperator};
use kilim_core::schedule::Scheduler;
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::tuning::Choice;
use kilim_core::{Interrupt, Result, Tensor};
use kilim_plugin_abi as abi;

use crate::choice;
use crate::context::PluginContext;
use crate::description::describe;
use crate::encode::Arena;
use crate::library::{Library, Message, check};
use crate::memory::PluginAllocator;
use crate::operators::operators;
use crate::options::options;
use crate::schedule::PluginScheduler;

/// How often a cache that grows while it is saved is asked for.
const SAVES: usize = 4;

/// See [`Backend`].
pub struct PluginBackend {
    pub description: Description,
    memory_kinds: Vec<MemoryKind>,
    options: Vec<DeviceOption>,
    pub operators: Vec<Arc<CustomOperator>>,
    pub library: Arc<Library>,
}

impl PluginBackend {
    /// The backend of an open library under a name.
    ///
    /// # Errors
    /// `NoBackend` where the backend describes itself in a way that cannot be.
    pub fn new(id: BackendId, library: Library) -> Result<PluginBackend> {
        let library = Arc::new(library);
        let options = options(&id, &library)?;
        let (description, memory_kinds) = describe(id, &library)?;
        let operators = operators(&library);
        Ok(PluginBackend {
            description,
            memory_kinds,
            options,
            operators,
            library,
        })
    }

    /// Runs a node on host tensors now; `None` where the library does not take it.
    fn run_once(&self, evaluate: Evaluate, node: &NodeSpec) -> Result<Option<Vec<Tensor>>> {
        let mut arena = Arena::default();
        let Ok(encoded) = arena.asked(node) else {
            return Ok(None);
        };
        let room = node.outputs.iter().map(|o| {
            let bytes = byte_count(o.dtype, &o.shape)?;
            AlignedBytes::zeroed(bytes)
        });
        let mut room = room.collect::<Result<Vec<_>>>()?;
        let pointers: Vec<*mut c_void> = room
            .iter_mut()
            .map(|bytes| bytes.as_mut_slice().as_mut_ptr().cast())
            .collect();
        let mut message = Message::new();
        // SAFETY: a function of the table; the node points into the arena, which lives, and there is room for each output.
        let status = unsafe {
            let this = self.library.table.this;
            let outputs = pointers.as_ptr();
            evaluate(this, &raw const encoded, outputs, message.raw())
        };
        if status == abi::UNSUPPORTED {
            return Ok(None);
        }
        let what = format!("`{}` failed", self.description.id);
        check(status, &message, &what).map_err(|e| e.at(node.name, node.op.name()))?;
        let outputs = node.outputs.iter().zip(room);
        let tensors =
            outputs.map(|(o, bytes)| Tensor::from_bytes(o.dtype, &o.shape, Arc::new(bytes)));
        tensors.collect::<Result<_>>().map(Some)
    }
}

type Evaluate = unsafe extern "C" fn(
    *mut c_void,
    *const abi::Node,
    *const *mut c_void,
    *mut abi::Message,
) -> abi::Status;

impl Backend for PluginBackend {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn options(&self) -> &[DeviceOption] {
        &self.options
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        let estimate = node.cost();
        let mut cost = abi::Cost {
            flops: estimate.flops,
            bytes: estimate.bytes,
        };
        let mut arena = Arena::default();
        let encoded = arena.asked(node)?;
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

    fn optimizer(&self) -> Option<&dyn Optimizer> {
        self.library.table.optimise.map(|_| self as &dyn Optimizer)
    }

    fn node_layouts(&self) -> Option<&dyn NodeLayouts> {
        self.library
            .table
            .node_layout
            .map(|_| self as &dyn NodeLayouts)
    }

    fn choice(&self, node: &NodeSpec, _: &ContextConfig) -> Option<Choice> {
        choice::of(&self.library, node)
    }

    fn scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        let id = self.description.id.clone();
        let scheduler = PluginScheduler::of(id, &self.library)?;
        Some(Arc::new(scheduler))
    }

    fn memory_kinds(&self) -> &[MemoryKind] {
        &self.memory_kinds
    }

    fn evaluate(&self, node: &NodeSpec, interrupt: &Interrupt) -> Option<Result<Vec<Tensor>>> {
        let evaluate = self.library.table.evaluate?;
        interrupt
            .check()
            .and_then(|()| self.run_once(evaluate, node))
            .transpose()
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

    fn reopen(&self) -> LocalFuture<'_, Result<()>> {
        let reopened = match self.library.table.reopen {
            None => Ok(()),
            Some(reopen) => {
                let mut message = Message::new();
                // SAFETY: a function of the table, with its own `this`.
                let status = unsafe { reopen(self.library.table.this, message.raw()) };
                let what = format!("`{}` did not open its device again", self.description.id);
                check(status, &message, &what)
            }
        };
        Box::pin(std::future::ready(reopened))
    }

    fn save_cache(&self) -> Option<Vec<u8>> {
        let table = &self.library.table;
        let save = table.save_cache?;
        // SAFETY: a function of the table; without room it only says how much it needs.
        let mut needed = unsafe { save(table.this, std::ptr::null_mut(), 0) };
        // What is learnt meanwhile may make the cache larger.
        for _ in 0..SAVES {
            let mut cache = Vec::new();
            if needed == 0 || cache.try_reserve_exact(needed).is_err() {
                return None;
            }
            cache.resize(needed, 0);
            // SAFETY: a function of the table; there is as much room as it is told.
            let bytes = unsafe { save(table.this, cache.as_mut_ptr().cast(), cache.len()) };
            if bytes <= cache.len() {
                cache.truncate(bytes);
                return Some(cache);
            }
            needed = bytes;
        }
        None
    }

    unsafe fn load_cache(&self, cache: &[u8]) -> Result<()> {
        let (id, table) = (&self.description.id, &self.library.table);
        let Some(load) = table.load_cache else {
            return Err(unsupported(format!("the backend `{id}` keeps no cache")));
        };
        let mut message = Message::new();
        // SAFETY: a function of the table; there are as many bytes as it is told.
        let status = unsafe {
            load(
                table.this,
                cache.as_ptr().cast(),
                cache.len(),
                message.raw(),
            )
        };
        check(status, &message, &format!("`{id}` did not take its cache"))
    }
}
