//! Operators that move elements: most are one walk over two sets of strides.

use kilim_core::DType;
use kilim_core::backend::TensorSpec;
use kilim_core::ops::*;

use super::Kernels;
use super::select::carrier;
use crate::lower::{Lowering, Lowers, Operand, broadcast_strides, collapse, refuse, strides};
use crate::params::{MAX_RANK, Params};
use crate::storage;

/// Parts that one dispatch joins or splits.
const PARTS: usize = 7;
pub(crate) const PART_COUNTS: &[&str] = &["2", "3", "4", "5", "6", "7"];
pub(crate) const PAD_MODES: &[&str] = &["Constant", "Edge", "Wrap", "Reflect", "Symmetric"];

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Transpose>(transpose);
    kernels.add::<Slice>(slice);
    kernels.add::<Expand>(|_, l| expand(l));
    kernels.add::<Tile>(tile);
    kernels.add::<Concat>(concat);
    kernels.add::<Split>(split);
    kernels.add::<Pad>(pad);
    kernels.add::<CenterCropPad>(center_crop_pad);
    kernels.add::<DepthToSpace>(depth_to_space);
    kernels.add::<SpaceToDepth>(space_to_depth);
    kernels.add::<SpaceToBatch>(|_, l| space_to_batch(l));
    kernels.add::<BatchToSpace>(|_, l| batch_to_space(l));
    kernels.add::<Trilu>(trilu);
    kernels.add::<ConstantOfShape>(|op, l| fill(&op.value, l));
    kernels.add::<EyeLike>(eye);
}

/// Turns a typed error of core into a refusal.
pub(crate) fn ok<T>(result: kilim_core::Result<T>) -> Lowers<T> {
    result.or_else(|e| refuse(e.message()))
}

fn signed(strides: &[usize]) -> Vec<i64> {
    strides.iter().map(|&s| s as i64).collect()
}

/// A walk over `dims` with the strides and the start of source and destination.
pub(crate) struct Walk {
    pub dims: Vec<usize>,
    pub x: Vec<i64>,
    pub x_base: usize,
    pub y: Vec<i64>,
    pub y_base: usize,
}

impl Walk {
    /// In the order of a dense destination.
    pub fn dense(dims: Vec<usize>, x: Vec<i64>, x_base: usize) -> Walk {
        let y = signed(&strides(&dims));
        Walk {
            dims,
            x,
            x_base,
            y,
            y_base: 0,
        }
    }

    pub fn emit(self, l: &mut Lowering, dtype: DType, from: Operand, to: Operand) -> Lowers {
        let mut t = carrier(dtype)?;
        let (mut dims, mut walks) = collapse(&self.dims, &[self.x, self.y])?;
        let (mut x_base, mut y_base) = (self.x_base, self.y_base);
        let last = dims.len() - 1;
        let whole = |v: i64| v % 4 == 0;
        let four = t == "u32"
            && dims[last].is_multiple_of(4)
            && walks
                .iter()
                .all(|w| w[last] == 1 && w[..last].iter().all(|&s| whole(s)))
            && x_base.is_multiple_of(4)
            && y_base.is_multiple_of(4);
        if four {
            t = "vec4u";
            dims[last] /= 4;
            x_base /= 4;
            y_base /= 4;
            for w in &mut walks {
                w[..last].iter_mut().for_each(|s| *s /= 4);
            }
        }
        let count = dims.iter().product();
        let params = Params::new()
            .dims(&dims)
            .signed(&walks[0])
            .signed(&walks[1])
            .u(dims.len())
            .u(count)
            .u(x_base)
            .u(y_base);
        l.linear("walk", &[("T", t)], &[from, to], params, count);
        Ok(())
    }

    fn single(self, l: &mut Lowering) -> Lowers {
        let dtype = l.output(0)?.dtype;
        self.emit(l, dtype, Operand::Input(0), Operand::Output(0))
    }
}

/// `to[i] = dims[perm[i]]`, walked in the order of the result.
pub(crate) fn permuted(dims: &[usize], perm: &[usize]) -> Walk {
    let own = strides(dims);
    Walk::dense(
        perm.iter().map(|&p| dims[p]).collect(),
        perm.iter().map(|&p| own[p] as i64).collect(),
        0,
    )
}

fn transpose(op: &Transpose, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let perm = ok(op.resolve(x.shape.len()))?;
    permuted(&x.shape, &perm).single(l)
}

