//! Conversions of element types.

use kilim_core::DType;
use kilim_core::narrow::{self, Narrowing};
use kilim_core::ops::{BitCast, Cast, CastLike};

use crate::device::storage::{self, Scalar, scalar};
use crate::kernels::Kernels;
use crate::kernels::movement::copy;
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::elementwise::unary::{self, SignedOp, UnsignedOp};
use crate::shaders::elementwise::{cast as shader, half, narrow as narrow_shader};
use crate::shaders::{Element, Format, Operand, Target, Word};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Cast>(|op, l| cast(op.narrowing, l));
    kernels.add::<CastLike>(|op, l| cast(op.narrowing, l));
    kernels.add::<BitCast>(|_, l| bits(l));
}

/// How elements are read and written, as the shaders see them.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// A type of the cast shader, and the bits of its word that are not the element's.
    Plain(Element, usize),
    /// Two a word.
    Half(Format),
    /// Floating point of at most 8 bits.
    Narrow,
}

const F32: Form = Form::Plain(Element::F32, 0);

impl Form {
    fn of(dtype: DType) -> Lowers<Form> {
        Ok(match dtype {
            DType::Bool => Form::Plain(Element::Bool, 0),
            DType::I64 => Form::Plain(Element::I64, 0),
            DType::U64 => Form::Plain(Element::U64, 0),
            DType::F16 => Form::Half(Format::F16),
            DType::BF16 => Form::Half(Format::Bf16),
            d if d.is_narrow_float() => Form::Narrow,
            d => match scalar(d) {
                Some(Scalar { word, spare }) => Form::Plain(element(word), spare),
                None => return refuse(format!("casts of {d} are not on the GPU")),
            },
        })
    }

    /// Whether `float32` holds every number of the form.
    fn is_exact(self) -> bool {
        match self {
            Form::Plain(Element::Bool | Element::F32, _) => true,
            Form::Plain(_, spare) => spare >= 8,
            Form::Half(_) | Form::Narrow => true,
        }
    }
}

fn element(word: Word) -> Element {
    match word {
        Word::F32 => Element::F32,
        Word::I32 => Element::I32,
        Word::U32 => Element::U32,
    }
}

/// Anything but plain types goes by way of `float32`.
fn cast(narrowing: Narrowing, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    if x.dtype == y.dtype {
        return copy::whole(l);
    }
    let (from, to) = (Form::of(x.dtype)?, Form::of(y.dtype)?);
    // A large integer that float32 rounds is beyond float16, but not beyond other short types.
    let rounds_twice = matches!(to, Form::Half(Format::Bf16) | Form::Narrow) && !from.is_exact();
    if rounds_twice {
        return refuse(format!("{} to {} would be rounded twice", x.dtype, y.dtype));
    }
    let count = y.elements();
    let mut steps = vec![from];
    if !matches!(from, Form::Plain(..)) && to != F32 {
        steps.push(F32);
    }
    if !matches!(to, Form::Plain(..)) && steps.last() != Some(&F32) {
        steps.push(F32);
    }
    steps.push(to);
    let mut at = Operand::Input(0);
    for (i, pair) in steps.windows(2).enumerate() {
        let next = match i + 2 == steps.len() {
            true => Target::Output(0),
            false => l.scratch(count * 4),
        };
        let step = Step {
            from: pair[0],
            to: pair[1],
            count,
            x: at,
            y: next,
        };
        step.emit([x.dtype, y.dtype], narrowing, l);
        at = next.into();
    }
    Ok(())
}

/// A step of a conversion; at most one end is no plain type.
struct Step {
    from: Form,
    to: Form,
    count: usize,
    x: Operand,
    y: Target,
}

impl Step {
    /// `types` are those of the whole conversion.
    fn emit(self, types: [DType; 2], narrowing: Narrowing, l: &mut Lowering) {
        match (self.from, self.to) {
            (Form::Half(format), _) => self.half(format, false, l),
            (_, Form::Half(format)) => self.half(format, true, l),
            (Form::Narrow, _) => {
                let values = (0..=u8::MAX).map(|code| narrow::decode(types[0], code).to_bits());
                self.narrow(values.collect(), [0, 0], false, l);
            }
            (_, Form::Narrow) => {
                let [positive, negative] = [0, 1 << 31].map(|s| steps(types[1], narrowing, s));
                let counts = [positive.len(), negative.len()];
                self.narrow([positive, negative].concat().concat(), counts, true, l);
            }
            (
                Form::Plain(Element::I64 | Element::U64, _),
                Form::Plain(Element::I64 | Element::U64, _),
            ) => {
                copy::words(l, self.count * 2);
            }
            (Form::Plain(from, _), Form::Plain(to, spare)) => self.plain(from, to, spare, l),
        }
    }

    fn half(self, format: Format, narrow: bool, l: &mut Lowering) {
        let launch = half::Launch {
            format,
            narrow,
            x: self.x,
            y: self.y,
            params: half::Params { count: self.count },
        };
        l.linear(launch, self.count.div_ceil(2));
    }

