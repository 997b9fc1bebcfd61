//! Operators that select by position.

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Binary, BinaryKind, Concat, ConstantOfShape, Gather, GatherNd, NonZero, OneHot,
    ReverseSequence, ScatterNd, ScatterReduction, Slice, Squeeze, Transpose, Unary, UnaryKind,
    Unsqueeze, Where,
};
use kilim_core::tensor::Tensor;

use super::super::import::{Import, Op};

const TO_THE_END: i64 = i64::MAX;
const TO_THE_BEGINNING: i64 = i64::MIN;

pub fn gather(imp: &mut Import, op: &Op) -> Result<()> {
    if op.int(1)? != 0 {
        return Err(unsupported("batch dimensions"));
    }
    let axis = op.int(0)?.into();
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    imp.emit(op, Gather { axis }, &inputs)
}

pub fn gather_nd(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    imp.emit(op, GatherNd { batch_dims: 0 }, &inputs)
}

/// Inputs: indices, table.
pub fn embedding_lookup(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [imp.optional(op, 1)?, imp.optional(op, 0)?];
    imp.emit(op, Gather { axis: 0 }, &inputs)
}

/// What a strided slice with constant bounds does to each axis.
#[derive(Default)]
struct Bounds {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Vec<i64>,
    steps: Vec<i64>,
    /// Axes of the sliced tensor to drop.
    dropped: Vec<i64>,
    /// Axes of the output that are new.
    added: Vec<i64>,
}

struct Masks {
    begin: i32,
    end: i32,
    ellipsis: i32,
    new_axis: i32,
    shrink: i32,
}

fn bounds(begin: &[i64], end: &[i64], steps: &[i64], masks: &Masks, rank: usize) -> Result<Bounds> {
    let n = begin.len();
    if end.len() != n || steps.len() != n || n > 31 || steps.contains(&0) {
        return Err(Error::new(
            ErrorCode::InvalidModel,
            "begin, end and strides do not fit each other",
        ));
    }
    let bit = |mask: i32, i: usize| mask >> i & 1 == 1;
    // An ellipsis stands for all axes that no other entry is about.
    let entries = (0..n)
        .filter(|&i| !bit(masks.ellipsis, i) && !bit(masks.new_axis, i))
        .count();
    let covered = rank.saturating_sub(entries) as i64;
    let mut b = Bounds::default();
    let (mut axis, mut out) = (0i64, 0i64);
    for i in 0..n {
        if bit(masks.ellipsis, i) {
            axis += covered;
            out += covered;
            continue;
        }
        if bit(masks.new_axis, i) {
            b.added.push(out);
            out += 1;
            continue;
        }
        let shrinks = bit(masks.shrink, i);
        let (first, past) = if steps[i] > 0 {
            (0, TO_THE_END)
        } else {
            (TO_THE_END, TO_THE_BEGINNING)
        };
        let start = if bit(masks.begin, i) && !shrinks {
            first
        } else {
            begin[i]
        };
        let stop = match () {
            () if shrinks && begin[i] == -1 => TO_THE_END,
            () if shrinks => begin[i].saturating_add(1),
            () if bit(masks.end, i) => past,
            () => end[i],
        };
        let step = if shrinks { 1 } else { steps[i] };
        if (start, stop, step) != (0, TO_THE_END, 1) {
            b.starts.push(start);
            b.ends.push(stop);
            b.axes.push(axis);
            b.steps.push(step);
        }
        if shrinks {
            b.dropped.push(axis);
        } else {
            out += 1;
        }
        axis += 1;
    }
    Ok(b)
}

