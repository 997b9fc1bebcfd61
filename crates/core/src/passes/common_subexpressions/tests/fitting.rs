//! Attributes that often fit each other, and inputs that fit them.

use std::sync::Arc;

use crate::datum::Form;
use crate::dim::Shape;
use crate::dtype::DType;
use crate::ops::{
    AffineGrid, BatchNorm, ConcatFromSequence, Conv, ConvInteger, ConvTranspose, DeformConv,
    DictVectorizer, Fact, GatherBlockQuantized, GroupNorm, Gru, InputFact, Lstm, MapValues,
    MatMulNBits, MaxRoiPool, NonMaxSuppression, Operator, PairwiseCoupling, QLinearBinary,
    QLinearConv, QLinearMatMul, QuantizedLstm, QuantizedResize, ReverseSequence, Rnn, RoiAlign,
    TableLookup,
};
use crate::tensor::Tensor;
use crate::testing::{Random, Taste};

/// Attributes that often fit each other and the inputs.
pub struct Fitting(pub Random);

impl Taste for Fitting {
    fn random(&mut self) -> &mut Random {
        &mut self.0
    }

    fn int(&mut self, min: i128, max: i128) -> i128 {
        self.0.of(&[0, 1, 1, 1, 2, 2, 3, 4, -1]).clamp(min, max)
    }

    fn float32(&mut self) -> f32 {
        self.0.of(&[0.0, 0.25, 0.5, 1.0, 2.0])
    }

    fn float64(&mut self) -> f64 {
        self.float32().into()
    }

    fn text(&mut self) -> String {
        let texts = ["", "a", "ij,jk->ik", "ij->ji", "ii", "...i->..."];
        self.0.of(&texts).to_string()
    }

    fn tensor(&mut self) -> Tensor {
        tensor(&mut self.0)
    }

    fn length(&mut self) -> usize {
        self.0.of(&[0, 1, 2, 2, 2, 3, 4])
    }
}

/// A small tensor, which may say sizes, axes or counts.
fn tensor(random: &mut Random) -> Tensor {
    let shape: &[usize] = random.of(&[&[], &[1], &[1], &[2], &[2], &[3], &[4], &[4]]);
    let count = shape.iter().product();
    let ints: Vec<i64> = (0..count).map(|_| random.of(&[0, 1, 1, 2, 3])).collect();
    let floats: Vec<f32> = ints.iter().map(|&v| v as f32).collect();
    match random.next(4) {
        0 => Tensor::from_slice(shape, &floats).unwrap(),
        1 => {
            let texts: Vec<Arc<str>> = ints.iter().map(|v| format!("{v}").into()).collect();
            Tensor::from_texts(shape, texts).unwrap()
        }
        _ => Tensor::from_slice(shape, &ints).unwrap(),
    }
}

macro_rules! signatures {
    ($($t:ident: [$($dtype:ident),*];)*) => {
        /// The element types of inputs, of operators that hardly take any others.
        fn signature(op: &dyn Operator) -> Option<&'static [DType]> {
            $(if op.is::<$t>() {
                return Some(&[$(DType::$dtype),*]);
            })*
            None
        }
    };
}
signatures! {
    AffineGrid: [F32, I64];
    BatchNorm: [F32, F32, F32, F32, F32];
    Conv: [F32, F32];
    ConvInteger: [U8, I8];
    ConvTranspose: [F32, F32];
    DeformConv: [F32, F32, F32];
    GatherBlockQuantized: [U8, I64, F32];
    GroupNorm: [F32, F32, F32];
    Gru: [F32, F32, F32];
    Lstm: [F32, F32, F32];
    MatMulNBits: [F32, U8, F32];
    MaxRoiPool: [F32, F32];
    NonMaxSuppression: [F32, F32];
    PairwiseCoupling: [F32];
    QLinearBinary: [U8, U8];
    QLinearConv: [U8, F32, U8, I8, F32, I8, F32, U8];
    QLinearMatMul: [U8, F32, U8, I8, F32, I8, F32, U8];
    QuantizedLstm: [I8, I8, I8, I32];
    QuantizedResize: [U8, I64];
    ReverseSequence: [F32, I64];
    Rnn: [F32, F32, F32];
    RoiAlign: [F32, F32, I64];
    TableLookup: [U8, I8];
}

/// The shape of an input of a convolution: rules that turn these to channels-last need to know it.
fn convolved(op: &dyn Operator, input: usize) -> Option<Vec<usize>> {
    let weights = if op.is::<QLinearConv>() {
        3
    } else if op.is::<Conv>() || op.is::<ConvInteger>() || op.is::<ConvTranspose>() {
        1
    } else {
        return None;
    };
    let shape: &[usize] = match input {
        0 => &[1, 4, 8, 8],
        i if i == weights => &[4, 4, 3, 3],
        _ => &[],
    };
    Some(shape.to_vec())
}

/// The form of the first input, where it is no tensor.
fn form(op: &dyn Operator) -> Form {
    if op.is::<ConcatFromSequence>() {
        Form::Sequence
    } else if op.is::<DictVectorizer>() || op.is::<MapValues>() {
        Form::Map
    } else {
        Form::Tensor
    }
}

/// Inputs that an operator may have, of few types and sizes.
pub fn inputs(op: &dyn Operator, random: &mut Random) -> Vec<Option<InputFact>> {
    use DType::{Bool, F16, F32, I8, I32, I64, U8};
    let main = match random.next(3) {
        0 => random.of(&[U8, I8, I64, Bool, DType::String, F16]),
        _ => F32,
    };
    let rank = random.of(&[0, 1, 2, 2, 3, 3, 4, 4, 4, 5]);
    let base: Vec<usize> = (0..rank).map(|_| random.of(&[1, 2, 2, 4])).collect();
    let signature = signature(op);
    let count = random.of(&[1, 1, 2, 2, 3, 3, 4, 5, 6, 8]);
    // Of images of unknown shape almost all attributes fit, so that few are enough.
    let images = random.next(40) > 0;
    let mut list = Vec::new();
    for i in 0..signature.map_or(count, <[DType]>::len) {
        if op.value_inputs().contains(&i) && random.next(6) > 0 {
            let value = tensor(random);
            list.push(Some(InputFact {
                fact: Fact::of(&value),
                value: Some(value),
            }));
            continue;
        }
        let dtype = match (signature, random.next(4)) {
            (Some(types), _) => types[i],
            (None, 0) => random.of(&[F32, I64, I32, U8, I8, Bool]),
            (None, _) => main,
        };
        let size = base.get(random.next(base.len() + 1)).copied();
        let size = size.unwrap_or(1);
        let shape = match random.next(9) {
            _ if images && convolved(op, i).is_some() => convolved(op, i),
            0 => Some(vec![size]),
            1 if i > 0 => Some(vec![]),
            2 if i > 0 => Some(vec![2; base.len()]),
            3 if i > 0 && signature.is_none() => {
                list.push(None);
                continue;
            }
            4 => Some(vec![size; random.next(4)]),
            5 | 6 if signature.is_some() => None,
            _ => Some(base.clone()),
        };
        list.push(Some(InputFact {
            fact: Fact {
                dtype: Some(dtype),
                shape: shape.map(|shape| Shape::fixed(&shape)),
                kind: if i == 0 {
                    form(op).into()
                } else {
                    Form::Tensor.into()
                },
            },
            value: None,
        }));
    }
    list
}
