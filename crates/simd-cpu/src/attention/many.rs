//! Many rows: a block of keys and values is arranged for the tiles of matrix products, and multiplied with some rows at a time.

use std::ops::Range;

use kilim_core::Result;
use kilim_host::{CpuRun, Io, Kernel, Scratch, Shared};

use super::soften::{Finish, Shrink, Soften};
use super::{Head, KEYS, Plan, Run, States};
use crate::gemm::{
    Depth, Matrix, NO_CLAMP, Panels, Product, Reading, RowStarts, Rows, multiply, pack,
};

/// Rows whose scores stand in memory together: with these they stay in the first-level cache.
const ROWS: usize = 32;

/// Rows that share an arranged block, about: arranging it shall take a small part of the time.
const SHARING: usize = 256;

/// The depths of sums of values are multiples of this.
const STEP: usize = 8;

pub(super) struct Many {
    plan: Plan,
    /// Queries of each head that are computed together with those of the other heads.
    queries: usize,
    /// The depth of products of queries and keys.
    size: Depth,
    /// The depths of sums of values: [`STEP`] keys, twice as many, and so on.
    keys: Vec<Depth>,
    /// How values are arranged.
    values: Panels,
}

/// The memory of a thread.
struct Room<'a> {
    key: &'a mut [f32],
    value: &'a mut [f32],
    scores: &'a mut [f32],
    factors: &'a mut [f32],
    /// Keys or values of a block before they are arranged.
    widened: &'a mut [f32],
    states: &'a mut [f32],
}

/// A block of keys and values, arranged.
struct Block<'a> {
    keys: Range<usize>,
    key: &'a [f32],
    value: &'a [f32],
}

/// The rows of all results.
#[derive(Clone, Copy)]
struct SharedLines {
    all: Shared<f32>,
    /// The first row of a key head.
    first: usize,
}

/// Some rows of a key head, and what they have summed.
struct Part<'a> {
    head: Head<'a>,
    rows: Range<usize>,
    states: States<'a>,
    y: &'a mut [f32],
}

impl Block<'_> {
    /// Keys and the padding behind them.
    fn padded(keys: usize) -> usize {
        keys.next_multiple_of(STEP)
    }
}

impl Many {
    pub fn new(plan: Plan) -> Many {
        let (isa, group, queries) = (plan.isa, plan.sizes.group(), plan.sizes.queries);
        let each = (SHARING / group).max(ROWS) / ROWS * ROWS;
        Many {
            // What is left is no work of its own.
            queries: if queries < 2 * each { queries } else { each },
            size: Depth::dense(isa, plan.sizes.size),
            keys: (1..=KEYS / STEP)
                .map(|n| Depth::dense(isa, n * STEP))
                .collect(),
            values: Panels::new(isa, plan.sizes.value_size),
            plan,
        }
    }

    /// Pieces of work of a key head.
    fn pieces(&self) -> usize {
        self.plan.sizes.queries.div_ceil(self.queries)
    }

    /// Elements of each part of a thread's memory.
    fn sizes(&self) -> [usize; 6] {
        let rows = self.plan.sizes.group().saturating_mul(self.queries);
        [
            self.plan.sizes.size * KEYS,
            self.values.elements(KEYS),
            ROWS * KEYS,
            ROWS,
            self.plan.widened(),
            rows.saturating_mul(2),
        ]
    }

