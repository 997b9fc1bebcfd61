//! A stage of a page's backend. JavaScript has the values of its tensors. Preparing and running may give promises: the former are waited
//! for when a session is made ready, and by what runs before; the latter between two looks at a part ([`Progress::Partly`]).

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use js_sys::{Float64Array, Promise};
use kilim_core::backend::{
    BackendId, DeviceTensor, Executable, LocalFuture, Progress, StageTensors,
};
use kilim_core::ids::{PartIndex, PerKernel, TensorIndex};
use kilim_core::memory::Claim;
use kilim_core::{Interrupt, Result, Tensor};
use wasm_bindgen::{JsCast, JsValue};

use super::value::{Value, received};
use super::{Functions, node};

/// A stage as JavaScript has it.
pub struct Stage {
    prepared: JsValue,
    functions: Rc<Functions>,
}

impl Stage {
    pub fn new(functions: Rc<Functions>, prepared: JsValue) -> Stage {
        Stage {
            prepared,
            functions,
        }
    }

    /// Calls a function of the stage.
    ///
    /// # Errors
    /// What it throws; see [`Functions::error`].
    pub fn call(&self, name: &str, arguments: [JsValue; 2]) -> Result<JsValue> {
        let [a, b] = arguments;
        let stage = self.prepared.clone();
        self.functions.call(name, &[stage, a, b])
    }

    /// Waits until every part is prepared.
    pub async fn ready(&self) -> Result<()> {
        let ready = self.call("ready", [JsValue::UNDEFINED, JsValue::UNDEFINED])?;
        self.functions.settled(ready).await.map(drop)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // There is nobody left whom an error would concern.
        let _ = self.call("release", [JsValue::UNDEFINED, JsValue::UNDEFINED]);
    }
}

/// How far the part is that is being run.
enum Part {
    /// Nothing of it has run.
    Ahead,
    /// The backend has promised that it will have run.
    Promised(JsValue),
    Done,
}

/// See [`Executable`].
pub struct PageExecutable {
    stage: Rc<Stage>,
    id: BackendId,
    part: Part,
    nodes: usize,
    /// Whether the run is timed.
    timed: bool,
    tensors: Arc<StageTensors>,
    _own: Claim,
}

impl PageExecutable {
    pub fn new(
        stage: Rc<Stage>,
        id: BackendId,
        nodes: usize,
        tensors: Arc<StageTensors>,
        own: Claim,
    ) -> PageExecutable {
        PageExecutable {
            stage,
            id,
            part: Part::Ahead,
            nodes,
            timed: false,
            tensors,
            _own: own,
        }
    }

    /// Whether the backend of these functions made it.
    pub fn is_of(&self, functions: &Rc<Functions>) -> bool {
        Rc::ptr_eq(&self.stage.functions, functions)
    }
}

fn number(index: usize) -> JsValue {
    JsValue::from_f64(index as f64)
}

impl Executable for PageExecutable {
    fn execute_begin(&mut self) -> Result<()> {
        self.part = Part::Ahead;
        Ok(())
    }

    fn write(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()> {
        let written = [number(tensor.0), node::wire(data)?];
        self.stage.call("write", written).map(drop)
    }

    fn takes(&self, data: &DeviceTensor) -> bool {
        let handle: &dyn Any = &*data.handle;
        let own = handle.downcast_ref::<Value>();
        own.is_some_and(|value| value.is_of(&self.stage.functions, data))
    }

    fn import(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        let handle: &dyn Any = &*data.handle;
        let value = handle.downcast_ref::<Value>().map(|v| v.value.clone());
        let imported = [number(tensor.0), value.unwrap_or_default()];
        self.stage.call("import", imported).map(drop)
    }

    fn copy(&mut self, from: TensorIndex, to: TensorIndex) -> Result<()> {
        let places = [number(from.0), number(to.0)];
        self.stage.call("copy", places).map(drop)
    }

    fn run(&mut self, part: PartIndex, interrupt: &Interrupt) -> Result<Progress> {
        interrupt.check()?;
        match self.part {
            Part::Promised(_) => return Ok(Progress::Partly),
            Part::Ahead => {
                let ran = [number(part.0), self.timed.into()];
                let ran = self.stage.call("run", ran)?;
                if ran.is_instance_of::<Promise>() {
                    self.part = Part::Promised(ran);
                    return Ok(Progress::Partly);
                }
            }
            Part::Done => self.part = Part::Ahead,
        }
        Ok(Progress::Whole)
    }

    fn wait_room(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async {
            if let Part::Promised(ran) = std::mem::replace(&mut self.part, Part::Ahead) {
                self.stage.functions.settled(ran).await?;
                self.part = Part::Done;
            }
            Ok(())
        })
    }

    fn read<'a>(&'a mut self, tensors: &'a [TensorIndex]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        Box::pin(async move {
            let mut all = Vec::with_capacity(tensors.len());
            for &tensor in tensors {
                let slot = self.tensors.slot(tensor)?;
                let read = [number(tensor.0), JsValue::UNDEFINED];
                let read = self.stage.call("read", read)?;
                let read = received(&self.stage.functions, read, &slot.spec.shape).await;
                all.push(read.map_err(|e| e.with_input(&slot.name))?);
            }
            Ok(all)
        })
    }

    fn export(&mut self, tensor: TensorIndex) -> Result<DeviceTensor> {
        let spec = &self.tensors.slot(tensor)?.spec;
        let exported = [number(tensor.0), JsValue::UNDEFINED];
        let value = Value {
            value: self.stage.call("export", exported)?,
            functions: self.stage.functions.clone(),
            shape: spec.shape.clone(),
        };
        Ok(DeviceTensor {
            backend: self.id.clone(),
            dtype: spec.dtype,
            shape: spec.shape.clone(),
            handle: Arc::new(value),
        })
    }

    fn execute_end(&mut self) -> Result<()> {
        let nothing = [JsValue::UNDEFINED, JsValue::UNDEFINED];
        self.stage.call("end", nothing).map(drop)
    }

    fn set_profiling(&mut self, on: bool) {
        self.timed = on && self.stage.functions.has("times");
    }

    fn profile(&mut self) -> LocalFuture<'_, Result<PerKernel<f64>>> {
        Box::pin(async {
            if !self.timed {
                return Ok(PerKernel::new());
            }
            let times = [JsValue::UNDEFINED, JsValue::UNDEFINED];
            let times = self.stage.call("times", times)?;
            let times = self.stage.functions.settled(times).await?;
            let times = Float64Array::new(&times).to_vec();
            Ok(times.into_iter().collect())
        })
    }

    fn launches(&self) -> usize {
        self.nodes
    }
}
