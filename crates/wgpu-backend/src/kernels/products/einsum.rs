//! Einstein summation: a matrix product where it comes down to one, else a sum for each element.

use kilim_core::ops::{Activation, Einsum, EinsumPlan};

use super::matmul::Product;
use crate::kernels::Kernels;
use crate::lowering::walk::{MAX_RANK, collapse, signed, strides};
use crate::lowering::{Lowering, Lowers, ok, refuse, wrong};
use crate::shaders::products::einsum::{Count, Launch, Params};
use crate::shaders::{Operand, Stored, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Einsum>(einsum);
}

/// One index of the equation: its length, and what a step along it is in each operand.
#[derive(Clone, Copy)]
struct Index {
    size: usize,
    steps: [usize; 3],
}

fn einsum(op: &Einsum, l: &mut Lowering) -> Lowers {
    l.want_f32()?;
    let operands = l.node.inputs.len();
    if !(1..=3).contains(&operands) {
        return refuse(format!("Einsum of {operands} inputs is not on the GPU"));
    }
    let mut shapes = Vec::with_capacity(operands);
    for i in 0..operands {
        shapes.push(&l.input(i)?.shape);
    }
    let ranks: Vec<usize> = shapes.iter().map(|s| s.len()).collect();
    let plan = ok(EinsumPlan::new(&op.equation, &ranks))?;
    let mut indices = vec![
        Index {
            size: 1,
            steps: [0; 3]
        };
        plan.labels
    ];
    for (t, (labels, shape)) in plan.inputs.iter().zip(&shapes).enumerate() {
        for ((&label, &size), step) in labels.iter().zip(*shape).zip(strides(shape)) {
            if size != 1 {
                indices[label].size = size;
                // An index twice in one operand walks its diagonal.
                indices[label].steps[t] += step;
            }
        }
    }
    let kept: Vec<Index> = plan.output.iter().map(|&i| indices[i]).collect();
    let summed = (0..plan.labels).filter(|i| !plan.output.contains(i));
    let summed: Vec<Index> = summed.map(|i| indices[i]).collect();
    if operands == 2
        && let Some(product) = product(&kept, &summed)
    {
        return product.emit(l);
    }
    sum(&kept, &summed, operands, l)
}

/// The sum as a product of matrices, where the output is batches, rows and columns in this order.
fn product(kept: &[Index], summed: &[Index]) -> Option<Product> {
    let place = |i: &Index| match (i.steps[0] > 0, i.steps[1] > 0) {
        _ if i.size == 1 => None,
        (true, true) => Some(0),
        (true, false) => Some(1),
        _ => Some(2),
    };
    let order: Vec<usize> = kept.iter().filter_map(place).collect();
    let alone = |i: &Index| i.size != 1 && (i.steps[0] == 0 || i.steps[1] == 0);
    if !order.is_sorted() || summed.iter().any(alone) || kept.iter().any(|i| i.size == 0) {
        return None;
    }
    let group = |list: &[Index], which: usize| -> Vec<Index> {
        let of = |i: &&Index| place(i) == Some(which);
        list.iter().filter(of).copied().collect()
    };
    let one = |list: Vec<Index>| match walk(&list)? {
        (sizes, [a, b, _]) if sizes.len() == 1 => Some((sizes[0], a[0], b[0])),
        _ => None,
    };
    let (m, a_row, _) = one(group(kept, 1))?;
    let (n, _, b_column) = one(group(kept, 2))?;
    let (k, a_column, b_row) = one(group(summed, 0))?;
    let (batch, [walk_a, walk_b, _]) = walk(&group(kept, 0))?;
    let [walk_a, walk_b] = [walk_a, walk_b].map(|w| signed(&w));
    Some(Product {
        m,
        n,
        k,
        batch,
        walk_a,
        walk_b,
        a: Operand::Input(0),
        a_strides: [a_row, a_column],
        b: Operand::Input(1),
        b_strides: [b_row, b_column],
        c: Target::Output(0),
        bias: None,
        residual: None,
        alpha: 1.0,
        activation: Activation::None,
        stored: Stored::F32,
    })
}

/// Sizes of indices, and the steps in each operand; neighbours that all operands walk as one are one.
fn walk(indices: &[Index]) -> Option<(Vec<usize>, [Vec<usize>; 3])> {
    let sizes: Vec<usize> = indices.iter().map(|i| i.size).collect();
    let steps = |t: usize| indices.iter().map(|i| i.steps[t] as i64).collect();
    let (sizes, walks) = collapse(&sizes, &[steps(0), steps(1), steps(2)]).ok()?;
    let mut walks = walks
        .into_iter()
        .map(|w| w.into_iter().map(|s| s as usize).collect());
    Some((sizes, [walks.next()?, walks.next()?, walks.next()?]))
}

fn sum(kept: &[Index], summed: &[Index], operands: usize, l: &mut Lowering) -> Lowers {
    let (Some((sizes, walks)), Some((steps, step_walks))) = (walk(kept), walk(summed)) else {
        return refuse(format!("the GPU kernel has at most {MAX_RANK} indices"));
    };
    let [kept_a, kept_b, kept_c] = &walks;
    let [summed_a, summed_b, summed_c] = &step_walks;
    let others = match operands {
        1 => Count::N1,
        2 => Count::N2 {
            b: Operand::Input(1),
        },
        3 => Count::N3 {
            b: Operand::Input(1),
            c: Operand::Input(2),
        },
        n => return wrong(format!("Einsum of {n} inputs")),
    };
    let count = l.output(0)?.elements();
    let launch = Launch {
        count: others,
        y: Target::Output(0),
        a: Operand::Input(0),
        params: Params {
            kept: &sizes,
            kept_a,
            kept_b,
            kept_c,
            summed: &steps,
            summed_a,
            summed_b,
            summed_c,
            kept_rank: sizes.len(),
            summed_rank: steps.len(),
            count,
            steps: steps.iter().product(),
        },
    };
    l.linear(launch, count);
    Ok(())
}
