//! A backend that a page brings: JavaScript decides what it runs, and runs it.
//!
//! What JavaScript gives is a `WireBackend` of `www/package/src/backend/wire.ts`. It has the
//! values of tensors; this side tells it of nodes and calls it.

mod choice;
mod context;
mod describe;
mod executable;
mod node;
mod rewrite;
mod schedule;
mod value;

use std::rc::Rc;
use std::sync::Arc;

use js_sys::{Array, Function, Promise, Uint8Array};
use kilim_core::backend::{
    Backend, BackendContext, ContextConfig, Description, DeviceOption, LocalFuture, NodeLayouts,
    NodeSpec, Optimizer, Refusal,
};
use kilim_core::error::unsupported;
use kilim_core::ops::{Cost, CustomOperator};
use kilim_core::schedule::Scheduler;
use kilim_core::tuning::Choice;
use kilim_core::{Error, ErrorCode, Result};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::convert;
use crate::operators::operator;
use context::PageContext;
use schedule::PageScheduler;

/// The functions of one backend.
pub struct Functions {
    object: JsValue,
    id: String,
}

impl Functions {
    fn get(&self, name: &str) -> Option<Function> {
        let function = convert::field(&self.object, name);
        function.and_then(|f| f.dyn_into::<Function>().ok())
    }

    /// Whether the backend has the function `name`.
    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Calls the function `name`.
    ///
    /// # Errors
    /// What it throws; see [`Functions::error`].
    fn call(&self, name: &str, arguments: &[JsValue]) -> Result<JsValue> {
        let function = self.get(name).ok_or_else(|| {
            let message = format!("the backend `{}` has no function `{name}`", self.id);
            Error::new(ErrorCode::InvalidValue, message)
        })?;
        let arguments: Array = arguments.iter().collect();
        function
            .apply(&JsValue::NULL, &arguments)
            .map_err(|thrown| self.error(&thrown))
    }

    /// What a promise is resolved with; what is none is itself.
    ///
    /// # Errors
    /// What it is rejected with.
    async fn settled(&self, value: JsValue) -> Result<JsValue> {
        match value.dyn_into::<Promise>() {
            Ok(promise) => JsFuture::from(promise)
                .await
                .map_err(|thrown| self.error(&thrown)),
            Err(value) => Ok(value),
        }
    }

    /// What was thrown, or what a promise was rejected with, as an error: a code, a node's name, what was expected and what
    /// came are kept where it has them. Without a code the device has failed.
    fn error(&self, thrown: &JsValue) -> Error {
        let text = |name| convert::field(thrown, name).and_then(|v| v.as_string());
        let codes = [
            ErrorCode::Unsupported,
            ErrorCode::Limit,
            ErrorCode::InvalidValue,
            ErrorCode::Shape,
            ErrorCode::DType,
            ErrorCode::State,
        ];
        let given = text("code");
        let code = codes
            .into_iter()
            .find(|code| given.as_deref() == Some(code.as_str()))
            .unwrap_or(ErrorCode::Device);
        let said = text("summary").or_else(|| text("message"));
        let said = said.or_else(|| thrown.as_string()).unwrap_or_default();
        let mut error = Error::new(code, format!("the backend `{}` failed: {said}", self.id));
        if let Some(node) = text("node") {
            error = error.at(&node, &text("op").unwrap_or_default());
        }
        if let Some(expected) = text("expected") {
            error = error.with_expected(expected);
        }
        match text("got") {
            Some(got) => error.with_got(got),
            None => error,
        }
    }
}

/// See [`Backend`].
pub struct PageBackend {
    description: Description,
    options: Vec<DeviceOption>,
    operators: Vec<Arc<CustomOperator>>,
    functions: Rc<Functions>,
}

/// Brings the backends of a list into the runtime of this thread, where each takes the place of one with its name.
///
/// # Errors
/// `InvalidValue` where a backend describes itself, its options or its operators in a way that cannot be.
pub fn bring(runtime: &kilim::Runtime, given: &JsValue) -> Result<()> {
    let list = given.dyn_ref::<Array>();
    for object in list.map(Array::iter).into_iter().flatten() {
        let description = describe::describe(&object)?;
        let id = description.id.to_string();
        let operators = describe::list(&object, "operators")?;
        let operators = operators.iter().map(|o| operator(&o).map(Arc::new));
        runtime.bring(Arc::new(PageBackend {
            description,
            options: describe::options(&object)?,
            operators: operators.collect::<Result<_>>()?,
            functions: Rc::new(Functions { object, id }),
        }));
    }
    Ok(())
}

impl Backend for PageBackend {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        let asked = node::asked(node).map_err(|e| Refusal::new(e.message()))?;
        let said = self.functions.call("supports", &[asked]);
        let said = said.map_err(|e| Refusal::new(e.message()))?;
        if let Some(reason) = said.as_string() {
            return Err(Refusal::new(reason));
        }
        if !said.is_truthy() {
            return Err(Refusal::new("the backend refuses it without a reason"));
        }
        let estimate = node.cost();
        let told = |name, estimate| {
            let given = convert::field(&said, name).and_then(|n| n.as_f64());
            given
                .filter(|n| n.is_finite() && *n >= 0.0)
                .unwrap_or(estimate)
        };
        Ok(Cost {
            flops: told("flops", estimate.flops),
            bytes: told("bytes", estimate.bytes),
        })
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        let settings = describe::settings(config, &self.options);
        let (functions, id) = (self.functions.clone(), self.description.id.clone());
        Ok(Box::new(PageContext::new(functions, id, config, settings)))
    }

    fn options(&self) -> &[DeviceOption] {
        &self.options
    }

    fn operators(&self) -> &[Arc<CustomOperator>] {
        &self.operators
    }

    fn optimizer(&self) -> Option<&dyn Optimizer> {
        let has = self.functions.has("optimise");
        has.then_some(self as &dyn Optimizer)
    }

    fn node_layouts(&self) -> Option<&dyn NodeLayouts> {
        let has = self.functions.has("nodeLayout");
        has.then_some(self as &dyn NodeLayouts)
    }

    fn choice(&self, node: &NodeSpec, _: &ContextConfig) -> Option<Choice> {
        choice::of(&self.functions, node)
    }

    fn scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        let has = self.functions.has("schedule");
        has.then(|| {
            Arc::new(PageScheduler {
                id: self.description.id.clone(),
                functions: self.functions.clone(),
            }) as Arc<dyn Scheduler>
        })
    }

    fn reopen(&self) -> LocalFuture<'_, Result<()>> {
        Box::pin(async {
            if self.functions.has("reopen") {
                let reopened = self.functions.call("reopen", &[])?;
                self.functions.settled(reopened).await?;
            }
            Ok(())
        })
    }

    fn save_cache(&self) -> Option<Vec<u8>> {
        if !self.functions.has("saveCache") {
            return None;
        }
        // Without its cache a backend learns anew.
        let saved = self.functions.call("saveCache", &[]).ok()?;
        let saved = saved.dyn_into::<Uint8Array>().ok()?.to_vec();
        (!saved.is_empty()).then_some(saved)
    }

    unsafe fn load_cache(&self, cache: &[u8]) -> Result<()> {
        if !self.functions.has("loadCache") {
            let id = &self.description.id;
            return Err(unsupported(format!("the backend `{id}` keeps no cache")));
        }
        let cache = Uint8Array::from(cache);
        self.functions.call("loadCache", &[cache.into()]).map(drop)
    }
}
