//! What an operator is: attributes, shape inference, and what the planner has to know of it.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
use super::Signature;
use super::{
    Activation, Bodies, Flow, Graph, Names, Node, NodeSpec, NodeView, Renumbered, Spatial,
};
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error};
use crate::fact::{Cost, Fact, InputFact};
use crate::interrupt::{Interrupt, Meter};
use crate::reflect::{Attributes, Contents, Reflect};

/// The inputs of a node, as shape inference sees them. `None` is an optional input left out.
pub struct InferContext<'a> {
    pub inputs: &'a [Option<InputFact>],
    /// How many outputs the node has.
    pub outputs: usize,
    /// What may stop operators whose outputs' shapes depend on data.
    pub interrupt: &'a Interrupt,
    /// What the node and its tensors are called, where it is one of a graph.
    pub names: Names<'a>,
}

impl<'a> InferContext<'a> {
    /// Inputs and the number of outputs; nothing stops the inference.
    pub fn new(inputs: &'a [Option<InputFact>], outputs: usize) -> InferContext<'a> {
        InferContext {
            inputs,
            outputs,
            interrupt: &Interrupt::NEVER,
            names: Names::default(),
        }
    }

    /// The context of a node of a graph, which is told what things are called.
    #[must_use]
    pub fn of(self, graph: &'a Graph, node: &'a Node) -> InferContext<'a> {
        InferContext {
            names: Names::of(graph, node),
            ..self
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

/// An operator with its attributes. Backends find the concrete type by `downcast_ref`.
///
/// As trait objects operators are equal, and hashed alike, where type and contents are the same
/// ([`Contents`]).
pub trait Operator: Any + Reflect + Send + Sync {
    /// The operator's name as ONNX spells it.
    fn name(&self) -> &str;

    /// What the inputs and outputs are called, whatever the attributes are. [`crate::signature!`] writes it. Builds for
    /// WebAssembly do without, so that pages pay nothing for names.
    #[cfg(not(target_arch = "wasm32"))]
    fn signature(&self) -> &'static Signature;

    /// How data goes through the operator. There is no default: an answer that nobody thought about would be wrong, or stop
    /// rewrites in silence.
    fn flow(&self) -> Flow;

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

    /// The elements of the only output, an integer or a vector of them, as far as dimensions and elements of the inputs tell
    /// them; `elements` are as of [`Operator::infer_with_elements`], of all inputs.
    fn elements(&self, ctx: &InferContext, elements: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        let _ = (ctx, elements);
        None
    }

    /// The operator for data whose transpose by `perm` is the first input, in `ctx`; `None` where there is none. Those
    /// need not answer whose [`Flow`] says that any order of axes will do.
    fn renumbered(&self, ctx: &InferContext, perm: &[usize]) -> Option<Renumbered> {
        let _ = (ctx, perm);
        None
    }

    /// The operator for operand `i` with its last two dimensions swapped, if an attribute of it says so.
    fn swapped(&self, i: usize) -> Option<Arc<dyn Operator>> {
        let _ = i;
        None
    }

    /// The operator with `activation` applied to its result, where it can do that and applies none yet.
    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let _ = activation;
        None
    }

    /// The optional input that is added to the result before the activation; it has the shape of the only output.
    fn addend(&self) -> Option<usize> {
        None
    }

    /// The optional input that the result is multiplied with after the activation; it has the shape of the only output.
    fn factor(&self) -> Option<usize> {
        None
    }

    /// What the operator is on channels-last data, if its data has channels and axes of space.
    fn spatial(&self) -> Option<Spatial> {
        None
    }

    /// The operator that names `dtype` for its outputs in place of another floating-point type. Those answer whose
    /// [`Flow::precision`] is [`super::Precision::Named`].
    fn in_precision(&self, dtype: DType) -> Option<Arc<dyn Operator>> {
        let _ = dtype;
        None
    }

    /// Whether the node, whose only output is used, gives its first input as it is. Operators that regroup dimensions need
    /// not answer: [`NodeView::passes_on`] asks their [`Flow`].
    fn passes_on(&self, node: &NodeView) -> bool {
        let _ = node;
        false
    }

    /// Whether each element of the first output is one of the elements of the data, chosen as the largest of some: numbers of
    /// another type, in the same order, then come out the same way. Operators that only move elements need not answer:
    /// [`NodeView::selects`] asks their [`Flow`].
    fn selects(&self, node: &NodeView) -> bool {
        let _ = node;
        false
    }

    /// The inputs that are needed at one place alone for that place along dimension `axis` of the only output. Their dimensions are
    /// those of the output, counted from the last one, or are broadcast to them; the other inputs any place may need as a whole. None
    /// where there are no such inputs. Operators whose elements are mapped or joined need not answer: [`NodeView::apart`] asks their [`Flow`].
    fn apart(&self, node: &NodeView, axis: usize) -> Option<Vec<usize>> {
        let _ = (node, axis);
        None
    }

    /// The input that an output is but for what the operator writes on it: a kernel may do that in the memory of the
    /// input, where the output has its shape and nobody else reads the input.
    fn writes_on(&self, output: usize) -> Option<usize> {
        let _ = output;
        None
    }

    /// Whether a node may have fewer outputs than there are: those behind the first, from the last one on.
    fn has_optional_outputs(&self) -> bool {
        false
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

    /// True where `node`, an application of the operator with these shapes and values, gives the elements of the first input
    /// in their order as its only output (a Transpose of axes of length 1, for instance): the planner then treats it as a view.
    /// Operators that are views of any shape need not answer.
    fn is_view_for(&self, node: &NodeSpec) -> bool {
        let _ = node;
        self.is_view()
    }

    /// False where running twice may give two results (random numbers without a seed).
    fn deterministic(&self) -> bool {
        true
    }

    /// The graphs that the operator runs, if it runs some: only `builtin` takes such nodes.
    fn bodies(&self) -> Option<Bodies<'_>> {
        None
    }

    /// The operator with other graphs, as many as [`Operator::bodies`] gives and in their order.
    fn with_bodies(&self, graphs: Vec<Arc<Graph>>) -> Option<Arc<dyn Operator>> {
        let _ = graphs;
        None
    }

    /// Work on concrete shapes. The default counts one operation per output element.
    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        Cost::elementwise(inputs, outputs)
    }

    /// True where an input or output may be a value that is no tensor: sequences, maps, optional values, and
    /// what bodies take.
    fn on_values(&self) -> bool {
        self.bodies().is_some()
    }

    /// The attributes as the file has them, where the operator keeps them so instead of in fields.
    fn given_attributes(&self) -> Option<&Attributes> {
        None
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

    /// The graphs that the operator runs.
    pub fn subgraphs(&self) -> Vec<&Graph> {
        let graphs = self.bodies().map_or_else(Vec::new, |bodies| bodies.graphs);
        graphs.into_iter().map(|graph| &**graph).collect()
    }

    /// The attributes by their frozen names, which `docs/attributes.md` lists; those of a user's operator are as
    /// the file has them.
    ///
    /// # Errors
    /// `Unsupported` where an attribute is a graph or is kept in a form of Kilim's own.
    pub fn attributes(&self) -> Result<Attributes> {
        match self.given_attributes() {
            Some(attributes) => Ok(attributes.clone()),
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
