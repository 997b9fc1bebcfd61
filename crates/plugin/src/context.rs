//! A session's part of a library's backend.

use std::any::Any;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::task::Poll;

use kilim_core::backend::{
    Allocator, BackendContext, BackendId, CommandQueue, ConstantKey, ContextConfig, ContextState,
    Description, DeviceTensor, Executable, LocalFuture, Location, Memory, NodeSpec, RawConstants,
    StageSpec, StageTensors, TensorSpec, UserMemory,
};
use kilim_core::error::unsupported;
use kilim_core::memory::{Claim, Storage};
use kilim_core::{Error, ErrorCode, Interrupt, Result, Tensor};
use kilim_plugin_abi as abi;

use crate::choice;
use crate::executable::PluginExecutable;
use crate::library::{Library, Message, check};
use crate::options::ContextView;
use crate::stage::StageView;

/// What the backend keeps for a session; released after its executables.
pub struct ContextHandle {
    raw: *mut c_void,
    pub library: Arc<Library>,
    /// The context that a replica was made of, which is released after it.
    _original: Option<Arc<ContextHandle>>,
}

// SAFETY: a context may be used by any thread, one at a time; contexts and executables of a session
// are used under `&mut`.
unsafe impl Send for ContextHandle {}
// SAFETY: shared, a context is only passed on; what uses it has it under `&mut`.
unsafe impl Sync for ContextHandle {}

impl Drop for ContextHandle {
    fn drop(&mut self) {
        let table = &self.library.table;
        let made = table.create_context.is_some() || self._original.is_some();
        if let Some(release) = table.release_context.filter(|_| made) {
            // SAFETY: made by `create_context` or `replica`, released once.
            unsafe { release(table.this, self.raw) };
        }
    }
}

impl ContextHandle {
    /// A context of the library's that shares the constants of this one; `None` where it makes none.
    fn replica(self: &Arc<Self>) -> Option<ContextHandle> {
        let table = &self.library.table;
        let replica = table.replica?;
        let (mut raw, mut message) = (std::ptr::null_mut(), Message::new());
        // SAFETY: a function of the table, with what `create_context` gave; both pointers live during the call.
        let status = unsafe { replica(table.this, self.raw, &raw mut raw, message.raw()) };
        (status == abi::OK).then(|| ContextHandle {
            raw,
            library: self.library.clone(),
            _original: Some(self.clone()),
        })
    }

    /// Whether the library needs the elements of a constant no more.
    fn is_packed(&self, key: ConstantKey) -> bool {
        let table = &self.library.table;
        table.is_packed.is_some_and(|is_packed| {
            // SAFETY: a function of the table, with what `create_context` gave.
            unsafe { is_packed(table.this, self.raw, key.0) != 0 }
        })
    }

    /// What the library calls the context; NULL where it makes none.
    pub fn raw(&self) -> *mut c_void {
        self.raw
    }

    /// Whether the device has done everything of the context; with `block` once it has.
    ///
    /// # Errors
    /// What the library says where the device fails.
    fn is_done(&self, block: bool, what: &str) -> Result<bool> {
        let table = &self.library.table;
        let Some(wait) = table.wait else {
            return Ok(true);
        };
        let (mut done, mut message) = (0, Message::new());
        // SAFETY: a function of the table, with what `create_context` gave; both pointers live during the call.
        let status = unsafe {
            let block = i32::from(block);
            wait(table.this, self.raw, block, &raw mut done, message.raw())
        };
        check(status, &message, what)?;
        Ok(block || done != 0)
    }

    /// Waits until the device has done everything of the context.
    ///
    /// # Errors
    /// What the library says where the device fails.
    pub fn finish(&self, what: &str) -> Result<()> {
        self.is_done(true, what).map(drop)
    }

    /// Resolves when the device has done everything of the context. Whoever polls it once does not wait; whoever polls it
    /// again does.
    pub fn wait_finish<'a>(self: &'a Arc<Self>, what: String) -> LocalFuture<'a, Result<()>> {
        let mut asked = false;
        Box::pin(std::future::poll_fn(move |cx| {
            match self.is_done(std::mem::replace(&mut asked, true), &what) {
                Ok(true) => Poll::Ready(Ok(())),
                Ok(false) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Err(error) => Poll::Ready(Err(error)),
            }
        }))
    }
}