pub fn strided_slice(imp: &mut Import, op: &Op) -> Result<()> {
    let masks = Masks {
        begin: op.int(0)?,
        end: op.int(1)?,
        ellipsis: op.int(2)?,
        new_axis: op.int(3)?,
        shrink: op.int(4)?,
    };
    let constant = |imp: &Import, i| Ok::<_, Error>(imp.constant_input(op, i)?.is_some());
    if !constant(imp, 1)? || !constant(imp, 2)? {
        return computed_slice(imp, op, &masks);
    }
    let steps = imp.constant_ints(op, 3)?;
    let (begin, mut end) = (imp.constant_ints(op, 1)?, imp.constant_ints(op, 2)?);
    if op.flag(5)? {
        for (e, b) in end.iter_mut().zip(&begin) {
            *e = e.saturating_add(*b);
        }
    }
    let b = bounds(&begin, &end, &steps, &masks, imp.input_rank(op, 0)?)?;
    let mut x = imp.input(op, 0)?;
    if !b.axes.is_empty() {
        let mut inputs = vec![Some(x)];
        for ints in [&b.starts, &b.ends, &b.axes, &b.steps] {
            inputs.push(Some(imp.i64s(ints)?));
        }
        if b.dropped.is_empty() && b.added.is_empty() {
            return imp.emit(op, Slice, &inputs);
        }
        x = imp.step(Slice, &inputs)?;
    }
    if !b.dropped.is_empty() {
        let axes = imp.i64s(&b.dropped)?;
        let inputs = [Some(x), Some(axes)];
        if b.added.is_empty() {
            return imp.emit(op, Squeeze, &inputs);
        }
        x = imp.step(Squeeze, &inputs)?;
    }
    if b.added.is_empty() {
        return imp.emit(op, Unary(UnaryKind::Identity), &[Some(x)]);
    }
    let axes = imp.i64s(&b.added)?;
    imp.emit(op, Unsqueeze, &[Some(x), Some(axes)])
}

/// A strided slice whose bounds are computed at run time.
fn computed_slice(imp: &mut Import, op: &Op, masks: &Masks) -> Result<()> {
    let all = masks.begin | masks.end | masks.ellipsis | masks.new_axis | masks.shrink;
    if all != 0 || op.flag(5)? {
        return Err(unsupported("masks with bounds computed at run time"));
    }
    let steps = imp.constant_ints(op, 3)?;
    let axes: Vec<i64> = (0..steps.len() as i64).collect();
    let x = imp.input(op, 0)?;
    let starts = imp.as_vector(op, 1)?;
    let ends = imp.as_vector(op, 2)?;
    let axes = imp.i64s(&axes)?;
    let steps = imp.i64s(&steps)?;
    let inputs = [Some(x), Some(starts), Some(ends), Some(axes), Some(steps)];
    imp.emit(op, Slice, &inputs)
}

/// Inputs: data, begin, size; a size of -1 reaches to the end.
pub fn slice(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let starts = imp.as_vector(op, 1)?;
    let known = (imp.constant_input(op, 1)?, imp.constant_input(op, 2)?);
    let ends = if let (Some(begin), Some(size)) = known {
        let ends: Vec<i64> = begin
            .to_i64s()?
            .iter()
            .zip(size.to_i64s()?)
            .map(|(b, s)| match s {
                -1 => TO_THE_END,
                s => b.saturating_add(s),
            })
            .collect();
        imp.i64s(&ends)?
    } else {
        let sizes = imp.as_vector(op, 2)?;
        let sum = Binary::new(BinaryKind::Add);
        let sum = imp.step(sum, &[Some(starts), Some(sizes)])?;
        let open = imp.i64s(&[-1])?;
        let is_open = Binary::new(BinaryKind::Equal);
        let is_open = imp.step(is_open, &[Some(sizes), Some(open)])?;
        let last = imp.i64s(&[TO_THE_END])?;
        imp.step(Where, &[Some(is_open), Some(last), Some(sum)])?
    };
    imp.emit(op, Slice, &[Some(x), Some(starts), Some(ends)])
}

