//! Puts functions that the same runs enter together, so that pages fetch few files, and little in them that they do not enter.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// What one file more costs a page, as bytes of code: a request, and what compression loses by a cut.
const FILE: f64 = 8000.0;

/// A function, its bytes, and the runs that enter it.
pub struct Entered<'a> {
    pub function: u32,
    pub bytes: usize,
    pub runs: &'a [u16],
}

/// A set of runs: a bit for each.
type Runs = Vec<u64>;

/// Functions that are fetched together, their bytes, the runs that fetch them, and how much these count together.
struct Cluster {
    functions: Vec<u32>,
    bytes: f64,
    runs: Runs,
    weight: f64,
}

/// What it costs all runs if two clusters are one.
struct Merge {
    cost: f64,
    pair: (usize, usize),
}

impl Ord for Merge {
    /// The cheapest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        let cost = other.cost.total_cmp(&self.cost);
        cost.then_with(|| other.pair.cmp(&self.pair))
    }
}

impl PartialOrd for Merge {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Merge {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Merge {}

/// Cuts `functions` into at most `most` clusters. A run counts as `weights` says. Begins with the functions that exactly the same runs enter, and makes one
/// of the two clusters for which that costs least, as long as it costs nothing or there are too many.
pub fn clusters(functions: &[Entered], weights: &[f64], most: usize) -> Vec<Vec<u32>> {
    let mut alike: BTreeMap<&[u16], (Vec<u32>, usize)> = BTreeMap::new();
    for Entered {
        function,
        bytes,
        runs,
    } in functions
    {
        let (functions, sum) = alike.entry(*runs).or_default();
        functions.push(*function);
        *sum += bytes;
    }
    let begin = alike.into_iter().map(|(runs, (functions, bytes))| {
        let runs = set(runs, weights.len());
        Cluster {
            functions,
            bytes: bytes as f64,
            weight: weigh(&runs, weights),
            runs,
        }
    });
    let mut all: Vec<Option<Cluster>> = begin.map(Some).collect();
    let mut left = all.len();
    let mut merges = BinaryHeap::new();
    for b in 0..all.len() {
        merges.extend((0..b).filter_map(|a| Merge::of(&all, (a, b), weights)));
    }
    while let Some(Merge { cost, pair: (a, b) }) = merges.pop() {
        if all[a].is_none() || all[b].is_none() {
            continue;
        }
        if cost >= 0.0 && left <= most {
            break;
        }
        let both = all[a].take().zip(all[b].take());
        all.push(both.map(|(a, b)| a.with(b, weights)));
        left -= 1;
        let new = all.len() - 1;
        merges.extend((0..new).filter_map(|other| Merge::of(&all, (other, new), weights)));
    }
    let mut found: Vec<Vec<u32>> = all.into_iter().flatten().map(|of| of.functions).collect();
    found.iter_mut().for_each(|functions| functions.sort());
    found.sort();
    found
}

impl Cluster {
    fn with(mut self, other: Self, weights: &[f64]) -> Self {
        self.functions.extend(other.functions);
        for (own, others) in self.runs.iter_mut().zip(&other.runs) {
            *own |= others;
        }
        Self {
            bytes: self.bytes + other.bytes,
            weight: weigh(&self.runs, weights),
            ..self
        }
    }
}

impl Merge {
    fn of(all: &[Option<Cluster>], pair: (usize, usize), weights: &[f64]) -> Option<Self> {
        let (a, b) = (all[pair.0].as_ref()?, all[pair.1].as_ref()?);
        let alone = a.weight * (a.bytes + FILE) + b.weight * (b.bytes + FILE);
        let runs: Runs = a.runs.iter().zip(&b.runs).map(|(a, b)| a | b).collect();
        let cost = weigh(&runs, weights) * (a.bytes + b.bytes + FILE) - alone;
        Some(Self { cost, pair })
    }
}

fn set(runs: &[u16], most: usize) -> Runs {
    let mut set = vec![0; most.div_ceil(64)];
    for run in runs {
        set[usize::from(run / 64)] |= 1 << (run % 64);
    }
    set
}

/// How much the runs of a set count together.
fn weigh(runs: &Runs, weights: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (word, first) in runs.iter().zip((0..).step_by(64)) {
        let mut left = *word;
        while left != 0 {
            sum += weights[first + left.trailing_zeros() as usize];
            left &= left - 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{Entered, clusters};

    fn cut(functions: &[(usize, &[u16])], most: usize) -> Vec<Vec<u32>> {
        let entered = functions
            .iter()
            .zip(0..)
            .map(|((bytes, runs), function)| Entered {
                function,
                bytes: *bytes,
                runs,
            });
        clusters(&entered.collect::<Vec<_>>(), &[1.0; 70], most)
    }

    #[test]
    fn what_the_same_runs_enter_is_together() {
        let found = cut(&[(90_000, &[1]), (90_000, &[69]), (9, &[1]), (9, &[69])], 9);
        assert_eq!(found, [[0, 2], [1, 3]]);
    }

    #[test]
    fn a_file_is_worth_its_bytes() {
        // What both enter is a file where it is large, else it stands in that of one, for which the other fetches little.
        let large: [(usize, &[u16]); 3] = [(90_000, &[1]), (90_000, &[2]), (90_000, &[1, 2])];
        assert_eq!(cut(&large, 9), [[0], [1], [2]]);
        let small: [(usize, &[u16]); 3] = [(90_000, &[1]), (500, &[2]), (900, &[1, 2])];
        assert_eq!(cut(&small, 9), [vec![0], vec![1, 2]]);
    }

    #[test]
    fn there_are_no_more_than_may_be() {
        let apart: [(usize, &[u16]); 3] = [(90_000, &[1]), (20_000, &[2]), (30_000, &[3])];
        assert_eq!(cut(&apart, 2), [vec![0], vec![1, 2]]);
        assert_eq!(cut(&apart, 1), [[0, 1, 2]]);
        assert!(cut(&[], 1).is_empty());
    }
}