    fn narrow(self, table: Vec<u32>, steps: [usize; 2], narrow: bool, l: &mut Lowering) {
        let [positive, negative] = steps;
        let launch = narrow_shader::Launch {
            narrow,
            x: self.x,
            table: l.table(table),
            y: self.y,
            params: narrow_shader::Params {
                count: self.count,
                positive,
                negative,
            },
        };
        l.linear(launch, self.count);
    }

    fn plain(self, from: Element, to: Element, spare: usize, l: &mut Lowering) {
        let launch = shader::Launch {
            from,
            to,
            x: self.x,
            y: self.y,
            params: shader::Params {
                count: self.count,
                spare,
            },
        };
        l.linear(launch, self.count);
    }
}

/// Elements of a narrow type as `float32`, which a launch writes.
pub(crate) fn widened(dtype: DType, x: Operand, count: usize, l: &mut Lowering) -> Lowers<Operand> {
    // Nothing cannot be bound.
    let y = l.scratch(count.max(1).saturating_mul(size_of::<f32>()));
    let step = Step {
        from: Form::of(dtype)?,
        to: F32,
        count,
        x,
        y,
    };
    step.emit([dtype, DType::F32], Narrowing::default(), l);
    Ok(y.into())
}

/// Where the bits of a magnitude begin to have another code, and that code. `sign` is the bit of the
/// sign, or zero.
fn steps(to: DType, narrowing: Narrowing, sign: u32) -> Vec<[u32; 2]> {
    // No type has more than one step within an eighth of a power of two.
    const CELL: u32 = 1 << 20;
    let code = |bits: u32| {
        let value = f64::from(f32::from_bits(sign | bits));
        u32::from(narrow::encode(to, value, narrowing))
    };
    let mut steps = vec![[0, code(0)]];
    let mut last = code(0);
    for end in (CELL..=1 << 31).step_by(CELL as usize) {
        let next = code(end.min((1 << 31) - 1));
        if next == last {
            continue;
        }
        let (mut low, mut high) = (end - CELL, end.min((1 << 31) - 1));
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if code(middle) == last {
                low = middle;
            } else {
                high = middle;
            }
        }
        steps.push([high, next]);
        last = next;
    }
    steps
}

/// Lowers a bit cast: the bits stay and get another type.
fn bits(l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let count = y.elements();
    let other = || {
        refuse(format!(
            "BitCast of {} to {} is not on the GPU",
            x.dtype, y.dtype
        ))
    };
    let step = Step {
        from: F32,
        to: F32,
        count,
        x: Operand::Input(0),
        y: Target::Output(0),
    };
    match (storage::words(x.dtype), storage::words(y.dtype)) {
        (Some(1), Some(1)) if y.dtype == DType::Bool => {
            step.plain(Element::U32, Element::Bool, 0, l);
        }
        (Some(1), Some(1)) if y.dtype.size() < 4 => {
            // What stands above the bits is the new type's. Narrow floats have zeros there.
            let target = scalar(y.dtype).unwrap_or(Scalar {
                word: Word::U32,
                spare: 32 - y.dtype.bits(),
            });
            wrap(target, step, l);
        }
        (a, b) if a == b => copy::words(l, storage::device_bytes(y.dtype, count) / 4),
        _ => return other(),
    }
    Ok(())
}

/// Cuts words down to the bits of an integer type.
fn wrap(target: Scalar, step: Step, l: &mut Lowering) {
    let case = match target.word {
        Word::I32 => unary::Case::Signed { op: SignedOp::Wrap },
        Word::F32 | Word::U32 => unary::Case::Unsigned {
            op: UnsignedOp::Wrap,
        },
    };
    let launch = unary::Launch {
        case,
        quads: false,
        x: step.x,
        y: step.y,
        params: unary::Params {
            units: step.count,
            a: 0.0,
            b: 0.0,
            spare: target.spare,
        },
    };
    l.linear(launch, step.count);
}

#[cfg(test)]
mod tests {
    use kilim_core::narrow::{Overflow, PowerRounding};

    use super::*;

    #[test]
    fn steps_have_the_codes_of_every_number() {
        let narrow_floats = DType::ALL.into_iter().filter(|d| d.is_narrow_float());
        let mut checked = 0;
        for to in narrow_floats {
            for (overflow, rounding) in [
                (Overflow::Saturate, PowerRounding::Up),
                (Overflow::Special, PowerRounding::Down),
                (Overflow::Saturate, PowerRounding::Nearest),
            ] {
                let narrowing = Narrowing { overflow, rounding };
                for sign in [0, 1 << 31] {
                    let steps = steps(to, narrowing, sign);
                    for bits in (0..1u32 << 31).step_by(9973) {
                        let value = f64::from(f32::from_bits(sign | bits));
                        let want = u32::from(narrow::encode(to, value, narrowing));
                        let at = steps.partition_point(|s| s[0] <= bits) - 1;
                        assert_eq!(steps[at][1], want, "{to} of {value}");
                        checked += 1;
                    }
                }
            }
        }
        assert!(checked > 1_000_000);
    }
}
