//! What becomes of an element that another one is written onto.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::interrupt::Meter;
use kilim_core::ops::{BinaryKind, ScatterReduction};
use kilim_core::{DType, Result};
use kilim_host::Texts;
use kilim_host::by_class;
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules;

use crate::elementwise::Number;

/// Element `to` of the result `y`, and element `from` of `updates`, which is written onto it. Both are bytes. What is
/// done with long texts is counted.
pub struct Update<'a> {
    pub meter: &'a Meter<'a>,
    pub y: &'a mut [u8],
    pub to: usize,
    pub updates: &'a [u8],
    pub from: usize,
}

/// Writes elements, or combines them with those that are there.
pub trait Writer: Send + Sync {
    /// Writes one element; `texts` are those that numbers of strings stand for.
    ///
    /// # Errors
    /// `Limit` where there are more texts than numbers.
    fn write(&self, update: Update, texts: &mut Texts) -> Result<()>;
}

/// Whether elements of the first input can be combined.
pub fn accepts(reduction: ScatterReduction, node: &NodeSpec) -> Result<(), Refusal> {
    let dtype = node.input(0).map(|x| x.dtype);
    match (reduction, dtype) {
        (ScatterReduction::None, _) => Ok(()),
        (ScatterReduction::Mul, Some(DType::String)) => {
            Err(Refusal::new("there is no product of texts"))
        }
        (_, Some(DType::String | DType::C64 | DType::C128)) => Ok(()),
        _ => rules::computed(node, 0),
    }
}

/// The writer for a reduction that [`accepts`] takes.
pub fn writer(reduction: ScatterReduction, dtype: DType) -> Result<Box<dyn Writer>> {
    let kind = match reduction {
        ScatterReduction::None => return Ok(Box::new(Replace(dtype.size()))),
        // Of booleans the sum is "or" and the product "and".
        ScatterReduction::Add => BinaryKind::Add,
        ScatterReduction::Mul => BinaryKind::Mul,
        ScatterReduction::Max => BinaryKind::Max,
        ScatterReduction::Min => BinaryKind::Min,
    };
    fn combine<W: Number>(kind: BinaryKind, dtype: DType) -> Result<Box<dyn Writer>> {
        let f = W::arithmetic(kind)
            .ok_or_else(|| kilim_core::error::dtype_error("no such reduction"))?;
        Ok(Box::new(Combine {
            codec: W::codec(dtype),
            f,
        }))
    }
    Ok(match dtype {
        DType::String => Box::new(CombineTexts(kind)),
        DType::C64 | DType::C128 => Box::new(CombineComplex {
            part: f64::codec(dtype.part()),
            kind,
        }),
        _ => by_class!(dtype, W => combine::<W>(kind, dtype)?),
    })
}

/// The size of an element in bytes.
struct Replace(usize);

impl Writer for Replace {
    fn write(&self, update: Update, _: &mut Texts) -> Result<()> {
        let size = self.0;
        let Update {
            y,
            to,
            updates,
            from,
            ..
        } = update;
        y[to * size..][..size].copy_from_slice(&updates[from * size..][..size]);
        Ok(())
    }
}

struct Combine<W> {
    codec: Codec<W>,
    f: fn(W, W) -> W,
}

impl<W: Wide> Writer for Combine<W> {
    fn write(&self, update: Update, _: &mut Texts) -> Result<()> {
        let Update {
            y,
            to,
            updates,
            from,
            ..
        } = update;
        let v = (self.f)(self.codec.get(y, to), self.codec.get(updates, from));
        self.codec.set(y, to, v);
        Ok(())
    }
}

/// Two floating-point numbers an element. As in numpy the larger one is that with the larger real part, and among equal ones
/// that with the larger imaginary part; one that is not a number prevails.
struct CombineComplex {
    part: Codec<f64>,
    kind: BinaryKind,
}

impl Writer for CombineComplex {
    fn write(&self, update: Update, _: &mut Texts) -> Result<()> {
        let Update {
            y,
            to,
            updates,
            from,
            ..
        } = update;
        let (mut a, mut b) = ([0.0; 2], [0.0; 2]);
        self.part.load(y, 2 * to, &mut a);
        self.part.load(updates, 2 * from, &mut b);
        let undefined = |v: [f64; 2]| v.iter().any(|p| p.is_nan());
        let v = match self.kind {
            BinaryKind::Add => [a[0] + b[0], a[1] + b[1]],
            BinaryKind::Mul => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]],
            _ if undefined(a) => a,
            _ if undefined(b) => b,
            _ if (self.kind == BinaryKind::Max) == (a >= b) => a,
            _ => b,
        };
        self.part.store(y, 2 * to, &v);
        Ok(())
    }
}

/// The sum of texts is one behind the other; they are ordered by their code points.
struct CombineTexts(BinaryKind);

impl Writer for CombineTexts {
    fn write(&self, update: Update, texts: &mut Texts) -> Result<()> {
        let y: &mut [u32] = bytemuck::cast_slice_mut(update.y);
        let updates: &[u32] = bytemuck::cast_slice(update.updates);
        let (a, b) = (y[update.to], updates[update.from]);
        let (left, right) = (texts.text(a), texts.text(b));
        // A comparison of long texts.
        update.meter.spend(left.len().min(right.len()) / 8)?;
        y[update.to] = match self.0 {
            BinaryKind::Add => {
                let (left, right) = (left.clone(), right.clone());
                texts.number_of(update.meter, &[&left, &right])?
            }
            _ if (self.0 == BinaryKind::Max) == (left >= right) => a,
            _ => b,
        };
        Ok(())
    }
}
