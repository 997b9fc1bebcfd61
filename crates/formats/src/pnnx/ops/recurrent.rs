//! Recurrent modules. Gates are reordered from PyTorch's to the operator's.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{CellActivation, Direction, Gather, Gru, Lstm, Recurrent, Rnn};
use kilim_core::tensor::Tensor;

use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;

/// What a kind of cell is made of.
#[derive(Clone, Copy)]
pub enum Cell {
    Lstm,
    Gru,
    Rnn,
}

impl Cell {
    /// The gates of the operator, each by its place among PyTorch's.
    fn gates(self) -> &'static [i64] {
        match self {
            // Input, output, forgetting and cell of input, forgetting, cell and output.
            Cell::Lstm => &[0, 3, 1, 2],
            // Update, reset and new state of reset, update and new state.
            Cell::Gru => &[1, 0, 2],
            Cell::Rnn => &[0],
        }
    }

    fn activations(self, layer: &Layer) -> Result<Vec<CellActivation>> {
        Ok(match self {
            Cell::Lstm => vec![
                CellActivation::Sigmoid,
                CellActivation::Tanh,
                CellActivation::Tanh,
            ],
            Cell::Gru => vec![CellActivation::Sigmoid, CellActivation::Tanh],
            Cell::Rnn => match &*layer.word("nonlinearity")? {
                "" | "tanh" => vec![CellActivation::Tanh],
                "relu" => vec![CellActivation::Relu],
                other => return Err(unsupported(format!("the nonlinearity `{other}`"))),
            },
        })
    }

    /// States that go from step to step.
    fn states(self) -> usize {
        match self {
            Cell::Lstm => 2,
            _ => 1,
        }
    }

    /// The operator's outputs.
    fn run(
        self,
        imp: &mut Import,
        cell: Recurrent,
        inputs: &[Option<ValueId>],
    ) -> Result<Vec<ValueId>> {
        match self {
            Cell::Lstm => {
                let op = Lstm {
                    cell,
                    input_forget: false,
                    cell_clip: None,
                    rounds_state: false,
                };
                imp.apply(op, inputs, 3)
            }
            Cell::Gru => {
                let op = Gru {
                    cell,
                    linear_before_reset: true,
                };
                imp.apply(op, inputs, 2)
            }
            Cell::Rnn => imp.apply(Rnn { cell }, inputs, 2),
        }
    }
}

/// What the layers of a module have in common.
struct Module {
    cell: Cell,
    hidden: usize,
    direction: Direction,
    bias: bool,
    batch_first: bool,
}

/// The modules `nn.LSTM`, `nn.GRU` and `nn.RNN`: the outputs of all steps, and the last states `[layers * directions, batch, hidden]`.
pub fn module(imp: &mut Import, layer: &Layer, cell: Cell) -> Result<Vec<ValueId>> {
    layer.refuse("proj_size", Value::Int(0), "a projection of the state")?;
    layer.refuse(
        "pnnx_rnn_output_swapped",
        Value::Int(0),
        "the last state before the outputs",
    )?;
    let mut x = layer.x()?;
    if imp.rank(x)? != 3 {
        return Err(unsupported("steps without a batch"));
    }
    let module = Module {
        cell,
        hidden: layer.positive("hidden_size", 0)?,
        direction: match layer.flag("bidirectional", false)? {
            true => Direction::Bidirectional,
            false => Direction::Forward,
        },
        bias: layer.flag("bias", true)?,
        batch_first: layer.flag("batch_first", false)?,
    };
    let given = layer.tensors()?;
    let given = &given[1..];
    if !given.is_empty() && given.len() != cell.states() {
        return Err(invalid("another number of states")
            .with_expected(cell.states())
            .with_got(given.len()));
    }
    let mut last = vec![Vec::new(); cell.states()];
    for i in 0..layer.positive("num_layers", 1)? {
        let mut inputs = module.weights(imp, layer, i)?;
        inputs.insert(0, Some(x));
        if !given.is_empty() {
            inputs.push(None);
            let n = module.direction.count() as i64;
            for &state in given {
                let begin = i as i64 * n;
                let part = imp.slice(state, 0, begin, begin + n)?;
                inputs.push(Some(module.turned(imp, part)?));
            }
        }
        let recurrent = Recurrent {
            hidden: module.hidden,
            direction: module.direction,
            activations: cell.activations(layer)?.repeat(module.direction.count()),
            clip: None,
            batch_first: module.batch_first,
        };
        let made = cell.run(imp, recurrent, &inputs)?;
        x = match module.batch_first {
            true => made[0],
            false => imp.transpose(made[0], &[0, 2, 1, 3])?,
        };
        x = imp.reshape(x, &[0, 0, -1])?;
        for (all, &state) in last.iter_mut().zip(&made[1..]) {
            all.push(state);
        }
    }
    let mut outputs = vec![x];
    if layer.info.outputs.len() > 1 {
        for states in last {
            let turned = states.into_iter().map(|state| module.turned(imp, state));
            let turned = turned.collect::<Result<Vec<_>>>()?;
            outputs.push(imp.concat(&turned, 0)?);
        }
    }
    Ok(outputs)
}

