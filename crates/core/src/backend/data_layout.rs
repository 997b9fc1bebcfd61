//! Orders in which the elements of a spatial tensor can be stored.

use std::fmt;

use crate::error::{Result, shape_error};
use crate::tensor::{Tensor, element_count};

/// How a tensor of batch, channels and any number of spatial dimensions is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataLayout {
    /// `[N, C, H, W]`, as ONNX has it.
    ChannelsFirst,
    /// `[N, H, W, C]`, as TFLite has it.
    ChannelsLast,
    /// `[N, ceil(C / b), H, W, b]`, the last block filled up with zeros; `NC4HW4` is `Blocked(4)`.
    Blocked(usize),
}

impl fmt::Display for DataLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataLayout::ChannelsFirst => f.write_str("NCHW"),
            DataLayout::ChannelsLast => f.write_str("NHWC"),
            DataLayout::Blocked(b) => write!(f, "NC{b}HW{b}"),
        }
    }
}

impl DataLayout {
    /// Reads `NCHW`, `NHWC`, `NC4HW4` and other blocks like it.
    pub fn parse(text: &str) -> Option<DataLayout> {
        match text {
            "NCHW" => Some(DataLayout::ChannelsFirst),
            "NHWC" => Some(DataLayout::ChannelsLast),
            _ => {
                let (outer, inner) = text.strip_prefix("NC")?.split_once("HW")?;
                let block: usize = outer.parse().ok()?;
                (outer == inner && block > 0).then_some(DataLayout::Blocked(block))
            }
        }
    }

    /// Channels that lie side by side.
    fn block(self, channels: usize) -> usize {
        match self {
            DataLayout::ChannelsFirst => 1,
            DataLayout::ChannelsLast => channels.max(1),
            DataLayout::Blocked(b) => b.max(1),
        }
    }

    /// The shape in which a tensor is stored whose shape is `[N, C, …]`.
    ///
    /// # Errors
    /// `Shape` where there are no channels.
    pub fn stored(self, shape: &[usize]) -> Result<Vec<usize>> {
        let [n, c, spatial @ ..] = shape else {
            return Err(no_channels(shape));
        };
        let mut stored = vec![*n];
        match self {
            DataLayout::ChannelsFirst => return Ok(shape.to_vec()),
            DataLayout::ChannelsLast => {
                stored.extend(spatial);
                stored.push(*c);
            }
            DataLayout::Blocked(_) => {
                let block = self.block(*c);
                stored.push(c.div_ceil(block));
                stored.extend(spatial);
                stored.push(block);
            }
        }
        Ok(stored)
    }

    /// The shape `[N, C, …]` of a tensor that is stored in this layout as `stored`; `channels` where
    /// the last block may not be full.
    ///
    /// # Errors
    /// `Shape` where nothing is stored so.
    pub fn logical(self, stored: &[usize], channels: Option<usize>) -> Result<Vec<usize>> {
        let mut shape = stored.to_vec();
        match (self, stored) {
            (DataLayout::ChannelsFirst, [_, _, ..]) => {}
            (DataLayout::ChannelsLast, [_, .., _]) => shape[1..].rotate_right(1),
            (DataLayout::Blocked(b), [_, blocks, .., block]) if *block == b => {
                shape.pop();
                shape[1] = channels.unwrap_or(blocks.saturating_mul(b));
                if shape[1].div_ceil(b.max(1)) != *blocks {
                    return Err(shape_error(format!("{blocks} blocks of {b} channels"))
                        .with_expected(format!("as many as {} channels need", shape[1])));
                }
            }
            _ => return Err(no_channels(stored)),
        }
        Ok(shape)
    }

