//! Parts of tensors, and what is put around them.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, Pad, PadMode, ReverseSequence, Slice, Split};

use super::Outputs;
use super::arrange::one;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::op::Op;

/// The tables of parameters.
const CROP: u8 = 10;
const SLICE: u8 = 61;
const STRIDED_SLICE: u8 = 65;
const REVERSE_SEQUENCE: u8 = 77;
const PAD: u8 = 84;

/// What stands for a position behind every end.
const END: i64 = i64::MAX;

/// The sum of lengths that a file says.
fn sum<'a>(mut lengths: impl Iterator<Item = &'a i64>) -> Result<i64> {
    let sum = lengths.try_fold(0i64, |sum, &length| sum.checked_add(length));
    sum.ok_or_else(|| invalid("lengths of parts whose sum is too large"))
}

/// The operator Slice: parts along an axis, by where they end (Caffe), by their lengths, or equal ones.
pub fn slice(imp: &mut Import, op: &Op) -> Outputs {
    const CAFFE: i8 = 0;
    const TORCH: i8 = 4;
    let (x, p) = (op.input(0)?, op.params(SLICE)?);
    let axis = imp.axis_of(x, p.int(0, 0)?.into())? as i64;
    let (count, source) = (op.outputs(), p.choice(2)?);
    let points = match op.optional(1) {
        Some(given) => {
            let known = imp.known(given)?;
            known.ok_or_else(|| unsupported("lengths that another operator computes"))?
        }
        None => p.ints(1)?,
    };
    let length = imp.length(x, axis).known();
    if source == CAFFE {
        let begins = std::iter::once(0).chain(points.iter().copied());
        let ends = points.iter().copied().chain(std::iter::once(END));
        let parts = begins.zip(ends).take(count);
        return parts
            .map(|(begin, end)| imp.slice(x, axis, begin, end))
            .collect();
    }
    let lengths = match (op.optional(1), &points[..]) {
        // Torch says how long each part is, TensorFlow how many there are.
        (None, [one]) if source == TORCH => vec![*one; count],
        (None, [] | [_]) => {
            let parts = points.first().copied().unwrap_or(count as i64);
            if parts != count as i64 {
                return Err(unsupported("fewer parts than the axis is divided into"));
            }
            return imp.apply(Split { axis }, &[Some(x)], count);
        }
        _ => points,
    };
    let open = lengths.iter().filter(|&&n| n < 0).count();
    let lengths: Vec<i64> = match (open, length) {
        (0, _) => lengths,
        (1, Some(all)) => {
            let others = sum(lengths.iter().filter(|&&n| n >= 0))?;
            let rest = all as i64 - others;
            lengths
                .into_iter()
                .map(|n| if n < 0 { rest } else { n })
                .collect()
        }
        _ => return Err(unsupported("a part of what is left of an open length")),
    };
    let used = &lengths[..lengths.len().min(count)];
    if used.len() == count && length == usize::try_from(sum(used.iter())?).ok() {
        let sizes = imp.i64s(used)?;
        return imp.apply(Split { axis }, &[Some(x), Some(sizes)], count);
    }
    let mut begin = 0_i64;
    let mut parts = Vec::new();
    for &n in used {
        let end = begin.saturating_add(n);
        parts.push(imp.slice(x, axis, begin, end)?);
        begin = end;
    }
    Ok(parts)
}

/// The operator SliceTf: where each axis begins, and how long it is; -1 is to the end.
pub fn slice_tf(imp: &mut Import, op: &Op) -> Outputs {
    let (x, begins, sizes) = (op.input(0)?, op.input(1)?, op.input(2)?);
    let rank = imp.rank(x)?;
    let axes: Vec<i64> = (0..rank as i64).collect();
    let axes = imp.i64s(&axes)?;
    let ends = match (imp.known(begins)?, imp.known(sizes)?) {
        (Some(begins), Some(sizes)) if begins.len() == rank && sizes.len() == rank => {
            let ends = begins.iter().zip(&sizes).map(|(&begin, &size)| match size {
                -1 => END,
                // A part that begins before the end and reaches it.
                _ if begin < 0 && begin.saturating_add(size) >= 0 => END,
                _ => begin.saturating_add(size),
            });
            let ends: Vec<i64> = ends.collect();
            imp.i64s(&ends)?
        }
        (Some(begins), None) if begins.iter().all(|&n| n == 0) => {
            let sizes = imp.vector_of(sizes)?;
            to_the_end(imp, sizes, sizes)?
        }
        _ => {
            let (begins, sizes) = (imp.vector_of(begins)?, imp.vector_of(sizes)?);
            let ends = imp.add(begins, sizes)?;
            to_the_end(imp, sizes, ends)?
        }
    };
    let begins = imp.vector_of(begins)?;
    Ok(vec![imp.op(Slice, &[x, begins, ends, axes])?])
}

