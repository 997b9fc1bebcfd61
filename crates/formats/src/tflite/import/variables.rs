//! Variables: tensors that outlive a run. The order of the file's operators is that in which they run, so that reading gives
//! what was assigned last.

use std::collections::HashMap;

use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::tensor::Tensor;

use super::{Import, Op};
use crate::build::shortened;
use crate::tflite::ops::{ASSIGN_VARIABLE, VAR_HANDLE};
use crate::tflite::schema::{Model, OperatorInfo, Quantization, Subgraph};

/// The variables of a model, which its operators name by tensors that are handles.
pub struct Variables {
    /// The index of each handle's variable.
    handles: HashMap<usize, usize>,
    all: Vec<Variable>,
}

/// A variable while the operators are imported.
#[derive(Default)]
struct Variable {
    name: String,
    /// Whether an operator of the main subgraph assigns it.
    changes: bool,
    initial: Option<Tensor>,
    /// How the elements are quantised.
    quantization: Option<Quantization>,
    /// The value before a run, where that is read.
    before: Option<ValueId>,
    /// The value as far as operators are imported.
    now: Option<ValueId>,
}

/// The name of a handle's variable.
fn name_of(handle: &OperatorInfo) -> Result<String> {
    let Some(options) = &handle.options else {
        return Ok(String::new());
    };
    let (container, name) = (options.string(0)?, options.string(1)?);
    Ok(match container.is_empty() {
        true => name,
        false => format!("{container}/{name}"),
    })
}

/// The handles of a subgraph, each with the name of its variable, in the order of the file.
fn handles_of(model: &Model, subgraph: &Subgraph) -> Result<Vec<(usize, String)>> {
    let mut handles = Vec::new();
    for info in &subgraph.operators {
        if model.code(info.code)?.builtin == VAR_HANDLE {
            for &t in &info.outputs {
                handles.push((t, name_of(info)?));
            }
        }
    }
    Ok(handles)
}

impl Variables {
    /// The variables of the main subgraph, without values.
    pub(super) fn of(model: &Model, subgraph: &Subgraph) -> Result<Variables> {
        let mut variables = Variables {
            handles: HashMap::new(),
            all: Vec::new(),
        };
        for (t, name) in handles_of(model, subgraph)? {
            let i = variables.named(name);
            variables.handles.insert(t, i);
        }
        for info in &subgraph.operators {
            let handle = info.inputs.first().copied().flatten();
            let of = handle.and_then(|t| variables.handles.get(&t));
            if let (ASSIGN_VARIABLE, Some(&i)) = (model.code(info.code)?.builtin, of) {
                variables.all[i].changes = true;
            }
        }
        Ok(variables)
    }

    fn named(&mut self, name: String) -> usize {
        let known = self.all.iter().position(|v| v.name == name);
        known.unwrap_or_else(|| {
            self.all.push(Variable {
                name,
                ..Variable::default()
            });
            self.all.len() - 1
        })
    }
}

impl Variable {
    /// Takes what a tensor that is read from the variable, or written to it, says of its elements.
    fn unify(&mut self, quantization: &Option<Quantization>, first: bool) -> Result<()> {
        if first {
            self.quantization.clone_from(quantization);
        }
        match self.quantization == *quantization {
            true => Ok(()),
            false => Err(unsupported(format!(
                "the variable `{}`, which is quantised in two ways",
                self.name
            ))),
        }
    }
}

impl<'a> Import<'a> {
    /// The variable whose handle is input 0 of `op`.
    fn variable(&mut self, op: &Op) -> Result<&mut Variable> {
        let Some(variables) = &mut self.variables else {
            return Err(unsupported("variables in bodies of control flow"));
        };
        let handle = op.tensor(0).and_then(|t| variables.handles.get(&t));
        match handle {
            Some(&i) => Ok(&mut variables.all[i]),
            None => Err(Error::new(
                ErrorCode::InvalidModel,
                "the first input is no handle of a variable",
            )),
        }
    }

    /// The value that the variable of `op` has where `op` stands.
    pub fn variable_now(&mut self, op: &Op) -> Result<ValueId> {
        let quantization = &self.output_info(op, 0)?.quantization;
        let variable = self.variable(op)?;
        if let Some(now) = variable.now {
            variable.unify(quantization, false)?;
            return Ok(now);
        }
        let name = shortened(&variable.name);
        let Some(initial) = variable.initial.clone() else {
            let message = format!("the variable `{name}` is read before it has a value");
            return Err(Error::new(ErrorCode::InvalidModel, message));
        };
        variable.unify(quantization, false)?;
        let changes = variable.changes;
        let value = match changes {
            true => self.builder.graph().add_variable(name, initial),
            false => self.builder.add_constant(&name, initial),
        };
        let variable = self.variable(op)?;
        variable.now = Some(value);
        variable.before = changes.then_some(value);
        Ok(value)
    }

    /// Gives the variable of `op` another value from `op` on.
    pub fn assign_variable(&mut self, op: &Op) -> Result<()> {
        let quantization = &self.info(op, 1)?.quantization;
        let value = self.input(op, 1)?;
        let variable = self.variable(op)?;
        let first = variable.initial.is_none() && variable.now.is_none();
        variable.unify(quantization, first)?;
        variable.now = Some(value);
        Ok(())
    }

    /// Takes the constants that subgraph `index` assigns as the variables' first values.
    pub fn initialize_variables(&mut self, index: i32) -> Result<()> {
        let inner = self.nested(index, "")?;
        let subgraph = inner.subgraph;
        let handles: HashMap<_, _> = handles_of(self.model, subgraph)?.into_iter().collect();
        let Some(variables) = &mut self.variables else {
            return Err(unsupported("variables in bodies of control flow"));
        };
        for info in &subgraph.operators {
            self.model.count_node()?;
            match self.model.code(info.code)?.builtin {
                VAR_HANDLE => continue,
                ASSIGN_VARIABLE => {}
                _ => return Err(unsupported("variables whose first values are computed")),
            }
            let handle = info.inputs.first().copied().flatten();
            let value = info.inputs.get(1).copied().flatten();
            let (Some(name), Some(t)) = (handle.and_then(|t| handles.get(&t)), value) else {
                let message = "an assignment without a variable and a value";
                return Err(Error::new(ErrorCode::InvalidModel, message));
            };
            let Some(tensor) = inner.data(t)? else {
                return Err(unsupported("variables whose first values are computed"));
            };
            let i = variables.named(name.clone());
            let variable = &mut variables.all[i];
            let quantization = &subgraph.tensors[t].quantization;
            variable.unify(quantization, variable.initial.is_none())?;
            variable.initial = Some(tensor);
        }
        Ok(())
    }

    /// Makes what the variables have become the last outputs of the graph.
    pub(super) fn variable_outputs(&mut self) {
        let all = self.variables.take().map_or(Vec::new(), |v| v.all);
        let changed = all
            .into_iter()
            .filter_map(|v| Some((v.before?, v.now?, v.name)));
        let mut changed: Vec<_> = changed.collect();
        // In the order of the graph's variables, which is that in which they were read first.
        changed.sort();
        let mut after = Vec::with_capacity(changed.len());
        for (_, now, name) in changed {
            let outside = self.builder.enter(&name);
            let fact = self.builder.fact(now);
            let value = self.builder.add_value(&name, fact);
            self.builder.copy(now, value);
            self.builder.leave(outside);
            after.push(value);
        }
        self.builder.graph().set_variables(&after);
    }
}