fn slice(op: &Slice, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axes = ok(op.resolve(&x.shape, l.node))?;
    let own = strides(&x.shape);
    let base = axes.iter().zip(&own).map(|(a, s)| a.start * s).sum();
    Walk::dense(
        axes.iter().map(|a| a.length).collect(),
        axes.iter()
            .zip(&own)
            .map(|(a, &s)| a.step.saturating_mul(s as i64))
            .collect(),
        base,
    )
    .single(l)
}

fn expand(l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let walk = broadcast_strides(&x.shape, &y.shape)?;
    Walk::dense(y.shape.clone(), signed(&walk), 0).single(l)
}

fn tile(op: &Tile, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let repeats = ok(op.repeats(x.shape.len(), l.node))?;
    let own = strides(&x.shape);
    let (mut dims, mut walk) = (Vec::new(), Vec::new());
    for ((&d, &r), &s) in x.shape.iter().zip(&repeats).zip(&own) {
        dims.extend([r, d]);
        walk.extend([0, s as i64]);
    }
    Walk::dense(dims, walk, 0).single(l)
}

/// Elements before, along and behind an axis.
pub(crate) fn around(shape: &[usize], axis: usize) -> [usize; 3] {
    [
        shape[..axis].iter().product(),
        shape[axis],
        shape[axis + 1..].iter().product(),
    ]
}

/// Joins `parts` into `whole` or splits it into them. A part is an operand and its width.
fn join(
    l: &mut Lowering,
    dtype: DType,
    rows: usize,
    whole: Operand,
    parts: &[(Operand, usize)],
    split: bool,
) -> Lowers {
    let mut t = carrier(dtype)?;
    let unit = if t == "u32" && parts.iter().all(|(_, w)| w.is_multiple_of(4)) {
        t = "vec4u";
        4
    } else {
        1
    };
    let total: usize = parts.iter().map(|(_, w)| w / unit).sum();
    let parts: Vec<_> = parts.iter().filter(|(_, w)| *w > 0).collect();
    let most = PARTS.min(l.caps.max_bindings.saturating_sub(1)).max(2);
    let mut start = 0;
    for chunk in parts.chunks(most) {
        if let [(part, width)] = chunk {
            let (width, far) = (width / unit * unit, total * unit);
            let whole_walk = vec![far as i64, 1];
            let own = vec![width as i64, 1];
            let at = start * unit;
            let walk = Walk {
                dims: vec![rows, width],
                x: if split {
                    whole_walk.clone()
                } else {
                    own.clone()
                },
                x_base: if split { at } else { 0 },
                y: if split { own } else { whole_walk },
                y_base: if split { 0 } else { at },
            };
            let (from, to) = if split {
                (whole, *part)
            } else {
                (*part, whole)
            };
            walk.emit(l, dtype, from, to)?;
            start += width / unit;
            continue;
        }
        let mut ends = Vec::with_capacity(chunk.len());
        let mut width = 0;
        let mut operands = vec![whole];
        for (part, w) in chunk {
            width += w / unit;
            ends.push(width);
            operands.push(*part);
        }
        let count = rows.saturating_mul(width);
        l.linear(
            "join",
            &[
                ("T", t),
                ("COUNT", PART_COUNTS[chunk.len() - 2]),
                ("SPLIT", if split { "1" } else { "0" }),
            ],
            &operands,
            Params::new()
                .dims(&ends)
                .u(count)
                .u(width)
                .u(total)
                .u(start),
            count,
        );
        start += width;
    }
    Ok(())
}

fn concat(op: &Concat, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let axis = ok(normalize_axis(op.axis, y.shape.len()))?;
    let [rows, _, _] = around(&y.shape, axis);
    let mut parts = Vec::with_capacity(l.node.inputs.len());
    for i in 0..l.node.inputs.len() {
        let [_, size, inner] = around(&l.input(i)?.shape, axis);
        parts.push((Operand::Input(i), size * inner));
    }
    join(l, y.dtype, rows, Operand::Output(0), &parts, false)
}

fn split(op: &Split, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [rows, _, inner] = around(&x.shape, axis);
    let parts: Vec<_> = l
        .node
        .outputs
        .iter()
        .enumerate()
        .map(|(i, o)| (Operand::Output(i), o.shape[axis] * inner))
        .collect();
    join(l, x.dtype, rows, Operand::Input(0), &parts, true)
}