    fn room<'a>(&self, memory: &'a mut [f32]) -> Room<'a> {
        let [key, value, scores, factors, widened, _] = self.sizes();
        let (key, rest) = memory.split_at_mut(key);
        let (value, rest) = rest.split_at_mut(value);
        let (scores, rest) = rest.split_at_mut(scores);
        let (factors, rest) = rest.split_at_mut(factors);
        let (widened, states) = rest.split_at_mut(widened);
        Room {
            key,
            value,
            scores,
            factors,
            widened,
            states,
        }
    }

    /// The rows of a piece, in runs that are computed together: where there are several pieces, each within a head.
    fn runs(&self, piece: usize) -> impl Iterator<Item = Range<usize>> + Clone {
        let (all, group) = (self.plan.sizes.queries, self.plan.sizes.group());
        let first = piece * self.queries;
        let count = self.queries.min(all - first);
        let (heads, rows) = match self.pieces() {
            1 => (1, group * all),
            _ => (group, count),
        };
        (0..heads).flat_map(move |head| {
            let start = head * all + first;
            (0..rows)
                .step_by(ROWS)
                .map(move |row| start + row..start + rows.min(row + ROWS))
        })
    }

    /// All results of a piece.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn piece(
        &self,
        cpu: &CpuRun,
        head: Head,
        piece: usize,
        y: SharedLines,
        room: Room,
    ) -> Result<()> {
        let value_size = self.plan.sizes.value_size;
        let runs = self.runs(piece);
        let rows: usize = runs.clone().map(|rows| rows.len()).sum();
        let mut states = States::new(&mut room.states[..2 * rows]);
        let mut seen: Option<Range<usize>> = None;
        for own in runs.clone().map(|rows| head.seen_by(rows)) {
            seen = match seen {
                _ if own.is_empty() => seen,
                None => Some(own),
                Some(all) => Some(all.start.min(own.start)..all.end.max(own.end)),
            };
        }
        let lines = |rows: &Range<usize>| {
            let (first, count) = (y.first + rows.start, rows.len());
            // SAFETY: rows of this piece alone, and the latest part of them is gone.
            unsafe { y.all.part(first * value_size, count * value_size) }
        };
        let seen = seen.unwrap_or(0..0);
        for start in (seen.start..seen.end).step_by(KEYS) {
            let keys = start..seen.end.min(start + KEYS);
            let panels = [&mut *room.key, &mut *room.value];
            let block = self.arrange(cpu, head, keys, panels, room.widened)?;
            let mut first = 0;
            for rows in runs.clone() {
                let state = first..first + rows.len();
                first = state.end;
                let part = Part {
                    head,
                    y: lines(&rows),
                    rows,
                    states: states.part(state),
                };
                self.add(cpu, &block, part, room.scores, room.factors)?;
            }
        }
        let mut first = 0;
        for rows in runs {
            let state = first..first + rows.len();
            first = state.end;
            self.plan.isa.dispatch(Finish {
                head,
                y: lines(&rows),
                rows,
                states: states.part(state),
            });
        }
        Ok(())
    }

    /// Keys and values of a block in panels.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn arrange<'a>(
        &self,
        cpu: &CpuRun,
        head: Head,
        keys: Range<usize>,
        [key, value]: [&'a mut [f32]; 2],
        widened: &mut [f32],
    ) -> Result<Block<'a>> {
        let (size, value_size) = (self.plan.sizes.size, self.plan.sizes.value_size);
        let matrix = Matrix {
            rows: RowStarts::even(size, 1),
            column_stride: size,
            reading: Reading::PLAIN.times(self.plan.scale),
        };
        let isa = self.plan.isa;
        let elements = keys.start * size..keys.end * size;
        let from = head.key.floats(isa, elements, widened);
        pack(cpu, Panels::new(isa, keys.len()), matrix, from, key)?;
        let matrix = Matrix {
            rows: RowStarts::even(keys.len(), value_size),
            column_stride: 1,
            reading: Reading::PLAIN,
        };
        let padded = Block::padded(keys.len());
        let elements = keys.start * value_size..keys.end * value_size;
        let from = head.value.floats(isa, elements, widened);
        for (first, width) in self.values.each() {
            let used = width.min(value_size - first);
            let panel = &mut value[first * padded..][..width * padded];
            let (panel, padding) = panel.split_at_mut(width * keys.len());
            matrix.panel(cpu, &from[first..], used, width, panel)?;
            padding.fill(0.0);
        }
        Ok(Block { keys, key, value })
    }

    /// Adds what some rows see of a block; the first block that they see anything of begins the sums.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn add(
        &self,
        cpu: &CpuRun,
        block: &Block,
        Part {
            head,
            rows,
            states,
            y,
        }: Part,
        scores: &mut [f32],
        factors: &mut [f32],
    ) -> Result<()> {
        let (plan, isa) = (&self.plan, self.plan.isa);
        let (size, value_size) = (plan.sizes.size, plan.sizes.value_size);
        let all = head.seen_by(rows.clone());
        let (start, end) = (all.start.max(block.keys.start), all.end.min(block.keys.end));
        if start >= end {
            return Ok(());
        }
        // Whole panels of keys and whole steps of values.
        let within = start - block.keys.start..end - block.keys.start;
        let panel = isa.tile_vectors() * isa.lanes();
        let columns =
            within.start / panel * panel..within.end.next_multiple_of(panel).min(block.keys.len());
        let query = &head.query[rows.start * size..rows.end * size];
        let products = Product {
            isa,
            a: query.as_ptr(),
            rows: Rows::Strided(size),
            depth: &self.size,
            b: block.key.as_ptr().into(),
            m: rows.len(),
            n: block.keys.len(),
            c: scores.as_mut_ptr(),
            c_stride: KEYS,
            bias: std::ptr::null(),
            residual: std::ptr::null(),
            clamp: NO_CLAMP,
        };
        assert!(rows.len() <= ROWS && scores.len() >= ROWS * KEYS);
        // SAFETY: `query` has a row for each of the rows, the block's keys are packed for this instruction set with the depth
        // of a key, and a row of scores has room for all keys of a block.
        unsafe { multiply(&products.columns(columns), cpu)? }
        let weights = within.start / STEP * STEP..Block::padded(within.end);
        let factors = &mut factors[..rows.len()];
        cpu.spend(rows.len() * within.len() / isa.lanes())?;
        isa.dispatch(Soften {
            head,
            rows: rows.clone(),
            keys: block.keys.clone(),
            scores,
            stride: KEYS,
            scale: 1.0,
            weights: weights.clone(),
            states,
            factors,
        });
        let begun = all.start < block.keys.start;
        if begun {
            isa.dispatch(Shrink { y, factors });
        }
        assert_eq!(y.len(), rows.len() * value_size);
        let padded = Block::padded(block.keys.len());
        for (first, width) in self.values.each() {
            let c = y.as_mut_ptr().wrapping_add(first);
            let panel = &block.value[first * padded..][..width * padded];
            let sums = Product {
                isa,
                a: scores.as_ptr().wrapping_add(weights.start),
                rows: Rows::Strided(KEYS),
                depth: &self.keys[weights.len() / STEP - 1],
                b: panel[weights.start * width..].as_ptr().into(),
                m: rows.len(),
                n: width.min(value_size - first),
                c,
                c_stride: value_size,
                bias: std::ptr::null(),
                residual: if begun { c } else { std::ptr::null() },
                clamp: NO_CLAMP,
            };
            // SAFETY: a row of scores has as many weights from the first one on, and so many rows of the panel are packed;
            // `y` has a row for each of the rows, in which the panel's columns are. Only the residual is C itself.
            unsafe { multiply(&sums, cpu)? }
        }
        Ok(())
    }
}

impl Kernel for Many {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, plan) = (io.cpu(), &self.plan);
        let y = io.output::<f32>(0);
        let run = Run::new(plan, io);
        let size = self.sizes().iter().sum();
        let memory = io.thread_scratch::<f32>(size);
        let heads = plan.sizes.batch * plan.sizes.key_heads;
        let pieces = self.pieces();
        let cost = plan.cost(plan.rows().div_ceil(pieces), plan.sizes.keys);
        let all = Shared::new(y);
        cpu.rows_with(heads * pieces, (), memory, cost, |some, (), memory, cpu| {
            for i in some {
                let (head, piece) = (i / pieces, i % pieces);
                let first = head * plan.rows();
                let y = SharedLines { all, first };
                self.piece(cpu, run.head(head), piece, y, self.room(memory))?;
            }
            Ok(())
        })
    }

    fn scratch(&self) -> Scratch {
        let all = self.sizes().into_iter().fold(0, usize::saturating_add);
        Scratch::on_each_thread::<f32>(all)
    }
}
