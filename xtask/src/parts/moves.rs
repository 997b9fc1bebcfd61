//! Moves what the same runs enter from cluster to cluster: merges that seemed best one after the other need not be together. Moves
//! that cost something are made, too, at first, and fewer and fewer of them: simulated annealing (Kirkpatrick, Gelatt and
//! Vecchi, Science 220, 1983).

use super::clusters::FILE;

/// Functions that exactly the same runs enter.
pub struct Group {
    pub bytes: f64,
    /// The runs of each kind.
    pub runs: Vec<(usize, Vec<u16>)>,
}

/// A kind of runs.
#[derive(Clone, Copy)]
pub struct Kind {
    pub runs: usize,
    /// How much its runs count together.
    pub weight: f64,
    /// Whether pages with its models fetch what half of its runs enter before they know what theirs do.
    pub beforehand: bool,
}

impl Kind {
    /// How much its runs count that fetch a file which so many of them enter.
    fn pays(&self, entered: usize) -> f64 {
        match self.beforehand && 2 * entered >= self.runs && entered > 0 {
            true => self.weight,
            false => self.weight * entered as f64 / self.runs as f64,
        }
    }
}

/// Passes over all groups. A pass costs more than the last ones of many save.
const PASSES: usize = 20;

/// Moves that are tried: with four times as many all runs pay less by one in a hundred.
const TRIES: usize = 30_000_000;

/// What a move may cost at first, as a part of what all runs pay: of those between 0.0001 and 0.002 what ended best.
const HEAT: f64 = 3e-4;

/// Groups that are fetched together.
#[derive(Clone)]
struct Cluster {
    bytes: f64,
    /// How many of its groups each run enters.
    entered: Vec<u32>,
    /// How many runs of each kind enter it.
    of_kind: Vec<usize>,
    /// How much the runs that fetch it count together.
    weight: f64,
}

impl Cluster {
    /// What its bytes cost all runs.
    fn cost(&self) -> f64 {
        cost(self.weight, self.bytes)
    }
}

/// What runs that count `weight` together pay for a file.
fn cost(weight: f64, bytes: f64) -> f64 {
    weight * (bytes + FILE)
}

/// Moves groups between `count` clusters, each from its place in `places`, so that all runs pay little. The same
/// groups end in the same places.
pub fn improve(groups: &[Group], kinds: &[Kind], count: usize, places: &mut [usize]) {
    if groups.is_empty() || count < 2 {
        return;
    }
    descend(groups, kinds, count, places);
    anneal(groups, kinds, count, places);
    descend(groups, kinds, count, places);
}

fn clusters(groups: &[Group], kinds: &[Kind], count: usize, places: &[usize]) -> Vec<Cluster> {
    let none = Cluster {
        bytes: 0.0,
        entered: vec![0; kinds.iter().map(|kind| kind.runs).sum()],
        of_kind: vec![0; kinds.len()],
        weight: 0.0,
    };
    let mut clusters = vec![none; count];
    for (group, place) in groups.iter().zip(places) {
        clusters[*place].take(group, kinds);
    }
    clusters
}

/// Moves each group to where all runs pay least, while that saves something.
fn descend(groups: &[Group], kinds: &[Kind], count: usize, places: &mut [usize]) {
    let mut clusters = clusters(groups, kinds, count, places);
    for _ in 0..PASSES {
        let mut moved = false;
        for (group, place) in groups.iter().zip(&mut *places) {
            let own = &clusters[*place];
            // Sums of other orders differ in their last digits.
            let least = own.cost() * 1e-9;
            let saved = own.saved(group, kinds);
            let others = (0..count).filter(|other| other != place);
            let costs = others.map(|other| (clusters[other].more(group, kinds), other));
            let Some((more, to)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                return;
            };
            if saved - more > least {
                clusters[*place].leave(group, kinds);
                clusters[to].take(group, kinds);
                *place = to;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
}

/// Tries moves by chance, and leaves the places where they were best.
fn anneal(groups: &[Group], kinds: &[Kind], count: usize, places: &mut [usize]) {
    let mut clusters = clusters(groups, kinds, count, places);
    let heat = HEAT * clusters.iter().map(Cluster::cost).sum::<f64>();
    let mut chance = fastrand::Rng::with_seed(1);
    let mut now = places.to_vec();
    // What all runs pay beyond what they did at first.
    let (mut cost, mut least) = (0.0, 0.0);
    for left in (0..TRIES).rev() {
        let (i, to) = (chance.usize(..groups.len()), chance.usize(..count));
        let (group, from) = (&groups[i], now[i]);
        if from == to {
            continue;
        }
        let more = clusters[to].more(group, kinds) - clusters[from].saved(group, kinds);
        let heat = heat * (left as f64 / TRIES as f64).powi(2);
        if more < 0.0 || chance.f64() < (-more / heat).exp() {
            clusters[from].leave(group, kinds);
            clusters[to].take(group, kinds);
            now[i] = to;
            cost += more;
            if cost < least {
                least = cost;
                places.copy_from_slice(&now);
            }
        }
    }
}

impl Cluster {
    /// What it would cost less without a group of its own.
    fn saved(&self, group: &Group, kinds: &[Kind]) -> f64 {
        let weight = self.weight + self.change(group, kinds, 1);
        self.cost() - cost(weight, self.bytes - group.bytes)
    }

    /// What it would cost more with a group.
    fn more(&self, group: &Group, kinds: &[Kind]) -> f64 {
        let weight = self.weight + self.change(group, kinds, 0);
        cost(weight, self.bytes + group.bytes) - self.cost()
    }

    /// How much its weight changes with those runs of a group that enter `others` of its groups: none, and they come; one,
    /// and they go.
    fn change(&self, group: &Group, kinds: &[Kind], others: u32) -> f64 {
        let of_kind = group.runs.iter().map(|(kind, runs)| {
            let runs = runs.iter();
            let changed = runs.filter(|run| self.entered[usize::from(**run)] == others);
            let (changed, before) = (changed.count(), self.of_kind[*kind]);
            let after = match others {
                0 => before + changed,
                _ => before - changed,
            };
            kinds[*kind].pays(after) - kinds[*kind].pays(before)
        });
        of_kind.sum()
    }

    fn take(&mut self, group: &Group, kinds: &[Kind]) {
        self.weight += self.change(group, kinds, 0);
        self.bytes += group.bytes;
        for (kind, runs) in &group.runs {
            for run in runs {
                let entered = &mut self.entered[usize::from(*run)];
                self.of_kind[*kind] += usize::from(*entered == 0);
                *entered += 1;
            }
        }
    }

    fn leave(&mut self, group: &Group, kinds: &[Kind]) {
        self.weight += self.change(group, kinds, 1);
        self.bytes -= group.bytes;
        for (kind, runs) in &group.runs {
            for run in runs {
                let entered = &mut self.entered[usize::from(*run)];
                *entered -= 1;
                self.of_kind[*kind] -= usize::from(*entered == 0);
            }
        }
    }
}