/// Adds padding of `pads` around a tensor of `shape`.
fn padded(
    l: &mut Lowering,
    dtype: DType,
    mode: &'static str,
    shape: &[usize],
    pads: &[(i64, i64)],
    fill: [u32; 2],
    to: Operand,
) -> Lowers {
    let t = carrier(dtype)?;
    if shape.len() > MAX_RANK {
        return refuse(format!("the GPU kernel pads at most {MAX_RANK} dimensions"));
    }
    let mut dims = Vec::with_capacity(shape.len());
    for (&d, &(begin, end)) in shape.iter().zip(pads) {
        match usize::try_from(d as i64 + begin + end) {
            Ok(d) => dims.push(d),
            Err(_) => return refuse("the pads crop more than there is"),
        }
    }
    let begins: Vec<i64> = pads.iter().map(|p| p.0).collect();
    let count = dims.iter().product();
    let params = Params::new()
        .dims(&dims)
        .dims(shape)
        .dims(&strides(shape))
        .signed(&begins)
        .u(shape.len())
        .u(count)
        .u(fill[0] as usize)
        .u(fill[1] as usize);
    l.linear(
        "pad",
        &[("T", t), ("MODE", mode)],
        &[Operand::Input(0), to],
        params,
        count,
    );
    Ok(())
}

/// An element as the device holds it.
fn words_of(value: &kilim_core::Tensor) -> Lowers<[u32; 2]> {
    let bytes = storage::to_device(value);
    let word = |i: usize| {
        let chunk = bytes.get(i * 4..i * 4 + 4)?;
        Some(u32::from_le_bytes(chunk.try_into().ok()?))
    };
    match word(0) {
        Some(first) => Ok([first, word(1).unwrap_or(0)]),
        None => refuse("a value has no element"),
    }
}

fn pad(op: &Pad, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let pads = ok(op.resolve(&x.shape, l.node))?;
    let mode = match op.mode {
        PadMode::Constant => "Constant",
        PadMode::Edge => "Edge",
        PadMode::Wrap => "Wrap",
        PadMode::Reflect => "Reflect",
        PadMode::Symmetric => "Symmetric",
    };
    let fill = match (op.mode, l.optional(2).map(|s| s.value.as_ref())) {
        (PadMode::Constant, Some(Some(value))) if !value.is_empty() => words_of(value)?,
        (PadMode::Constant, Some(None)) => return refuse("the padding value is not known"),
        _ => [0, 0],
    };
    padded(l, x.dtype, mode, &x.shape, &pads, fill, Operand::Output(0))
}

fn center_crop_pad(op: &CenterCropPad, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axes = ok(op.resolve(&x.shape, l.node))?;
    let pads: Vec<_> = axes
        .iter()
        .zip(&x.shape)
        .map(|(a, &input)| {
            let begin = a.output_start as i64 - a.input_start as i64;
            (begin, a.output as i64 - begin - input as i64)
        })
        .collect();
    let to = Operand::Output(0);
    padded(l, x.dtype, "Constant", &x.shape, &pads, [0, 0], to)
}

fn image(shape: &[usize]) -> Lowers<[usize; 4]> {
    match *shape {
        [a, b, c, d] => Ok([a, b, c, d]),
        _ => refuse(format!("four dimensions are needed, not {shape:?}")),
    }
}

fn depth_to_space(op: &DepthToSpace, l: &mut Lowering) -> Lowers {
    let s = image(&l.input(0)?.shape)?;
    let b = op.block.max(1);
    let (dims, perm): (Vec<usize>, &[usize]) = match (op.channels_last, op.crd) {
        (false, false) => (
            vec![s[0], b, b, s[1] / (b * b), s[2], s[3]],
            &[0, 3, 4, 1, 5, 2],
        ),
        (false, true) => (
            vec![s[0], s[1] / (b * b), b, b, s[2], s[3]],
            &[0, 1, 4, 2, 5, 3],
        ),
        (true, false) => (
            vec![s[0], s[1], s[2], b, b, s[3] / (b * b)],
            &[0, 1, 3, 2, 4, 5],
        ),
        (true, true) => (
            vec![s[0], s[1], s[2], s[3] / (b * b), b, b],
            &[0, 1, 4, 2, 5, 3],
        ),
    };
    permuted(&dims, perm).single(l)
}

fn space_to_depth(op: &SpaceToDepth, l: &mut Lowering) -> Lowers {
    let s = image(&l.input(0)?.shape)?;
    let b = op.block.max(1);
    if op.channels_last {
        permuted(&[s[0], s[1] / b, b, s[2] / b, b, s[3]], &[0, 1, 3, 2, 4, 5]).single(l)
    } else {
        permuted(&[s[0], s[1], s[2] / b, b, s[3] / b, b], &[0, 3, 5, 1, 2, 4]).single(l)
    }
}

