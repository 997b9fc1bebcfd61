//! What ONNX has no operator for, written out in operators that it has.

mod attention;
mod blocks;
mod experts;
mod fixed;
mod fused;
mod packed;
mod pointwise;
mod product;
mod recurrent;
mod rotary;
mod window;

use std::sync::Arc;

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, Operator, ValueId};
use kilim_formats::build::{GraphBuilder, OpTable};

use crate::rebuild::rebuild;

pub(crate) use product::turned;

/// A node that is written out: its operator, its inputs and how many outputs it has.
pub struct Lowered<'a> {
    pub op: &'a dyn Operator,
    pub inputs: &'a [Option<ValueId>],
    pub outputs: usize,
}

/// Writes a node out; `None` where ONNX has the operator as it is.
type Lower = fn(&mut GraphBuilder, &Lowered) -> Result<Option<Vec<ValueId>>>;

/// Operators that are written out, always or in some forms, by their names ([`Operator::name`]).
static OPERATORS: OpTable<&'static str, Lower> = OpTable(&[
    ("AffineQuantize", fixed::affine_quantize),
    ("ArgMax", pointwise::places),
    ("ArgMin", pointwise::places),
    ("Attention", attention::attention),
    ("AveragePool", window::average_pool),
    ("BatchToSpaceND", blocks::batch_to_space),
    ("Clip", pointwise::clip),
    ("Conv", window::conv),
    ("ConvInteger", window::conv_integer),
    ("ExpertMatMul", experts::product),
    ("ExpertMatMulNBits", packed::experts),
    ("GRU", recurrent::gru),
    ("GatherBlockQuantized", packed::table),
    ("GatherCast", pointwise::gather_cast),
    ("GatherND", pointwise::long_indices),
    ("LSTM", recurrent::lstm),
    ("MatMul", product::matmul),
    ("MatMulInteger", fixed::matmul_integer),
    ("MatMulIntegerToFloat", fixed::matmul_integer_to_float),
    ("MatMulNBits", packed::product),
    ("Mod", pointwise::remainder),
    ("OneHot", pointwise::one_hot),
    ("QLinearBinary", fixed::real_binary),
    ("QLinearMatMul", fixed::qlinear_matmul),
    ("QuantizedBinary", fixed::binary),
    ("QuantizedSoftmax", fixed::softmax),
    ("RNN", recurrent::rnn),
    ("Requantize", fixed::requantize),
    ("RotaryEmbedding", rotary::rotary),
    ("ScatterND", pointwise::long_indices),
    ("Softmax", pointwise::softmax),
    ("SpaceToBatchND", blocks::space_to_batch),
    ("Swish", pointwise::swish),
    ("TableLookup", fixed::table_lookup),
    ("TensorScatter", attention::scatter),
    ("UnpackQkv", attention::unpack),
]);

impl Lowered<'_> {
    /// The operator as what it is; `None` where another one has its name.
    pub fn op<T: Operator>(&self) -> Option<&T> {
        self.op.downcast_ref()
    }

    /// Input `i`, if it is there.
    pub fn optional(&self, i: usize) -> Option<ValueId> {
        self.inputs.get(i).copied().flatten()
    }

    /// Input `i`.
    ///
    /// # Errors
    /// `Unsupported` where it is left out.
    pub fn input(&self, i: usize) -> Result<ValueId> {
        let missing = || unsupported(format!("a node without input {i}"));
        self.optional(i).ok_or_else(missing)
    }
}

/// The graph in operators that ONNX has, as far as there are any; the others stay.
///
/// # Errors
/// `Unsupported` for forms of operators that cannot be written out, with the node's name.
pub fn lower(graph: &Graph) -> Result<Graph> {
    let rebuilt = rebuild(graph, &mut |b, given| {
        let node = Lowered {
            op: &*given.node.op,
            inputs: given.inputs,
            outputs: given.node.outputs.len(),
        };
        step(b, &node)
    })?;
    Ok(rebuilt.graph)
}

/// Writes a node out, whatever is fused into it first; `None` where it can stay.
fn step(b: &mut GraphBuilder, node: &Lowered) -> Result<Option<Vec<ValueId>>> {
    if let Some(made) = fused::apart(b, node)? {
        return Ok(Some(made));
    }
    match OPERATORS.find(node.op.name()) {
        Some(lower) => lower(b, node),
        None => Ok(None),
    }
}

/// The outputs of a node, written out where it has to be.
fn outputs_of(
    b: &mut GraphBuilder,
    op: Arc<dyn Operator>,
    inputs: &[Option<ValueId>],
    outputs: usize,
) -> Result<Vec<ValueId>> {
    let lowered = Lowered {
        op: &*op,
        inputs,
        outputs,
    };
    match step(b, &lowered)? {
        Some(made) => Ok(made),
        None => b.apply_shared(op, inputs, outputs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_sorted() {
        let names: Vec<_> = OPERATORS.0.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }
}
