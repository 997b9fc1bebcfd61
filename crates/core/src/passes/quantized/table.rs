//! Functions of one quantised tensor, element by element: there are 256 results, which are computed
//! when the model is read.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::patch::Patch;
use super::super::{Evaluator, fold_constants, infer_graph};
use super::{Found, Operand, Target};
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, Node, ValueId};
use crate::narrow::Narrowing;
use crate::ops::{
    Activation, Affine, Binary, BinaryKind, Cast, Clip, DequantizeLinear, TableLookup, Tabulated,
    Unary, UnaryKind,
};
use crate::tensor::Tensor;

/// Operators that are looked at for a function.
const LIMIT: usize = 32;

/// The table of what `quantize` gives of each byte, or the byte itself where it gives that.
pub fn find(
    graph: &mut Graph,
    patch: &Patch,
    quantize: &Node,
    target: &Target,
    evaluate: &Evaluator,
) -> Result<Option<Found>> {
    let mut function = Function {
        graph,
        patch,
        bytes: None,
        body: Graph::new("table"),
        known: HashMap::new(),
        steps: 0,
    };
    let Some(real) = function.follow(target.real) else {
        return Ok(None);
    };
    let Function {
        bytes, mut body, ..
    } = function;
    let Some((bytes, dtype, affine)) = bytes else {
        return Ok(None);
    };
    let out = quantize.outputs.first().map(|&v| &graph.fact(v).shape);
    if out != Some(&graph.fact(bytes).shape) || graph.value(bytes).constant.is_some() {
        return Ok(None);
    }
    let direct = patch
        .produced_by::<DequantizeLinear>(Some(target.real))
        .is_some();
    if direct && dtype == target.dtype && affine == target.affine {
        return Ok(Some((
            Arc::new(Unary(UnaryKind::Identity)),
            vec![Some(bytes)],
        )));
    }
    let single = body.apply("single", cast(DType::F32), &[real]);
    let mut inputs = vec![Some(single)];
    for &v in quantize.inputs.iter().skip(1) {
        let constant = graph.constant(v).cloned();
        inputs.push(constant.map(|t| body.add_constant("parameter", t)));
    }
    let table = body.add_value("table", Fact::default());
    body.push_shared(
        quantize.name.clone(),
        quantize.op.clone(),
        &inputs,
        &[table],
    );
    body.outputs = vec![table];
    infer_graph(&mut body, evaluate.interrupt)?;
    fold_constants::dequantize(&mut body, evaluate)?;
    fold_constants::run(&mut body, evaluate)?;
    let Some(tensor) = body.value(table).constant.clone() else {
        return Ok(None);
    };
    let function = match direct {
        true => Some(UnaryKind::Identity),
        false => alone(patch, target.real),
    };
    let of = function.map(|function| Tabulated {
        function,
        from: affine,
        to: target.affine,
    });
    let table = graph.add_constant(format!("{}/table", quantize.name), tensor);
    Ok(Some((
        Arc::new(TableLookup { of }),
        vec![Some(bytes), Some(table)],
    )))
}

/// The function that makes `v`, if it is one operator on bytes.
fn alone(patch: &Patch, v: ValueId) -> Option<UnaryKind> {
    let (op, node) = patch.produced_by::<Unary>(Some(v))?;
    patch.produced_by::<DequantizeLinear>(node.input(0))?;
    Some(op.0)
}

fn cast(to: DType) -> Cast {
    Cast {
        to,
        narrowing: Narrowing::default(),
    }
}

/// A function of one tensor of bytes, as a graph of its own on all of its 256 values, in `float64`.
struct Function<'a> {
    graph: &'a Graph,
    patch: &'a Patch,
    bytes: Option<(ValueId, DType, Affine)>,
    body: Graph,
    /// Values of the graph, in the function.
    known: HashMap<ValueId, ValueId>,
    steps: usize,
}

impl Function<'_> {
    /// `v` in the function; `None` where it depends on anything but the bytes.
    fn follow(&mut self, v: ValueId) -> Option<ValueId> {
        if let Some(&known) = self.known.get(&v) {
            return Some(known);
        }
        let wide = self
            .constant(v)
            .or_else(|| self.operand(v))
            .or_else(|| self.applied(v))?;
        self.known.insert(v, wide);
        Some(wide)
    }

    fn constant(&mut self, v: ValueId) -> Option<ValueId> {
        let number = self
            .graph
            .scalar(Some(v))
            .filter(|_| self.graph.is_f32(v))?;
        let tensor = Tensor::scalar(number).ok()?;
        Some(self.body.add_constant("number", tensor))
    }

    fn operand(&mut self, v: ValueId) -> Option<ValueId> {
        let (operand, affine) = Operand::of_bytes(self.graph, self.patch, v)?;
        let same = self
            .bytes
            .is_none_or(|(bytes, ..)| bytes == operand.numbers);
        same.then_some(())?;
        self.bytes = Some((operand.numbers, operand.dtype, affine));
        let every: Vec<u8> = (0..=255).collect();
        let every = Tensor::from_slice(&[256], &every).ok()?;
        let every = every.reinterpreted(operand.dtype).ok()?;
        let every = self.body.add_constant("bytes", every);
        let mut inputs = vec![every];
        for v in [Some(operand.scale), operand.zero].into_iter().flatten() {
            let parameter = self.graph.constant(Some(v))?.reshaped(&[]).ok()?;
            inputs.push(self.body.add_constant("parameter", parameter));
        }
        let op = DequantizeLinear { axis: 0, block: 0 };
        let real = self.body.apply("real", op, &inputs);
        Some(self.body.apply("wide", cast(DType::F64), &[real]))
    }

    fn applied(&mut self, v: ValueId) -> Option<ValueId> {
        let node = self.patch.producer(Some(v))?;
        self.steps += 1;
        let op = &*node.op;
        let pointwise = match op.downcast_ref::<Unary>() {
            Some(Unary(kind)) => !matches!(kind, UnaryKind::Not | UnaryKind::BitwiseNot),
            None => match op.downcast_ref::<Binary>() {
                Some(op) => is_arithmetic(op.kind) && op.activation == Activation::None,
                None => op.is::<Clip>(),
            },
        };
        let fits = pointwise && self.graph.is_f32(v) && self.steps <= LIMIT;
        fits.then_some(())?;
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            inputs.push(match input {
                Some(input) => Some(self.follow(*input)?),
                None => None,
            });
        }
        let out = self.body.add_value("step", Fact::default());
        let (name, op) = (node.name.clone(), node.op.clone());
        self.body.push_shared(name, op, &inputs, &[out]);
        Some(out)
    }
}

fn is_arithmetic(kind: BinaryKind) -> bool {
    use BinaryKind::{Add, Div, Max, Min, Mul, PRelu, Pow, Sub};
    matches!(kind, Add | Sub | Mul | Div | Max | Min | Pow | PRelu)
}
