//! The backend `cpu` under another name, with something about it changed.

use std::sync::Arc;

use kilim::core::Backend;
use kilim::core::Tensor;
use kilim::core::backend::{
    Allocator, BackendContext, BackendId, ContextConfig, Description, Executable, Grade,
    LocalFuture, NodeSpec, RawConstants, Refusal, StageSpec, StageTensors, TensorRegistry,
};
use kilim::core::memory::{Arena, Ledger};
use kilim::core::ops::Cost;
use kilim::{DType, Result};

type Takes = dyn Fn(&NodeSpec) -> bool + Send + Sync;
type Rewrite = dyn Fn(&mut StageSpec) + Send + Sync;
type OnRun = dyn Fn(usize) -> Result<()> + Send + Sync;

/// See the methods for what can be changed.
#[derive(Clone)]
pub struct StandIn {
    inner: Arc<dyn Backend>,
    description: Description,
    takes: Arc<Takes>,
    rewrite: Arc<Rewrite>,
    on_run: Arc<OnRun>,
}

impl StandIn {
    pub fn new(inner: Arc<dyn Backend>, id: &'static str) -> StandIn {
        StandIn {
            description: Description {
                id: BackendId::new(id),
                ..inner.describe().clone()
            },
            inner,
            takes: Arc::new(|_| true),
            rewrite: Arc::new(|_| ()),
            on_run: Arc::new(|_| Ok(())),
        }
    }

    /// Says that it is at its best with an element type.
    pub fn fast_in(mut self, dtype: DType) -> Self {
        for (d, grade) in &mut self.description.dtypes {
            if *d == dtype {
                *grade = Grade::Fast;
            }
        }
        self
    }

    /// Refuses all other nodes.
    pub fn taking(mut self, takes: impl Fn(&NodeSpec) -> bool + Send + Sync + 'static) -> Self {
        self.takes = Arc::new(takes);
        self
    }

    /// Prepares another stage than the one asked for.
    pub fn rewriting(mut self, rewrite: impl Fn(&mut StageSpec) + Send + Sync + 'static) -> Self {
        self.rewrite = Arc::new(rewrite);
        self
    }

    /// Called with the number of a part before it runs.
    pub fn on_run(mut self, f: impl Fn(usize) -> Result<()> + Send + Sync + 'static) -> Self {
        self.on_run = Arc::new(f);
        self
    }
}

impl Backend for StandIn {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        if !(self.takes)(node) {
            return Err(Refusal::new("not for this stand-in"));
        }
        self.inner.supports(node)
    }

    fn allocator(&self) -> Arc<dyn Allocator> {
        self.inner.allocator()
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        Ok(Box::new(Context {
            inner: self.inner.create_context(config)?,
            rewrite: self.rewrite.clone(),
            on_run: self.on_run.clone(),
        }))
    }
}

struct Context {
    inner: Box<dyn BackendContext>,
    rewrite: Arc<Rewrite>,
    on_run: Arc<OnRun>,
}

impl BackendContext for Context {
    fn resize_begin(&mut self, raw: RawConstants) -> Result<()> {
        self.inner.resize_begin(raw)
    }

    fn gen_tensors(&mut self, stage: &StageSpec) -> Result<Arc<StageTensors>> {
        let mut stage = stage.clone();
        (self.rewrite)(&mut stage);
        self.inner.gen_tensors(&stage)
    }

    fn gen_kernels(
        &mut self,
        mut stage: StageSpec,
        tensors: Arc<StageTensors>,
    ) -> Result<Box<dyn Executable>> {
        (self.rewrite)(&mut stage);
        Ok(Box::new(Stage {
            inner: self.inner.gen_kernels(stage, tensors)?,
            on_run: self.on_run.clone(),
        }))
    }

    fn resize_end(&mut self) -> Result<()> {
        self.inner.resize_end()
    }

    fn tensors(&self) -> &TensorRegistry {
        self.inner.tensors()
    }

    fn ledger(&self) -> &Ledger {
        self.inner.ledger()
    }

    fn arena(&self) -> &Arena {
        self.inner.arena()
    }
}

struct Stage {
    inner: Box<dyn Executable>,
    on_run: Arc<OnRun>,
}

impl Executable for Stage {
    fn execute_begin(&mut self) -> Result<()> {
        self.inner.execute_begin()
    }

    fn write(&mut self, tensor: usize, data: &Tensor) -> Result<()> {
        self.inner.write(tensor, data)
    }

    fn copy(&mut self, from: usize, to: usize) -> Result<()> {
        self.inner.copy(from, to)
    }

    fn replica(&self, arena: &Arena, ledger: &Ledger) -> Option<Box<dyn Executable>> {
        Some(Box::new(Stage {
            inner: self.inner.replica(arena, ledger)?,
            on_run: self.on_run.clone(),
        }))
    }

    fn run(&mut self, part: usize) -> Result<()> {
        (self.on_run)(part)?;
        self.inner.run(part)
    }

    fn read<'a>(&'a mut self, tensors: &'a [usize]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        self.inner.read(tensors)
    }

    fn execute_end(&mut self) -> Result<()> {
        self.inner.execute_end()
    }

    fn launches(&self) -> usize {
        self.inner.launches()
    }
}
