//! The order of dimensions of pictures.

use kilim_core::error::{Result, unsupported};

/// How a tensor lies, as far as the order of its dimensions goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `[n, c, spatial..]`, as ONNX and PyTorch have it.
    Nchw,
    /// `[n, spatial.., c]`, as TensorFlow has it.
    Nhwc,
    /// Dimensions in the order of NCHW; four channels lie side by side in MNN's memory, which does not matter here.
    Nc4hw4,
}

impl Layout {
    /// The layout of a number in the schema (`MNN_DATA_FORMAT`).
    ///
    /// # Errors
    /// `Unsupported` for others.
    pub fn of(number: i8) -> Result<Layout> {
        match number {
            0 => Ok(Layout::Nchw),
            1 => Ok(Layout::Nhwc),
            2 => Ok(Layout::Nc4hw4),
            other => Err(unsupported(format!("the layout number {other}"))),
        }
    }

    /// Whether channels are the last dimension.
    pub fn channels_last(self) -> bool {
        self == Layout::Nhwc
    }

    /// The dimension of channels in a tensor of this rank.
    pub fn channel(self, rank: usize) -> usize {
        match self.channels_last() {
            true => rank.saturating_sub(1),
            false => 1,
        }
    }

    /// The first dimension of pictures behind the batch that is no channel.
    pub fn spatial(self) -> usize {
        match self.channels_last() {
            true => 1,
            false => 2,
        }
    }
}

/// The order of dimensions that brings a tensor of this rank from one layout to another; nothing where it is in that order already.
pub fn permutation(from: Layout, to: Layout, rank: usize) -> Option<Vec<usize>> {
    if rank <= 2 || from.channels_last() == to.channels_last() {
        return None;
    }
    let mut order: Vec<usize> = (0..rank).collect();
    match to.channels_last() {
        true => order[1..].rotate_left(1),
        false => order[1..].rotate_right(1),
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::{Layout, permutation};

    #[test]
    fn channels_move_over_spatial_dimensions() {
        let (first, last) = (Layout::Nchw, Layout::Nhwc);
        assert_eq!(permutation(first, last, 4), Some(vec![0, 2, 3, 1]));
        assert_eq!(permutation(last, Layout::Nc4hw4, 4), Some(vec![0, 3, 1, 2]));
        assert_eq!(permutation(first, Layout::Nc4hw4, 4), None);
        assert_eq!(permutation(first, last, 2), None);
    }
}
