//! Operators: one struct of attributes each, with shape inference. Their meaning is that of the
//! newest ONNX opset; every format is mapped onto them. A file holds a family.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::Reflect;
use crate::backend::TensorSpec;
use crate::datum::{Form, Kind};
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result, shape_error};
use crate::graph::Graph;
use crate::interrupt::{Interrupt, Meter};
use crate::reflect::{Contents, Leaf, Visitor};
use crate::tensor::Tensor;

pub mod activation;
mod case;
pub mod control;
pub mod conv;
mod coordinates;
pub mod coupling;
pub mod custom;
pub mod elementwise;
pub mod fixed;
pub mod generate;
pub mod index;
pub mod lookup;
pub mod map;
pub mod matmul;
pub mod movement;
pub mod norm;
pub mod packed;
pub mod picture;
pub mod pool;
pub mod qlinear;
pub mod quant;
pub mod random;
pub mod recurrent;
pub mod reduce;
pub mod resize;
mod rules;
pub mod select;
pub mod sequence;
pub mod sort;
pub mod text;
pub mod trees;
pub mod window;

pub use crate::reflect::{Attribute, Attributes};
pub use activation::Activation;
pub use case::CaseMapping;
#[cfg(target_arch = "wasm32")]
pub use case::set_case_mapping;
pub use control::*;
pub use conv::*;
pub use coupling::*;
pub use custom::*;
pub use elementwise::*;
pub use fixed::*;
pub use generate::*;
pub use index::*;
pub use lookup::*;
pub use map::*;
pub use matmul::*;
pub use movement::*;
pub use norm::*;
pub use packed::*;
pub use picture::*;
pub use pool::*;
pub use qlinear::*;
pub use quant::*;
pub use random::*;
pub use recurrent::*;
pub use reduce::*;
pub use resize::*;
pub use rules::InputValues;
pub(crate) use rules::*;
pub use select::*;
pub use sequence::*;
pub use sort::*;
pub use text::*;
pub use trees::*;
pub use window::WindowAxis;
pub(crate) use window::*;

/// What is known of a value before it is computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    pub dtype: Option<DType>,
    /// `None` where not even the rank is known.
    pub shape: Option<Shape>,
    /// Of what is not one tensor, element type and shape are those of each tensor in it; of maps,
    /// the element type is that of the values.
    pub kind: Kind,
}

impl Fact {
    /// Of a tensor.
    pub fn new(dtype: DType, shape: Shape) -> Fact {
        Fact {
            dtype: Some(dtype),
            shape: Some(shape),
            kind: Kind::default(),
        }
    }

    /// A fact of numbers only.
    pub fn fixed(dtype: DType, dims: &[usize]) -> Fact {
        Fact::new(dtype, Shape::fixed(dims))
    }

    /// Everything about a tensor but its elements.
    pub fn of(tensor: &Tensor) -> Fact {
        Fact::fixed(tensor.dtype(), tensor.shape())
    }

    /// The dimensions, if all are known.
    pub fn concrete(&self) -> Option<Vec<usize>> {
        self.shape.as_ref().and_then(Shape::concrete)
    }

    /// The number of dimensions, where that is known.
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Shape::rank)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kind.is_tensor() {
            write!(f, "{} of ", self.kind)?;
        }
        match self.dtype {
            Some(d) => write!(f, "{d}")?,
            None => f.write_str("?")?,
        }
        match &self.shape {
            Some(s) => write!(f, "{s}"),
            None => f.write_str("[…]"),
        }
    }
}

/// What shape inference sees of one input: its fact and, if it is known, its value.
#[derive(Clone, Debug, Default)]
pub struct InputFact {
    pub fact: Fact,
    pub value: Option<Tensor>,
}

impl From<&TensorSpec> for InputFact {
    fn from(spec: &TensorSpec) -> InputFact {
        InputFact {
            fact: Fact::fixed(spec.dtype, &spec.shape),
            value: spec.value.clone(),
        }
    }
}

