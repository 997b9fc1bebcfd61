//! Constant weights of products of integers, read where they are in the model.

use std::array::from_fn;
use std::hash::{DefaultHasher, Hash, Hasher};

use kilim_core::backend::NodeSpec;
use kilim_core::memory::vec_of;
use kilim_core::{DType, Result, Tensor};
use kilim_host::{CpuRun, by};

use super::{HIGHEST, is_signed, numbers};
use crate::isa::{IntegerTask, Integers, Isa};

/// Where the channels of weights are, those of the output.
#[derive(Clone, Copy, Debug, PartialEq, Hash)]
pub(super) enum Order {
    /// `[channels, depth]`.
    ChannelsFirst,
    /// `[depth, channels]`.
    ChannelsLast,
}

/// Weights of bytes, and their zero points.
#[derive(Debug)]
pub(super) struct Weights {
    /// Bytes of the weights, taken for unsigned ones.
    value: Tensor,
    order: Order,
    depth: usize,
    /// What makes bytes unsigned.
    turn: u8,
    /// The zero point of each channel, among unsigned bytes.
    zeros: Vec<i16>,
}

impl Weights {
    /// Weights of so many channels, and their zero points: one for all, or one for each. `None` where they are not known.
    pub(super) fn of(
        node: &NodeSpec,
        [weights, zeros]: [usize; 2],
        channels: usize,
        order: Order,
    ) -> Option<Weights> {
        let value = node.input(weights)?.value.as_ref()?;
        let signed = is_signed(value.dtype())?;
        let zeros = match node.input(zeros) {
            Some(_) => numbers(node, zeros)?,
            None => vec![0],
        };
        let below = if signed { i16::from(HIGHEST) } else { 0 };
        let zeros: Vec<_> = match zeros[..] {
            [zero] => vec![zero + below; channels],
            _ => zeros.iter().map(|zero| zero + below).collect(),
        };
        (zeros.len() == channels).then_some(())?;
        Some(Weights {
            depth: value.len() / channels.max(1),
            value: value.reinterpreted(DType::U8).ok()?,
            order,
            turn: if signed { HIGHEST } else { 0 },
            zeros,
        })
    }

    /// Weights of each channel.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// What tells these weights from others of the same constant: their order and their zero points, hashed.
    pub(super) fn name(&self) -> usize {
        let mut hasher = DefaultHasher::new();
        (self.order, &self.zeros).hash(&mut hasher);
        let hash = hasher.finish();
        (hash ^ hash >> u32::BITS) as usize
    }

    /// The weights, in `room` where the model's source has them.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub(super) fn read<'a>(&'a self, cpu: &CpuRun, room: &'a mut Vec<u8>) -> Result<Known<'a>> {
        Ok(Known {
            weights: self,
            bytes: self.value.run(cpu, 0..self.value.len(), room)?,
        })
    }
}

/// Weights that were read.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    weights: &'a Weights,
    bytes: &'a [u8],
}

impl Known<'_> {
    /// Element `k` of a channel without its zero point.
    pub(super) fn number(&self, channel: usize, k: usize) -> i16 {
        let weights = self.weights;
        let i = match weights.order {
            Order::ChannelsFirst => channel * weights.depth + k,
            Order::ChannelsLast => k * weights.zeros.len() + channel,
        };
        i16::from(self.bytes[i] ^ weights.turn) - weights.zeros[channel]
    }

    /// Writes the weights of each channel, added, and returns the smallest and the largest of all, or zero.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub(super) fn survey(&self, cpu: &CpuRun, isa: Isa, sums: &mut [i32]) -> Result<[i16; 2]> {
        let channels = sums.len();
        let (mut low, mut high) = (vec_of(0, channels)?, vec_of(0, channels)?);
        let rows = (by(sums, 1), (by(&mut low, 1), by(&mut high, 1)));
        let depth = self.weights.depth;
        cpu.rows(channels, rows, depth, |piece, (sums, (low, high)), _| {
            isa.dispatch_integers(Look {
                known: *self,
                first: piece.start,
                sums,
                low,
                high,
            });
            Ok(())
        })?;
        let (low, high) = (low.into_iter().min(), high.into_iter().max());
        Ok([low.unwrap_or(0), high.unwrap_or(0)])
    }
}

