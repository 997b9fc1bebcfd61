//! Tensors that a model writes in one run and reads in the next.

use super::Handle;
use crate::error::{Error, ErrorCode, Result, unsupported};
use crate::fact::{Fact, TensorSpec};
use crate::graph::{Graph, Variable};

/// The variables of a session and what they hold. A run that fails leaves them as they were.
#[derive(Clone)]
pub(super) struct Variables {
    names: Vec<String>,
    /// Element types and shapes, which stay.
    specs: Vec<TensorSpec>,
    values: Vec<Handle>,
}

fn initial(variable: &Variable) -> Handle {
    Handle::Host(variable.initial.clone())
}

impl Variables {
    /// # Errors
    /// `InvalidGraph` where a variable has no value before or after a run.
    pub fn of(graph: &Graph) -> Result<Variables> {
        let variables = &graph.variables;
        if variables.len() > graph.inputs.len().min(graph.outputs.len()) {
            let message = "a variable without a value before and after a run";
            return Err(Error::new(ErrorCode::InvalidGraph, message));
        }
        let spec = |v: &Variable| TensorSpec::new(v.initial.dtype(), v.initial.shape());
        Ok(Variables {
            names: variables.iter().map(|v| v.name.clone()).collect(),
            specs: variables.iter().map(spec).collect(),
            values: variables.iter().map(initial).collect(),
        })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Puts the values behind the inputs of a run; what they become stays on its device.
    pub fn join(&self, feeds: &mut Vec<Handle>, host: &mut Vec<bool>) {
        feeds.extend(self.values.iter().cloned());
        host.resize(host.len() + self.values.len(), false);
    }

    /// Takes the values behind a run.
    ///
    /// # Errors
    /// `DType` and `Shape` where a variable would change its element type or shape. All keep their values then.
    pub fn take(&mut self, after: Vec<Handle>) -> Result<()> {
        for ((name, spec), value) in self.names.iter().zip(&self.specs).zip(&after) {
            let got = value.spec()?;
            let code = match () {
                _ if got.dtype != spec.dtype => ErrorCode::DType,
                _ if got.shape != spec.shape => ErrorCode::Shape,
                _ => continue,
            };
            let message = format!("the variable `{name}` would become another kind of tensor");
            return Err(Error::new(code, message)
                .with_expected(Fact::fixed(spec.dtype, &spec.shape))
                .with_got(Fact::fixed(got.dtype, &got.shape)));
        }
        self.values = after;
        Ok(())
    }

    /// # Errors
    /// `InvalidValue` where the others have other names, element types or shapes.
    pub fn copy(&mut self, from: &Variables) -> Result<()> {
        if self.names != from.names || self.specs != from.specs {
            let message = "the sessions' models have other variables";
            return Err(Error::new(ErrorCode::InvalidValue, message));
        }
        self.values.clone_from(&from.values);
        Ok(())
    }

    pub fn reset(&mut self, graph: &Graph) {
        self.values = graph.variables.iter().map(initial).collect();
    }

    /// # Errors
    /// `Unsupported` where there are variables: each of several runs at once would have its own.
    pub fn refuse_beside(&self) -> Result<()> {
        match self.names.is_empty() {
            true => Ok(()),
            false => Err(unsupported(format!(
                "runs at the same time of a model with the variable `{}`",
                self.names[0]
            ))
            .with_hint("call `run`, one after another")),
        }
    }
}