/// The inputs of a node, as shape inference sees them. `None` is an optional input left out.
pub struct InferContext<'a> {
    pub inputs: &'a [Option<InputFact>],
    /// How many outputs the node has.
    pub outputs: usize,
    /// What may stop operators whose outputs' shapes depend on data.
    pub interrupt: &'a Interrupt,
}

impl<'a> InferContext<'a> {
    /// Inputs and the number of outputs; nothing stops the inference.
    pub fn new(inputs: &'a [Option<InputFact>], outputs: usize) -> InferContext<'a> {
        InferContext {
            inputs,
            outputs,
            interrupt: &Interrupt::NEVER,
        }
    }

    /// A meter of what is done with data.
    pub fn meter(&self) -> Meter<'a> {
        Meter::new(self.interrupt)
    }

    /// Input `i`, or an error that it is missing.
    pub fn input(&self, i: usize) -> Result<&InputFact> {
        self.optional(i)
            .ok_or_else(|| shape_error(format!("input {i} is missing")))
    }

    /// Input `i`, if the node has it.
    pub fn optional(&self, i: usize) -> Option<&InputFact> {
        self.inputs.get(i).and_then(Option::as_ref)
    }

    /// What is known of input `i`.
    ///
    /// # Errors
    /// `Shape` where it is missing.
    pub fn fact(&self, i: usize) -> Result<&Fact> {
        Ok(&self.input(i)?.fact)
    }

    /// The element type of input `i`; `None` where it is not known yet.
    ///
    /// # Errors
    /// `Shape` where the input is missing.
    pub fn dtype(&self, i: usize) -> Result<Option<DType>> {
        Ok(self.fact(i)?.dtype)
    }

    /// The shape of input `i`; `None` where not even its rank is known.
    pub fn shape(&self, i: usize) -> Result<Option<&Shape>> {
        Ok(self.fact(i)?.shape.as_ref())
    }

    /// The value of an integer input, if the input is there and its value is known.
    pub fn ints(&self, i: usize) -> Result<Option<Vec<i64>>> {
        match self.optional(i).and_then(|f| f.value.as_ref()) {
            Some(t) => t.to_i64s().map(Some),
            None => Ok(None),
        }
    }
}

/// Work that a node does, for the partitioner and for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point or integer operations; a multiply-add counts two.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

/// An operator with its attributes. Backends find the concrete type by `downcast_ref`.
///
/// As trait objects operators are equal, and hashed alike, where type and contents are the same
/// ([`Contents`]).
pub trait Operator: Any + Reflect + Send + Sync {
    /// The operator's name as ONNX spells it.
    fn name(&self) -> &str;

    /// Element types and shapes of the outputs. Works on symbolic shapes; whatever is not known
    /// stays unknown. With all input shapes and the values of [`Operator::value_inputs`] known,
    /// all output shapes are known.
    ///
    /// # Errors
    /// Inputs that contradict the operator's rules, whatever the unknown dimensions turn out to be.
    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>>;

    /// [`Operator::infer`] where single elements of integer inputs are known, as they are in shape
    /// arithmetic on symbolic dimensions. `elements[i]` lists those of input `i` if it is a scalar or
    /// vector; an element that is no dimension (-1, for instance) is `Unknown`.
    ///
    /// # Errors
    /// As of [`Operator::infer`].
    fn infer_with_elements(
        &self,
        ctx: &InferContext,
        elements: &[Option<Vec<Dim>>],
    ) -> Result<Vec<Fact>> {
        let _ = elements;
        self.infer(ctx)
    }