fn space_to_batch(l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let g = ok(BatchBlocks::new(l.node, x.shape.len()))?;
    let m = g.block.len();
    let mut pads = vec![(0, 0); x.shape.len()];
    let mut shape = x.shape.clone();
    for (i, &(begin, end)) in g.pads.iter().enumerate() {
        pads[i + 1] = (begin as i64, end as i64);
        shape[i + 1] += begin + end;
    }
    let from = if g.pads.iter().all(|p| *p == (0, 0)) {
        Operand::Input(0)
    } else {
        let bytes = storage::device_bytes(x.dtype, shape.iter().product());
        let scratch = l.scratch(bytes);
        padded(l, x.dtype, "Constant", &x.shape, &pads, [0, 0], scratch)?;
        scratch
    };
    // [n, (s/b, b).., rest] becomes [b.., n, s/b.., rest].
    let mut dims = vec![shape[0]];
    for (i, &b) in g.block.iter().enumerate() {
        dims.extend([shape[i + 1] / b.max(1), b]);
    }
    dims.push(shape[m + 1..].iter().product());
    let mut perm: Vec<usize> = (0..m).map(|i| 2 * i + 2).collect();
    perm.push(0);
    perm.extend((0..m).map(|i| 2 * i + 1));
    perm.push(2 * m + 1);
    permuted(&dims, &perm).emit(l, x.dtype, from, Operand::Output(0))
}

fn batch_to_space(l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let g = ok(BatchBlocks::new(l.node, x.shape.len()))?;
    let m = g.block.len();
    // [b.., n, s.., rest] becomes [n, (s, b).., rest], then is cropped.
    let mut dims = g.block.clone();
    dims.push(y.shape[0]);
    dims.extend(&x.shape[1..=m]);
    dims.push(x.shape[m + 1..].iter().product());
    let mut perm = vec![m];
    for i in 0..m {
        perm.extend([m + 1 + i, i]);
    }
    perm.push(2 * m + 1);
    let walk = permuted(&dims, &perm);
    if g.pads.iter().all(|p| *p == (0, 0)) {
        return walk.single(l);
    }
    let scratch = l.scratch(storage::device_bytes(x.dtype, x.elements()));
    walk.emit(l, x.dtype, Operand::Input(0), scratch)?;
    let mut full = y.shape.clone();
    for (i, &(begin, end)) in g.pads.iter().enumerate() {
        full[i + 1] += begin + end;
    }
    let own = strides(&full);
    let base = g.pads.iter().zip(&own[1..]).map(|(p, s)| p.0 * s).sum();
    Walk::dense(y.shape.clone(), signed(&own), base).emit(l, x.dtype, scratch, Operand::Output(0))
}

fn trilu(op: &Trilu, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let [.., rows, columns] = x.shape[..] else {
        return refuse("Trilu takes matrices");
    };
    let k = ok(op.diagonal(l.node))?.clamp(i32::MIN.into(), i32::MAX.into());
    let count = x.elements();
    l.linear(
        "trilu",
        &[("T", carrier(x.dtype)?)],
        &[Operand::Input(0), Operand::Output(0)],
        Params::new()
            .u(count)
            .u(rows)
            .u(columns)
            .u(usize::from(op.upper))
            .i(k),
        count,
    );
    Ok(())
}

fn fill(value: &kilim_core::Tensor, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let words = words_of(value)?;
    filled(l, Operand::Output(0), words, y)
}

/// Every element of `to`, a tensor like `spec`, becomes the given words.
pub(crate) fn filled(l: &mut Lowering, to: Operand, [a, b]: [u32; 2], spec: &TensorSpec) -> Lowers {
    let count = spec.elements();
    l.linear(
        "fill",
        &[("T", carrier(spec.dtype)?)],
        &[to],
        Params::new().u(a as usize).u(b as usize).u(count),
        count,
    );
    Ok(())
}

fn eye(op: &EyeLike, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let one = match y.dtype {
        DType::F32 => [1.0f32.to_bits(), 0],
        DType::F64 => [0, (1.0f64.to_bits() >> 32) as u32],
        _ => [1, 0],
    };
    let count = y.elements();
    l.linear(
        "eye",
        &[("T", carrier(y.dtype)?)],
        &[Operand::Output(0)],
        Params::new()
            .u(one[0] as usize)
            .u(one[1] as usize)
            .u(count)
            .u(y.shape.last().copied().unwrap_or(1))
            .i(op.k),
        count,
    );
    Ok(())
}
