//! Two inputs that broadcast.

use std::ops::Range;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{Activation, Binary, BinaryKind};
use kilim_core::{DType, Result};
use kilim_host::by_class;
use kilim_host::elements::{BLOCK, Codec, Walk, Wide, broadcast_strides};
use kilim_host::rules;
use kilim_host::{Build, Io, Kernel, by};

use super::functions::{Number, comparison};
use crate::common::activation;

pub fn accepts(op: &Binary, node: &NodeSpec) -> Result<(), Refusal> {
    // Equal texts have equal numbers, which say nothing of their order.
    if op.kind != BinaryKind::Equal {
        rules::computed(node, 0)?;
    }
    let (Some(a), Some(b)) = (node.input(0), node.input(1)) else {
        return Err(Refusal::new("an input is missing"));
    };
    let refuse = |why: String| Err(Refusal::new(why));
    if a.dtype != b.dtype && op.kind != BinaryKind::Pow {
        return refuse(format!("{} of {} and {}", op.kind.name(), a.dtype, b.dtype));
    }
    let fits = match op.kind {
        BinaryKind::And | BinaryKind::Or | BinaryKind::Xor => a.dtype == DType::Bool,
        BinaryKind::BitwiseAnd | BinaryKind::BitwiseOr | BinaryKind::BitwiseXor => {
            !a.dtype.is_float()
        }
        BinaryKind::ShiftLeft | BinaryKind::ShiftRight => a.dtype.is_integer(),
        kind if kind.is_comparison() => true,
        _ => a.dtype != DType::Bool && b.dtype != DType::Bool,
    };
    if !fits {
        return refuse(format!("{} of {}", op.kind.name(), a.dtype));
    }
    if op.activation != Activation::None && a.dtype != DType::F32 {
        return refuse(format!("an activation fused into {}", a.dtype));
    }
    Ok(())
}

pub fn build(op: &Binary, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (Some(a), Some(b)) = (node.input(0), node.input(1)) else {
        return Err(shape_error("an input is missing"));
    };
    let shape = &node.outputs[0].shape;
    let walk = Walk::new(
        shape,
        [
            &broadcast_strides(&a.shape, shape),
            &broadcast_strides(&b.shape, shape),
        ],
    );
    if op.kind == BinaryKind::Pow && a.dtype != b.dtype {
        return Ok(if a.dtype.is_integer() && b.dtype.is_integer() {
            // The lower bits of the power do not depend on the upper ones of the base.
            Box::new(arithmetic::<i64>(op, walk, a.dtype, b.dtype)?)
        } else {
            Box::new(arithmetic::<f64>(op, walk, a.dtype, b.dtype)?)
        });
    }
    if op.kind.is_comparison() {
        return by_class!(a.dtype, W => compare::<W>(op.kind, walk, a.dtype));
    }
    if a.dtype == DType::F32 {
        return Ok(Box::new(F32 {
            kind: op.kind,
            activation: op.activation,
            walk,
        }));
    }
    by_class!(a.dtype, W => Ok(Box::new(arithmetic::<W>(op, walk, a.dtype, b.dtype)?)))
}

fn arithmetic<W: Number>(op: &Binary, walk: Walk<2>, a: DType, b: DType) -> Result<Arithmetic<W>> {
    let f = W::arithmetic(op.kind).ok_or_else(|| wrong_kind(op.kind, a))?;
    Ok(Arithmetic {
        rows: WideRows {
            walk,
            a: W::codec(a),
            b: W::codec(b),
        },
        out: W::codec(a),
        f,
    })
}

fn compare<W: Wide>(kind: BinaryKind, walk: Walk<2>, dtype: DType) -> Result<Box<dyn Kernel>> {
    let f = comparison::<W>(kind).ok_or_else(|| wrong_kind(kind, dtype))?;
    Ok(Box::new(Comparison {
        rows: WideRows {
            walk,
            a: W::codec(dtype),
            b: W::codec(dtype),
        },
        f,
    }))
}

fn wrong_kind(kind: BinaryKind, dtype: DType) -> kilim_core::Error {
    kilim_core::error::dtype_error(format!("{} is not defined for {dtype}", kind.name()))
}

/// `float32` arithmetic without a detour.
struct F32 {
    kind: BinaryKind,
    activation: Activation,
    walk: Walk<2>,
}

