//! Operators that a user brings: Kilim knows of them what their definition says.

use std::fmt;
use std::sync::Arc;

use bytemuck::cast_slice;

use super::{Fact, InferContext, Operator};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::TensorSpec;
use crate::graph::{Flow, NodeSpec, Refusal};
use crate::reflect::{Attributes, Leaf, Reflect, Visitor};
use crate::tensor::Element;

/// A tensor that a host kernel reads.
pub struct HostInput<'a> {
    pub spec: &'a TensorSpec,
    pub bytes: &'a [u8],
}

impl<'a> HostInput<'a> {
    /// The elements; `DType` where they are of another type (`Bool` is read as `u8`).
    pub fn elements<T: Element>(&self) -> Result<&'a [T]> {
        check::<T>(self.spec.dtype)?;
        Ok(cast_slice(self.bytes))
    }
}

/// A tensor that a host kernel writes; what it holds before is rubbish.
pub struct HostOutput<'a> {
    pub spec: &'a TensorSpec,
    pub bytes: &'a mut [u8],
}

impl HostOutput<'_> {
    /// The elements to write; `DType` where they are of another type (`Bool` is written as `u8`).
    pub fn elements<T: Element>(&mut self) -> Result<&mut [T]> {
        check::<T>(self.spec.dtype)?;
        Ok(bytemuck::cast_slice_mut(self.bytes))
    }
}

fn check<T: Element>(dtype: DType) -> Result<()> {
    if dtype == T::DTYPE || (dtype == DType::Bool && T::DTYPE == DType::U8) {
        return Ok(());
    }
    Err(
        Error::new(ErrorCode::DType, "a kernel reads another element type")
            .with_expected(T::DTYPE)
            .with_got(dtype),
    )
}

/// A tensor of the node that a shader binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderTensor {
    Input(usize),
    Output(usize),
}

/// A number that a shader is given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShaderNumber {
    U32(u32),
    I32(i32),
    F32(f32),
}

/// A node as a WGSL compute shader of the user's own.
///
/// The declarations of `bindings` and `parameters` are written in front of the text: each tensor is a
/// runtime-sized array under its name, `params` is a struct of the parameters. Tensors lie densely,
/// row-major: `f32`, `i32` and `u32` as they are, `bool` as `u32`, 64-bit integers as `vec2<u32>`, low
/// word first, `float16` as `u32` with two elements each.
#[derive(Clone, Debug, PartialEq)]
pub struct ShaderKernel {
    /// A module with the entry point `main`, without the declarations of its bindings.
    pub source: Arc<str>,
    /// Every output must be among them; no tensor may be named twice.
    pub bindings: Vec<(String, ShaderTensor)>,
    pub parameters: Vec<(String, ShaderNumber)>,
    /// Workgroups to start in x, y and z.
    pub workgroups: [u32; 3],
}

type Infer = dyn Fn(&Attributes, &InferContext) -> Result<Vec<Fact>> + Send + Sync;
type Host =
    dyn Fn(&Attributes, &[Option<HostInput>], &mut [HostOutput]) -> Result<()> + Send + Sync;
type Shader = dyn Fn(&Attributes, &NodeSpec) -> Result<ShaderKernel, Refusal> + Send + Sync;

/// The definition of an operator that Kilim does not have: its shape inference, and kernels for as
/// many backends as its author wrote.
///
/// ```
/// use kilim_core::ops::{CustomOperator, Fact};
///
/// let twice = CustomOperator::new("com.example", "Twice", |_, ctx| Ok(vec![ctx.fact(0)?.clone()]))
///     .host(|_, inputs, outputs| {
///         let [Some(x)] = inputs else { return Err(kilim_core::error::shape_error("one input")) };
///         for (y, x) in outputs[0].elements::<f32>()?.iter_mut().zip(x.elements::<f32>()?) {
///             *y = 2.0 * x;
///         }
///         Ok(())
///     });
/// ```
pub struct CustomOperator {
    domain: String,
    name: String,
    infer: Box<Infer>,
    host: Option<Box<Host>>,
    shader: Option<Box<Shader>>,
    deterministic: bool,
}

impl CustomOperator {
    /// `domain` and `name` as files spell them; custom operators of TFLite have the domain
    /// `tflite`. `infer` gives the facts of all outputs, see [`Operator::infer`].
    pub fn new(
        domain: impl Into<String>,
        name: impl Into<String>,
        infer: impl Fn(&Attributes, &InferContext) -> Result<Vec<Fact>> + Send + Sync + 'static,
    ) -> CustomOperator {
        CustomOperator {
            domain: domain.into(),
            name: name.into(),
            infer: Box::new(infer),
            host: None,
            shader: None,
            deterministic: true,
        }
    }

