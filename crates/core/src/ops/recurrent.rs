//! Recurrent layers. Inputs as in ONNX: x, w, r, optional b, sequence lengths, initial h (and for
//! LSTM initial c and peepholes p).

use super::rules::{FLOATS, INDICES, Types, fact, too_large, unify_shapes, wrong_count};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error, value_error};
use crate::fact::{Cost, Fact};
use crate::fixed::Factor;
use crate::graph::{Flow, InferContext, Operator};

/// In which direction a recurrent layer goes over the steps of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum Direction {
    Forward,
    Reverse,
    Bidirectional,
}

impl Direction {
    /// How many directions a layer runs in.
    pub const fn count(self) -> usize {
        match self {
            Direction::Bidirectional => 2,
            _ => 1,
        }
    }
}

/// An activation inside a recurrent cell, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
pub enum CellActivation {
    Sigmoid,
    Tanh,
    Relu,
    Affine { alpha: f32, beta: f32 },
    LeakyRelu { alpha: f32 },
    ThresholdedRelu { alpha: f32 },
    ScaledTanh { alpha: f32, beta: f32 },
    HardSigmoid { alpha: f32, beta: f32 },
    Elu { alpha: f32 },
    Softsign,
    Softplus,
}

/// What all recurrent layers have.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Recurrent {
    pub hidden: usize,
    pub direction: Direction,
    /// Per direction: one for RNN, two for GRU, three for LSTM.
    pub activations: Vec<CellActivation>,
    pub clip: Option<f32>,
    /// Batch before time (`layout = 1`).
    pub batch_first: bool,
}

/// Outputs: y, h, c.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Lstm {
    pub cell: Recurrent,
    pub input_forget: bool,
    /// Bounds the cell state of every step to plus and minus this (TFLite's `cell_clip`).
    pub cell_clip: Option<f32>,
    /// Before its product the state `h` of each element of the batch is rounded to 8 bits, as by
    /// DynamicQuantizeLinear. onnxruntime's DynamicQuantizeLSTM does so where it has a thread for each.
    pub rounds_state: bool,
}

/// Outputs: y, h.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Gru {
    pub cell: Recurrent,
    pub linear_before_reset: bool,
}

/// Outputs: y, h.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Rnn {
    pub cell: Recurrent,
}

/// A recurrent layer with everything resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecurrentGeometry {
    pub time: usize,
    pub batch: usize,
    pub input: usize,
    pub hidden: usize,
    pub directions: usize,
    /// Rows of a weight matrix are `gates * hidden`.
    pub gates: usize,
    /// Batch before time.
    pub batch_first: bool,
}

impl RecurrentGeometry {
    /// The geometry, from the shapes of data, input weights and recurrent weights. `gates` is 4 for LSTM, 3
    /// for GRU, 1 for RNN.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shapes and attributes do not fit each other.
    pub fn new(
        cell: &Recurrent,
        gates: usize,
        x: &[usize],
        w: &[usize],
        r: &[usize],
    ) -> Result<RecurrentGeometry> {
        let shapes = [x, w, r].map(Shape::fixed);
        let [xs, ws, rs] = &shapes;
        cell.check(gates, Some(xs), Some(ws), Some(rs))?;
        let (time, batch) = if cell.batch_first {
            (x[1], x[0])
        } else {
            (x[0], x[1])
        };
        Ok(RecurrentGeometry {
            time,
            batch,
            input: x[2],
            hidden: cell.hidden,
            directions: cell.direction.count(),
            gates,
            batch_first: cell.batch_first,
        })
    }
}