/// See [`BackendContext`].
pub struct PluginContext {
    id: BackendId,
    /// The constants that the library was given. Their data stays valid until the context is released.
    constants: HashMap<ConstantKey, (Tensor, Arc<Claim>)>,
    handle: Arc<ContextHandle>,
    /// The arena stays empty where the library allocates for itself.
    state: ContextState,
    alignment: usize,
    /// Where the library computes.
    computes: Memory,
}

impl PluginContext {
    /// A session's context, which is told `config`.
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
            let view = ContextView::new(config);
            let options = view.raw();
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
                _original: None,
            }),
            state: ContextState::new(allocator, config),
            alignment: description.alignment,
            computes: description.memory,
        })
    }
}

impl PluginContext {
    /// The algorithm that each node's kernel is to have; nothing where the library knows no choice.
    fn algorithms(&self, stage: &StageSpec) -> Vec<Option<String>> {
        let library = &self.handle.library;
        if library.table.choice.is_none() {
            return Vec::new();
        }
        let picked = stage.nodes.iter().map(|node| {
            let (inputs, outputs) = stage.specs(node);
            let spec = NodeSpec {
                name: &node.name,
                op: &*node.op,
                inputs: &inputs,
                outputs: &outputs,
            };
            let choice = choice::of(library, &spec)?;
            let picked = self.state.tuned.pick(&choice);
            Some(choice.algorithms[picked].to_string())
        });
        picked.collect()
    }

    /// Lets go of the constants of a stage that the library has in a form of its own.
    fn let_go(&mut self, stage: &mut StageSpec) {
        for t in stage.tensors.indices() {
            let root = stage.root(t);
            if let Location::Constant(key) = stage.tensors[root].location
                && self.handle.is_packed(key)
            {
                stage.tensors[t].spec.value = None;
                self.constants.remove(&key);
            }
        }
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
        mut stage: StageSpec,
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
                self.constants.insert(key, (value.clone(), Arc::new(claim)));
            }
        }
        let algorithms = self.algorithms(&stage);
        let view = StageView::new(&stage, algorithms).map_err(|r| unsupported(r.reason))?;
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
        if status == abi::OK && self.state.raw == RawConstants::Drop {
            self.let_go(&mut stage);
        }
        let memory = (&self.state.arena, &self.state.ledger, self.alignment);
        let context = self.handle.clone();
        let prepared = (raw, stage, tensors);
        PluginExecutable::new(self.id.clone(), prepared, context, memory, |names| {
            check(status, &message, &what).map_err(|e| names.at(e, message.node()))
        })
        .map(|e| Box::new(e) as Box<dyn Executable>)
    }

    fn import(&mut self, tensor: &TensorSpec, memory: &UserMemory) -> Result<DeviceTensor> {
        self.handle
            .import((&self.id, self.computes), tensor, memory)
    }

    fn queue(&self) -> Result<Option<CommandQueue>> {
        self.handle.queue(&self.id)
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        let what = format!("`{}` did not finish", self.id);
        self.handle.wait_finish(what)
    }

    fn replica(&self) -> Option<Box<dyn BackendContext>> {
        Some(Box::new(PluginContext {
            id: self.id.clone(),
            constants: self.constants.clone(),
            handle: Arc::new(self.handle.replica()?),
            state: self.state.replica(),
            alignment: self.alignment,
            computes: self.computes,
        }))
    }

    fn replicate(&self, executable: &dyn Executable) -> Option<Box<dyn Executable>> {
        let executable: &dyn Any = executable;
        let original: &PluginExecutable = executable.downcast_ref()?;
        let memory = (&self.state.arena, &self.state.ledger, self.alignment);
        let replica = original.replica(&self.handle, memory)?;
        Some(Box::new(replica))
    }

    fn is_lost(&self) -> bool {
        let table = &self.handle.library.table;
        table.is_lost.is_some_and(|is_lost| {
            // SAFETY: a function of the table, with what `create_context` gave.
            unsafe { is_lost(table.this, self.handle.raw()) != 0 }
        })
    }
}