pub fn reverse(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let axes = imp.constant_ints(op, 1)?;
    let n = axes.len();
    let mut inputs = vec![Some(x)];
    for ints in [
        vec![TO_THE_END; n],
        vec![TO_THE_BEGINNING; n],
        axes,
        vec![-1; n],
    ] {
        inputs.push(Some(imp.i64s(&ints)?));
    }
    imp.emit(op, Slice, &inputs)
}

pub fn reverse_sequence(imp: &mut Import, op: &Op) -> Result<()> {
    let axis = |slot| {
        usize::try_from(op.int(slot)?)
            .map_err(|_| Error::new(ErrorCode::InvalidModel, "an axis is negative"))
    };
    let operator = ReverseSequence {
        time_axis: axis(0)?,
        batch_axis: axis(1)?,
    };
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    imp.emit(op, operator, &inputs)
}

/// Inputs: indices, depth, on, off (scalars).
pub fn one_hot(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    let axes = imp.i64s(&[0])?;
    let mut values: [Option<ValueId>; 2] = [None, None];
    for (slot, i) in values.iter_mut().zip([3, 2]) {
        let scalar = imp.input(op, i)?;
        *slot = Some(imp.step(Unsqueeze, &[Some(scalar), Some(axes)])?);
    }
    let values = imp.step(Concat { axis: 0 }, &values)?;
    let axis = op.int(0)?.into();
    imp.emit(op, OneHot { axis }, &[inputs[0], inputs[1], Some(values)])
}

/// Inputs: indices, updates, shape; what is named twice adds up.
pub fn scatter_nd(imp: &mut Import, op: &Op) -> Result<()> {
    let (indices, updates) = (imp.input(op, 0)?, imp.input(op, 1)?);
    let shape = imp.as_vector(op, 2)?;
    let value = Tensor::zeros(imp.output_info(op, 0)?.dtype()?, &[1])?;
    let zeros = imp.step(ConstantOfShape { value }, &[Some(shape)])?;
    let reduction = ScatterReduction::Add;
    let inputs = [Some(zeros), Some(indices), Some(updates)];
    imp.emit(op, ScatterNd { reduction }, &inputs)
}

/// The coordinates of true elements, `[n, rank]`.
pub fn where_true(imp: &mut Import, op: &Op) -> Result<()> {
    if imp.output_info(op, 0)?.dtype()? != DType::I64 {
        return Err(unsupported("indices of another type than int64"));
    }
    let x = imp.input(op, 0)?;
    let columns = imp.step(NonZero, &[Some(x)])?;
    imp.emit(op, Transpose { perm: vec![1, 0] }, &[Some(columns)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(begin: i32, end: i32, ellipsis: i32, new_axis: i32, shrink: i32) -> Masks {
        Masks {
            begin,
            end,
            ellipsis,
            new_axis,
            shrink,
        }
    }

    #[test]
    fn strided_slice_masks() {
        // x[..., newaxis, -1] of rank 3
        let b = bounds(
            &[0, 0, -1],
            &[0, 0, 0],
            &[1, 1, 1],
            &masks(0, 0, 1, 2, 4),
            3,
        )
        .unwrap();
        assert_eq!(
            (b.axes, b.starts, b.ends),
            (vec![2], vec![-1], vec![TO_THE_END])
        );
        assert_eq!((b.dropped, b.added), (vec![2], vec![2]));
        // x[:, ::-1, 1:3]
        let b = bounds(
            &[0, 0, 1],
            &[0, 0, 3],
            &[1, -1, 1],
            &masks(3, 3, 0, 0, 0),
            3,
        )
        .unwrap();
        assert_eq!(b.axes, [1, 2]);
        assert_eq!(b.starts, [TO_THE_END, 1]);
        assert_eq!(b.ends, [TO_THE_BEGINNING, 3]);
        // A step of zero
        assert!(bounds(&[0], &[1], &[0], &masks(0, 0, 0, 0, 0), 1).is_err());
    }
}