/// Looks at some channels.
struct Look<'a> {
    known: Known<'a>,
    first: usize,
    sums: &'a mut [i32],
    low: &'a mut [i16],
    high: &'a mut [i16],
}

impl IntegerTask for Look<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<I: Integers>(self, _: I) {
        let Known { weights, bytes } = self.known;
        let (depth, turn) = (weights.depth, weights.turn);
        let count = self.sums.len();
        let zeros = &weights.zeros[self.first..][..count];
        let (low, high) = (&mut self.low[..count], &mut self.high[..count]);
        match weights.order {
            Order::ChannelsFirst => {
                for (i, &zero) in zeros.iter().enumerate() {
                    let (mut sum, mut least, mut most) = (0i32, 0, 0);
                    for &byte in &bytes[(self.first + i) * depth..][..depth] {
                        let number = i16::from(byte ^ turn) - zero;
                        sum = sum.wrapping_add(number.into());
                        (least, most) = (number.min(least), number.max(most));
                    }
                    (self.sums[i], low[i], high[i]) = (sum, least, most);
                }
            }
            Order::ChannelsLast => {
                for row in bytes.chunks_exact(weights.zeros.len()) {
                    let row = &row[self.first..][..count];
                    for (i, (&byte, &zero)) in row.iter().zip(zeros).enumerate() {
                        let number = i16::from(byte ^ turn) - zero;
                        self.sums[i] = self.sums[i].wrapping_add(number.into());
                        low[i] = low[i].min(number);
                        high[i] = high[i].max(number);
                    }
                }
            }
        }
    }
}

/// Some columns of a matrix of weights, as groups of numbers.
pub(super) struct Columns<'a> {
    pub known: Known<'a>,
    /// The channel of the first column.
    pub first: usize,
    pub count: usize,
    /// What is taken off all weights.
    pub shift: i16,
}

impl Columns<'_> {
    /// Writes a group: those at the places `k` of each column. Only bits of `mask` are kept.
    #[inline(always)]
    pub(super) fn write<const GROUP: usize>(&self, k: [usize; GROUP], mask: u32, to: &mut [i32]) {
        let Known { weights, bytes } = self.known;
        let (depth, turn) = (weights.depth, weights.turn);
        let count = self.count;
        let zeros = &weights.zeros[self.first..][..count];
        let to = &mut to[..count];
        let group = |bytes: [u8; GROUP], zero: i16| {
            let bits = u32::BITS / GROUP as u32;
            let mut all = 0;
            for (i, byte) in bytes.into_iter().enumerate() {
                let number = i16::from(byte ^ turn) - zero - self.shift;
                let low = number as u32 & (u32::MAX >> (u32::BITS - bits));
                all |= low << (i as u32 * bits);
            }
            (all & mask) as i32
        };
        match weights.order {
            Order::ChannelsLast => {
                let row = |k: usize| &bytes[k * weights.zeros.len() + self.first..][..count];
                let rows = k.map(row);
                for i in 0..count {
                    to[i] = group(from_fn(|j| rows[j][i]), zeros[i]);
                }
            }
            Order::ChannelsFirst if (0..GROUP).all(|j| k[j] == k[0] + j) => {
                for i in 0..count {
                    let at = (self.first + i) * depth + k[0];
                    let from = &bytes[at..][..GROUP];
                    to[i] = group(from_fn(|j| from[j]), zeros[i]);
                }
            }
            Order::ChannelsFirst => {
                for i in 0..count {
                    let filter = &bytes[(self.first + i) * depth..][..depth];
                    to[i] = group(k.map(|k| filter[k]), zeros[i]);
                }
            }
        }
    }
}