impl Recurrent {
    /// Checks data and weights; gives time, batch and input dimension.
    fn check(
        &self,
        gates: usize,
        x: Option<&Shape>,
        w: Option<&Shape>,
        r: Option<&Shape>,
    ) -> Result<[Dim; 3]> {
        if self.hidden == 0 {
            return Err(value_error("the hidden size must not be 0"));
        }
        let unknown = Shape::unknown(3);
        let rows = self.hidden.checked_mul(gates).ok_or_else(too_large)?;
        let weights = |input: Dim| {
            let directions = Dim::Known(self.direction.count());
            Shape(vec![directions, Dim::Known(rows), input])
        };
        let x = unify_shapes(x.unwrap_or(&unknown), &unknown, || "the data".into())?;
        let w = w.unwrap_or(&unknown);
        let w = unify_shapes(w, &weights(x.0[2].clone()), || "the weights".into())?;
        let recurrent = weights(Dim::Known(self.hidden));
        let r = r.unwrap_or(&unknown);
        unify_shapes(r, &recurrent, || "the recurrent weights".into())?;
        let (time, batch) = if self.batch_first { (1, 0) } else { (0, 1) };
        Ok([x.0[time].clone(), x.0[batch].clone(), w.0[2].clone()])
    }

    /// What all cells have in common. `states` are the inputs that start a state; the outputs are y
    /// and one state for each.
    fn infer(
        &self,
        ctx: &InferContext,
        gates: usize,
        activations: usize,
        states: &[usize],
    ) -> Result<Vec<Fact>> {
        let directions = self.direction.count();
        if self.activations.len() != activations * directions {
            let got = self.activations.len();
            return Err(wrong_count("activations", activations * directions, got));
        }
        ctx.typed(0, &FLOATS)?;
        ctx.require(3)?;
        let floats = (0..ctx.inputs.len()).filter(|&i| i != 4);
        let dtype = ctx.common_type(floats)?;
        ctx.typed_optional(4, &INDICES)?;
        let [time, batch, _] = self.check(
            gates,
            ctx.shape_of_rank(0, 3)?,
            ctx.shape_of_rank(1, 3)?,
            ctx.shape_of_rank(2, 3)?,
        )?;
        let rows = (2 * gates).checked_mul(self.hidden).ok_or_else(too_large)?;
        let (d, h) = (Dim::Known(directions), Dim::Known(self.hidden));
        if let Some(bias) = ctx.shape_of_rank(3, 2)? {
            unify_shapes(bias, &Shape::fixed(&[directions, rows]), || {
                "the bias".into()
            })?;
        }
        ctx.vector(4, &batch)?;
        let (y, state) = if self.batch_first {
            (
                vec![batch.clone(), time, d.clone(), h.clone()],
                vec![batch, d, h],
            )
        } else {
            (
                vec![time, d.clone(), batch.clone(), h.clone()],
                vec![d, batch, h],
            )
        };
        let state = Shape(state);
        for &i in states {
            if let Some(initial) = ctx.shape_optional(i) {
                unify_shapes(initial, &state, || {
                    format!("the initial state in input {i}")
                })?;
            }
        }
        let mut facts = vec![fact(dtype, Some(Shape(y)))];
        facts.extend(states.iter().map(|_| fact(dtype, Some(state.clone()))));
        facts.truncate(ctx.outputs.max(1));
        Ok(facts)
    }

    fn cost(&self, gates: usize, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        let shape = |i: usize| inputs.get(i).and_then(Option::as_deref).unwrap_or(&[]);
        match RecurrentGeometry::new(self, gates, shape(0), shape(1), shape(2)) {
            Ok(g) => {
                let steps = (g.time * g.batch * g.directions) as f64;
                let weights = (g.gates * g.hidden) as f64 * (g.input + g.hidden) as f64;
                Cost {
                    flops: 2.0 * steps * weights,
                    ..base
                }
            }
            Err(_) => base,
        }
    }
}

