//! What operators say of their data flow is what their kernels do.

use std::collections::BTreeMap;

use kilim::core::backend::Backend;
use kilim::core::fact::{InputFact, TensorSpec};
use kilim::core::graph::{Axes, Elements, NodeSpec};
use kilim::core::narrow::Narrowing;
use kilim::core::{Interrupt, Operator};
use kilim_tests::operators::{Input, all};

use super::*;

/// What a case is given.
pub fn given(inputs: &[Input]) -> Vec<Option<Tensor>> {
    let mut tensors: Vec<Option<Tensor>> = Vec::new();
    for input in inputs {
        tensors.push(match input {
            Input::Fed(t) | Input::Constant(t) => Some(t.clone()),
            Input::Again(earlier) => tensors[*earlier].clone(),
            Input::Absent => None,
        });
    }
    tensors
}

/// The first output of a node on the CPU.
pub fn computed(cpu: &dyn Backend, op: &dyn Operator, inputs: &[Option<Tensor>]) -> Option<Tensor> {
    let specs: Vec<Option<TensorSpec>> = inputs
        .iter()
        .map(|t| t.as_ref().map(TensorSpec::of))
        .collect();
    let known: Vec<Option<InputFact>> = specs
        .iter()
        .map(|s| s.as_ref().map(InputFact::from))
        .collect();
    let facts = op.infer(&InferContext::new(&known, 1)).ok()?;
    let fact = facts.first()?;
    let outputs = [TensorSpec::new(fact.dtype?, &fact.concrete()?)];
    let node = NodeSpec {
        name: "node",
        op,
        inputs: &specs,
        outputs: &outputs,
    };
    let tensors = cpu.evaluate(&node, &Interrupt::NEVER)?.ok()?;
    tensors.into_iter().next()
}

fn reversed(t: &Tensor) -> Tensor {
    let perm: Vec<usize> = (0..t.rank()).rev().collect();
    t.permuted(&perm).unwrap()
}

/// `t` with its axes reversed, behind ones that make it `rank` axes.
fn reversed_to(t: &Tensor, rank: usize) -> Tensor {
    let mut shape = vec![1; rank - t.rank()];
    shape.extend_from_slice(t.shape());
    reversed(&t.reshaped(&shape).unwrap())
}

pub fn assert_same(a: &Tensor, b: &Tensor, what: &str) {
    assert_eq!((a.dtype(), a.shape()), (b.dtype(), b.shape()), "{what}");
    let (a, b) = (a.to_f64s().unwrap(), b.to_f64s().unwrap());
    for (x, y) in a.iter().zip(&b) {
        let near = (x - y).abs() <= 1e-5 * x.abs().max(1.0);
        assert!(
            near || x == y || x.is_nan() && y.is_nan(),
            "{what}: {x} and {y}"
        );
    }
}

/// Holds what an operator says against what it makes of `inputs`; false where there is nothing to hold.
fn check(cpu: &dyn Backend, op: &dyn Operator, inputs: &[Option<Tensor>], name: &str) -> bool {
    let flow = op.flow();
    let Some(Some(first)) = inputs.first() else {
        return false;
    };
    let Some(out) = computed(cpu, op, inputs) else {
        return false;
    };
    let mut turned = inputs.to_vec();
    let parameters = || inputs.iter().skip(1).flatten().all(|t| t.len() == 1);
    match flow.elements {
        Elements::MappedAlongAxis if !parameters() => return false,
        Elements::Mapped | Elements::MappedAlongAxis => {
            turned[0] = Some(reversed(first));
            let again = computed(cpu, op, &turned).expect("the order of axes is no matter");
            assert_same(&again, &reversed(&out), name);
        }
        Elements::Joined { commutes } => {
            for t in turned.iter_mut().flatten() {
                *t = reversed_to(t, out.rank());
            }
            let again = computed(cpu, op, &turned).expect("the order of axes is no matter");
            assert_same(&again, &reversed(&out), name);
            if commutes {
                turned = inputs.to_vec();
                turned.swap(0, 1);
                let swapped = computed(cpu, op, &turned).expect("the order of inputs is no matter");
                assert_eq!(swapped, out, "{name}");
            }
        }
        Elements::Moved | Elements::MovedFromAll => {
            let all = inputs.iter().flatten().filter(|t| t.dtype() == out.dtype());
            let there: BTreeSet<u64> = all
                .flat_map(|t| t.to_f64s().unwrap())
                .map(f64::to_bits)
                .collect();
            let moved = out.to_f64s().unwrap();
            assert!(moved.iter().all(|n| there.contains(&n.to_bits())), "{name}");
        }
        Elements::Measured => {
            turned[0] = Some(Tensor::zeros(first.dtype(), first.shape()).unwrap());
            assert_eq!(computed(cpu, op, &turned), Some(out.clone()), "{name}");
        }
        Elements::Computed => return false,
    }
    if flow.axes == Axes::Regrouped {
        assert_eq!(first.reshaped(out.shape()).unwrap(), out, "{name}");
    }
    true
}

