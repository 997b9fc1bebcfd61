//! Whatever a model says, inference answers with facts or an error: operators with odd attributes
//! meet random inputs. Debug builds panic on overflow, so that counts too.

use super::*;
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
    let _ = op.cost(
        &shapes,
        &shapes.iter().flatten().cloned().collect::<Vec<_>>(),
    );
    let elements: Vec<_> = inputs
        .iter()
        .map(|_| Some((0..random.next(4)).map(|_| dim(&SMALL, random)).collect()))
        .collect();
    let ctx = InferContext {
        inputs: &inputs,
        outputs,
        interrupt: &NEVER,
    };
    let _ = op.infer_with_elements(&ctx, &elements);
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
