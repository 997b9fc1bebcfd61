//! A library's backend as Kilim's other parts see it.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{
    Allocator, Backend, BackendConfig, BackendContext, BackendId, ConstantKey, ContextConfig,
    Description, DeviceTensor, Executable, Grade, Half, LocalFuture, Memory, NodeSpec, Place,
    Refusal, Speed, StageSpec, StageTensors, TensorRegistry,
};
use kilim_core::error::unsupported;
use kilim_core::memory::{self, Claim, Ledger, Storage};
use kilim_core::ops::{Attributes, Cost, CustomOperator, Fact, InferContext};
use kilim_core::{DType, Dim, Error, ErrorCode, Result, Shape, Tensor};
use kilim_plugin_abi as abi;

use crate::encode::{Arena, StageView, TensorView, dtype};
use crate::executable::{PluginExecutable, device_value};
use crate::library::{Library, Message, check, owned};
use crate::memory::PluginAllocator;

pub struct PluginBackend {
    description: Description,
    operators: Vec<Arc<CustomOperator>>,
    library: Arc<Library>,
}

impl PluginBackend {
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

fn describe(id: BackendId, library: &Library) -> Result<Description> {
    let mut told = abi::Description {
        device: std::ptr::null(),
        dtype_count: 0,
        dtypes: std::ptr::null(),
        alignment: 64,
        max_tensor_bytes: u64::MAX,
        max_arena_bytes: u64::MAX,
        flops_per_second: 1e10,
        bytes_per_second: 1e10,
        kernel_start: 1e-6,
        transfer_start: 1e-6,
        transfer_bytes_per_second: 1e10,
    };
    if let Some(describe) = library.table.describe {
        // SAFETY: a function of the table, with its own `this`.
        unsafe { describe(library.table.this, &raw mut told) };
    }
    let speeds = [
        told.flops_per_second,
        told.bytes_per_second,
        told.transfer_bytes_per_second,
    ];
    let starts = [told.kernel_start, told.transfer_start];
    let sound = told.alignment.is_power_of_two()
        && speeds.iter().all(|s| s.is_finite() && *s > 0.0)
        && starts.iter().all(|s| s.is_finite() && *s >= 0.0);
    if !sound {
        return Err(Error::new(
            ErrorCode::NoBackend,
            format!(
                "the backend `{id}` describes itself with an alignment or a speed that cannot be"
            ),
        ));
    }
    let grades = match told.dtypes.is_null() {
        true => Vec::new(),
        // SAFETY: the backend gives as many grades as it says.
        false => unsafe { std::slice::from_raw_parts(told.dtypes, told.dtype_count) }.to_vec(),
    };
    let grade = |g: &abi::DtypeGrade| {
        let grade = match g.grade {
            abi::STORAGE => Grade::Storage,
            abi::ARITHMETIC => Grade::Arithmetic,
            abi::FAST => Grade::Fast,
            _ => return None,
        };
        Some((dtype(g.dtype)?, grade))
    };
    // SAFETY: strings of the interface end with a zero.
    let device = unsafe { owned(told.device) };
    let dtypes: Vec<_> = grades.iter().filter_map(grade).collect();
    let f16 = match dtypes.contains(&(DType::F16, Grade::Fast)) {
        true => Half::Kept,
        false => Half::Off,
    };
    Ok(Description {
        device: device.unwrap_or_else(|| "a plug-in".to_string()),
        id,
        memory: Memory::Device,
        dtypes,
        alignment: told.alignment,
        max_tensor_bytes: told.max_tensor_bytes,
        max_arena_bytes: told.max_arena_bytes,
        speed: Speed {
            flops_per_second: told.flops_per_second,
            bytes_per_second: told.bytes_per_second,
            kernel_start: told.kernel_start,
            transfer_start: told.transfer_start,
            transfer_bytes_per_second: told.transfer_bytes_per_second,
        },
        config: BackendConfig {
            f16,
            ..BackendConfig::default()
        },
    })
}

/// The operators that the library brings; those without a name or `infer` are left out.
fn operators(library: &Arc<Library>) -> Vec<Arc<CustomOperator>> {
    let table = &library.table;
    if table.operators.is_null() {
        return Vec::new();
    }
    // SAFETY: the backend gives as many operators as it says, which live as long as it.
    let list = unsafe { std::slice::from_raw_parts(table.operators, table.operator_count) };
    let operator = |index: usize| {
        let told = &list[index];
        // SAFETY: strings of the interface end with a zero.
        let (domain, name) = unsafe { (owned(told.domain), owned(told.name)?) };
        told.infer?;
        let (domain, library) = (domain.unwrap_or_default(), library.clone());
        let (d, n) = (domain.clone(), name.clone());
        Some(Arc::new(CustomOperator::new(
            domain,
            name,
            move |attributes, ctx| infer(&library, index, (&d, &n), attributes, ctx),
        )))
    };
    (0..list.len()).filter_map(operator).collect()
}

fn infer(
    library: &Library,
    index: usize,
    (domain, name): (&str, &str),
    attributes: &Attributes,
    ctx: &InferContext,
) -> Result<Vec<Fact>> {
    // Nothing can be said of outputs while an input's element type is unknown.
    if ctx.inputs.iter().flatten().any(|i| i.fact.dtype.is_none()) {
        return Ok(vec![Fact::default(); ctx.outputs]);
    }
    let size = |d: &Dim| d.known().map_or(-1, |n| n as i64);
    let view = |dtype: DType, shape: Option<&Shape>| TensorView {
        dtype,
        shape: shape.map(|s| s.0.iter().map(size).collect()),
        value: None,
        bytes: 0,
    };
    let inputs: Vec<_> = ctx
        .inputs
        .iter()
        .map(|i| {
            let input = i.as_ref()?;
            let mut view = view(input.fact.dtype?, input.fact.shape.as_ref());
            view.value = input.value.as_ref();
            view.bytes = input.value.as_ref().map_or(0, |v| v.byte_len());
            Some(view)
        })
        .collect();
    let outputs: Vec<_> = (0..ctx.outputs)
        .map(|_| Some(view(DType::F32, None)))
        .collect();
    let mut arena = Arena::default();
    let node = arena
        .custom_node("", domain, name, &attributes.0, &inputs, &outputs)
        .map_err(|r| unsupported(r.reason))?;
    let empty = abi::Output {
        dtype: 0,
        rank: -1,
        shape: [0; abi::MAX_RANK],
    };
    let mut told = vec![empty; ctx.outputs];
    let mut message = Message::new();
    // SAFETY: `operators` saw that the operator is there and has `infer`; the node points into the
    // arena, which lives; there is an entry for each output.
    let status = unsafe {
        let operator = &*library.table.operators.add(index);
        match operator.infer {
            Some(infer) => infer(
                operator.this,
                &raw const node,
                told.as_mut_ptr(),
                message.raw(),
            ),
            None => abi::UNSUPPORTED,
        }
    };
    check(status, &message, &format!("the shapes of {domain}::{name}"))?;
    let fact = |o: &abi::Output| {
        let rank = usize::try_from(o.rank).ok().filter(|&r| r <= abi::MAX_RANK);
        let dim = |&d: &i64| usize::try_from(d).map_or(Dim::Unknown, Dim::Known);
        Fact {
            dtype: dtype(o.dtype),
            shape: rank.map(|r| Shape(o.shape[..r].iter().map(dim).collect())),
            ..Fact::default()
        }
    };
    Ok(told.iter().map(fact).collect())
}

impl Backend for PluginBackend {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        let shapes = node
            .inputs
            .iter()
            .map(|i| i.as_ref().map(|s| s.shape.clone()));
        let outputs: Vec<_> = node.outputs.iter().map(|s| s.shape.clone()).collect();
        let estimate = node.op.cost(&shapes.collect::<Vec<_>>(), &outputs);
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
        let mut handle = std::ptr::null_mut();
        if let Some(create) = self.library.table.create_context {
            let options = abi::ContextOptions {
                threads: config.threads.unwrap_or(0),
            };
            let mut message = Message::new();
            // SAFETY: a function of the table; all pointers live during the call.
            let status = unsafe {
                let this = self.library.table.this;
                create(this, &raw const options, &raw mut handle, message.raw())
            };
            let what = format!("`{}` did not make a context", self.description.id);
            check(status, &message, &what)?;
        }
        Ok(Box::new(PluginContext {
            id: self.description.id.clone(),
            constants: HashMap::new(),
            handle: Arc::new(ContextHandle {
                raw: handle,
                library: self.library.clone(),
            }),
            tensors: TensorRegistry::default(),
            ledger: Ledger::default(),
            arena: match &config.arena {
                Some(arena) => arena.clone(),
                None => memory::Arena::new(self.allocator()),
            },
            alignment: self.description.alignment,
        }))
    }
}