    /// A kernel on host memory; the backend `cpu` runs it.
    pub fn host(
        mut self,
        kernel: impl Fn(&Attributes, &[Option<HostInput>], &mut [HostOutput]) -> Result<()>
        + Send
        + Sync
        + 'static,
    ) -> CustomOperator {
        self.host = Some(Box::new(kernel));
        self
    }

    /// A WGSL kernel; the backend `wgpu` runs it. It may refuse a node with a reason.
    pub fn shader(
        mut self,
        kernel: impl Fn(&Attributes, &NodeSpec) -> Result<ShaderKernel, Refusal> + Send + Sync + 'static,
    ) -> CustomOperator {
        self.shader = Some(Box::new(kernel));
        self
    }

    /// Says that running twice may give two results, so that nothing is computed beforehand.
    pub fn random(mut self) -> CustomOperator {
        self.deterministic = false;
        self
    }

    /// The domain, "" for that of ONNX.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The name in its domain.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for CustomOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.domain, self.name)
    }
}

/// The definitions that a session's models may use, beside Kilim's own operators.
#[derive(Clone, Debug, Default)]
pub struct CustomOperators(Vec<Arc<CustomOperator>>);

impl CustomOperators {
    /// Adds a definition; one of the same domain and name is replaced.
    pub fn add(&mut self, operator: impl Into<Arc<CustomOperator>>) {
        let operator = operator.into();
        self.0
            .retain(|o| (o.domain(), o.name()) != (operator.domain(), operator.name()));
        self.0.push(operator);
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: &CustomOperators) {
        others.0.iter().for_each(|o| self.add(o.clone()));
    }

    /// Looks an operator up by the domain and the name that the model file has.
    pub fn get(&self, domain: &str, name: &str) -> Option<&Arc<CustomOperator>> {
        self.0
            .iter()
            .find(|o| o.domain() == domain && o.name() == name)
    }
}

/// A node of a [`CustomOperator`].
#[derive(Clone)]
pub struct Custom {
    operator: Arc<CustomOperator>,
    attributes: Arc<Attributes>,
}

impl Custom {
    /// A node of `operator`.
    pub fn new(operator: Arc<CustomOperator>, attributes: Attributes) -> Custom {
        Custom {
            operator,
            attributes: Arc::new(attributes),
        }
    }

    /// The definition.
    pub fn operator(&self) -> &CustomOperator {
        &self.operator
    }

    /// The attributes of the node.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Whether the definition has a kernel on host memory.
    pub fn has_host(&self) -> bool {
        self.operator.host.is_some()
    }

    /// Runs the kernel on host memory.
    ///
    /// # Errors
    /// `Unsupported` where the definition has none; else what it says.
    pub fn run_host(&self, inputs: &[Option<HostInput>], outputs: &mut [HostOutput]) -> Result<()> {
        match &self.operator.host {
            Some(kernel) => kernel(&self.attributes, inputs, outputs),
            None => Err(crate::error::unsupported(
                "the operator brings no kernel on host memory",
            )),
        }
    }

    /// The shader for a node, or why there is none.
    pub fn shader(&self, node: &NodeSpec) -> Result<ShaderKernel, Refusal> {
        match &self.operator.shader {
            Some(shader) => shader(&self.attributes, node),
            None => Err(Refusal::new("the operator brings no shader")),
        }
    }
}

/// The definition is told apart by its address: nothing says what its functions compute.
impl Reflect for Custom {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Opaque(Arc::as_ptr(&self.operator) as usize));
        self.attributes.visit(visitor);
    }
}

impl Operator for Custom {
    fn name(&self) -> &str {
        self.operator.name()
    }

    signature! { (list inputs) -> (list outputs) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let mut facts = (self.operator.infer)(&self.attributes, ctx)?;
        if facts.len() < ctx.outputs {
            return Err(crate::error::shape_error(format!(
                "the operator gives {} outputs; the node has {}",
                facts.len(),
                ctx.outputs
            )));
        }
        facts.truncate(ctx.outputs);
        Ok(facts)
    }

    fn deterministic(&self) -> bool {
        self.operator.deterministic
    }

    fn given_attributes(&self) -> Option<&Attributes> {
        Some(&self.attributes)
    }
}
