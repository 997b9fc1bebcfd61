//! Pipelines, shared by all sessions on a device. Natively one is compiled when it is first asked
//! for; in a browser when [`warm`] is awaited, all together and off the main thread of the GPU
//! process, so that the first run compiles nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use kilim_core::{Error, ErrorCode, Interrupt, Result};

use crate::device::gpu::{Gpu, lock};
use crate::shaders::Program;

/// A compute pipeline and the layout of its bind group.
pub(crate) struct Pipeline {
    pub layout: Arc<wgpu::BindGroupLayout>,
    label: String,
    source: String,
    /// The source is a file of Kilim's, not text of a user's.
    trusted: bool,
    #[cfg(target_arch = "wasm32")]
    read_only: Vec<bool>,
    compiled: OnceLock<wgpu::ComputePipeline>,
}

impl Pipeline {
    /// The pipeline itself, compiled now if it was not yet.
    pub fn raw(&self, gpu: &Gpu) -> &wgpu::ComputePipeline {
        self.compiled.get_or_init(|| self.compile(gpu))
    }

    fn compile(&self, gpu: &Gpu) -> wgpu::ComputePipeline {
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(&self.label),
            source: wgpu::ShaderSource::Wgsl(self.source.as_str().into()),
        };
        let checks = wgpu::ShaderRuntimeChecks {
            force_loop_bounding: false,
            ..wgpu::ShaderRuntimeChecks::checked()
        };
        let module = if self.trusted {
            // SAFETY: every access is still checked; only the counters that end endless loops are left
            // out, which keep drivers from unrolling. All loops of the shaders count towards a bound.
            unsafe { gpu.device.create_shader_module_trusted(descriptor, checks) }
        } else {
            gpu.device.create_shader_module(descriptor)
        };
        let layout = gpu
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&self.layout)],
                immediate_size: 0,
            });
        gpu.device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&self.label),
                layout: Some(&layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Every kernel writes workgroup memory before it reads it.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: lock(&gpu.pipelines.compiled).as_ref(),
            })
    }
}

/// A program, and which of its storage buffers are bound for reading only.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub program: Program,
    pub read_only: Vec<bool>,
}

#[derive(Default)]
pub(crate) struct Pipelines {
    layouts: Mutex<HashMap<Vec<bool>, Arc<wgpu::BindGroupLayout>>>,
    known: Mutex<HashMap<Key, Arc<Pipeline>>>,
    /// What the driver has compiled, where it gives that out.
    compiled: Mutex<Option<wgpu::PipelineCache>>,
}

/// A cache for what the driver compiles, holding `known` already.
///
/// # Safety
/// As for [`wgpu::Device::create_pipeline_cache`].
unsafe fn driver_cache(device: &wgpu::Device, known: Option<&[u8]>) -> Option<wgpu::PipelineCache> {
    let offered = device.features().contains(wgpu::Features::PIPELINE_CACHE);
    let descriptor = wgpu::PipelineCacheDescriptor {
        label: Some("kilim"),
        data: known,
        fallback: false,
    };
    // SAFETY: by the contract of this function.
    offered.then(|| unsafe { device.create_pipeline_cache(&descriptor) })
}

impl Pipelines {
    /// No pipelines yet.
    pub fn new(device: &wgpu::Device) -> Pipelines {
        // SAFETY: there is no data.
        let compiled = unsafe { driver_cache(device, None) };
        Pipelines {
            compiled: Mutex::new(compiled),
            ..Pipelines::default()
        }
    }

    /// What the driver has compiled so far.
    pub fn save(&self) -> Option<Vec<u8>> {
        lock(&self.compiled).as_ref()?.get_data()
    }

    /// Compiles with what [`Pipelines::save`] gave.
    ///
    /// # Safety
    /// `known` must be those bytes, unchanged.
    pub unsafe fn load(&self, gpu: &Gpu, known: &[u8]) -> Result<()> {
        gpu.check()?;
        // SAFETY: by the contract of this function.
        let compiled = unsafe { driver_cache(&gpu.device, Some(known)) };
        gpu.check()?;
        if compiled.is_none() {
            return Err(kilim_core::error::unsupported(
                "the GPU's driver takes no compiled pipelines",
            ));
        }
        *lock(&self.compiled) = compiled;
        Ok(())
    }

    /// The pipeline of a program.
    ///
    /// # Errors
    /// `State` where a shader file cannot be expanded, `Device` where the device does not take the WGSL.
    pub fn get(&self, gpu: &Gpu, key: &Key) -> Result<Arc<Pipeline>> {
        if let Some(pipeline) = lock(&self.known).get(key) {
            return Ok(pipeline.clone());
        }
        let label = key.program.label();
        let wrong = |e: String| {
            let message = format!("the shader {label} cannot be expanded: {e}");
            Error::new(ErrorCode::State, message)
        };
        let pipeline = Arc::new(Pipeline {
            layout: self.layout(gpu, &key.read_only),
            source: key.program.source(&key.read_only).map_err(wrong)?,
            trusted: matches!(key.program, Program::File(_)),
            #[cfg(target_arch = "wasm32")]
            read_only: key.read_only.clone(),
            compiled: OnceLock::new(),
            label,
        });
        #[cfg(not(target_arch = "wasm32"))]
        native::compile(gpu, &pipeline)
            .map_err(|e| e.with_hint(format!("while compiling the shader {}", pipeline.label)))?;
        lock(&self.known).insert(key.clone(), pipeline.clone());
        Ok(pipeline)
    }