    /// Rearranges `tensor`, which stores a tensor of shape `[N, C, …]` in this layout, into `to`.
    ///
    /// # Errors
    /// `Shape` where the tensor does not have the stored shape; `Limit` where memory is short.
    pub fn convert(self, tensor: &Tensor, shape: &[usize], to: DataLayout) -> Result<Tensor> {
        let stored = self.stored(shape)?;
        if tensor.shape() != stored {
            return Err(shape_error(format!("the tensor is not stored as {self}"))
                .with_expected(format!("{stored:?}"))
                .with_got(format!("{:?}", tensor.shape())));
        }
        if self == to {
            return Ok(tensor.clone());
        }
        let target = to.stored(shape)?;
        let size = tensor.dtype().size();
        let bytes = element_count(&target)?.checked_mul(size);
        let bytes = bytes.ok_or_else(|| no_channels(shape))?;
        let mut out = crate::tensor::AlignedBytes::zeroed(bytes)?;
        let (n, c) = (shape[0], shape[1]);
        let points: usize = shape[2..].iter().product();
        let (from, into) = (self.block(c), to.block(c));
        let (source, target_bytes) = (tensor.read()?, out.as_mut_slice());
        let at = |block: usize, n: usize, c: usize, channels: usize, p: usize| {
            ((n * channels.div_ceil(block) + c / block) * points + p) * block + c % block
        };
        for n in 0..n {
            for ch in 0..c {
                for p in 0..points {
                    let s = at(from, n, ch, c, p) * size;
                    let t = at(into, n, ch, c, p) * size;
                    target_bytes[t..t + size].copy_from_slice(&source[s..s + size]);
                }
            }
        }
        Tensor::from_bytes(tensor.dtype(), &target, std::sync::Arc::new(out))
    }
}

fn no_channels(shape: &[usize]) -> crate::Error {
    shape_error(format!("a tensor of shape {shape:?} has no layout"))
        .with_expected("batch, channels and any number of spatial dimensions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;

    /// Elements that tell where they belong: `n`, `c`, `h`, `w` as decimal digits.
    fn image(n: usize, c: usize, h: usize, w: usize) -> Tensor {
        let mut data = Vec::new();
        for i in 0..n * c * h * w {
            let (rest, x) = (i / w, i % w);
            let (rest, y) = (rest / h, rest % h);
            data.push(((rest / c) * 1000 + (rest % c) * 100 + y * 10 + x) as i32);
        }
        Tensor::from_slice(&[n, c, h, w], &data).unwrap()
    }

    #[test]
    fn elements_are_where_the_layout_says() {
        let shape = [2, 5, 2, 3];
        let x = image(2, 5, 2, 3);
        let first = DataLayout::ChannelsFirst;
        let last = first.convert(&x, &shape, DataLayout::ChannelsLast).unwrap();
        assert_eq!(last.shape(), [2, 2, 3, 5]);
        assert_eq!(
            last.as_slice::<i32>().unwrap()[..6],
            [0, 100, 200, 300, 400, 1]
        );
        let blocked = first.convert(&x, &shape, DataLayout::Blocked(4)).unwrap();
        assert_eq!(blocked.shape(), [2, 2, 2, 3, 4]);
        let data = blocked.as_slice::<i32>().unwrap();
        assert_eq!(data[..8], [0, 100, 200, 300, 1, 101, 201, 301]);
        assert_eq!(data[24..32], [400, 0, 0, 0, 401, 0, 0, 0]);
    }

    #[test]
    fn every_way_round_leads_back() {
        let layouts = ["NCHW", "NHWC", "NC4HW4", "NC8HW8"].map(|l| DataLayout::parse(l).unwrap());
        for (n, c, h, w) in [(1, 1, 1, 1), (2, 5, 2, 3), (1, 8, 3, 1), (0, 3, 2, 2)] {
            let shape = [n, c, h, w];
            let x = image(n, c, h, w);
            for a in layouts {
                let at_a = DataLayout::ChannelsFirst.convert(&x, &shape, a).unwrap();
                assert_eq!(a.logical(at_a.shape(), Some(c)).unwrap(), shape);
                for b in layouts {
                    let at_b = a.convert(&at_a, &shape, b).unwrap();
                    let back = b.convert(&at_b, &shape, DataLayout::ChannelsFirst).unwrap();
                    assert_eq!(back, x, "{a} {b} {shape:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_not_stored_so_is_refused() {
        let x = image(1, 3, 2, 2);
        let wrong = DataLayout::ChannelsLast.convert(&x, &[1, 3, 2, 2], DataLayout::Blocked(4));
        assert_eq!(wrong.unwrap_err().code(), ErrorCode::Shape);
        assert!(DataLayout::ChannelsFirst.stored(&[7]).is_err());
        assert_eq!(DataLayout::parse("NC4HW8"), None);
    }
}
