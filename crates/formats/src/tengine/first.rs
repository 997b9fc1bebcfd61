//! Files of version 1 (0.1 in their headers), each structure as one of version 2.
//!
//! Older sources of Tengine describe them, below `serializer/`: `include/tengine/v1/tm1_format.h`, and `tengine/v1/tm1_op_load.cpp` with what
//! the loader takes for what the files do not have (OAID/Tengine at 17f0e15c, of 2019).

use super::file::Word::{self, At, Element, Flag, Is, Shape};
use super::ops;

pub static MODEL: [Word; 3] = [Is(0), Is(0), At(0)];

pub static GRAPH: [Word; 8] = [At(0), Is(0), Is(0), At(1), At(2), At(3), At(4), At(5)];

pub static OPERATOR: [Word; 3] = [Is(0), At(0), At(1)];

pub static TENSOR: [Word; 8] = [
    At(0),
    At(1),
    At(2),
    At(3),
    Is(0),
    Is(0),
    Flag(16),
    Element(17),
];

/// Both sides are padded alike, and the file does not have the number of inputs.
static CONVOLUTION: [Word; 14] = [
    At(0),
    At(1),
    At(2),
    At(3),
    At(6),
    At(7),
    Is(0),
    At(8),
    At(9),
    At(14),
    At(4),
    At(5),
    At(4),
    At(5),
];

/// Squares only, in one group, and no function behind.
static DECONVOLUTION: [Word; 15] = [
    At(3),
    At(0),
    At(0),
    At(1),
    At(1),
    At(2),
    At(2),
    At(2),
    At(2),
    At(4),
    At(4),
    Is(1),
    Is(-1),
    Is(0),
    Is(0),
];

static POOLING: [Word; 11] = [
    At(0),
    At(1),
    At(2),
    At(5),
    At(6),
    At(7),
    At(8),
    At(13),
    At(14),
    At(15),
    At(16),
];

static LRN: [Word; 7] = [At(0), At(1), At(2), At(3), At(4), Is(0), Is(0)];

static RESHAPE: [Word; 4] = [Is(0), Is(0), Shape, Is(0)];

/// Equal parts along an axis.
static SLICE: [Word; 10] = [
    At(0),
    Is(0),
    Is(0),
    Is(0),
    Is(1),
    Is(0),
    Is(0),
    Is(0),
    Is(0),
    Is(0),
];

/// Copies. The file has no parameters.
static SPLIT: [Word; 4] = [Is(0), Is(0), Is(1), Is(0)];

/// The parameters of an operator; `None` where they stand as in version 2.
pub fn params(operator: u32) -> Option<&'static [Word]> {
    Some(match operator {
        ops::CONVOLUTION => &CONVOLUTION,
        6 => &DECONVOLUTION,
        13 => &LRN,
        16 => &POOLING,
        23 => &RESHAPE,
        27 => &SLICE,
        ops::SPLIT => &SPLIT,
        _ => return None,
    })
}
