//! One input, one output.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Unary, UnaryKind};
use kilim_core::{DType, Result};
use kilim_host::elements::{BLOCK, Class, Codec, Wide};
use kilim_host::rules;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use super::functions::{map_f32, of_f64, of_i64, test};

pub fn accepts(op: &Unary, node: &NodeSpec) -> Result<(), Refusal> {
    use UnaryKind::*;
    if op.0 != Identity {
        rules::computed(node, 0)?;
    }
    let Some(x) = node.input(0) else {
        return Err(Refusal::new("there is no input"));
    };
    let fits = match op.0 {
        Identity => true,
        Not => x.dtype == DType::Bool,
        BitwiseNot => x.dtype.is_integer(),
        Abs | Neg | Sign | Relu | Clip { .. } | Shrink { .. } => x.dtype != DType::Bool,
        _ => x.dtype.is_float(),
    };
    match fits {
        true => Ok(()),
        false => Err(Refusal::new(format!("{} of {}", op.0.name(), x.dtype))),
    }
}

pub fn build(op: &Unary, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let kind = op.0;
    let dtype = node.input(0).map_or(DType::F32, |s| s.dtype);
    if kind == UnaryKind::Identity {
        return Ok(Box::new(Copy));
    }
    if matches!(kind, UnaryKind::IsNaN | UnaryKind::IsInf { .. }) {
        return Ok(Box::new(Test {
            kind,
            x: f64::codec(dtype),
        }));
    }
    Ok(match Class::of(dtype) {
        Class::F32 if dtype == DType::F32 => Box::new(F32(kind)),
        Class::F32 => Box::new(Half {
            kind,
            codec: f32::codec(dtype),
        }),
        Class::F64 => Box::new(Elements {
            codec: f64::codec(dtype),
            f: move |x| of_f64(kind, x),
        }),
        // 64 unsigned bits go as signed ones: no function here but Clip tells them apart.
        class => Box::new(Elements {
            codec: i64::codec(if class == Class::U64 {
                DType::I64
            } else {
                dtype
            }),
            f: move |x| of_i64(kind, x, class == Class::U64),
        }),
    })
}

/// Operations of a function of one number; those of `libm` take the longest.
const COST: usize = 16;

/// The input as it is.
pub struct Copy;

impl Kernel for Copy {
    fn run(&self, io: &mut Io) -> Result<()> {
        io.cpu().copy(io.input_bytes(0), io.output_bytes(0))
    }
}

struct F32(UnaryKind);

impl Kernel for F32 {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
        io.cpu().rows(y.len(), by(y, 1), COST, |piece, y, _| {
            map_f32(self.0, &x[piece], y);
            Ok(())
        })
    }
}

/// `float16` and `bfloat16`, by way of `float32`.
struct Half {
    kind: UnaryKind,
    codec: Codec<f32>,
}

impl Kernel for Half {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, n) = (io.input_bytes(0), io.input_len(0));
        let y = by(io.output_bytes(0), self.codec.size());
        io.cpu().rows(n, y, COST, |piece, y, _| {
            let (mut wide, mut result) = ([0.0; BLOCK], [0.0; BLOCK]);
            for start in piece.clone().step_by(BLOCK) {
                let len = BLOCK.min(piece.end - start);
                self.codec.load(x, start, &mut wide[..len]);
                map_f32(self.kind, &wide[..len], &mut result[..len]);
                self.codec.store(y, start - piece.start, &result[..len]);
            }
            Ok(())
        })
    }
}

/// Any function of widened elements.
struct Elements<W, F> {
    codec: Codec<W>,
    f: F,
}

impl<W: Wide, F: Fn(W) -> W + Send + Sync> Kernel for Elements<W, F> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, n) = (io.input_bytes(0), io.input_len(0));
        map(io.cpu(), &self.codec, (x, io.output_bytes(0)), n, &self.f)
    }
}

/// A function of each of `n` widened elements of the first, to the second.
pub fn map<W: Wide>(
    cpu: &CpuRun,
    codec: &Codec<W>,
    (x, y): (&[u8], &mut [u8]),
    n: usize,
    f: impl Fn(W) -> W + Sync,
) -> Result<()> {
    cpu.rows(n, by(y, codec.size()), COST, |piece, y, _| {
        let mut wide = [W::zeroed(); BLOCK];
        for start in piece.clone().step_by(BLOCK) {
            let wide = &mut wide[..BLOCK.min(piece.end - start)];
            codec.load(x, start, wide);
            for v in wide.iter_mut() {
                *v = f(*v);
            }
            codec.store(y, start - piece.start, wide);
        }
        Ok(())
    })
}

struct Test {
    kind: UnaryKind,
    x: Codec<f64>,
}

impl Kernel for Test {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input_bytes(0), io.output::<u8>(0));
        io.cpu().rows(y.len(), by(y, 1), 4, |piece, y, _| {
            for (y, i) in y.iter_mut().zip(piece) {
                *y = u8::from(test(self.kind, self.x.get(x, i)));
            }
            Ok(())
        })
    }
}
