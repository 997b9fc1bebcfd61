//! A session's part of a page's backend.

use std::rc::Rc;
use std::sync::Arc;

use js_sys::{Array, Float64Array, Map};
use kilim_core::backend::{
    BackendContext, BackendId, ContextConfig, ContextState, Executable, HostAllocator, Location,
    NodeSpec, RawConstants, StageSpec, StageTensors,
};
use kilim_core::ids::TensorIndex;
use kilim_core::memory::{Claim, Storage};
use kilim_core::{Interrupt, Result};
use wasm_bindgen::JsValue;

use super::executable::{PageExecutable, Stage};
use super::{Functions, choice, node};
use crate::convert;

/// See [`BackendContext`].
pub struct PageContext {
    functions: Rc<Functions>,
    id: BackendId,
    /// The constants that the backend was given, by their keys, as it has them: for the same constant it is given the same.
    constants: Map,
    /// What they take there, with the keys of those that are constants.
    claims: Vec<(Option<f64>, Claim)>,
    /// What the session wants, as the backend is told.
    settings: JsValue,
    /// What was prepared and not yet waited for.
    fresh: Vec<Rc<Stage>>,
    state: ContextState,
}

impl PageContext {
    /// A session's context, whose stages are told `settings`.
    pub fn new(
        functions: Rc<Functions>,
        id: BackendId,
        config: &ContextConfig,
        settings: JsValue,
    ) -> PageContext {
        PageContext {
            functions,
            id,
            constants: Map::new(),
            claims: Vec::new(),
            settings,
            fresh: Vec::new(),
            state: ContextState::new(Arc::new(HostAllocator), config),
        }
    }

    /// `{name, type, dims, root, key?, value?}` of a tensor: `root` is the number of the tensor that holds its bytes; the elements of what is
    /// known, but for a constant that was given before.
    fn tensor(&mut self, stage: &StageSpec, tensor: TensorIndex) -> Result<JsValue> {
        let slot = &stage.tensors[tensor];
        let key = slot.location.constant().map(|key| key.0 as f64);
        let known = key.is_some() || slot.location == Location::Planned;
        let given = key.is_some_and(|key| self.constants.has(&key.into()));
        let value = slot.spec.value.as_ref().filter(|_| known && !given);
        let value = match value {
            Some(value) => {
                let bytes = value.byte_len();
                let claim = self.state.ledger.acquire(Storage::Static, bytes)?;
                self.claims.push((key, claim));
                Some(node::wire(value)?)
            }
            None => None,
        };
        Ok(convert::object([
            ("name", Some(slot.name.as_str().into())),
            ("type", Some(slot.spec.dtype.name().into())),
            ("dims", Some(convert::sizes(&slot.spec.shape))),
            ("root", Some(node::number(stage.root(tensor)))),
            ("key", key.map(JsValue::from_f64)),
            ("value", value),
        ]))
    }
}

impl PageContext {
    /// The algorithm that each node's kernel is to have, as far as the backend knows a choice.
    fn algorithms(&self, stage: &StageSpec) -> Array {
        if !self.functions.has("choice") {
            return Array::new();
        }
        let picked = stage.nodes.iter().map(|node| {
            let (inputs, outputs) = stage.specs(node);
            let spec = NodeSpec {
                name: &node.name,
                op: &*node.op,
                inputs: &inputs,
                outputs: &outputs,
            };
            let choice = choice::of(&self.functions, &spec)?;
            let picked = self.state.tuned.pick(&choice);
            Some(JsValue::from_str(&choice.algorithms[picked]))
        });
        picked.map(Option::unwrap_or_default).collect()
    }

    /// Lets go of the constants of a stage that the backend has in a form of its own.
    fn let_go(&mut self, stage: &Stage) -> Result<()> {
        let packed = stage.call("letGo", [self.constants.clone().into(), JsValue::UNDEFINED])?;
        let gone = Float64Array::new(&packed).to_vec();
        self.claims
            .retain(|(key, _)| key.is_none_or(|key| !gone.contains(&key)));
        Ok(())
    }
}

impl BackendContext for PageContext {
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
        let (told, nodes, ends) = (Array::new(), Array::new(), Array::new());
        for tensor in stage.tensors.indices() {
            interrupt.check()?;
            told.push(&self.tensor(&stage, tensor)?);
        }
        for kernel in &stage.nodes {
            nodes.push(&node::kernel(kernel)?);
        }
        for part in &stage.parts {
            ends.push(&JsValue::from_f64(part.end.0 as f64));
        }
        let told = convert::object([
            ("tensors", Some(told.into())),
            ("nodes", Some(nodes.into())),
            ("ends", Some(ends.into())),
            ("outputs", Some(node::numbers(&stage.outputs).into())),
            ("algorithms", Some(self.algorithms(&stage).into())),
            ("settings", Some(self.settings.clone())),
        ]);
        let constants = self.constants.clone().into();
        let prepared = self.functions.call("prepare", &[told, constants])?;
        let prepared = Rc::new(Stage::new(self.functions.clone(), prepared));
        self.fresh.push(prepared.clone());
        // The backend has memory of its own, at most as much as the planner would have needed.
        let own = (self.state.ledger).acquire(Storage::DynamicSeparate, stage.arena_bytes)?;
        Ok(Box::new(PageExecutable::new(
            prepared,
            self.id.clone(),
            stage.nodes.len(),
            tensors,
            own,
        )))
    }

    fn is_lost(&self) -> bool {
        self.functions.has("isLost")
            && (self.functions.call("isLost", &[])).is_ok_and(|lost| lost.is_truthy())
    }

    fn warm_up<'a>(
        &'a mut self,
        interrupt: &'a Interrupt,
    ) -> kilim_core::backend::LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            for stage in std::mem::take(&mut self.fresh) {
                interrupt.check()?;
                stage.ready().await?;
                if self.state.raw == RawConstants::Drop {
                    self.let_go(&stage)?;
                }
            }
            Ok(())
        })
    }
}
