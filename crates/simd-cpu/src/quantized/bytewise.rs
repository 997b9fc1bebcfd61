//! Products of bytes as they are, with their zero points: what is added to the sums of those without.
//!
//! With data `x`, weights `w`, and `z` and `v` for their zero points, the sum of `(x - z) (w - v)` over a column is that of
//! `x s`, where `s` is `w - v` less the shift that has it fit into a byte, plus `-z` times the sum of the column's `w - v`, plus
//! the shift times the sum of the row's `x`.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::tensor::AlignedBytes;
use kilim_host::{Build, CpuRun, PackKey, by};

use super::product::{Form, Run};
use super::{HIGHEST, Terms};
use crate::isa::{Fours, IntegerTask, Integers, Isa};

/// How a product is made of bytes.
pub(super) struct Bytewise {
    pub fours: Fours,
    /// What data are changed by to be what the machine takes.
    turn: u8,
    /// The data's zero point less what is multiplied for it.
    below: i16,
    /// What is taken off all weights.
    pub shift: i16,
    survey: Survey,
}

impl Bytewise {
    /// `None` where the machine multiplies no bytes, or the weights do not fit into them. They have so many channels.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub(super) fn of(
        node: &NodeSpec,
        build: &mut Build,
        isa: Isa,
        terms: &Terms,
        channels: usize,
    ) -> Result<Option<Bytewise>> {
        let Some(fours) = isa.fours() else {
            return Ok(None);
        };
        let key = PackKey {
            kind: "integer sums",
            parameters: [channels, terms.weights.name(), 0, 0],
        };
        let survey = build.pack(node, terms.place, key, |cpu| {
            let mut survey = AlignedBytes::zeroed((channels + 2) * size_of::<i32>())?;
            let numbers: &mut [i32] = bytemuck::cast_slice_mut(survey.as_mut_slice());
            let (sums, range) = numbers.split_at_mut(channels);
            let mut room = Vec::new();
            let known = terms.weights.read(cpu, &mut room)?;
            range.copy_from_slice(&known.survey(cpu, isa, sums)?.map(i32::from));
            Ok(survey)
        })?;
        let survey = Survey(survey);
        let [low, high] = survey.range();
        let (least, most) = (i8::MIN.into(), i8::MAX.into());
        let shift = match low >= least && high <= most {
            true => 0,
            false => low - least,
        };
        if high - shift > most {
            return Ok(None);
        }
        let data = terms.data;
        let (turn, below) = match (data.signed, fours.signed_data()) {
            (true, false) => (HIGHEST, -128),
            (false, true) => (HIGHEST, 128),
            _ => (0, 0),
        };
        Ok(Some(Bytewise {
            fours,
            turn,
            below,
            shift,
            survey,
        }))
    }

    /// The product with nothing taken off the weights, and the number of bytes that each is the sum of. `None` where two are
    /// too few.
    pub(super) fn in_parts(self) -> Option<(Bytewise, usize)> {
        let two = [i8::MIN, i8::MAX].map(|limit| 2 * i16::from(limit));
        let [low, high] = self.survey.range();
        let parts = if self.shift == 0 { 1 } else { 2 };
        let whole = Bytewise { shift: 0, ..self };
        (low >= two[0] && high <= two[1]).then_some((whole, parts))
    }

    /// Whether data are multiplied as they come.
    pub(super) fn takes_data(&self) -> bool {
        self.turn == 0
    }

    /// What a number of the data is multiplied as.
    #[inline(always)]
    pub(super) fn byte(&self, byte: u8) -> u8 {
        byte ^ self.turn
    }

    /// What stands for the data's zero point.
    pub(super) fn zero(&self, zero: i16) -> u8 {
        (zero - self.below) as u8
    }

    pub(super) fn copy(&self, isa: Isa, from: &[u8], to: &mut [u8]) {
        match self.turn {
            0 => to.copy_from_slice(from),
            turn => isa.dispatch_integers(Turn { turn, from, to }),
        }
    }

    /// What is added to the sums of each column. A bias that is missing has no elements.
    pub(super) fn column_bias(&self, bias: &[i32], zero: i16, to: &mut [i32]) {
        let zero = i32::from(zero - self.below);
        for (i, (to, &sum)) in to.iter_mut().zip(self.survey.sums()).enumerate() {
            let bias = bias.get(i).copied().unwrap_or(0);
            *to = bias.wrapping_sub(zero.wrapping_mul(sum));
        }
    }

    /// Elements of [`Bytewise::row_bias`] for `rows`.
    pub(super) fn row_biases(&self, rows: usize) -> usize {
        match self.shift {
            0 => 0,
            _ => rows,
        }
    }

    /// What is added to the sums of each row of A, if `to` has an element for each.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub(super) fn row_bias(
        &self,
        cpu: &CpuRun,
        a: &[u8],
        starts: &[u32],
        runs: &[Run],
        to: &mut [i32],
    ) -> Result<()> {
        let cost = runs.iter().map(|run| run.len).sum::<usize>() / 8 + 1;
        cpu.rows(to.len(), by(to, 1), cost, |piece, to, _| {
            self.fours.dispatch(RowSums {
                a,
                signed: self.fours.signed_data(),
                starts: &starts[piece],
                runs,
                factor: self.shift.into(),
                to,
            });
            Ok(())
        })
    }
}

/// The weights of each channel, added, and the smallest and the largest of all, or zero.
struct Survey(Arc<AlignedBytes>);

impl Survey {
    fn sums(&self) -> &[i32] {
        let numbers: &[i32] = bytemuck::cast_slice(self.0.as_slice());
        &numbers[..numbers.len() - 2]
    }

    fn range(&self) -> [i16; 2] {
        let numbers: &[i32] = bytemuck::cast_slice(self.0.as_slice());
        [2, 1].map(|i| numbers[numbers.len() - i] as i16)
    }
}

/// The form of a product.
pub(super) fn form(bytewise: Option<&Bytewise>) -> Form {
    bytewise.map_or(Form::Words, |b| Form::Bytes(b.fours))
}

struct Turn<'a> {
    turn: u8,
    from: &'a [u8],
    to: &'a mut [u8],
}

impl IntegerTask for Turn<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<I: Integers>(self, _: I) {
        let both = self.to.iter_mut().zip(self.from);
        both.for_each(|(to, &from)| *to = from ^ self.turn);
    }
}

/// Sums of the elements of each row of A, times a factor.
struct RowSums<'a> {
    a: &'a [u8],
    signed: bool,
    starts: &'a [u32],
    runs: &'a [Run],
    factor: i32,
    to: &'a mut [i32],
}

impl IntegerTask for RowSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Integers>(self, v: I) {
        for (to, &start) in self.to.iter_mut().zip(self.starts) {
            let mut sum = 0i32;
            for run in self.runs {
                let bytes = &self.a[start as usize + run.offset..][..run.len];
                sum = sum.wrapping_add(v.sum(bytes, self.signed));
            }
            *to = sum.wrapping_mul(self.factor);
        }
    }
}