impl Kernel for F32 {
    fn run(&self, io: &mut Io) -> Result<()> {
        use BinaryKind::*;
        match self.kind {
            Add => self.rows(io, |a, b| a + b),
            Sub => self.rows(io, |a, b| a - b),
            Mul => self.rows(io, |a, b| a * b),
            Div => self.rows(io, |a, b| a / b),
            Max => self.rows(io, |a, b| if a > b || a.is_nan() { a } else { b }),
            Min => self.rows(io, |a, b| if a < b || a.is_nan() { a } else { b }),
            PRelu => self.rows(io, |a, b| if a < 0.0 { a * b } else { a }),
            kind => {
                let f = f32::arithmetic(kind).ok_or_else(|| wrong_kind(kind, DType::F32))?;
                self.rows(io, f)
            }
        }
    }
}

/// Operations of a function of two numbers; powers and remainders take the longest.
const COST: usize = 8;

impl F32 {
    fn rows(&self, io: &mut Io, f: impl Fn(f32, f32) -> f32 + Sync) -> Result<()> {
        let (a, b) = (io.input::<f32>(0), io.input::<f32>(1));
        let y = io.output::<f32>(0);
        let (_, [step_a, step_b]) = self.walk.row();
        io.cpu().rows(y.len(), by(y, 1), COST, |piece, y, _| {
            self.walk.spans(piece, |span| {
                let (a, b) = (&a[span.start(0)..], &b[span.start(1)..]);
                let y = &mut y[span.first..][..span.len];
                match (step_a, step_b) {
                    (0, 0) => y.fill(f(a[0], b[0])),
                    (_, 0) => {
                        let b = b[0];
                        for (y, &a) in y.iter_mut().zip(a) {
                            *y = f(a, b);
                        }
                    }
                    (0, _) => {
                        let a = a[0];
                        for (y, &b) in y.iter_mut().zip(b) {
                            *y = f(a, b);
                        }
                    }
                    _ => {
                        for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                            *y = f(a, b);
                        }
                    }
                }
                activation::apply(self.activation, y);
                Ok(())
            })
        })
    }
}

/// Rows of two broadcast inputs in widened blocks.
struct WideRows<W> {
    walk: Walk<2>,
    a: Codec<W>,
    b: Codec<W>,
}

impl<W: Wide> WideRows<W> {
    /// Calls `f` with each block of a piece of the output: the number of its first element in the piece, and the
    /// elements of both inputs.
    fn blocks(
        &self,
        inputs: [&[u8]; 2],
        piece: Range<usize>,
        mut f: impl FnMut(usize, &[W], &[W]),
    ) -> Result<()> {
        let (_, [step_a, step_b]) = self.walk.row();
        let (mut a, mut b) = ([W::zeroed(); BLOCK], [W::zeroed(); BLOCK]);
        let load = |codec: &Codec<W>, bytes: &[u8], at: usize, step: isize, out: &mut [W]| {
            if step == 0 {
                out.fill(codec.get(bytes, at));
            } else {
                codec.load(bytes, at, out);
            }
        };
        self.walk.spans(piece, |span| {
            for start in (0..span.len).step_by(BLOCK) {
                let len = BLOCK.min(span.len - start);
                let at = |t: usize, step: isize| span.start(t) + start * usize::from(step != 0);
                load(&self.a, inputs[0], at(0, step_a), step_a, &mut a[..len]);
                load(&self.b, inputs[1], at(1, step_b), step_b, &mut b[..len]);
                f(span.first + start, &a[..len], &b[..len]);
            }
            Ok(())
        })
    }
}

struct Arithmetic<W> {
    rows: WideRows<W>,
    out: Codec<W>,
    f: fn(W, W) -> W,
}

impl<W: Wide> Kernel for Arithmetic<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let inputs = [io.input_bytes(0), io.input_bytes(1)];
        let (n, size) = (io.output_len(0), self.out.size());
        let y = by(io.output_bytes(0), size);
        io.cpu().rows(n, y, COST, |piece, y, _| {
            let mut result = [W::zeroed(); BLOCK];
            self.rows.blocks(inputs, piece, |first, a, b| {
                let result = &mut result[..a.len()];
                for ((r, &a), &b) in result.iter_mut().zip(a).zip(b) {
                    *r = (self.f)(a, b);
                }
                self.out.store(y, first, result);
            })
        })
    }
}

