//! Attention of `float32`, block of keys by block of keys, so that the scores of all queries and keys never stand in memory (Dao et
//! al. 2022).
//!
//! The queries of all heads that share a key head are rows of one matrix. A block of scores becomes weights with a running
//! maximum and sum ([`soften`]); where a later block has a larger score, what was summed is scaled down. A few rows are
//! multiplied as they are ([`few`]), many by the tiles of matrix products ([`many`]). How the work is cut follows from the shapes
//! alone, so that the number of threads changes no bit.

mod few;
mod many;
mod soften;
#[cfg(test)]
mod tests;

use std::ops::Range;

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::Attention;
use kilim_host::Kernel;
use kilim_host::elements::broadcast_strides_into;
use kilim_host::registry::KernelRegistry;
use kilim_reference_cpu::attention::{Seen, Sight, Sizes, has_steps};

use self::few::Few;
use super::isa::{Isa, Simd, Task};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add_in_place::<Attention, Few>(
        |op, node| accepts(op, node, |rows| rows <= FEW),
        |op, node, _| few(op, node, Isa::best()),
    );
    registry.add::<Attention>(
        |op, node| accepts(op, node, |rows| rows > FEW),
        |op, node, _| kernel(op, node, Isa::best()),
    );
}

/// Whether the node is one for these kernels, and of as many rows as `fits` says.
fn accepts(op: &Attention, node: &NodeSpec, fits: fn(usize) -> bool) -> Result<(), Refusal> {
    let float = |i| node.input(i).is_none_or(|s| s.dtype == DType::F32);
    let stored = |i| has_steps(node) || float(i);
    if ![0, 3, 6].into_iter().all(float) || ![1, 2].into_iter().all(stored) {
        return Err(Refusal::new(
            "the SIMD attention: neither float32 nor keys and values of int8",
        ));
    }
    let refused = match Plan::of(op, node, Isa::best()) {
        Some(plan) if fits(plan.rows()) => return Ok(()),
        Some(_) => "the SIMD attention: another number of rows",
        None => "the SIMD attention: an empty tensor, or heads of very many numbers",
    };
    Err(Refusal::new(refused))
}

fn planned(op: &Attention, node: &NodeSpec, isa: Isa) -> kilim_core::Result<Plan> {
    Plan::of(op, node, isa).ok_or_else(|| unsupported("attention of these shapes"))
}

fn few(op: &Attention, node: &NodeSpec, isa: Isa) -> kilim_core::Result<Few> {
    Ok(Few::new(planned(op, node, isa)?))
}

fn kernel(op: &Attention, node: &NodeSpec, isa: Isa) -> kilim_core::Result<Box<dyn Kernel>> {
    let plan = planned(op, node, isa)?;
    Ok(match plan.rows() {
        0..=FEW => Box::new(Few::new(plan)),
        _ => Box::new(many::Many::new(plan)),
    })
}

/// Keys whose scores are computed together. A multiple of all vectors.
const KEYS: usize = 128;

/// Rows that are multiplied with keys as they lie: arranging these for tiles takes as long as a dozen rows.
const FEW: usize = 12;

/// Numbers of a key or value; of more a block of them is no longer small.
const LARGEST: usize = 1024;

/// What a node asks for.
#[derive(Clone, Debug)]
struct Plan {
    isa: Isa,
    sizes: Sizes,
    /// Keys and values are `int8`.
    steps: bool,
    sight: Sight,
    scale: f32,
    softcap: Option<f32>,
    zeros: bool,
    /// How far apart elements of the bias are along its four dimensions.
    bias: [usize; 4],
}

impl Plan {
    fn of(op: &Attention, node: &NodeSpec, isa: Isa) -> Option<Plan> {
        let sizes = Sizes::of(node).ok()?;
        let Sizes {
            batch,
            heads,
            key_heads,
            queries,
            keys,
            size,
            value_size,
        } = sizes;
        let all = [batch, heads, key_heads, queries, keys, size, value_size];
        let fits = size <= LARGEST && value_size <= LARGEST && keys <= isize::MAX as usize;
        if all.contains(&0) || !fits || !heads.is_multiple_of(key_heads) {
            return None;
        }
        let mut strides = [0; 4];
        if let Some(bias) = node.input(3) {
            broadcast_strides_into(&bias.shape, &mut strides);
        }
        Some(Plan {
            isa,
            sizes,
            steps: has_steps(node),
            sight: Sight::new(op, &sizes),
            scale: op.scale,
            softcap: op.softcap,
            zeros: op.zeros,
            bias: strides.map(|n| n as usize),
        })
    }

    /// The queries that share a key head: of all its query heads, one head behind the other.
    fn rows(&self) -> usize {
        self.sizes.group() * self.sizes.queries
    }

    /// Elements in which a block of keys or of values is widened; none where they are `float32`.
    fn widened(&self) -> usize {
        match self.steps {
            true => KEYS * self.sizes.size.max(self.sizes.value_size),
            false => 0,
        }
    }

    /// What scores of so many rows and keys cost a `Meter`, and what is done with them.
    fn cost(&self, rows: usize, keys: usize) -> usize {
        let each = self.sizes.size + self.sizes.value_size;
        let products = self.isa.cost(rows.saturating_mul(keys) * each);
        let exponentials = rows.saturating_mul(keys) / self.isa.lanes();
        // Memory gives about sixteen bytes in a nanosecond.
        let read = keys.saturating_mul(each) / 4;
        products.max(read).saturating_add(exponentials).max(1)
    }
}

