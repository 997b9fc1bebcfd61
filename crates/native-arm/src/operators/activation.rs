//! Functions of one tensor, by themselves and behind another operator.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Activation, Unary, UnaryKind};
use kilim_host::registry::KernelRegistry;

use super::{Lower, collapse, input, output, refuse};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{ActivationInfo, BinaryFunction, BinaryInfo, Function, UnaryFunction, UnaryInfo};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, Unary>(registry);
}

/// No activation, in the structures of other families.
pub const NO_ACTIVATION: ActivationInfo = ActivationInfo {
    enabled: 0,
    function: Function::Relu,
    a: 0.0,
    b: 0.0,
};

fn function(function: Function, a: f32, b: f32) -> ActivationInfo {
    ActivationInfo {
        enabled: 1,
        function,
        a,
        b,
    }
}

pub fn clip(min: f32, max: f32) -> ActivationInfo {
    function(Function::LuBoundedRelu, max, min)
}

fn hard_sigmoid(alpha: f32, beta: f32) -> Vec<ActivationInfo> {
    vec![
        function(Function::Linear, alpha, beta),
        function(Function::BoundedRelu, 1.0, 0.0),
    ]
}

/// The functions of ACL that are `activation`, one after another.
fn functions(activation: Activation) -> Vec<ActivationInfo> {
    match activation {
        Activation::None => Vec::new(),
        Activation::Relu => vec![function(Function::Relu, 0.0, 0.0)],
        Activation::Clip { min, max } => vec![clip(min, max)],
        Activation::LeakyRelu { alpha } => vec![function(Function::LeakyRelu, alpha, 0.0)],
        Activation::Sigmoid => vec![function(Function::Logistic, 0.0, 0.0)],
        Activation::Tanh => vec![function(Function::Tanh, 1.0, 1.0)],
        Activation::HardSwish => vec![function(Function::HardSwish, 0.0, 0.0)],
        Activation::HardSigmoid { alpha, beta } => hard_sigmoid(alpha, beta),
        Activation::Silu => vec![function(Function::Swish, 1.0, 0.0)],
    }
}

/// Why clamping functions are refused over rows that are not whole vectors.
pub const LOSES_NAN: &str = "behind the last whole vector of a row ACL turns NaN into a number";

/// Whether ACL turns NaN into a number behind the last whole vector of a row.
fn clamps(info: &ActivationInfo) -> bool {
    let clamping = [
        Function::Relu,
        Function::BoundedRelu,
        Function::LuBoundedRelu,
    ];
    clamping.contains(&info.function)
}

/// Whether ACL subtracts from 1, or from a number near it, in the type of the tensor, so that in float16 little is
/// left of a result near zero.
fn loses_digits(info: &ActivationInfo, form: &Form) -> bool {
    form.is_half()
        && matches!(
            info.function,
            Function::Elu | Function::Gelu | Function::Swish
        )
}

/// Calls that apply functions one after another to a tensor of `form`, first to `source`.
fn chain(
    functions: Vec<ActivationInfo>,
    source: Source,
    form: &Form,
) -> Result<Vec<Call>, Refusal> {
    if functions.iter().any(|f| loses_digits(f, form)) {
        return refuse("in float16 this function of ACL loses digits near zero");
    }
    let form = match functions.iter().any(clamps) {
        true => &form.in_vectors().ok_or_else(|| Refusal::new(LOSES_NAN))?,
        false => form,
    };
    let sources = std::iter::once(source).chain(std::iter::repeat(Source::Output));
    Ok(functions
        .into_iter()
        .zip(sources)
        .map(|(f, source)| Call::pointwise(f, source, form))
        .collect())
}

/// Calls that apply an activation to what is in the output.
pub fn calls(activation: Activation, form: &Form) -> Result<Vec<Call>, Refusal> {
    chain(functions(activation), Source::Output, form)
}

/// The function that another call can apply itself. `None` where it takes more than one, and for a clip,
/// which turns NaN into a number there.
pub fn within(activation: Activation, form: &Form) -> Option<ActivationInfo> {
    match activation {
        Activation::Clip { .. } => None,
        other => one(other).filter(|info| !loses_digits(info, form)),
    }
}

fn one(activation: Activation) -> Option<ActivationInfo> {
    match functions(activation)[..] {
        [] => Some(NO_ACTIVATION),
        [one] => Some(one),
        _ => None,
    }
}

impl Lower for Unary {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let x = input(node, 0)?;
        let form = Form::new(output(node)?, &collapse(&x.shape, 3))?;
        let unary = |kind| {
            let info = UnaryInfo { kind };
            Ok(vec![Call::pointwise(info, Source::Input(0), &form)])
        };
        match self.0 {
            UnaryKind::Abs => return unary(UnaryFunction::Abs),
            UnaryKind::Exp => return unary(UnaryFunction::Exp),
            UnaryKind::Neg => return unary(UnaryFunction::Neg),
            UnaryKind::Round => return unary(UnaryFunction::Round),
            UnaryKind::Floor | UnaryKind::Log | UnaryKind::Softplus => {
                return refuse("ACL turns NaN into a number");
            }
            UnaryKind::Sin => return refuse("ACL's sine is a polynomial of too few terms"),
            UnaryKind::Swish { alpha: 1.0 } => return Ok(silu(&form)),
            _ => {}
        }
        let functions = match self.0 {
            UnaryKind::HardSigmoid { alpha, beta } => hard_sigmoid(alpha, beta),
            kind => vec![activation(kind).ok_or_else(|| Refusal::new("ACL has no such function"))?],
        };
        chain(functions, Source::Input(0), &form)
    }
}

/// The activation of ACL that is `kind`.
pub fn activation(kind: UnaryKind) -> Option<ActivationInfo> {
    Some(match kind {
        UnaryKind::Clip { min, max } => clip(min as f32, max as f32),
        UnaryKind::Elu { alpha } => function(Function::Elu, alpha, 0.0),
        UnaryKind::Gelu { tanh: false } => function(Function::Gelu, 0.0, 0.0),
        UnaryKind::HardSwish => function(Function::HardSwish, 0.0, 0.0),
        UnaryKind::LeakyRelu { alpha } => function(Function::LeakyRelu, alpha, 0.0),
        UnaryKind::Relu => function(Function::Relu, 0.0, 0.0),
        UnaryKind::Sigmoid => function(Function::Logistic, 0.0, 0.0),
        UnaryKind::Sqrt => function(Function::Sqrt, 0.0, 0.0),
        UnaryKind::Swish { alpha } => function(Function::Swish, alpha, 0.0),
        UnaryKind::Tanh => function(Function::Tanh, 1.0, 1.0),
        _ => return None,
    })
}

/// `x * sigmoid(x)`, which releases without SWISH have, too.
fn silu(form: &Form) -> Vec<Call> {
    let operand = |source| {
        Some(Operand {
            source,
            form: form.clone(),
        })
    };
    let sigmoid = function(Function::Logistic, 0.0, 0.0);
    let product = BinaryInfo {
        kind: BinaryFunction::Mul,
    };
    vec![
        Call::pointwise(sigmoid, Source::Input(0), form),
        Call::new(
            product,
            vec![operand(Source::Input(0)), operand(Source::Output)],
            form.clone(),
        ),
    ]
}
