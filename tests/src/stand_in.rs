//! The backend `cpu` under another name, with something about it changed.

use std::any::Any;
use std::sync::Arc;

use kilim::core::Backend;
use kilim::core::backend::{
    API_VERSION, Allocator, BackendConfig, BackendContext, BackendId, ContextConfig, ContextState,
    Description, DeviceOption, DeviceTensor, Executable, Grade, Half, LocalFuture, NodeSpec,
    Progress, RawConstants, Refusal, StageSpec, StageTensors,
};
use kilim::core::ids::{PartIndex, PerKernel, TensorIndex};
use kilim::core::ops::Cost;
use kilim::core::{Interrupt, Tensor};
use kilim::{DType, Result};

type Takes = dyn Fn(&NodeSpec) -> bool + Send + Sync;
type Rewrite = dyn Fn(&mut StageSpec) + Send + Sync;
type OnCall = dyn Fn(&'static str) -> Result<()> + Send + Sync;
type Configured = dyn Fn(&BackendConfig) -> Option<Arc<dyn Backend>> + Send + Sync;
type OnContext = dyn Fn(&ContextConfig) + Send + Sync;
type Prepares = dyn Fn(&StageSpec) -> Result<()> + Send + Sync;
type OnRun = dyn Fn(PartIndex) -> Result<()> + Send + Sync;

/// See the methods for what can be changed.
#[derive(Clone)]
pub struct StandIn {
    inner: Arc<dyn Backend>,
    description: Description,
    takes: Arc<Takes>,
    prefers_half: Arc<Takes>,
    rewrite: Arc<Rewrite>,
    configured: Arc<Configured>,
    on_context: Arc<OnContext>,
    prepares: Arc<Prepares>,
    allocator: Arc<dyn Allocator>,
    on_run: Arc<OnRun>,
    on_call: Arc<OnCall>,
    version: u32,
    options: Vec<DeviceOption>,
}

impl StandIn {
    pub fn new(inner: Arc<dyn Backend>, id: &'static str) -> StandIn {
        StandIn {
            description: Description {
                id: BackendId::new(id),
                ..inner.describe().clone()
            },
            allocator: inner.allocator(),
            inner,
            takes: Arc::new(|_| true),
            prefers_half: Arc::new(|_| true),
            rewrite: Arc::new(|_| ()),
            configured: Arc::new(|_| None),
            on_context: Arc::new(|_| ()),
            prepares: Arc::new(|_| Ok(())),
            on_run: Arc::new(|_| Ok(())),
            on_call: Arc::new(|_| Ok(())),
            version: API_VERSION,
            options: Vec::new(),
        }
    }

    /// On a device of this name, with an option of its own.
    pub fn on_device(mut self, device: &str, option: DeviceOption) -> Self {
        self.description.device = device.to_string();
        self.options.push(option);
        self
    }

    /// Built for another version of the backend API.
    pub fn of_version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    /// Called with the names of the calls that frame planning and running, when they come; what it
    /// gives as an error is the call's.
    pub fn on_call(
        mut self,
        f: impl Fn(&'static str) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.on_call = Arc::new(f);
        self
    }

    /// Says something else of itself.
    pub fn describing(mut self, describe: impl FnOnce(&mut Description)) -> Self {
        describe(&mut self.description);
        self
    }

    /// Has another allocator of host memory.
    pub fn allocating(mut self, allocator: Arc<dyn Allocator>) -> Self {
        self.allocator = allocator;
        self
    }

    /// Asked before the kernels of a stage are made; what it gives as an error is said in place of these.
    pub fn preparing(
        mut self,
        f: impl Fn(&StageSpec) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.prepares = Arc::new(f);
        self
    }

    /// Tensors lie at multiples of so many bytes.
    pub fn aligned(self, bytes: usize) -> Self {
        self.describing(|description| description.alignment = bytes)
    }

    /// Offers something else.
    pub fn offering(mut self, offer: impl FnOnce(&mut BackendConfig)) -> Self {
        offer(&mut self.description.config);
        self
    }

    /// Gives another backend to sessions of some config.
    pub fn configured(
        mut self,
        f: impl Fn(&BackendConfig) -> Option<Arc<dyn Backend>> + Send + Sync + 'static,
    ) -> Self {
        self.configured = Arc::new(f);
        self
    }

    /// Called with what a context is told.
    pub fn on_context(mut self, f: impl Fn(&ContextConfig) + Send + Sync + 'static) -> Self {
        self.on_context = Arc::new(f);
        self
    }

    /// Says that it is at its best with an element type.
    pub fn fast_in(mut self, dtype: DType) -> Self {
        for (d, grade) in &mut self.description.dtypes {
            if *d == dtype {
                *grade = Grade::Fast;
            }
        }
        if dtype == DType::F16 {
            self.description.config.f16 = Half::Kept;
        }
        self
    }

    /// Refuses all other nodes.
    pub fn taking(mut self, takes: impl Fn(&NodeSpec) -> bool + Send + Sync + 'static) -> Self {
        self.takes = Arc::new(takes);
        self
    }

    /// Where it is fast in half precision, has only these nodes in it.
    pub fn preferring_half(
        mut self,
        prefers: impl Fn(&NodeSpec) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.prefers_half = Arc::new(prefers);
        self
    }

    /// Prepares another stage than the one asked for.
    pub fn rewriting(mut self, rewrite: impl Fn(&mut StageSpec) + Send + Sync + 'static) -> Self {
        self.rewrite = Arc::new(rewrite);
        self
    }

    /// Called with the number of a part before it runs.
    pub fn on_run(mut self, f: impl Fn(PartIndex) -> Result<()> + Send + Sync + 'static) -> Self {
        self.on_run = Arc::new(f);
        self
    }
}

impl Backend for StandIn {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn options(&self) -> &[DeviceOption] {
        &self.options
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        if !(self.takes)(node) {
            return Err(Refusal::new("not for this stand-in"));
        }
        self.inner.supports(node)
    }

    fn prefers_half(&self, half: &NodeSpec) -> Result<(), Refusal> {
        if !self.description.f16() {
            let device = &self.description.device;
            return Err(Refusal::new(format!("float16 is not faster on {device}")));
        }
        if !(self.prefers_half)(half) {
            return Err(Refusal::new("not faster in float16"));
        }
        self.supports(half).map(drop)
    }

    fn api_version(&self) -> u32 {
        self.version
    }

    fn allocator(&self) -> Arc<dyn Allocator> {
        self.allocator.clone()
    }

    fn configured(&self, config: &BackendConfig) -> Option<Arc<dyn Backend>> {
        (self.configured)(config)
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        (self.on_context)(config);
        Ok(Box::new(Context {
            inner: self.inner.create_context(config)?,
            rewrite: self.rewrite.clone(),
            prepares: self.prepares.clone(),
            on_run: self.on_run.clone(),
            on_call: self.on_call.clone(),
        }))
    }
}

struct Context {
    inner: Box<dyn BackendContext>,
    rewrite: Arc<Rewrite>,
    prepares: Arc<Prepares>,
    on_run: Arc<OnRun>,
    on_call: Arc<OnCall>,
}

impl BackendContext for Context {
    fn resize_begin(&mut self, raw: RawConstants) -> Result<()> {
        (self.on_call)("resize_begin")?;
        self.inner.resize_begin(raw)
    }

    fn gen_tensors(&mut self, stage: &StageSpec) -> Result<Arc<StageTensors>> {
        (self.on_call)("gen_tensors")?;
        let mut stage = stage.clone();
        (self.rewrite)(&mut stage);
        self.inner.gen_tensors(&stage)
    }

    fn gen_kernels(
        &mut self,
        mut stage: StageSpec,
        tensors: Arc<StageTensors>,
        interrupt: &Interrupt,
    ) -> Result<Box<dyn Executable>> {
        (self.on_call)("gen_kernels")?;
        (self.prepares)(&stage)?;
        (self.rewrite)(&mut stage);
        Ok(Box::new(Stage {
            inner: self.inner.gen_kernels(stage, tensors, interrupt)?,
            on_run: self.on_run.clone(),
            on_call: self.on_call.clone(),
        }))
    }

    fn resize_end(&mut self) -> Result<()> {
        (self.on_call)("resize_end")?;
        self.inner.resize_end()
    }

    fn state(&self) -> &ContextState {
        self.inner.state()
    }

    fn state_mut(&mut self) -> &mut ContextState {
        self.inner.state_mut()
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        if let Err(error) = (self.on_call)("wait_finish") {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.wait_finish()
    }

    fn replicate(&self, executable: &dyn Executable) -> Option<Box<dyn Executable>> {
        let executable: &dyn Any = executable;
        let own: &Stage = executable.downcast_ref()?;
        Some(Box::new(Stage {
            inner: self.inner.replicate(&*own.inner)?,
            on_run: own.on_run.clone(),
            on_call: own.on_call.clone(),
        }))
    }
}

struct Stage {
    inner: Box<dyn Executable>,
    on_run: Arc<OnRun>,
    on_call: Arc<OnCall>,
}

impl Executable for Stage {
    fn execute_begin(&mut self) -> Result<()> {
        (self.on_call)("execute_begin")?;
        self.inner.execute_begin()
    }

    fn write(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()> {
        (self.on_call)("write")?;
        self.inner.write(tensor, data)
    }

    fn takes(&self, data: &DeviceTensor) -> bool {
        self.inner.takes(data)
    }

    fn import(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        (self.on_call)("import")?;
        self.inner.import(tensor, data)
    }

    fn export(&mut self, tensor: TensorIndex) -> Result<DeviceTensor> {
        (self.on_call)("export")?;
        self.inner.export(tensor)
    }

    fn copy(&mut self, from: TensorIndex, to: TensorIndex) -> Result<()> {
        self.inner.copy(from, to)
    }

    fn run(&mut self, part: PartIndex, interrupt: &Interrupt) -> Result<Progress> {
        (self.on_call)("run")?;
        (self.on_run)(part)?;
        self.inner.run(part, interrupt)
    }

    fn skip(&mut self, kernels: Option<Arc<PerKernel<bool>>>) -> bool {
        self.inner.skip(kernels)
    }

    fn wait_room(&mut self) -> LocalFuture<'_, Result<()>> {
        self.inner.wait_room()
    }

    fn submit(&mut self) -> Result<()> {
        (self.on_call)("submit")?;
        self.inner.submit()
    }

    fn read<'a>(&'a mut self, tensors: &'a [TensorIndex]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        if let Err(error) = (self.on_call)("read") {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.read(tensors)
    }

    fn execute_end(&mut self) -> Result<()> {
        (self.on_call)("execute_end")?;
        self.inner.execute_end()
    }

    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        if let Err(error) = (self.on_call)("wait_finish") {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.inner.wait_finish()
    }

    fn set_profiling(&mut self, on: bool) {
        self.inner.set_profiling(on);
    }

    fn profile(&mut self) -> LocalFuture<'_, Result<PerKernel<f64>>> {
        self.inner.profile()
    }

    fn launches(&self) -> usize {
        self.inner.launches()
    }
}
