//! Nodes of random operators on inputs of random sizes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::ops::{Fact, InferContext, InputFact, InputValues};
use kilim_core::tensor::byte_count;
use kilim_core::testing::Random;
use kilim_core::testing::odd::input;
use kilim_core::{AbortSignal, DType, Interrupt, Operator, Result, Tensor};

/// Elements and operations of a node that is run.
const MOST: f64 = 1e6;

/// Stops work that asks very often whether it is to stop.
struct Patience(AtomicUsize);

impl AbortSignal for Patience {
    fn is_set(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) > 200
    }
}

pub fn patience() -> Interrupt {
    Interrupt::on(Some(Arc::new(Patience(AtomicUsize::new(0)))))
}

/// A tensor of a fact, where all of it is known.
fn spec(fact: &Fact, value: Option<&Tensor>) -> Option<TensorSpec> {
    let (dtype, shape) = (fact.dtype?, fact.concrete()?);
    let mut spec = TensorSpec::new(dtype, &shape);
    spec.value = value.cloned();
    // No plan is made of larger tensors.
    byte_count(dtype, &shape).ok()?;
    fact.kind.is_tensor().then_some(spec)
}

/// Elements of a type, many of them odd.
fn elements(dtype: DType, shape: &[usize], random: &mut Random) -> Result<Tensor> {
    let count = shape.iter().product();
    if dtype == DType::String {
        let texts = (0..count).map(|_| Arc::from(random.of(&["", "a", "a b", "é "])));
        return Tensor::from_texts(shape, texts.collect::<Vec<_>>());
    }
    let odd = [f32::NAN, f32::INFINITY, -1e30, 1e30, -1.0];
    let number = |_| match random.next(6) {
        0 => random.of(&odd),
        _ => random.next(5) as f32,
    };
    let numbers: Vec<f32> = (0..count).map(number).collect();
    match dtype {
        DType::Bool => {
            let bools: Vec<bool> = numbers.iter().map(|&n| n > 1.0).collect();
            Tensor::from_bools(shape, &bools)
        }
        DType::F32 => Tensor::from_slice(shape, &numbers),
        DType::I64 => {
            let integers: Vec<i64> = numbers.iter().map(|&n| n as i64).collect();
            Tensor::from_slice(shape, &integers)
        }
        dtype => {
            let bytes = (0..byte_count(dtype, shape)?).map(|_| random.next(256) as u8);
            Tensor::from_raw(dtype, shape, &bytes.collect::<Vec<_>>())
        }
    }
}

/// A node of an operator, where inference takes it and its sizes are all known.
pub struct Node {
    op: Arc<dyn Operator>,
    pub inputs: Vec<Option<TensorSpec>>,
    pub outputs: Vec<TensorSpec>,
}

impl Node {
    pub fn of(op: Arc<dyn Operator>, small: &[usize], random: &mut Random) -> Option<Node> {
        op.subgraphs().is_empty().then_some(())?;
        let count = random.of(&[0, 1, 2, 3, 4, 5, 8]);
        let inputs: Vec<Option<InputFact>> = (0..count).map(|_| input(small, random)).collect();
        let context = InferContext::new(&inputs, random.next(4));
        let outputs = op.infer(&context).ok()?;
        // Before a kernel is made, these are computed.
        context.known(op.value_inputs()).then_some(())?;
        let outputs: Option<Vec<_>> = outputs.iter().map(|fact| spec(fact, None)).collect();
        let inputs = inputs.iter().map(|input| match input {
            None => Some(None),
            Some(input) => spec(&input.fact, input.value.as_ref()).map(Some),
        });
        Some(Node {
            inputs: inputs.collect::<Option<Vec<_>>>()?,
            outputs: outputs?,
            op,
        })
    }

    pub fn spec(&self) -> NodeSpec<'_> {
        NodeSpec {
            name: "hostile",
            op: &*self.op,
            inputs: &self.inputs,
            outputs: &self.outputs,
        }
    }

    pub fn is_small(&self) -> bool {
        let specs = self.inputs.iter().flatten().chain(&self.outputs);
        let elements = |s: &TensorSpec| s.shape.iter().map(|&d| d as f64).product::<f64>();
        specs.map(elements).sum::<f64>() + self.spec().cost().flops <= MOST
    }

    /// Gives every input a value.
    pub fn fill(&mut self, random: &mut Random) -> Result<()> {
        for spec in self.inputs.iter_mut().flatten() {
            if spec.value.is_none() {
                spec.value = Some(elements(spec.dtype, &spec.shape, random)?);
            }
        }
        Ok(())
    }
}
