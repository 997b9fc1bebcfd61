//! Moves what the same runs enter from cluster to cluster: merges that seemed best one after the other need not be together.

use super::clusters::{FILE, Runs, each};

/// Functions that exactly the same runs enter.
pub struct Group {
    pub bytes: f64,
    pub runs: Runs,
}

/// Passes over all groups. A pass costs more than the last ones of many save.
const PASSES: usize = 20;

/// Groups that are fetched together.
#[derive(Clone)]
struct Cluster {
    bytes: f64,
    /// How many of its groups each run enters.
    entered: Vec<u32>,
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

/// Moves groups between `count` clusters, each from its place in `places` to where all runs pay least, while that saves something.
/// A run counts as `weights` says.
pub fn improve(groups: &[Group], weights: &[f64], count: usize, places: &mut [usize]) {
    let none = Cluster {
        bytes: 0.0,
        entered: vec![0; weights.len()],
        weight: 0.0,
    };
    let mut clusters = vec![none; count];
    for (group, place) in groups.iter().zip(&*places) {
        clusters[*place].take(group, weights);
    }
    for _ in 0..PASSES {
        let mut moved = false;
        for (group, place) in groups.iter().zip(&mut *places) {
            let own = &clusters[*place];
            // Sums of other orders differ in their last digits.
            let least = own.cost() * 1e-9;
            let alone = sum(group, weights, |run| own.entered[run] == 1);
            let saved = own.cost() - cost(own.weight - alone, own.bytes - group.bytes);
            let more = |to: &Cluster| {
                let new = sum(group, weights, |run| to.entered[run] == 0);
                cost(to.weight + new, to.bytes + group.bytes) - to.cost()
            };
            let others = (0..count).filter(|other| other != place);
            let costs = others.map(|other| (more(&clusters[other]), other));
            let Some((more, to)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                return;
            };
            if saved - more > least {
                clusters[*place].leave(group, weights);
                clusters[to].take(group, weights);
                *place = to;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
}

impl Cluster {
    fn take(&mut self, group: &Group, weights: &[f64]) {
        self.weight += sum(group, weights, |run| self.entered[run] == 0);
        self.bytes += group.bytes;
        each(&group.runs).for_each(|run| self.entered[run] += 1);
    }

    fn leave(&mut self, group: &Group, weights: &[f64]) {
        self.weight -= sum(group, weights, |run| self.entered[run] == 1);
        self.bytes -= group.bytes;
        each(&group.runs).for_each(|run| self.entered[run] -= 1);
    }
}

/// How much those runs of a group count that `which` takes.
fn sum(group: &Group, weights: &[f64], which: impl Fn(usize) -> bool) -> f64 {
    let runs = each(&group.runs).filter(|run| which(*run));
    runs.map(|run| weights[run]).sum()
}
