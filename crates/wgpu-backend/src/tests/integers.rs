//! Integers of every width, and conversions between all types, bit for bit as on the CPU.

use kilim_core::narrow::{Narrowing, Overflow, PowerRounding};
use kilim_core::ops::{
    Binary, BinaryKind, BitCast, Cast, Reduce, ReduceKind, ScatterElements, ScatterReduction, TopK,
    Unary, UnaryKind,
};
use kilim_core::{DType, Tensor};

use super::harness::*;

const INTEGERS: [DType; 8] = [
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
];

/// Both ends of the type and what is between, `count` of them from element `first` on.
fn numbers(dtype: DType, first: usize, count: usize) -> Tensor {
    let bits = dtype.bits().min(64);
    let top = 1u64 << (bits - 1);
    let ends = [top, top - 1, u64::MAX, 0, 1, 2, 3, 7, top / 3, top + 5];
    let bytes: Vec<u8> = (first..first + count)
        .flat_map(|i| ends[i % ends.len()].to_le_bytes()[..bits / 8].to_vec())
        .collect();
    Tensor::from_raw(dtype, &[count], &bytes).unwrap()
}

#[test]
fn arithmetic_wraps_as_on_the_cpu() {
    if gpu().is_none() {
        return;
    }
    use BinaryKind::*;
    for dtype in INTEGERS {
        for kind in [
            Add,
            Sub,
            Mul,
            Div,
            Mod,
            Fmod,
            Max,
            Min,
            Pow,
            BitwiseAnd,
            BitwiseOr,
            BitwiseXor,
            ShiftLeft,
            ShiftRight,
            Equal,
            Less,
            LessOrEqual,
            Greater,
            GreaterOrEqual,
        ] {
            // 20 are four at a time, 9 are not.
            for (count, turn) in [(20, 1), (20, 3), (20, 7), (9, 2)] {
                let (a, b) = (numbers(dtype, 0, count), numbers(dtype, turn, count));
                eprintln!("{kind:?} of {dtype}");
                agree(Binary::new(kind), &[Given::Fed(a), Given::Fed(b)], 1, 0.0);
            }
        }
        if dtype.size() == 8 {
            continue;
        }
        let x = Given::Fed(numbers(dtype, 0, 10));
        let given = std::slice::from_ref(&x);
        for kind in [UnaryKind::Abs, UnaryKind::Sign, UnaryKind::BitwiseNot] {
            agree(Unary(kind), given, 1, 0.0);
        }
        for kind in [ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min] {
            let op = Reduce {
                kind,
                keep_dims: true,
                noop_with_empty_axes: false,
            };
            agree(op, given, 1, 0.0);
        }
    }
}

#[test]
fn every_type_to_every_other() {
    if gpu().is_none() {
        return;
    }
    let floats = [
        0.0f32, -0.0, 1.0, -1.5, 3.3, 100.0, -77.7, 448.0, 500.0, 2e-3, 1e-5,
    ];
    let mut given: Vec<Tensor> = INTEGERS.iter().map(|&d| numbers(d, 0, 10)).collect();
    given.push(f32s(&[floats.len()], &floats));
    given.push(Tensor::from_bools(&[3], &[true, false, true]).unwrap());
    let halves = floats.map(half::f16::from_f32);
    given.push(Tensor::from_slice(&[halves.len()], &halves).unwrap());
    let halves = floats.map(half::bf16::from_f32);
    given.push(Tensor::from_slice(&[halves.len()], &halves).unwrap());
    for dtype in DType::ALL.into_iter().filter(|d| d.is_narrow()) {
        let mask = u8::MAX >> (8 - dtype.bits());
        let packed: Vec<u8> = match dtype.bits() {
            8 => (0..=254).collect(),
            bits => (0..=mask)
                .step_by(8 / bits)
                .map(|v| v | (v << bits))
                .collect(),
        };
        let count = packed.len() * 8 / dtype.bits();
        given.push(Tensor::from_packed(dtype, &[count], &packed).unwrap());
    }
    let narrowing = Narrowing {
        overflow: Overflow::Special,
        rounding: PowerRounding::Nearest,
    };
    let mut run = 0;
    for x in given {
        for to in DType::ALL {
            for op in [Cast::new(to), Cast { to, narrowing }] {
                let fed = [Given::Fed(x.clone())];
                let spec = stage(
                    std::sync::Arc::new(op.clone()),
                    &fed,
                    &[(to, x.shape().to_vec())],
                );
                if supports(&spec).is_ok() {
                    eprintln!("{} to {to}", x.dtype());
                    agree(op, &fed, 1, 0.0);
                    run += 1;
                }
            }
        }
    }
    assert!(run > 600, "{run}");
}

#[test]
fn bits_under_another_type() {
    if gpu().is_none() {
        return;
    }
    for (from, to) in [
        (DType::U8, DType::I8),
        (DType::I8, DType::U8),
        (DType::I16, DType::U16),
        (DType::I32, DType::F32),
        (DType::I64, DType::F64),
        (DType::U8, DType::Bool),
        (DType::I8, DType::F8E4M3FN),
    ] {
        eprintln!("{from} to {to}");
        agree(BitCast { to }, &[Given::Fed(numbers(from, 3, 7))], 1, 0.0);
    }
}

#[test]
fn order_and_scattering() {
    if gpu().is_none() {
        return;
    }
    let k = i64s(&[3]);
    for dtype in INTEGERS {
        for largest in [true, false] {
            let op = TopK {
                axis: 0,
                largest,
                sorted: true,
            };
            agree(op, &[Given::Fed(numbers(dtype, 1, 10)), k.clone()], 2, 0.0);
        }
    }
    let nan = f32s(&[5], &[1.0, f32::NAN, -3.0, f32::INFINITY, 1.0]);
    let op = TopK {
        axis: -1,
        largest: true,
        sorted: true,
    };
    agree(op, &[Given::Fed(nan), k], 2, 0.0);
    use ScatterReduction::*;
    for reduction in [None, Add, Mul, Max, Min] {
        let at = Tensor::from_slice(&[4], &[1i64, -1, 1, 0]).unwrap();
        let at = if reduction == None {
            Tensor::from_slice(&[4], &[1i64, -1, 2, 0]).unwrap()
        } else {
            at
        };
        let op = ScatterElements { axis: 0, reduction };
        let (x, updates) = (random(&[5], 1), random(&[4], 2));
        agree(
            op.clone(),
            &[x, at.clone(), updates].map(Given::Fed),
            1,
            1e-6,
        );
        let (x, updates) = (numbers(DType::I32, 0, 5), numbers(DType::I32, 4, 4));
        agree(op, &[x, at, updates].map(Given::Fed), 1, 0.0);
    }
}