struct Comparison<W> {
    rows: WideRows<W>,
    f: fn(&W, &W) -> bool,
}

impl<W: Wide> Kernel for Comparison<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let inputs = [io.input_bytes(0), io.input_bytes(1)];
        let y = io.output::<u8>(0);
        io.cpu().rows(y.len(), by(y, 1), COST, |piece, y, _| {
            self.rows.blocks(inputs, piece, |first, a, b| {
                for ((y, a), b) in y[first..].iter_mut().zip(a).zip(b) {
                    *y = u8::from((self.f)(a, b));
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_as, run_f32};
    use kilim_host::testing::{assert_close, noise, tensor};

    #[test]
    fn broadcasts_every_way() {
        let shapes: [[&[usize]; 3]; 6] = [
            [&[2, 3, 5], &[2, 3, 5], &[2, 3, 5]],
            [&[2, 3, 5], &[5], &[2, 3, 5]],
            [&[2, 1, 5], &[3, 1], &[2, 3, 5]],
            [&[], &[2, 3], &[2, 3]],
            [&[1, 7], &[7, 1], &[7, 7]],
            [&[3, 0], &[1], &[3, 0]],
        ];
        for [sa, sb, sy] in shapes {
            let (na, nb) = (sa.iter().product(), sb.iter().product());
            let (a, b) = (noise(na, 1), noise(nb, 2));
            let y = run_f32(
                &Binary::new(BinaryKind::Sub),
                &[&tensor(sa, &a), &tensor(sb, &b)],
                sy,
            );
            let mut want = Vec::new();
            let (ta, tb) = (broadcast_strides(sa, sy), broadcast_strides(sb, sy));
            let walk = Walk::new(sy, [&ta, &tb]);
            for [i, j] in walk.offsets(0..walk.len()) {
                want.push(f64::from(a[i as usize]) - f64::from(b[j as usize]));
            }
            assert_close(&y, &want);
        }
    }

    #[test]
    fn integers_follow_numpy() {
        let a = tensor::<i32>(&[6], &[7, -7, 7, -7, i32::MIN, 5]);
        let b = tensor::<i32>(&[6], &[3, 3, -3, -3, -1, 0]);
        let of = |kind| run_as::<i32>(&Binary::new(kind), &[&a, &b], &[6]);
        assert_eq!(of(BinaryKind::Div), [2, -2, -2, 2, i32::MIN, 0]);
        assert_eq!(of(BinaryKind::Mod), [1, 2, -2, -1, 0, 0]);
        assert_eq!(of(BinaryKind::Fmod), [1, -1, 1, -1, 0, 0]);
        let big = tensor::<u64>(&[2], &[u64::MAX, 1]);
        let one = tensor::<u64>(&[1], &[2]);
        assert_eq!(
            run_as::<u64>(&Binary::new(BinaryKind::Max), &[&big, &one], &[2]),
            [u64::MAX, 2]
        );
    }

    #[test]
    fn powers_of_mixed_types() {
        let a = tensor::<i32>(&[3], &[2, 3, -2]);
        let b = tensor::<f32>(&[3], &[3.0, 2.0, 2.0]);
        let pow = Binary::new(BinaryKind::Pow);
        assert_eq!(run_as::<i32>(&pow, &[&a, &b], &[3]), [8, 9, 4]);
        let c = tensor::<i64>(&[3], &[3, -1, 0]);
        assert_eq!(run_as::<i32>(&pow, &[&a, &c], &[3]), [8, 0, 1]);
    }

    #[test]
    fn nan_propagates_and_comparisons_say_no() {
        let a = tensor(&[2], &[f32::NAN, 1.0]);
        let b = tensor(&[2], &[1.0, f32::NAN]);
        for kind in [BinaryKind::Max, BinaryKind::Min] {
            let y = run_f32(&Binary::new(kind), &[&a, &b], &[2]);
            assert!(y.iter().all(|v| v.is_nan()));
        }
        let less = run(
            &Binary::new(BinaryKind::Less),
            &[Some(&a), Some(&b)],
            &[(DType::Bool, &[2])],
        );
        assert_eq!(less.unwrap()[0].read().unwrap(), [0, 0]);
    }
}
