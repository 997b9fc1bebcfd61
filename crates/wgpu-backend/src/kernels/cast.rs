//! Conversions of element types.

use kilim_core::DType;
use kilim_core::narrow::{self, Narrowing};
use kilim_core::ops::{BitCast, Cast, CastLike};

use super::{Kernels, copy};
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage::{self, Scalar, scalar};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Cast>(|op, l| cast(op.narrowing, l));
    kernels.add::<CastLike>(|op, l| cast(op.narrowing, l));
    kernels.add::<BitCast>(|_, l| bits(l));
}

/// How elements are read and written, as the shaders see them.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// A type of the cast shader, and the bits of its word that are not the element's.
    Plain(&'static str, usize),
    /// Two a word.
    Half(&'static str),
    /// Floating point of at most 8 bits.
    Narrow,
}

impl Form {
    fn of(dtype: DType) -> Lowers<Form> {
        Ok(match dtype {
            DType::Bool => Form::Plain("bool", 0),
            DType::I64 => Form::Plain("i64", 0),
            DType::U64 => Form::Plain("u64", 0),
            DType::F16 => Form::Half("f16"),
            DType::BF16 => Form::Half("bf16"),
            d if d.is_narrow_float() => Form::Narrow,
            d => match scalar(d) {
                Some(Scalar { name, spare }) => Form::Plain(name, spare),
                None => return refuse(format!("casts of {d} are not on the GPU")),
            },
        })
    }

    /// Whether `float32` holds every number of the form.
    fn is_exact(self) -> bool {
        match self {
            Form::Plain(name, spare) => matches!(name, "bool" | "f32") || spare >= 8,
            Form::Half(_) | Form::Narrow => true,
        }
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
    let rounds_twice = matches!(to, Form::Half("bf16") | Form::Narrow) && !from.is_exact();
    if rounds_twice {
        return refuse(format!("{} to {} would be rounded twice", x.dtype, y.dtype));
    }
    let count = y.elements();
    const F32: Form = Form::Plain("f32", 0);
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
            true => Operand::Output(0),
            false => l.scratch(count * 4),
        };
        convert(
            pair[0],
            pair[1],
            [x.dtype, y.dtype],
            narrowing,
            count,
            [at, next],
            l,
        );
        at = next;
    }
    Ok(())
}

/// One step; at most one end is no plain type. `types` are those of the whole conversion.
fn convert(
    from: Form,
    to: Form,
    types: [DType; 2],
    narrowing: Narrowing,
    count: usize,
    [x, y]: [Operand; 2],
    l: &mut Lowering,
) {
    match (from, to) {
        (Form::Half(format), _) | (_, Form::Half(format)) => {
            let narrow = if matches!(to, Form::Half(_)) {
                "1"
            } else {
                "0"
            };
            let defines = [("FORMAT", format), ("NARROW", narrow)];
            let params = Params::new().u(count);
            l.linear("half", &defines, &[x, y], params, count.div_ceil(2));
        }
        (Form::Narrow, _) => {
            let values = (0..=u8::MAX).map(|code| narrow::decode(types[0], code).to_bits());
            let table = l.table(values.collect());
            let params = Params::new().u(count).u(0).u(0);
            l.linear("narrow", &[("NARROW", "0")], &[x, table, y], params, count);
        }
        (_, Form::Narrow) => {
            let (positive, negative) = (
                steps(types[1], narrowing, 0),
                steps(types[1], narrowing, 1 << 31),
            );
            let params = Params::new().u(count).u(positive.len()).u(negative.len());
            let table = l.table([positive, negative].concat().concat());
            l.linear("narrow", &[("NARROW", "1")], &[x, table, y], params, count);
        }
        (Form::Plain(from, _), Form::Plain(to, spare)) => {
            // Beside floating-point numbers the sign of a wide integer makes no difference.
            let plain = |name, other| match (name, other) {
                ("u64", other) if other != "f32" => "i64",
                (name, _) => name,
            };
            let (from, to) = (plain(from, to), plain(to, from));
            if from == to && to != "i32" && to != "u32" {
                return copy::words(l, count * 2);
            }
            let params = Params::new().u(count).u(spare);
            l.linear(
                "cast",
                &[("FROM", from), ("TO", to)],
                &[x, y],
                params,
                count,
            );
        }
    }
}

/// Elements of a narrow float, as `float32`.
pub(crate) fn widened(dtype: DType, x: Operand, count: usize, l: &mut Lowering) -> Operand {
    let wide = l.scratch(count * 4);
    let narrowing = Narrowing::default();
    const F32: Form = Form::Plain("f32", 0);
    convert(
        Form::Narrow,
        F32,
        [dtype, DType::F32],
        narrowing,
        count,
        [x, wide],
        l,
    );
    wide
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

/// The same bits under another type.
fn bits(l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let count = y.elements();
    let other = || {
        refuse(format!(
            "BitCast of {} to {} is not on the GPU",
            x.dtype, y.dtype
        ))
    };
    match (storage::words(x.dtype), storage::words(y.dtype)) {
        (Some(1), Some(1)) if y.dtype == DType::Bool => {
            let params = Params::new().u(count).u(0);
            let defines = [("FROM", "u32"), ("TO", "bool")];
            let operands = [Operand::Input(0), Operand::Output(0)];
            l.linear("cast", &defines, &operands, params, count);
        }
        (Some(1), Some(1)) if y.dtype.size() < 4 => {
            // What stands above the bits is the new type's. Narrow floats have zeros there.
            let target = scalar(y.dtype).unwrap_or(Scalar {
                name: "u32",
                spare: 32 - y.dtype.bits(),
            });
            let params = Params::new().u(count).u(0).u(0).u(target.spare);
            let defines = [("T", target.name), ("OP", "Wrap"), ("VEC", "1")];
            let operands = [Operand::Input(0), Operand::Output(0)];
            l.linear("unary", &defines, &operands, params, count);
        }
        (a, b) if a == b => copy::words(l, storage::device_bytes(y.dtype, count) / 4),
        _ => return other(),
    }
    Ok(())
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
