//! Einstein summation.

use super::rules::{NUMBERS, fact, wrong_count};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error, value_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Flow, InferContext, Operator};

/// Einstein summation, the equation without spaces.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Einsum {
    pub equation: String,
}

/// An equation with the dimensions of its operands numbered: equal numbers are one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EinsumPlan {
    /// For each operand, the index of each dimension.
    pub inputs: Vec<Vec<usize>>,
    /// The index of each dimension of the output; the others are summed over.
    pub output: Vec<usize>,
    /// How many indices there are.
    pub labels: usize,
}

/// A letter, or one of the dimensions that an ellipsis stands for, counted from the last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

fn einsum_term(term: &str, rank: Option<usize>, widest: usize) -> Result<Vec<Label>> {
    let bad = |why: &str| value_error(format!("the term `{term}` of an equation {why}"));
    let letters = |part: &str| -> Result<Vec<Label>> {
        part.chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' => Ok(Label::Letter(c)),
                _ => Err(bad("has a character that is no letter")),
            })
            .collect()
    };
    let Some((before, after)) = term.split_once("...") else {
        return letters(term);
    };
    let (mut labels, after) = (letters(before)?, letters(after)?);
    let hidden = match rank {
        Some(rank) => rank
            .checked_sub(labels.len() + after.len())
            .ok_or_else(|| bad("has more letters than its operand dimensions"))?,
        None => widest,
    };
    labels.extend((0..hidden).rev().map(Label::Ellipsis));
    labels.extend(after);
    Ok(labels)
}

impl EinsumPlan {
    /// Parses `equation` for operands of these ranks.
    ///
    /// # Errors
    /// `InvalidValue` where the equation is garbled, `Shape` where it does not fit the operands.
    pub fn new(equation: &str, ranks: &[usize]) -> Result<EinsumPlan> {
        let text: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((l, r)) => (l, Some(r)),
            None => (text.as_str(), None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        if terms.len() != ranks.len() {
            return Err(wrong_count("the equation", ranks.len(), terms.len()));
        }
        let mut operands = Vec::with_capacity(terms.len());
        for (term, &rank) in terms.iter().zip(ranks) {
            let labels = einsum_term(term, Some(rank), 0)?;
            if labels.len() != rank {
                return Err(
                    shape_error(format!("the term `{term}` does not fit its operand"))
                        .with_expected(format!("rank {}", labels.len()))
                        .with_got(format!("rank {rank}")),
                );
            }
            operands.push(labels);
        }
        let hidden = |l: &Label| matches!(l, Label::Ellipsis(_));
        let widest = operands
            .iter()
            .map(|o| o.iter().filter(|l| hidden(l)).count());
        let widest = widest.max().unwrap_or(0);
        let all: Vec<Label> = operands.iter().flatten().copied().collect();
        let output = match right {
            Some(term) => einsum_term(term, None, widest)?,
            None => {
                // Every letter that stands once, in alphabetical order, behind the ellipsis.
                let once = |l: &Label| all.iter().filter(|o| *o == l).count() == 1;
                let alphabet = ('A'..='Z').chain('a'..='z').map(Label::Letter);
                let letters = alphabet.filter(once);
                let ellipsis = (0..widest).rev().map(Label::Ellipsis);
                ellipsis.chain(letters).collect()
            }
        };
        let mut known: Vec<Label> = Vec::new();
        for label in &all {
            if !known.contains(label) {
                known.push(*label);
            }
        }
        let number = |labels: &[Label]| -> Result<Vec<usize>> {
            labels
                .iter()
                .map(|l| {
                    known.iter().position(|k| k == l).ok_or_else(|| {
                        value_error("the output of an equation has an index that no operand has")
                    })
                })
                .collect()
        };
        let plan = EinsumPlan {
            inputs: operands.iter().map(|o| number(o)).collect::<Result<_>>()?,
            output: number(&output)?,
            labels: known.len(),
        };
        let repeated = |i: &usize| plan.output.iter().filter(|o| *o == i).count() > 1;
        if plan.output.iter().any(repeated) {
            return Err(value_error("the output of an equation has an index twice"));
        }
        Ok(plan)
    }

    /// The size of each index. Dimensions of 1 broadcast.
    ///
    /// # Errors
    /// `Shape` where two dimensions of one index differ.
    pub fn extents(&self, shapes: &[&Shape]) -> Result<Vec<Dim>> {
        let mut extents = vec![Dim::Known(1); self.labels];
        for (labels, shape) in self.inputs.iter().zip(shapes) {
            for (&label, dim) in labels.iter().zip(&shape.0) {
                extents[label] = extents[label].broadcast(dim).ok_or_else(|| {
                    shape_error("two dimensions of one index differ")
                        .with_expected(&extents[label])
                        .with_got(dim)
                })?;
            }
        }
        Ok(extents)
    }
}

impl Operator for Einsum {
    fn name(&self) -> &'static str {
        "Einsum"
    }

    signature! { (list inputs) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NUMBERS)?;
        let dtype = ctx.common_type(0..ctx.inputs.len())?;
        let shapes = (0..ctx.inputs.len()).map(|i| ctx.shape(i));
        let shapes: Option<Vec<&Shape>> = shapes.collect::<Result<_>>()?;
        let Some(shapes) = shapes else {
            return Ok(vec![fact(dtype, None)]);
        };
        let ranks: Vec<usize> = shapes.iter().map(|s| s.rank()).collect();
        let plan = EinsumPlan::new(&self.equation, &ranks)?;
        let extents = plan.extents(&shapes)?;
        let dims = plan.output.iter().map(|&l| extents[l].clone()).collect();
        Ok(vec![fact(dtype, Some(Shape(dims)))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        let shapes: Vec<Shape> = inputs.iter().flatten().map(|s| Shape::fixed(s)).collect();
        let shapes: Vec<&Shape> = shapes.iter().collect();
        let ranks: Vec<usize> = shapes.iter().map(|s| s.rank()).collect();
        let extents = EinsumPlan::new(&self.equation, &ranks).and_then(|p| p.extents(&shapes));
        let points = extents.map_or(base.flops, |extents| {
            extents
                .iter()
                .map(|d| d.known().unwrap_or(1) as f64)
                .product()
        });
        Cost {
            flops: 2.0 * points,
            ..base
        }
    }
}