    fn layout(&self, gpu: &Gpu, read_only: &[bool]) -> Arc<wgpu::BindGroupLayout> {
        let mut layouts = lock(&self.layouts);
        if let Some(layout) = layouts.get(read_only) {
            return layout.clone();
        }
        let entry = |binding: u32, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform)];
        for (i, &read_only) in read_only.iter().enumerate() {
            entries.push(entry(
                i as u32 + 1,
                wgpu::BufferBindingType::Storage { read_only },
            ));
        }
        let layout = Arc::new(gpu.device.create_bind_group_layout(
            &wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries,
            },
        ));
        layouts.insert(read_only.to_vec(), layout.clone());
        layout
    }
}

/// Resolves when all of these pipelines are compiled and what the device had to say of them, and of
/// everything before, is known. `Aborted` where `interrupt` stops it on the way.
pub(crate) async fn warm(
    gpu: &Gpu,
    pipelines: &[Arc<Pipeline>],
    interrupt: &Interrupt,
) -> Result<()> {
    #[cfg(target_arch = "wasm32")]
    let held = web::compile(gpu, pipelines).await?;
    interrupt.check()?;
    let refused = create(gpu, pipelines).await;
    #[cfg(target_arch = "wasm32")]
    drop(held);
    refused?;
    gpu.check()
}

/// Creates them now; resolves to what the device had to say of these alone. Natively it is resolved at
/// once.
///
/// The scope is closed before anything is awaited: scopes of two sessions that load at the same time
/// would not be closed in the reverse order, which wgpu answers with a panic.
fn create(gpu: &Gpu, pipelines: &[Arc<Pipeline>]) -> impl Future<Output = Result<()>> + use<> {
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    for pipeline in pipelines {
        pipeline.raw(gpu);
    }
    let closing = scope.pop();
    async move {
        match closing.await {
            Some(e) => Err(Error::new(
                ErrorCode::Device,
                format!("the GPU refused a shader: {e}"),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use kilim_core::Result;

    use super::{Pipeline, create};
    use crate::device::gpu::Gpu;

    /// Compiles it. What another session does on the device at the same time is none of its concern.
    pub fn compile(gpu: &Gpu, pipeline: &Arc<Pipeline>) -> Result<()> {
        let created = pin!(create(gpu, std::slice::from_ref(pipeline)));
        match created.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => gpu.check(),
        }
    }
}

/// `createComputePipelineAsync`, which wgpu does not offer. The browser recognises an equal pipeline
/// that is still held, so that wgpu's own creation afterwards finds the compiled one.
#[cfg(target_arch = "wasm32")]
mod web {
    use std::sync::Arc;

    use js_sys::{Array, Function, Object, Promise, Reflect};
    use kilim_core::{Error, ErrorCode, Result};
    use wasm_bindgen::{JsCast, JsValue};
    use wasm_bindgen_futures::JsFuture;

    use super::Pipeline;
    use crate::device::gpu::Gpu;

    fn failed(e: JsValue) -> Error {
        let text = Reflect::get(&e, &"message".into())
            .ok()
            .and_then(|m| m.as_string())
            .unwrap_or_else(|| format!("{e:?}"));
        Error::new(
            ErrorCode::Device,
            format!("compiling a shader failed: {text}"),
        )
    }

    fn object(fields: &[(&str, &JsValue)]) -> std::result::Result<JsValue, JsValue> {
        let o = Object::new();
        for (name, value) in fields {
            Reflect::set(&o, &(*name).into(), value)?;
        }
        Ok(o.into())
    }

    fn call(on: &JsValue, name: &str, with: &JsValue) -> std::result::Result<JsValue, JsValue> {
        let method: Function = Reflect::get(on, &name.into())?.dyn_into()?;
        method.call1(on, with)
    }

    fn start(device: &JsValue, p: &Pipeline) -> std::result::Result<JsValue, JsValue> {
        let entries = Array::new();
        // GPUShaderStage.COMPUTE
        let compute = JsValue::from(4);
        let kinds = p
            .read_only
            .iter()
            .map(|&r| if r { "read-only-storage" } else { "storage" });
        for (i, kind) in std::iter::once("uniform").chain(kinds).enumerate() {
            entries.push(&object(&[
                ("binding", &JsValue::from(i as u32)),
                ("visibility", &compute),
                ("buffer", &object(&[("type", &kind.into())])?),
            ])?);
        }
        let group = call(
            device,
            "createBindGroupLayout",
            &object(&[("entries", &entries.into())])?,
        )?;
        let layout = call(
            device,
            "createPipelineLayout",
            &object(&[("bindGroupLayouts", &Array::of1(&group).into())])?,
        )?;
        let module = call(
            device,
            "createShaderModule",
            &object(&[("code", &p.source.as_str().into())])?,
        )?;
        let stage = object(&[("module", &module), ("entryPoint", &"main".into())])?;
        call(
            device,
            "createComputePipelineAsync",
            &object(&[("layout", &layout), ("compute", &stage)])?,
        )
    }

    /// The compiled pipelines; whoever holds them keeps them in the browser's cache.
    pub async fn compile(gpu: &Gpu, pipelines: &[Arc<Pipeline>]) -> Result<JsValue> {
        let Some(device) = gpu.device.as_webgpu() else {
            return Ok(JsValue::NULL);
        };
        let device: &JsValue = device.as_ref();
        let waiting = Array::new();
        for p in pipelines.iter().filter(|p| p.compiled.get().is_none()) {
            waiting.push(&start(device, p).map_err(failed)?);
        }
        JsFuture::from(Promise::all(&waiting)).await.map_err(failed)
    }
}
