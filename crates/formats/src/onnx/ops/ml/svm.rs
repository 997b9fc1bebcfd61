//! Support vector machines, in the form that libsvm has them.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, MatMul, PairwiseCoupling, ReduceKind, UnaryKind};

use super::scores::{Labels, PostTransform, both_sides};
use super::{Family, OpTable, floats, numbers, rows};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family =
    OpTable(&[("SVMClassifier", classifier), ("SVMRegressor", regressor)]);

fn matmul(b: &mut NodeBuilder, x: ValueId, shape: [usize; 2], list: &[f64]) -> Result<ValueId> {
    let weights = numbers(b, &shape, list)?;
    b.op(MatMul::default(), &[x, weights])
}

/// A matrix of the file, turned.
fn turned(list: &[f64], rows: usize) -> Vec<f64> {
    let columns = list.len() / rows.max(1);
    let at = |i: usize| list[i % rows * columns + i / rows];
    (0..rows * columns).map(at).collect()
}

/// The kernel function of each row with each of `count` support vectors, `[rows, count]`, in double
/// precision: distances are differences of squares.
fn kernel(b: &mut NodeBuilder, x: ValueId, vectors: &[f64], count: usize) -> Result<ValueId> {
    let features = vectors.len() / count.max(1);
    if features == 0 || vectors.len() != features * count {
        return Err(invalid("the support vectors do not fit their number"));
    }
    let parameters = floats(b, "kernel_params")?;
    let parameter = |i: usize| parameters.get(i).copied().unwrap_or(0.0);
    let (gamma, offset, degree) = (parameter(0), parameter(1), parameter(2));
    let products = matmul(b, x, [features, count], &turned(vectors, count))?;
    let scaled = |b: &mut NodeBuilder| -> Result<ValueId> {
        let (gamma, offset) = (b.number(gamma, products)?, b.number(offset, products)?);
        let y = b.mul(products, gamma)?;
        b.add(y, offset)
    };
    match b.text_or("kernel_type", "LINEAR")? {
        "LINEAR" => Ok(products),
        "POLY" => {
            let y = scaled(b)?;
            let degree = b.number(degree.trunc(), y)?;
            b.binary(BinaryKind::Pow, y, degree)
        }
        "SIGMOID" => {
            let y = scaled(b)?;
            b.unary(UnaryKind::Tanh, y)
        }
        "RBF" => {
            let squares: Vec<f64> = vectors
                .chunks(features)
                .map(|v| v.iter().map(|n| n * n).sum())
                .collect();
            let squares = numbers(b, &[count], &squares)?;
            let own = b.reduce(ReduceKind::SumSquare, x, &[1], true)?;
            let sum = b.add(own, squares)?;
            let two = b.number(2.0, sum)?;
            let twice = b.mul(products, two)?;
            let distance = b.sub(sum, twice)?;
            let scale = b.number(-gamma, distance)?;
            let y = b.mul(distance, scale)?;
            b.unary(UnaryKind::Exp, y)
        }
        other => Err(unknown("kernel_type", other)),
    }
}

fn regressor(b: &mut NodeBuilder) -> Result<()> {
    let x = rows(b, DType::F64)?;
    let coefficients = floats(b, "coefficients")?;
    let rho = floats(b, "rho")?.first().copied().unwrap_or(0.0);
    let supports = b.count("n_supports", Some(0))?;
    let (x, count) = match supports {
        0 => (x, coefficients.len()),
        _ => {
            let vectors = floats(b, "support_vectors")?;
            (kernel(b, x, &vectors, supports)?, supports)
        }
    };
    if coefficients.len() != count {
        return Err(invalid("not as many coefficients as support vectors"));
    }
    let y = matmul(b, x, [count, 1], &coefficients)?;
    let rho = b.number(rho, y)?;
    let mut y = b.add(y, rho)?;
    if b.flag("one_class")? {
        let zero = b.number(0.0, y)?;
        let inside = b.binary(BinaryKind::Greater, y, zero)?;
        let (one, minus) = (b.number(1.0, y)?, b.number(-1.0, y)?);
        y = b.choose(inside, one, minus)?;
    }
    let y = PostTransform::named(b)?.apply(b, y)?;
    let y = b.cast(y, DType::F32)?;
    b.bind(0, y)
}

/// For each two classes, in the order of libsvm, what the support vectors of both say: the columns
/// of a matrix `[vectors, pairs]`.
fn pairs(coefficients: &[f64], per_class: &[usize]) -> Vec<f64> {
    let count: usize = per_class.iter().sum();
    let classes = per_class.len();
    let columns = classes * (classes - 1) / 2;
    let mut matrix = vec![0.0; count * columns];
    let starts: Vec<usize> = per_class
        .iter()
        .scan(0, |sum, &n| {
            *sum += n;
            Some(*sum - n)
        })
        .collect();
    let mut pair = 0;
    for i in 0..classes {
        for j in i + 1..classes {
            for v in starts[i]..starts[i] + per_class[i] {
                matrix[v * columns + pair] = coefficients[(j - 1) * count + v];
            }
            for v in starts[j]..starts[j] + per_class[j] {
                matrix[v * columns + pair] = coefficients[i * count + v];
            }
            pair += 1;
        }
    }
    matrix
}