/// What the backend keeps for a session; released after its executables.
pub struct ContextHandle {
    raw: *mut c_void,
    pub library: Arc<Library>,
}

// SAFETY: a context may be used by any thread, one at a time; contexts and executables of a session
// are used under `&mut`.
unsafe impl Send for ContextHandle {}
// SAFETY: as above.
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

struct PluginContext {
    id: BackendId,
    /// Their data stays valid until the context is released.
    constants: HashMap<ConstantKey, (Tensor, Claim)>,
    handle: Arc<ContextHandle>,
    tensors: TensorRegistry,
    ledger: Ledger,
    /// Stays empty where the library allocates for itself.
    arena: memory::Arena,
    alignment: usize,
}

impl BackendContext for PluginContext {
    fn gen_tensors(&mut self, stage: &StageSpec) -> Result<Arc<StageTensors>> {
        Ok(self.tensors.register(stage))
    }

    fn gen_kernels(
        &mut self,
        stage: StageSpec,
        tensors: Arc<StageTensors>,
    ) -> Result<Box<dyn Executable>> {
        for slot in &stage.tensors {
            if let (Place::Constant(key), Some(value)) = (slot.place, &slot.spec.value) {
                let bytes = value.byte_len();
                let claim = || self.ledger.acquire(Storage::Static, bytes);
                self.constants
                    .entry(key)
                    .or_insert_with(|| (value.clone(), claim()));
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
        let memory = (&self.arena, &self.ledger, self.alignment);
        let context = self.handle.clone();
        let prepared = (raw, stage, tensors);
        PluginExecutable::new(self.id.clone(), prepared, context, memory, |names| {
            check(status, &message, &what).map_err(|e| names.at(e, message.node()))
        })
        .map(|e| Box::new(e) as Box<dyn Executable>)
    }

    fn read<'a>(&'a mut self, tensors: &'a [DeviceTensor]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        let read = tensors.iter().map(device_value).collect();
        Box::pin(std::future::ready(read))
    }

    fn resize_end(&mut self) -> Result<()> {
        self.arena.reserve(self.ledger.bytes(Storage::Dynamic))
    }

    fn tensors(&self) -> &TensorRegistry {
        &self.tensors
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn arena(&self) -> &memory::Arena {
        &self.arena
    }
}
