//! Pooling as the formats of networks for pictures have it.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, AveragePool, MaxPool, Padding, ReduceKind, Window};

use super::GraphBuilder;

/// Windows of different sizes along an axis that are written out.
const MOST_WINDOWS: i64 = 64;

/// What is made of a window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    Maximum,
    Mean {
        /// Whether numbers of the padding count.
        counts_padding: bool,
    },
}

impl PoolKind {
    /// What is made of a window as large as the data.
    pub fn reduction(self) -> ReduceKind {
        match self {
            PoolKind::Maximum => ReduceKind::Max,
            PoolKind::Mean { .. } => ReduceKind::Mean,
        }
    }
}

/// The padding behind an axis of `n` elements with which windows reach its end; `None` where the first window is larger than all.
pub fn covering(n: usize, kernel: usize, stride: usize, begin: usize, end: usize) -> Option<usize> {
    let room = n
        .checked_add(begin)?
        .checked_add(end)?
        .checked_sub(kernel)?;
    end.checked_add(room.checked_next_multiple_of(stride)? - room)
}

impl GraphBuilder {
    /// Pooling by windows.
    pub fn pool(&mut self, kind: PoolKind, x: ValueId, window: Window) -> Result<ValueId> {
        match kind {
            PoolKind::Maximum => {
                let pool = MaxPool {
                    window,
                    column_major: false,
                    channels_last: false,
                };
                self.op(pool, &[x])
            }
            PoolKind::Mean { counts_padding } => {
                let pool = AveragePool {
                    window,
                    count_include_pad: counts_padding,
                    channels_last: false,
                    activation: Activation::None,
                };
                self.op(pool, &[x])
            }
        }
    }

    /// `parts` windows that divide the `n` elements of one axis behind the channels. They overlap where `n` is no multiple.
    ///
    /// # Errors
    /// `Unsupported` where there are many windows of different sizes.
    pub fn pool_into(
        &mut self,
        kind: PoolKind,
        x: ValueId,
        axis: i64,
        n: i64,
        parts: i64,
    ) -> Result<ValueId> {
        if parts == n {
            return Ok(x);
        }
        if parts < 1 || parts > MOST_WINDOWS && n % parts != 0 {
            return Err(unsupported("adaptive pooling of so many windows"));
        }
        if n % parts == 0 {
            let axes = self.rank(x)? - 2;
            let mut kernel = vec![1; axes];
            kernel[axis as usize - 2] = (n / parts) as usize;
            let window = Window {
                strides: kernel.clone(),
                dilations: vec![1; axes],
                kernel,
                padding: Padding::Valid,
                ceil_mode: false,
            };
            return self.pool(kind, x, window);
        }
        let mut made = Vec::new();
        for i in 0..parts {
            // A dimension that a file says may be any `int64`.
            let [n, i, parts] = [n, i, parts].map(i128::from);
            let (begin, end) = (n * i / parts, (n * (i + 1) + parts - 1) / parts);
            let part = self.slice(x, axis, begin as i64, end as i64)?;
            made.push(self.reduce(kind.reduction(), part, &[axis], true)?);
        }
        self.concat(&made, axis)
    }
}

#[cfg(test)]
mod tests {
    use super::covering;

    #[test]
    fn padding_reaches_the_end_of_the_last_window() {
        assert_eq!(covering(7, 3, 2, 0, 0), Some(0));
        assert_eq!(covering(8, 3, 2, 0, 0), Some(1));
        assert_eq!(covering(8, 3, 2, 1, 1), Some(2));
        assert_eq!(covering(2, 3, 2, 0, 0), None);
        assert_eq!(covering(usize::MAX, 3, 2, 1, 0), None);
    }
}
