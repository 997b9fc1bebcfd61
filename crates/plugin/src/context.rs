//! A session's part of a library's backend.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{
    Allocator, BackendContext, BackendId, ConstantKey, ContextConfig, ContextState, Description,
    Executable, Location, StageSpec, StageTensors,
};
use kilim_core::error::unsupported;
use kilim_core::memory::{Claim, Storage};
use kilim_core::{Error, ErrorCode, Interrupt, Result, Tensor};
use kilim_plugin_abi as abi;

use crate::encode::StageView;
use crate::executable::PluginExecutable;
use crate::library::{Library, Message, check};

/// What the backend keeps for a session; released after its executables.
pub struct ContextHandle {
    raw: *mut c_void,
    pub library: Arc<Library>,
}

// SAFETY: a context may be used by any thread, one at a time; contexts and executables of a session
// are used under `&mut`.
unsafe impl Send for ContextHandle {}
// SAFETY: shared, a context is only passed on; what uses it has it under `&mut`.
unsafe impl Sync for ContextHandle {}

impl Drop for ContextHandle {
    fn drop(&mut self) {
        let table = &self.library.table;
        if let (Some(_), Some(release)) = (table.create_context, table.release_context) {
            // SAFETY: made by `create_context`, released once.
            unsafe { release(table.this, self.raw) };
        }
    }
}

/// See [`BackendContext`].
pub struct PluginContext {
    id: BackendId,
    /// The constants that the library was given. Their data stays valid until the context is released.
    constants: HashMap<ConstantKey, (Tensor, Claim)>,
    handle: Arc<ContextHandle>,
    /// The arena stays empty where the library allocates for itself.
    state: ContextState,
    alignment: usize,
}

impl PluginContext {
    /// A session's context; `config` says how many threads and whose arena.
    ///
    /// # Errors
    /// What the library says where it makes none.
    pub fn new(
        description: &Description,
        library: &Arc<Library>,
        allocator: Arc<dyn Allocator>,
        config: &ContextConfig,
    ) -> Result<PluginContext> {
        let mut handle = std::ptr::null_mut();
        if let Some(create) = library.table.create_context {
            let options = abi::ContextOptions {
                threads: config.threads.unwrap_or(0),
            };
            let mut message = Message::new();
            // SAFETY: a function of the table; all pointers live during the call.
            let status = unsafe {
                let this = library.table.this;
                create(this, &raw const options, &raw mut handle, message.raw())
            };
            let what = format!("`{}` did not make a context", description.id);
            check(status, &message, &what)?;
        }
        Ok(PluginContext {
            id: description.id.clone(),
            constants: HashMap::new(),
            handle: Arc::new(ContextHandle {
                raw: handle,
                library: library.clone(),
            }),
            state: ContextState::new(allocator, config),
            alignment: description.alignment,
        })
    }
}

impl BackendContext for PluginContext {
    fn state(&self) -> &ContextState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ContextState {
        &mut self.state
    }

    fn gen_kernels(
        &mut self,
        stage: StageSpec,
        tensors: Arc<StageTensors>,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Executable>> {
        interrupt.check()?;
        for slot in &stage.tensors {
            if let (Location::Constant(key), Some(value)) = (slot.location, &slot.spec.value)
                && !self.constants.contains_key(&key)
            {
                let claim = self
                    .state
                    .ledger
                    .acquire(Storage::Static, value.byte_len())?;
                self.constants.insert(key, (value.clone(), claim));
            }
        }
        let view = StageView::new(&stage).map_err(|r| unsupported(r.reason))?;
        let table = &self.handle.library.table;
        let Some(prepare) = table.prepare else {
            return Err(Error::new(ErrorCode::State, "the backend prepares nothing"));
        };
        let mut raw = std::ptr::null_mut();
        let mut message = Message::new();
        let told = view.raw();
        // SAFETY: a function of the table; the stage points into `view`, which lives.
        let status = unsafe {
            prepare(
                table.this,
                self.handle.raw,
                &raw const told,
                &raw mut raw,
                message.raw(),
            )
        };
        let what = format!("`{}` did not prepare its part of the model", self.id);
        let memory = (&self.state.arena, &self.state.ledger, self.alignment);
        let context = self.handle.clone();
        let prepared = (raw, stage, tensors);
        PluginExecutable::new(self.id.clone(), prepared, context, memory, |names| {
            check(status, &message, &what).map_err(|e| names.at(e, message.node()))
        })
        .map(|e| Box::new(e) as Box<dyn Executable>)
    }
}