/// Where parts of these sizes end: a size of -1 is all that is left.
fn to_the_end(imp: &mut Import, sizes: ValueId, ends: ValueId) -> Result<ValueId> {
    if let Some(sizes) = imp.known(sizes)?
        && sizes.iter().all(|&n| n >= 0)
    {
        return Ok(ends);
    }
    let (rest, end) = (imp.i64(-1)?, imp.i64(END)?);
    let open = imp.binary(BinaryKind::Equal, sizes, rest)?;
    imp.choose(open, end, ends)
}

/// The operator StridedSlice, with masks as TensorFlow has them, or with axes as ONNX has them.
pub fn strided_slice(imp: &mut Import, op: &Op) -> Outputs {
    const TENSORFLOW: i32 = 0;
    let p = op.params(STRIDED_SLICE)?;
    let x = op.input(0)?;
    let from = p.int(7, 0)?;
    let masks = Masks {
        begin: p.int(2, 0)?,
        end: p.int(3, 0)?,
        ellipsis: p.int(4, 0)?,
        new_axis: p.int(5, 0)?,
        shrink: p.int(6, 0)?,
    };
    if from == TENSORFLOW {
        if op.inputs.len() > 4 {
            return Err(unsupported("writing into a part of a tensor"));
        }
        return masks.slice(imp, op, x);
    }
    if masks.any() {
        return Err(unsupported("masks beside axes"));
    }
    let mut inputs = vec![Some(x)];
    for i in 1..op.inputs.len() {
        let given = op.optional(i);
        inputs.push(given.map(|given| imp.vector_of(given)).transpose()?);
    }
    Ok(vec![imp.step(Slice, &inputs)?])
}

/// Bits for each entry of the lists.
struct Masks {
    begin: i32,
    end: i32,
    ellipsis: i32,
    new_axis: i32,
    shrink: i32,
}

impl Masks {
    fn any(&self) -> bool {
        self.begin | self.end | self.ellipsis | self.new_axis | self.shrink != 0
    }

    fn slice(&self, imp: &mut Import, op: &Op, x: ValueId) -> Outputs {
        let mut list = |i: usize| -> Result<Option<Vec<i64>>> {
            op.optional(i).map_or(Ok(None), |v| imp.known(v))
        };
        let (begins, ends) = (list(1)?, list(2)?);
        let steps = match op.optional(3) {
            Some(_) => list(3)?,
            None => begins.as_ref().map(|begins| vec![1; begins.len()]),
        };
        let (Some(begins), Some(ends), Some(steps)) = (begins, ends, steps) else {
            return Err(unsupported(
                "masks with bounds that another operator computes",
            ));
        };
        let entries = begins.len();
        if ends.len() != entries || steps.len() != entries || entries > 32 {
            return Err(invalid(
                "the bounds of a slice are lists of different lengths",
            ));
        }
        let rank = imp.rank(x)?;
        let bit = |mask: i32, i: usize| mask >> i & 1 == 1;
        let (mut taken, mut shrunk, mut added) =
            ([const { Vec::new() }; 4], Vec::new(), Vec::new());
        // The axis of the data, and that of the result.
        let (mut axis, mut place) = (0_i64, 0_i64);
        for i in 0..entries {
            if bit(self.ellipsis, i) {
                let others = (0..entries)
                    .filter(|&j| j != i && !bit(self.new_axis, j))
                    .count();
                let skipped = rank.saturating_sub(others) as i64;
                axis += skipped;
                place += skipped;
                continue;
            }
            if bit(self.new_axis, i) {
                added.push(place);
                place += 1;
                continue;
            }
            let step = if bit(self.shrink, i) { 1 } else { steps[i] };
            let begin = match (bit(self.begin, i), step < 0) {
                (true, false) => 0,
                (true, true) => END,
                (false, _) => begins[i],
            };
            let end = match (bit(self.shrink, i), bit(self.end, i), step < 0) {
                (true, ..) if begin == -1 => END,
                (true, ..) => begin + 1,
                (false, true, false) => END,
                (false, true, true) => i64::MIN,
                (false, false, true) if ends[i] < 0 => i64::MIN,
                (false, false, _) => ends[i],
            };
            for (list, n) in taken.iter_mut().zip([begin, end, axis, step]) {
                list.push(n);
            }
            match bit(self.shrink, i) {
                true => shrunk.push(axis),
                false => place += 1,
            }
            axis += 1;
        }
        let mut inputs = vec![x];
        for list in &taken {
            inputs.push(imp.i64s(list)?);
        }
        let mut y = imp.op(Slice, &inputs)?;
        if !shrunk.is_empty() {
            y = imp.squeeze(y, &shrunk)?;
        }
        Ok(vec![imp.unsqueeze(y, &added)?])
    }
}