/// Operators without a case in the suite.
fn others() -> Vec<(std::sync::Arc<dyn Operator>, Vec<Tensor>)> {
    let mut random = Random(7);
    let mut of = |op: std::sync::Arc<dyn Operator>, shape: &[usize], rest: Vec<Tensor>| {
        let mut inputs = vec![random.floats(shape)];
        inputs.extend(rest);
        (op, inputs)
    };
    let ints = |shape: &[usize], n: &[i64]| Tensor::from_slice(shape, n).unwrap();
    let view = std::sync::Arc::new(Reshape { allow_zero: false });
    let (numbers, condition) = (
        Tensor::from_slice(&[3], &[0.5f32, 1.5, 2.5]).unwrap(),
        Tensor::from_bools(&[2, 3], &[true, false, false, true, true, false]).unwrap(),
    );
    let choice: std::sync::Arc<dyn Operator> = std::sync::Arc::new(Where);
    let chosen = (
        choice,
        vec![condition, numbers.clone(), Tensor::scalar(7f32).unwrap()],
    );
    vec![
        chosen,
        of(
            std::sync::Arc::new(Cast::new(DType::F64)),
            &[2, 3],
            Vec::new(),
        ),
        of(
            std::sync::Arc::new(CastLike {
                narrowing: Narrowing::default(),
            }),
            &[2, 3],
            vec![numbers],
        ),
        of(view, &[2, 3], vec![ints(&[1], &[6])]),
        of(
            std::sync::Arc::new(Squeeze),
            &[2, 1, 3],
            vec![ints(&[1], &[1])],
        ),
        of(
            std::sync::Arc::new(Unsqueeze),
            &[2, 3],
            vec![ints(&[1], &[1])],
        ),
        of(
            std::sync::Arc::new(Flatten { axis: 1 }),
            &[2, 2, 3],
            Vec::new(),
        ),
        of(
            std::sync::Arc::new(GatherElements { axis: 1 }),
            &[2, 3],
            vec![ints(&[2, 2], &[0, 2, 1, 1])],
        ),
        of(
            std::sync::Arc::new(GatherNd { batch_dims: 0 }),
            &[2, 3],
            vec![ints(&[2, 2], &[0, 2, 1, 1])],
        ),
        of(
            std::sync::Arc::new(BatchToSpace),
            &[4, 1, 2, 3],
            vec![ints(&[2], &[2, 2]), ints(&[2, 2], &[0; 4])],
        ),
    ]
}

#[test]
fn operators_do_what_they_say_of_their_flow() {
    let cpu = cpu();
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    for case in all() {
        let inputs = given(&case.inputs);
        if check(&*cpu, &*case.op, &inputs, &case.name) {
            *checked.entry(case.op.name().to_string()).or_default() += 1;
        }
    }
    for (op, inputs) in others() {
        let inputs: Vec<Option<Tensor>> = inputs.into_iter().map(Some).collect();
        assert!(check(&*cpu, &*op, &inputs, op.name()), "{}", op.name());
    }
    for name in [
        "Add",
        "Exp",
        "Concat",
        "Slice",
        "Transpose",
        "Gather",
        "Expand",
        "Tile",
        "QuantizeLinear",
        "DequantizeLinear",
    ] {
        assert!(checked.contains_key(name), "no case of {name}: {checked:?}");
    }
}