impl Module {
    /// States between `[directions, batch, hidden]`, which PyTorch always has, and the operator's.
    fn turned(&self, imp: &mut Import, state: ValueId) -> Result<ValueId> {
        match self.batch_first {
            true => imp.transpose(state, &[1, 0, 2]),
            false => Ok(state),
        }
    }

    /// Weights, recurrent weights and biases of layer `i`, in the operator's order.
    fn weights(&self, imp: &mut Import, layer: &Layer, i: usize) -> Result<Vec<Option<ValueId>>> {
        let ends: &[&str] = match self.direction {
            Direction::Bidirectional => &["", "_reverse"],
            _ => &[""],
        };
        let mut of_all = |what: &str| -> Result<ValueId> {
            let mut parts = Vec::new();
            for end in ends {
                let name = format!("{what}_l{i}{end}");
                let weights = imp.stored(layer, &name)?;
                let weights =
                    weights.ok_or_else(|| invalid(format!("the weights `{name}` are missing")))?;
                parts.push(self.ordered(imp, weights)?);
            }
            imp.concat(&parts, 0)
        };
        let weights = [of_all("weight_ih")?, of_all("weight_hh")?];
        let mut all: Vec<_> = weights.into_iter().map(Some).collect();
        if self.bias {
            let parts = [of_all("bias_ih")?, of_all("bias_hh")?];
            all.push(Some(imp.concat(&parts, 1)?));
        } else {
            all.push(None);
        }
        Ok(all)
    }

    /// Weights `[gates * hidden, size]` or biases `[gates * hidden]` as `[1, gates * hidden, ..]`, gate by gate in the operator's order.
    fn ordered(&self, imp: &mut Import, weights: ValueId) -> Result<ValueId> {
        let gates = self.cell.gates();
        let (count, hidden) = (gates.len() as i64, self.hidden as i64);
        let rank = imp.rank(weights)?;
        let rows = imp.shape(weights).and_then(|shape| shape.first().copied());
        if rows != self.hidden.checked_mul(gates.len()) {
            return Err(invalid("the weights are of another number of gates"));
        }
        let inner: &[i64] = if rank > 1 { &[-1] } else { &[] };
        let mut weights = weights;
        if !gates.is_sorted() {
            weights = imp.reshape(weights, &[&[count, hidden], inner].concat())?;
            let order = imp.tensor_value(Tensor::from_slice(&[gates.len()], gates)?);
            weights = imp.op(Gather { axis: 0 }, &[weights, order])?;
        }
        imp.reshape(weights, &[&[1, count * hidden], inner].concat())
    }
}