/// The tensors of a run.
struct Run<'a> {
    plan: &'a Plan,
    query: &'a [f32],
    key: Stored<'a>,
    value: Stored<'a>,
    bias: Option<&'a [f32]>,
    sinks: Option<&'a [f32]>,
    seen: Seen<'a>,
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan, io: &kilim_host::Io<'a>) -> Run<'a> {
        Run {
            plan,
            query: io.input(0),
            key: Stored::of(io, 1, plan.steps),
            value: Stored::of(io, 2, plan.steps),
            bias: io.optional(3),
            sinks: io.optional(6),
            seen: plan.sight.seen(io.optional(4), io.optional(5)),
        }
    }

    /// A key head of all batches.
    fn head(&'a self, head: usize) -> Head<'a> {
        let plan = self.plan;
        let (rows, keys) = (plan.rows(), plan.sizes.keys);
        let of = |lines: usize, size: usize| head * lines * size..(head + 1) * lines * size;
        Head {
            run: self,
            batch: head / plan.sizes.key_heads,
            first_head: head % plan.sizes.key_heads * plan.sizes.group(),
            query: &self.query[of(rows, plan.sizes.size)],
            key: self.key.part(of(keys, plan.sizes.size)),
            value: self.value.part(of(keys, plan.sizes.value_size)),
        }
    }
}

/// The tensors of a key head.
#[derive(Clone, Copy)]
struct Head<'a> {
    run: &'a Run<'a>,
    batch: usize,
    /// The first query head that reads it, in the batch.
    first_head: usize,
    /// [`Plan::rows`] of them.
    query: &'a [f32],
    key: Stored<'a>,
    value: Stored<'a>,
}

/// Keys or values as they are in memory.
#[derive(Clone, Copy)]
enum Stored<'a> {
    Floats(&'a [f32]),
    Steps(&'a [i8]),
}

impl<'a> Stored<'a> {
    fn of(io: &kilim_host::Io<'a>, input: usize, steps: bool) -> Stored<'a> {
        match steps {
            true => Stored::Steps(io.input(input)),
            false => Stored::Floats(io.input(input)),
        }
    }

    fn part(self, elements: Range<usize>) -> Stored<'a> {
        match self {
            Stored::Floats(all) => Stored::Floats(&all[elements]),
            Stored::Steps(all) => Stored::Steps(&all[elements]),
        }
    }

    /// Some elements as `float32`, those of `int8` widened into `room`.
    fn floats<'s>(self, isa: Isa, elements: Range<usize>, room: &'s mut [f32]) -> &'s [f32]
    where
        'a: 's,
    {
        match self.part(elements) {
            Stored::Floats(floats) => floats,
            Stored::Steps(steps) => {
                let room = &mut room[..steps.len()];
                isa.dispatch(Widen { steps, room });
                room
            }
        }
    }
}

struct Widen<'a> {
    steps: &'a [i8],
    room: &'a mut [f32],
}

impl Task for Widen<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (to, &from) in self.room.iter_mut().zip(self.steps) {
            *to = from.into();
        }
    }
}

impl<'a> Head<'a> {
    fn plan(&self) -> &'a Plan {
        self.run.plan
    }

    /// The keys that a row sees.
    fn seen(&self, row: usize) -> Range<usize> {
        let query = row % self.plan().sizes.queries;
        self.run.seen.keys(self.batch, query)
    }

    /// The smallest range with all keys that one of the rows sees.
    fn seen_by(&self, rows: Range<usize>) -> Range<usize> {
        let mut all: Option<Range<usize>> = None;
        // The rows of several heads see what those of one see.
        let rows = rows.start..rows.end.min(rows.start + self.plan().sizes.queries);
        for seen in rows.map(|row| self.seen(row)).filter(|s| !s.is_empty()) {
            all = Some(match all {
                None => seen,
                Some(all) => all.start.min(seen.start)..all.end.max(seen.end),
            });
        }
        all.unwrap_or(0..0)
    }

    /// The query head of a row, in the batch.
    fn head_of(&self, row: usize) -> usize {
        self.first_head + row / self.plan().sizes.queries
    }

    /// What is added to the scores of a row and some keys: as many numbers as keys, or one for all.
    fn bias(&self, row: usize, keys: Range<usize>) -> Option<&'a [f32]> {
        let [batch, head, query, key] = self.plan().bias;
        let all = self.run.bias?;
        let at = self.batch * batch
            + self.head_of(row) * head
            + row % self.plan().sizes.queries * query
            + keys.start * key;
        Some(match key {
            0 => &all[at..at + 1],
            _ => &all[at..at + keys.len()],
        })
    }
}

/// The largest score of each row so far, and the sum of the weights relative to it.
struct States<'a> {
    largest: &'a mut [f32],
    sums: &'a mut [f32],
}

impl States<'_> {
    /// States of rows that have seen nothing, in as many elements twice.
    fn new(memory: &mut [f32]) -> States<'_> {
        let (largest, sums) = memory.split_at_mut(memory.len() / 2);
        largest.fill(f32::NEG_INFINITY);
        sums.fill(0.0);
        States { largest, sums }
    }

    fn part(&mut self, rows: Range<usize>) -> States<'_> {
        States {
            largest: &mut self.largest[rows.clone()],
            sums: &mut self.sums[rows],
        }
    }
}
