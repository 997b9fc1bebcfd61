//! Operators that move elements without changing them.

mod arrange;
mod blocks;
mod expand;
mod pad;
mod slice;
mod view;

pub use arrange::{Concat, ReverseSequence, Split, Transpose};
pub use blocks::{BatchBlocks, BatchToSpace, DepthToSpace, SpaceToBatch, SpaceToDepth};
pub use expand::{Expand, Tile, Trilu};
pub use pad::{CenterCropPad, CropPadAxis, Pad, PadAxis, PadMode};
pub use slice::{Slice, SliceAxis};
pub use view::{Flatten, Reshape, Squeeze, Unsqueeze};
