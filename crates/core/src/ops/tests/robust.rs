//! Whatever a model says, inference answers with facts or an error: operators with odd attributes
//! meet random inputs. Debug builds panic on overflow, so that counts too.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::graph::{Node, NodeView, Precision, ValueId};
use crate::testing::odd::{Odd, SMALL, dim, input};
use crate::testing::{Random, content, operators};

/// What an operator with random attributes makes of random inputs; whether it gives facts.
fn answers(op: &dyn Operator, random: &mut Random) -> bool {
    let inputs: Vec<_> = (0..random.of(&[0, 1, 2, 3, 4, 5, 8]))
        .map(|_| input(&SMALL, random))
        .collect();
    let outputs = random.next(4);
    let shapes: Vec<Option<Vec<usize>>> = inputs
        .iter()
        .map(|i| i.as_ref().and_then(|i| i.fact.concrete()))
        .collect();
    let shapes: Vec<_> = shapes.iter().map(Option::as_deref).collect();
    let _ = op.cost(
        &shapes,
        &shapes.iter().flatten().copied().collect::<Vec<_>>(),
    );
    let elements: Vec<_> = inputs
        .iter()
        .map(|_| Some((0..random.next(4)).map(|_| dim(&SMALL, random)).collect()))
        .collect();
    let ctx = InferContext::new(&inputs, outputs);
    let _ = op.infer_with_elements(&ctx, &elements);
    ask(op, &inputs);
    let Ok(facts) = op.infer(&ctx) else {
        return false;
    };
    let complete =
        inputs.iter().flatten().all(|i| {
            i.fact.concrete().is_some() && i.fact.dtype.is_some() && i.fact.kind.is_tensor()
        }) && ctx.known(op.value_inputs());
    let tensors = facts.iter().filter(|f| f.kind.is_tensor());
    for fact in tensors.filter(|_| complete && op.subgraphs().is_empty()) {
        assert!(
            fact.concrete().is_some(),
            "{op:?} of {inputs:?} gave {fact}"
        );
    }
    true
}

/// Asks what passes want to know of an operator.
fn ask(op: &dyn Operator, inputs: &[Option<InputFact>]) {
    let mut graph = Graph::new("odd");
    let value = |input: &InputFact| crate::graph::Value {
        name: String::new(),
        fact: input.fact.clone(),
        constant: input.value.clone(),
    };
    graph.values = inputs.iter().flatten().map(value).collect();
    let mut ids = (0..).map(ValueId);
    let given = inputs
        .iter()
        .map(|input| input.as_ref().and_then(|_| ids.next()));
    let node = Node {
        name: String::new(),
        op: Arc::new(Unary(UnaryKind::Identity)),
        inputs: given.collect(),
        outputs: inputs
            .iter()
            .flatten()
            .take(1)
            .map(|_| ValueId(0))
            .collect(),
    };
    let view = NodeView::new(&graph, &node);
    let _ = (op.flow(), op.passes_on(&view), op.selects(&view));
    let _ = (op.spatial().is_some(), op.has_optional_outputs());
    let activated = op.with_activation(Activation::Relu);
    let single = op.in_precision(DType::F32);
    for other in [activated, single].into_iter().flatten() {
        assert_eq!(other.flow().axes, op.flow().axes);
    }
    if let Some(bodies) = op.bodies() {
        let facts: Vec<Fact> = inputs.iter().flatten().map(|i| i.fact.clone()).collect();
        let turn = if bodies.counted { 2 } else { 0 };
        let given = facts.len().saturating_sub(bodies.steering);
        assert_eq!(bodies.facts(&facts).len(), turn + given);
        assert!(bodies.on_host(facts.len()).all(|i| i < facts.len()));
        let graphs: Vec<_> = bodies.graphs.iter().map(|&graph| graph.clone()).collect();
        assert!(op.with_bodies(graphs).is_some_and(|other| *other == *op));
        assert!(op.with_bodies(Vec::new()).is_none());
    }
}

/// A tensor of a floating-point type that is narrower than `float32`.
fn is_half(fact: &Fact) -> bool {
    fact.kind.is_tensor() && matches!(fact.dtype, Some(DType::F16 | DType::BF16))
}

/// An operator whose outputs are in half precision, though no input is, says so: passes that widen half precision change it.
#[test]
fn operators_that_name_a_precision_say_so() {
    let odd = &mut Odd(Random(5));
    let (mut naming, mut silent) = (BTreeSet::new(), BTreeSet::new());
    let sets = [
        vec![],
        vec![DType::F32],
        vec![DType::I64],
        vec![DType::I16],
        vec![DType::F32; 3],
    ];
    for known in operators() {
        for _ in 0..1000 {
            let op = (known.build)(&content(&known.schema, odd));
            for inputs in &sets {
                let input = |&dtype: &DType| {
                    let fact = Fact {
                        dtype: Some(dtype),
                        ..Fact::default()
                    };
                    Some(InputFact { fact, value: None })
                };
                let inputs: Vec<_> = inputs.iter().map(input).collect();
                let ctx = InferContext::new(&inputs, 1);
                if !op.infer(&ctx).is_ok_and(|facts| facts.iter().any(is_half)) {
                    continue;
                }
                naming.insert(known.type_name);
                let precision = op.flow().precision;
                if precision == Precision::OfInputs {
                    silent.insert(known.type_name);
                    continue;
                }
                let wide = op.in_precision(DType::F32);
                assert_eq!(wide.is_some(), precision == Precision::Named, "{op:?}");
                let Some(wide) = wide else { continue };
                let facts = wide.infer(&ctx).unwrap();
                assert!(facts.iter().all(|f| f.dtype == Some(DType::F32)), "{op:?}");
            }
        }
    }
    assert!(
        silent.is_empty(),
        "{silent:?} give half precision of other types: their `flow` has to say so by `with_precision`"
    );
    let all = ["BitCast", "Cast", "EyeLike", "Random"];
    assert_eq!(naming, BTreeSet::from(all));
}

#[test]
fn what_fills_is_rounded_to_another_precision() {
    let filled = |value: Tensor| ConstantOfShape { value };
    let half = filled(Tensor::from_slice(&[1], &[half::f16::from_f32(0.1)]).unwrap());
    assert_eq!(half.flow().precision, Precision::Named);
    let wide = half.in_precision(DType::F32).unwrap();
    let tenth = half::f16::from_f32(0.1).to_f32();
    let wanted = filled(Tensor::from_slice(&[1], &[tenth]).unwrap());
    assert!(*wide == *(&wanted as &dyn Operator));
    let integer = filled(Tensor::from_slice(&[1], &[1i64]).unwrap());
    assert!(integer.in_precision(DType::F32).is_none());
}

#[test]
fn nothing_panics() {
    let odd = &mut Odd(Random(7));
    let mut answered = 0;
    for known in operators() {
        for _ in 0..3000 {
            let op = (known.build)(&content(&known.schema, odd));
            answered += usize::from(answers(&*op, &mut odd.0));
        }
    }
    assert!(answered > 10_000, "{answered} answers");
}