    /// Inputs whose values, not only their shapes, must be known before the shapes of the outputs
    /// are (the new shape of Reshape, the data of NonZero). A kernel is built when they are known,
    /// so it never has to read them while it runs.
    fn value_inputs(&self) -> &'static [usize] {
        &[]
    }

    /// True where the outputs depend on the shapes of the inputs alone (Shape, Size).
    fn shape_only(&self) -> bool {
        false
    }

    /// True where the output is the first input under another shape: the planner gives both the
    /// same bytes, and no kernel runs.
    fn is_view(&self) -> bool {
        false
    }

    /// False where running twice may give two results (random numbers without a seed).
    fn deterministic(&self) -> bool {
        true
    }

    /// Graphs that the operator runs: only `builtin` takes such nodes.
    fn subgraphs(&self) -> Vec<&Graph> {
        Vec::new()
    }

    /// Work on concrete shapes. The default counts one operation per output element.
    fn cost(&self, inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
        elementwise_cost(inputs, outputs)
    }
}

impl dyn Operator {
    /// The operator as `T`, if it is one.
    pub fn downcast_ref<T: Operator>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// Whether it is an operator of this type.
    pub fn is<T: Operator>(&self) -> bool {
        self.downcast_ref::<T>().is_some()
    }

    /// The attributes by their frozen names, which `docs/attributes.md` lists; those of a user's operator are as
    /// the file has them.
    ///
    /// # Errors
    /// `Unsupported` where an attribute is a graph or is kept in a form of Kilim's own.
    pub fn attributes(&self) -> Result<Attributes> {
        match self.downcast_ref::<Custom>() {
            Some(custom) => Ok(custom.attributes().clone()),
            None => Attributes::of(self),
        }
    }
}

impl PartialEq for dyn Operator {
    fn eq(&self, other: &Self) -> bool {
        self.type_id() == other.type_id() && Contents(self) == Contents(other)
    }
}

impl Eq for dyn Operator {}

impl Hash for dyn Operator {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.type_id().hash(state);
        Contents(self).hash(state);
    }
}

impl fmt::Debug for dyn Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.attributes() {
            Ok(attributes) => f.debug_map().entries(&attributes.0).finish(),
            Err(_) => Ok(()),
        }
    }
}

/// Ranks above this come from broken models only.
pub(crate) const MAX_RANK: usize = 64;

/// `Limit` where a value has more dimensions than the 64 of a sound model.
pub fn check_rank(rank: usize) -> Result<()> {
    if rank <= MAX_RANK {
        return Ok(());
    }
    Err(
        Error::new(ErrorCode::Limit, "a value has too many dimensions")
            .with_expected(format!("at most {MAX_RANK}"))
            .with_got(rank),
    )
}

/// Brings an axis from `-rank..rank` into `0..rank`.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize> {
    let r = rank as i64;
    let a = if axis < 0 { axis + r } else { axis };
    if (0..r).contains(&a) {
        Ok(a as usize)
    } else {
        Err(shape_error(format!(
            "axis {axis} is out of range for rank {rank}"
        )))
    }
}

/// Like [`normalize_axis`] for several; `Shape` where one is named twice.
pub fn normalize_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    if axes.len() > rank {
        let message = format!("{} axes of a value of rank {rank}", axes.len());
        return Err(shape_error(message));
    }
    let mut out = Vec::with_capacity(axes.len());
    for &a in axes {
        let a = normalize_axis(a, rank)?;
        if out.contains(&a) {
            return Err(shape_error(format!("axis {a} is given twice")));
        }
        out.push(a);
    }
    Ok(out)
}

/// The one output of an operator whose output is like its first input.
pub(crate) fn same_as_first(ctx: &InferContext) -> Result<Vec<Fact>> {
    Ok(vec![ctx.fact(0)?.clone()])
}

/// As many of an operator's outputs as the node has.
pub(crate) fn some_of<const N: usize>(ctx: &InferContext, facts: [Fact; N]) -> Vec<Fact> {
    facts.into_iter().take(ctx.outputs.max(1)).collect()
}

/// One operation per output element.
pub(crate) fn elementwise_cost(inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
    let count = |s: &Vec<usize>| s.iter().map(|&d| d as f64).product::<f64>();
    let written: f64 = outputs.iter().map(count).sum();
    let read: f64 = inputs.iter().flatten().map(count).sum();
    Cost {
        flops: written,
        bytes: 4.0 * (read + written),
    }
}

#[cfg(test)]
mod tests;