/// A matrix `[pairs, classes]` with a one where a class is the first, or the second, of a pair.
fn sides(classes: usize, second: bool) -> Vec<f64> {
    let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| [i, j]));
    pairs
        .flat_map(|pair| (0..classes).map(move |c| f64::from(c == pair[usize::from(second)])))
        .collect()
}

fn classifier(b: &mut NodeBuilder) -> Result<()> {
    let x = rows(b, DType::F64)?;
    let labels = Labels::read(b, "classlabels_ints", "classlabels_strings")?;
    let post = PostTransform::named(b)?;
    let coefficients = floats(b, "coefficients")?;
    let rho = floats(b, "rho")?;
    let per_class = b.counts("vectors_per_class")?.unwrap_or_default();
    let count = per_class
        .iter()
        .try_fold(0usize, |n, &more| n.checked_add(more));
    let count = count.ok_or_else(|| invalid("more vectors than any file has"))?;
    if count == 0 {
        return linear(b, x, &labels, post);
    }
    let classes = per_class.len();
    let columns = classes * classes.saturating_sub(1) / 2;
    let fits = Some(coefficients.len()) == count.checked_mul(classes - 1) && rho.len() == columns;
    if classes < 2 || !fits || labels.len() != classes {
        return Err(invalid("the coefficients do not fit the classes"));
    }
    let vectors = floats(b, "support_vectors")?;
    let kernel = kernel(b, x, &vectors, count)?;
    let scores = matmul(
        b,
        kernel,
        [count, columns],
        &pairs(&coefficients, &per_class),
    )?;
    let rho = numbers(b, &[columns], &rho)?;
    let scores = b.add(scores, rho)?;
    // Each pair has a vote.
    let zero = b.number(0.0, scores)?;
    let first = b.binary(BinaryKind::Greater, scores, zero)?;
    let second = b.unary(UnaryKind::Not, first)?;
    let first = b.cast(first, DType::F64)?;
    let first = matmul(b, first, [columns, classes], &sides(classes, false))?;
    let second = b.cast(second, DType::F64)?;
    let second = matmul(b, second, [columns, classes], &sides(classes, true))?;
    let votes = b.add(first, second)?;
    let shares = probabilities(b, scores, classes)?;
    let label = labels.of_largest(b, votes)?;
    let scores = match shares {
        Some(shares) => post.apply(b, shares)?,
        None if columns == 1 => {
            let both = both_sides(b, scores, false)?;
            post.apply(b, both)?
        }
        None => post.apply(b, scores)?,
    };
    let scores = b.cast(scores, DType::F32)?;
    b.bind(0, label)?;
    b.bind(1, scores)
}

/// The probability of each class, where the model has what it takes (Platt's method): the sigmoid of
/// `a * score + b` is that of the second class of a pair.
fn probabilities(b: &mut NodeBuilder, scores: ValueId, classes: usize) -> Result<Option<ValueId>> {
    let (slopes, offsets) = (floats(b, "prob_a")?, floats(b, "prob_b")?);
    if slopes.is_empty() {
        return Ok(None);
    }
    let columns = classes * (classes - 1) / 2;
    if slopes.len() != columns || offsets.len() != columns {
        return Err(invalid("the probabilities do not fit the classes"));
    }
    let slopes = numbers(b, &[columns], &slopes)?;
    let offsets = numbers(b, &[columns], &offsets)?;
    let y = b.mul(scores, slopes)?;
    let y = b.add(y, offsets)?;
    let y = b.unary(UnaryKind::Neg, y)?;
    let first = b.unary(UnaryKind::Sigmoid, y)?;
    b.op(PairwiseCoupling { classes }, &[first]).map(Some)
}

/// A machine without support vectors: one linear function for each class.
fn linear(b: &mut NodeBuilder, x: ValueId, labels: &Labels, post: PostTransform) -> Result<()> {
    let coefficients = floats(b, "coefficients")?;
    let classes = labels.len().max(1);
    let features = coefficients.len() / classes;
    if features * classes != coefficients.len() {
        return Err(invalid("the coefficients do not fit the classes"));
    }
    let weights = turned(&coefficients, classes);
    let scores = matmul(b, x, [features, classes], &weights)?;
    let rho = floats(b, "rho")?.first().copied().unwrap_or(0.0);
    let rho = b.number(rho, scores)?;
    let scores = b.add(scores, rho)?;
    let label = labels.of_largest(b, scores)?;
    let scores = post.apply(b, scores)?;
    let scores = b.cast(scores, DType::F32)?;
    b.bind(0, label)?;
    b.bind(1, scores)
}
