//! Outer products, whose right operand is one row: shorter than a vector, or no whole number of them.

use std::sync::Arc;

use kilim::core::ops::Einsum;

use super::{Case, Random, each_index, flat};

fn outer(random: &mut Random, left: usize, right: usize, batch: Option<usize>) -> Case {
    let (equation, batch) = match batch {
        Some(batch) => ("bi,bj->bij", batch),
        None => ("i,j->ij", 1),
    };
    let shape = |n: usize| match equation.len() {
        7 => vec![n],
        _ => vec![batch, n],
    };
    let (a, b) = (random.array(&shape(left)), random.array(&shape(right)));
    let whole = [batch, left, right];
    let mut want = Vec::new();
    each_index(&whole, |index| {
        let x = a.data[flat(&[batch, left], &[index[0], index[1]])];
        let y = b.data[flat(&[batch, right], &[index[0], index[2]])];
        want.push(f64::from(x) * f64::from(y));
    });
    let skipped = usize::from(a.shape.len() == 1);
    Case {
        name: format!("Einsum {equation} {:?} {:?}", a.shape, b.shape),
        op: Arc::new(Einsum {
            equation: equation.to_string(),
        }),
        inputs: vec![a.fed(), b.fed()],
        want: vec![(whole[skipped..].to_vec(), want)],
        tolerance: 1e-6,
    }
}

pub(super) fn cases() -> Vec<Case> {
    let mut random = Random::new(6);
    let mut cases = Vec::new();
    for (left, right) in [(4, 2), (3, 7), (9, 4), (17, 33), (1, 5), (5, 1)] {
        cases.push(outer(&mut random, left, right, None));
        cases.push(outer(&mut random, left, right, Some(3)));
    }
    cases
}
