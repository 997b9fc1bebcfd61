//! Puts functions that the same runs enter together, so that pages fetch few files, and little in them that they do not enter.

use super::moves::{self, Group, Kind};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// What one file more costs a page, as bytes of code: a request, and what compression loses by a cut.
pub const FILE: f64 = 8000.0;

/// A function, its bytes, and the runs that enter it.
pub struct Entered<'a> {
    pub function: u32,
    pub bytes: usize,
    pub runs: &'a [u16],
}

/// The runs: the kind of each, and the kinds.
pub struct Kinds {
    pub of: Vec<usize>,
    pub kinds: Vec<Kind>,
}

impl Kinds {
    /// How much each run counts.
    fn weights(&self) -> Vec<f64> {
        let kinds = self.of.iter().map(|kind| &self.kinds[*kind]);
        kinds.map(|kind| kind.weight / kind.runs as f64).collect()
    }

    /// Runs by their kinds.
    fn sorted(&self, runs: &[u16]) -> Vec<(usize, Vec<u16>)> {
        let mut of_kind: BTreeMap<usize, Vec<u16>> = BTreeMap::new();
        for run in runs {
            let kind = self.of[usize::from(*run)];
            of_kind.entry(kind).or_default().push(*run);
        }
        of_kind.into_iter().collect()
    }
}

/// A set of runs: a bit for each.
type Runs = Vec<u64>;

/// Groups that are fetched together, their bytes, the runs that fetch them, and how much these count together.
struct Cluster {
    groups: Vec<usize>,
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

/// Cuts `functions` into at most `most` clusters. Begins with the functions that exactly the same runs enter, makes one
/// of the two clusters for which that costs least, as long as it costs nothing or there are too many, and then moves functions from cluster to
/// cluster where all runs together fetch less for it.
pub fn clusters(functions: &[Entered], kinds: &Kinds, most: usize) -> Vec<Vec<u32>> {
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
    let weights = kinds.weights();
    let begin = alike.iter().enumerate().map(|(i, (runs, (_, bytes)))| {
        let runs = set(runs, weights.len());
        Cluster {
            groups: vec![i],
            bytes: *bytes as f64,
            weight: weigh(&runs, &weights),
            runs,
        }
    });
    let mut places = vec![0; alike.len()];
    let merged = merged(begin, &weights, most);
    for (place, cluster) in merged.iter().enumerate() {
        for group in cluster {
            places[*group] = place;
        }
    }
    let groups = alike.iter().map(|(runs, (_, bytes))| Group {
        bytes: *bytes as f64,
        runs: kinds.sorted(runs),
    });
    let groups: Vec<Group> = groups.collect();
    moves::improve(&groups, &kinds.kinds, merged.len(), &mut places);
    let mut found = vec![Vec::new(); merged.len()];
    for (place, (functions, _)) in places.into_iter().zip(alike.into_values()) {
        found[place].extend(functions);
    }
    found.retain(|functions| !functions.is_empty());
    found.iter_mut().for_each(|functions| functions.sort());
    found.sort();
    found
}

/// The groups of each cluster after merging two at a time.
fn merged(begin: impl Iterator<Item = Cluster>, weights: &[f64], most: usize) -> Vec<Vec<usize>> {
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
    all.into_iter().flatten().map(|of| of.groups).collect()
}

impl Cluster {
    fn with(mut self, other: Self, weights: &[f64]) -> Self {
        self.groups.extend(other.groups);
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
    each(runs).map(|run| weights[run]).sum()
}

/// The numbers of the runs of a set.
fn each(runs: &Runs) -> impl Iterator<Item = usize> {
    runs.iter()
        .zip((0..).step_by(64))
        .flat_map(|(word, first)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let run = (left != 0).then(|| first + left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(run)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::{Entered, Kind, Kinds, clusters};

    fn cut(functions: &[(usize, &[u16])], most: usize) -> Vec<Vec<u32>> {
        let entered = functions
            .iter()
            .zip(0..)
            .map(|((bytes, runs), function)| Entered {
                function,
                bytes: *bytes,
                runs,
            });
        let kind = Kind {
            runs: 1,
            weight: 1.0,
            beforehand: false,
        };
        let kinds = Kinds {
            of: (0..70).collect(),
            kinds: vec![kind; 70],
        };
        clusters(&entered.collect::<Vec<_>>(), &kinds, most)
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
    fn a_merge_is_not_for_ever() {
        // Merges alone leave run 3 its own file, and what both enter in that of run 2.
        let functions: [(usize, &[u16]); 4] = [
            (90_000, &[1]),
            (90_000, &[3]),
            (10_000, &[1, 3]),
            (30_000, &[2]),
        ];
        let found = cut(&functions, 2);
        assert_eq!(found, [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn there_are_no_more_than_may_be() {
        let apart: [(usize, &[u16]); 3] = [(90_000, &[1]), (20_000, &[2]), (30_000, &[3])];
        assert_eq!(cut(&apart, 2), [vec![0], vec![1, 2]]);
        assert_eq!(cut(&apart, 1), [[0, 1, 2]]);
        assert!(cut(&[], 1).is_empty());
    }
}
