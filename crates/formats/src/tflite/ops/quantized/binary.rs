//! Two tensors, each with a scale of its own.

use kilim_core::error::Result;
use kilim_core::fixed::Factor;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Binary, BinaryKind, Combination, QuantizedBinary, Unary, UnaryKind};

use super::table::looked_up;
use super::{Import, Op, Quanta, same};

/// Bits that sums have behind the point beyond those of their terms.
const LEFT_SHIFT: u32 = 20;

fn combined(
    imp: &mut Import,
    op: &Op,
    combination: impl FnOnce([Quanta; 2], Quanta) -> Result<(Combination, Factor)>,
) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    let quanta = [Quanta::input(imp, op, 0)?, Quanta::input(imp, op, 1)?];
    let y = Quanta::output(imp, op)?;
    let (combination, factor) = combination(quanta, y)?;
    let operator = QuantizedBinary {
        zero_points: quanta.map(|q| q.zero_point),
        combination,
        result: y.requantize(vec![factor], op.activation(0)?)?,
    };
    imp.emit(op, operator, &inputs)
}

/// Factors that bring two terms to twice the larger scale, and what the result has to be multiplied
/// with then.
fn to_common_scale([a, b]: [Quanta; 2], y: Quanta) -> Result<([Factor; 2], Factor)> {
    let common = f64::from(2.0 * a.scale.max(b.scale));
    let factor = |q: Quanta| Factor::new(f64::from(q.scale) / common);
    let result = common / f64::from((1 << LEFT_SHIFT) as f32 * y.scale);
    Ok(([factor(a)?, factor(b)?], Factor::new(result)?))
}

pub fn add(imp: &mut Import, op: &Op) -> Result<()> {
    combined(imp, op, |terms, y| {
        let (factors, result) = to_common_scale(terms, y)?;
        let sum = Combination::Sum {
            left_shift: LEFT_SHIFT,
            factors,
        };
        Ok((sum, result))
    })
}

pub fn sub(imp: &mut Import, op: &Op) -> Result<()> {
    combined(imp, op, |terms, y| {
        let (factors, result) = to_common_scale(terms, y)?;
        let difference = Combination::Difference {
            left_shift: LEFT_SHIFT,
            factors,
        };
        Ok((difference, result))
    })
}

pub fn mul(imp: &mut Import, op: &Op) -> Result<()> {
    combined(imp, op, |[a, b], y| {
        let factor = Factor::new(f64::from(a.scale * b.scale / y.scale))?;
        Ok((Combination::Product, factor))
    })
}

fn of_one_scale(imp: &mut Import, op: &Op, kind: BinaryKind) -> Result<()> {
    let y = Quanta::output(imp, op)?;
    for i in [0, 1] {
        same(&Quanta::input(imp, op, i)?, &y)?;
    }
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    imp.emit(op, Binary::new(kind), &inputs)
}

pub fn maximum(imp: &mut Import, op: &Op) -> Result<()> {
    of_one_scale(imp, op, BinaryKind::Max)
}

pub fn minimum(imp: &mut Import, op: &Op) -> Result<()> {
    of_one_scale(imp, op, BinaryKind::Min)
}

/// Both sides in one scale, with eight more bits.
fn sides(imp: &mut Import, op: &Op) -> Result<[Option<ValueId>; 2]> {
    let quanta = [Quanta::input(imp, op, 0)?, Quanta::input(imp, op, 1)?];
    let mut sides = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    if quanta[0] != quanta[1] {
        for (side, q) in sides.iter_mut().zip(quanta) {
            let factor = Factor::new(q.scale.into())?;
            let number = |x: i32| factor.apply((x - q.zero_point) << 8);
            *side = side.map(|x| looked_up(imp, x, &q, number)).transpose()?;
        }
    }
    Ok(sides)
}

macro_rules! comparisons {
    ($($name:ident => $kind:expr),* $(,)?) => {
        $(pub fn $name(imp: &mut Import, op: &Op) -> Result<()> {
            let sides = sides(imp, op)?;
            imp.emit(op, Binary::new($kind), &sides)
        })*
    };
}

comparisons!(
    less => BinaryKind::Less,
    less_equal => BinaryKind::LessOrEqual,
    greater => BinaryKind::Greater,
    greater_equal => BinaryKind::GreaterOrEqual,
    equal => BinaryKind::Equal,
);

pub fn not_equal(imp: &mut Import, op: &Op) -> Result<()> {
    let sides = sides(imp, op)?;
    let equal = imp.step(Binary::new(BinaryKind::Equal), &sides)?;
    imp.emit(op, Unary(UnaryKind::Not), &[Some(equal)])
}
