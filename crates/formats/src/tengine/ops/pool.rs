//! Pooling (`operator/prototype/pooling.c`, `device/cpu/op/pooling/pooling_kernel_ref_fp32.c`).

use kilim_core::error::unsupported;
use kilim_core::ops::{Padding, Window};

use super::Outputs;
use crate::build::PoolKind;
use crate::tengine::import::Import;
use crate::tengine::node::Node;

/// The bit of the flavour that counts the padding in means (`COUNT_INCLUDE_PAD_MSK`).
const COUNTS_PADDING: i64 = 0x10;

pub fn pooling(imp: &mut Import, node: &Node) -> Outputs {
    let x = node.input(0)?;
    let params = node.params()?;
    let flavour = params.int(6)?;
    let kind = match params.int(0)? {
        0 => PoolKind::Maximum,
        1 => PoolKind::Mean {
            counts_padding: flavour != 0,
        },
        other => return Err(unsupported(format!("pooling number {other}"))),
    };
    let kernel = [node.count(1)?, node.count(2)?];
    let pads = [params.int(7)?, params.int(8)?];
    let whole = (0..2).all(|i| imp.length(x, i + 2) == Some(kernel[i]));
    if params.int(5)? != 0 || whole && pads == [0, 0] {
        return Ok(vec![imp.reduce(kind.reduction(), x, &[2, 3], true)?]);
    }
    let kernel = vec![node.positive(1)?, node.positive(2)?];
    let strides = vec![node.positive(3)?, node.positive(4)?];
    // The padding behind is as large as that in front, whatever the file says.
    let (padding, ceil_mode) = match (pads.map(usize::try_from), flavour & !COUNTS_PADDING) {
        ([Ok(h), Ok(w)], 1) => (vec![h, w, h, w], true),
        // What is padded behind beyond what is in front does not count, whatever the flavour.
        ([Ok(h), Ok(w)], 2) if kind != PoolKind::Maximum && (h % 2, w % 2) != (0, 0) => {
            return Err(unsupported("means with more padding behind than in front"));
        }
        ([Ok(h), Ok(w)], 2) => (vec![h / 2, w / 2, h - h / 2, w - w / 2], false),
        ([Ok(h), Ok(w)], _) => (vec![h, w, h, w], false),
        ([Err(_), Err(_)], _) if kernel[0] >= strides[0] && kernel[1] >= strides[1] => {
            let window = Window {
                dilations: vec![1; 2],
                kernel,
                strides,
                padding: Padding::SameUpper,
                ceil_mode: false,
            };
            return Ok(vec![imp.pool(kind, x, window)?]);
        }
        _ => return Err(unsupported("paddings that are found along some axes")),
    };
    let window = Window {
        dilations: vec![1; 2],
        kernel,
        strides,
        padding: Padding::Explicit(padding),
        ceil_mode,
    };
    Ok(vec![imp.pool(kind, x, window)?])
}
