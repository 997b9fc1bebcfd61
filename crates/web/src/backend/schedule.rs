//! The order in which a page's backend has the tasks of a stage done.

use std::any::Any;
use std::rc::Rc;

use js_sys::{Array, Uint32Array};
use kilim_core::Result;
use kilim_core::backend::{BackendId, LocalFuture};
use kilim_core::schedule::{Scheduler, StageRun, Step};
use wasm_bindgen::JsValue;

use super::Functions;
use super::executable::PageExecutable;
use crate::convert;

/// A [`Scheduler`] that asks a backend of a page.
pub struct PageScheduler {
    pub id: BackendId,
    pub functions: Rc<Functions>,
}

impl PageScheduler {
    /// Whether the backend itself runs the step.
    fn is_own(&self, stage: &StageRun, step: &Step) -> bool {
        let Step::Part { backend, .. } = step else {
            return false;
        };
        stage.executables[*backend].as_ref().is_some_and(|e| {
            let executable: &dyn Any = &**e;
            let executable = executable.downcast_ref::<PageExecutable>();
            executable.is_some_and(|e| e.is_of(&self.functions))
        })
    }

    /// Asks with `[{backends, own}]`.
    ///
    /// # Errors
    /// What the backend throws.
    fn order(&self, stage: &StageRun) -> Result<Vec<usize>> {
        let task = |step: &Step| {
            let backends = step.backends().map(|b| JsValue::from_f64(b.0 as f64));
            convert::object([
                ("backends", Some(backends.iter().collect::<Array>().into())),
                ("own", Some(self.is_own(stage, step).into())),
            ])
        };
        let tasks: Array = stage.steps.iter().map(task).collect();
        let order = self.functions.call("schedule", &[tasks.into()])?;
        let order = Uint32Array::new(&order).to_vec();
        Ok(order.into_iter().map(|task| task as usize).collect())
    }
}

impl Scheduler for PageScheduler {
    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let order = self.order(&stage)?;
            stage.execute_in(&order, &self.id).await
        })
    }
}