/// The operator Crop: a part of the size of another tensor, from some place on.
pub fn crop(imp: &mut Import, op: &Op) -> Outputs {
    let (mut x, like, p) = (op.input(0)?, op.input(1)?, op.params(CROP)?);
    let (rank, offsets) = (imp.rank(x)?, p.ints(1)?);
    let first = imp.axis_of(x, p.int(0, 2)?.into())?;
    for axis in first..rank {
        let offset = match &offsets[..] {
            [] => 0,
            [all] => *all,
            each => each.get(axis - first).copied().unwrap_or(0),
        };
        let length = imp.length(like, axis as i64).known();
        let length = length.ok_or_else(|| unsupported("a part of an open size"))?;
        x = imp.slice(x, axis as i64, offset, offset.saturating_add(length as i64))?;
    }
    Ok(vec![x])
}

/// The operator Padding: before and after each axis.
pub fn padding(imp: &mut Import, op: &Op) -> Outputs {
    let (x, around) = (op.input(0)?, op.input(1)?);
    let mode = match op.params(PAD)?.choice(0)? {
        0 => PadMode::Constant,
        1 => PadMode::Reflect,
        2 => PadMode::Symmetric,
        3 => PadMode::Edge,
        other => return Err(unsupported(format!("the padding number {other}"))),
    };
    let sides = match imp.known(around)? {
        Some(around) => {
            let pairs = around.chunks_exact(2).map(|pair| (pair[0], pair[1]));
            let (begins, ends): (Vec<i64>, Vec<i64>) = pairs.unzip();
            imp.i64s(&[begins, ends].concat())?
        }
        None => {
            let pairs = imp.reshape(around, &[-1, 2])?;
            let pairs = imp.transpose(pairs, &[1, 0])?;
            let sides = imp.reshape(pairs, &[-1])?;
            imp.vector_of(sides)?
        }
    };
    let value = op.optional(2).filter(|_| mode == PadMode::Constant);
    let value = match value {
        Some(value) if imp.rank(value)? > 0 => Some(imp.reshape(value, &[])?),
        value => value,
    };
    Ok(vec![
        imp.step(Pad { mode }, &[Some(x), Some(sides), value])?,
    ])
}

/// The operator Reverse, along one axis.
pub fn reverse(imp: &mut Import, op: &Op) -> Outputs {
    let (x, axis) = (op.input(0)?, op.input(1)?);
    let axis = one(imp, axis, "an axis")?;
    let lists = [[-1], [i64::MIN], [axis], [-1]];
    let mut inputs = vec![x];
    for list in lists {
        inputs.push(imp.i64s(&list)?);
    }
    Ok(vec![imp.op(Slice, &inputs)?])
}

/// The operator ReverseSequence.
pub fn reverse_sequence(imp: &mut Import, op: &Op) -> Outputs {
    let (x, lengths, p) = (op.input(0)?, op.input(1)?, op.params(REVERSE_SEQUENCE)?);
    let batch_axis = imp.axis_of(x, p.int(0, 0)?.into())?;
    let time_axis = imp.axis_of(x, p.int(1, 0)?.into())?;
    let lengths = imp.vector_of(lengths)?;
    let reverse = ReverseSequence {
        batch_axis,
        time_axis,
    };
    Ok(vec![imp.op(reverse, &[x, lengths])?])
}
