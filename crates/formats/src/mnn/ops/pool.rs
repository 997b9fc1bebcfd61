//! Pooling (`source/shape/ShapePool.cpp`, `source/backend/cpu/CPUPool.cpp`).

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, AveragePool, MaxPool, Padding, ReduceKind, Window};

use super::Outputs;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::op::Op;

/// The tables of parameters.
const POOL: u8 = 31;
const POOL_3D: u8 = 79;

/// What a window gives, and how its place is found.
struct Pooling {
    mean: bool,
    global: bool,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    padding: Padding,
    rounds_up: bool,
    counts_padding: bool,
}

/// The operator Pooling.
pub fn pooling(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(POOL)?;
    let listed = p.sizes(11)?;
    let pads = match &listed[..] {
        [] => {
            let (x, y) = (p.size(0, 0)?, p.size(1, 0)?);
            vec![y, x, y, x]
        }
        [begin, end] => vec![*begin, 0, *end, 0],
        [top, left, bottom, right] => vec![*top, *left, *bottom, *right],
        _ => return Err(invalid("a padding has neither two nor four sides")),
    };
    let global = p.flag(2, false)?;
    let (padding, named) = match p.choice(8)? {
        0 => (Padding::Explicit(pads), true),
        1 => (Padding::Valid, false),
        2 => (Padding::SameUpper, false),
        other => {
            return Err(unsupported(format!(
                "the padding number {other} of pooling"
            )));
        }
    };
    // Paddings without a list count in means unless the file says otherwise.
    let counts_padding = match p.choice(12)? {
        0 => named && listed.is_empty(),
        1 => true,
        _ => false,
    };
    if counts_padding && padding == Padding::SameUpper {
        return Err(unsupported("paddings that are found and count in means"));
    }
    let pooling = Pooling {
        mean: p.choice(7)? == 1,
        global,
        kernel: sizes(global, [p.size(4, 0)?, p.size(3, 0)?])?,
        strides: sizes(global, [p.size(6, 0)?, p.size(5, 0)?])?,
        padding,
        rounds_up: named && p.flag(10, true)?,
        counts_padding,
    };
    pooled(imp, op, pooling)
}

/// The operator Pooling3D.
pub fn pooling_3d(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(POOL_3D)?;
    let mut pads = p.sizes(2)?;
    match pads.len() {
        0 => pads = vec![0; 6],
        3 => pads.extend_from_within(..),
        _ => {}
    }
    let global = p.flag(5, false)?;
    let (padding, named) = match p.choice(4)? {
        0 => (Padding::Explicit(pads), true),
        1 => (Padding::Valid, false),
        2 => (Padding::SameUpper, false),
        other => {
            return Err(unsupported(format!(
                "the padding number {other} of pooling"
            )));
        }
    };
    let three = |slot| -> Result<Vec<usize>> {
        let sizes = <[usize; 3]>::try_from(p.sizes(slot)?);
        match sizes {
            _ if global => Ok(Vec::new()),
            Ok(three) if !three.contains(&0) => Ok(three.to_vec()),
            _ => Err(invalid("pooling of volumes has no kernel of three sizes")),
        }
    };
    let pooling = Pooling {
        mean: p.choice(3)? == 1,
        global,
        kernel: three(1)?,
        strides: three(0)?,
        padding,
        rounds_up: false,
        counts_padding: false,
    };
    if named && pooling.mean && pooling.padding != Padding::Explicit(vec![0; 6]) {
        return Err(unsupported("means of volumes with a padding"));
    }
    pooled(imp, op, pooling)
}

/// Sizes that must not be 0 but where the window is the whole picture.
fn sizes(global: bool, sizes: [usize; 2]) -> Result<Vec<usize>> {
    match !global && sizes.contains(&0) {
        true => Err(invalid("a kernel or a stride is 0")),
        false => Ok(sizes.to_vec()),
    }
}

/// Pooling of pictures, or of rows, which are pictures of a width of 1.
fn pooled(imp: &mut Import, op: &Op, pooling: Pooling) -> Outputs {
    let x = op.input(0)?;
    if op.outputs() > 1 {
        return Err(unsupported("the places of maxima"));
    }
    let row = imp.rank(x)? == 3 && pooling.kernel.len() == 2 && !op.layout().channels_last();
    if !row || pooling.global {
        return Ok(vec![windows(imp, op, x, pooling)?]);
    }
    let picture = imp.unsqueeze(x, &[3])?;
    let y = windows(imp, op, picture, pooling)?;
    Ok(vec![imp.squeeze(y, &[3])?])
}

fn windows(imp: &mut Import, op: &Op, x: ValueId, mut pooling: Pooling) -> Result<ValueId> {
    let first = op.layout().spatial() as i64;
    if pooling.global {
        let kind = if pooling.mean {
            ReduceKind::Mean
        } else {
            ReduceKind::Max
        };
        let rank = imp.rank(x)? as i64;
        let last = rank - i64::from(op.layout().channels_last());
        let axes: Vec<i64> = (first..last).collect();
        return imp.reduce(kind, x, &axes, true);
    }
    let axes = pooling.kernel.len();
    let mut ceil_mode = false;
    for i in 0..axes {
        let (begin, end) = match &pooling.padding {
            Padding::Explicit(sides) if sides.len() == 2 * axes => (sides[i], sides[axes + i]),
            Padding::Explicit(_) => return Err(invalid("a padding has too few sides")),
            _ => (0, 0),
        };
        let stride = pooling.strides[i];
        let Some(n) = imp.length(x, first + i as i64).known() else {
            if pooling.rounds_up && stride > 1 {
                ceil_mode = true;
                reaches_data(end.saturating_add(stride) <= pooling.kernel[i])?;
            }
            continue;
        };
        let padded = n.checked_add(begin).and_then(|n| n.checked_add(end));
        let padded = padded.ok_or_else(|| invalid("a padding is too large"))?;
        // A window is never larger than what it goes over.
        pooling.kernel[i] = pooling.kernel[i].min(padded).max(1);
        let room = padded.saturating_sub(pooling.kernel[i]);
        if pooling.rounds_up && room % stride != 0 {
            ceil_mode = true;
            reaches_data(room.div_ceil(stride).saturating_mul(stride) < n.saturating_add(begin))?;
        }
    }
    let window = Window {
        dilations: vec![1; axes],
        kernel: pooling.kernel,
        strides: pooling.strides,
        padding: pooling.padding,
        ceil_mode,
    };
    let channels_last = op.layout().channels_last();
    match pooling.mean {
        true => imp.op(
            AveragePool {
                window,
                count_include_pad: pooling.counts_padding,
                channels_last,
                activation: Activation::None,
            },
            &[x],
        ),
        false => imp.op(
            MaxPool {
                window,
                column_major: false,
                channels_last,
            },
            &[x],
        ),
    }
}

/// `Unsupported` where a last window begins behind the data: other formats leave it out, MNN does not.
fn reaches_data(it_does: bool) -> Result<()> {
    match it_does {
        true => Ok(()),
        false => Err(unsupported("a window that begins behind the data")),
    }
}