impl Operator for Lstm {
    fn name(&self) -> &'static str {
        "LSTM"
    }

    signature! {
        (
            data, weights, recurrent_weights, optional bias, optional lengths,
            optional initial_hidden, optional initial_cell, optional peepholes
        ) -> (output, optional hidden, optional cell)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let facts = self.cell.infer(ctx, 4, 3, &[5, 6])?;
        if let Some(peepholes) = ctx.shape_of_rank(7, 2)? {
            let rows = self.cell.hidden.checked_mul(3).ok_or_else(too_large)?;
            let expected = Shape::fixed(&[self.cell.direction.count(), rows]);
            unify_shapes(peepholes, &expected, || "the peephole weights".into())?;
        }
        Ok(facts)
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        self.cell.cost(4, inputs, outputs)
    }
}

impl Operator for Gru {
    fn name(&self) -> &'static str {
        "GRU"
    }

    signature! {
        (
            data, weights, recurrent_weights, optional bias, optional lengths,
            optional initial_hidden
        ) -> (output, optional hidden)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        self.cell.infer(ctx, 3, 2, &[5])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        self.cell.cost(3, inputs, outputs)
    }
}

impl Operator for Rnn {
    fn name(&self) -> &'static str {
        "RNN"
    }

    signature! {
        (
            data, weights, recurrent_weights, optional bias, optional lengths,
            optional initial_hidden
        ) -> (output, optional hidden)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        self.cell.infer(ctx, 1, 1, &[5])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        self.cell.cost(1, inputs, outputs)
    }
}

/// A long short-term memory over `int8` sequences with a cell state of `int16`, with the arithmetic of
/// TFLite's reference kernels. Gates are in the order input, forget, cell, output.
///
/// Inputs: x `int8` `[batch, time, n]`, weights `int8` `[4, hidden, n]`, recurrent weights `int8`
/// `[4, hidden, hidden]`, biases `int32` `[2, 4, hidden]` that take the zero points of x and of the
/// state into account. Output: `int8` `[batch, time, hidden]`. States start as zeros.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct QuantizedLstm {
    pub hidden: usize,
    /// Data is `[time, batch, ..]` instead.
    pub time_major: bool,
    /// What scales sums over x to 12 bits behind the point; `recurrent` scales sums over the state.
    pub input: [Factor; 4],
    pub recurrent: [Factor; 4],
    /// Bits of the cell state before the point.
    pub cell_bits: u32,
    pub cell_clip: Option<i16>,
    /// What scales the product of output gate and cell, 30 bits behind the point, to the state.
    pub output: Factor,
    pub zero_point: i8,
}

impl Operator for QuantizedLstm {
    fn name(&self) -> &'static str {
        "QuantizedLstm"
    }

    signature! { (data, weights, recurrent_weights, biases) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for i in 0..3 {
            ctx.typed(i, &SIGNED_BYTES)?;
        }
        ctx.typed(3, &SIGNED_WORDS)?;
        let hidden = || Dim::Known(self.hidden);
        let x = ctx.shape_of_rank(0, 3)?;
        let n = x.map_or(Dim::Unknown, |x| x.0[2].clone());
        let wanted = [
            vec![Dim::Known(4), hidden(), n],
            vec![Dim::Known(4), hidden(), hidden()],
            vec![Dim::Known(2), Dim::Known(4), hidden()],
        ];
        for (i, wanted) in wanted.into_iter().enumerate() {
            if let Some(shape) = ctx.shape(1 + i)? {
                unify_shapes(shape, &Shape(wanted), || {
                    format!("the shape of input {}", 1 + i)
                })?;
            }
        }
        if self.hidden == 0 || self.cell_bits > 6 {
            return Err(shape_error(
                "no cells, or cells of more than six bits before the point",
            ));
        }
        let mut shape = x.cloned().unwrap_or_else(|| Shape::unknown(3));
        shape.0[2] = hidden();
        Ok(vec![fact(Some(DType::I8), Some(shape))])
    }
}

const SIGNED_BYTES: Types = Types::new("int8", |d| d == DType::I8);
const SIGNED_WORDS: Types = Types::new("int32", |d| d == DType::I32);
