//! Places the nodes of a stage on backends: asks every backend about every concrete node, takes the
//! first in the order of preference, then prices what crosses.

use crate::backend::{BackendId, Description, Refusal};
use crate::ops::Cost;

/// How freely the partitioner may leave the order of preference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The first backend that takes a node gets it; only islands that cost more in crossings than
    /// they save, beside a larger share of the graph on the same backend, go elsewhere.
    #[default]
    Prefer,
    /// Whatever is priced cheapest, even if nothing is left on the preferred backend.
    Priced,
    /// The first backend that takes a node gets it, whatever crosses.
    Fixed,
}

/// A node as the partitioner sees it.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// For each backend, in the order of preference: the cost, or why it refuses.
    pub answers: Vec<Result<Cost, Refusal>>,
    /// Values read, as indices into the byte counts.
    pub reads: Vec<usize>,
    pub writes: Vec<usize>,
}

/// The index of each node's backend, or the nodes that nobody takes.
pub fn place(
    nodes: &[Candidate],
    bytes: &[usize],
    backends: &[&Description],
    placement: Placement,
) -> Result<Vec<usize>, Vec<usize>> {
    let mut at = Vec::with_capacity(nodes.len());
    let mut homeless = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        let first = node.answers.iter().position(Result::is_ok);
        if first.is_none() {
            homeless.push(i);
        }
        at.push(first.unwrap_or(0));
    }
    if !homeless.is_empty() {
        return Err(homeless);
    }
    if placement != Placement::Fixed && backends.len() > 1 {
        let links = links(nodes, bytes.len());
        for _ in 0..3 {
            if !improve(nodes, bytes, backends, placement, &links, &mut at) {
                break;
            }
        }
    }
    Ok(at)
}

/// For each value, the node that writes it and the nodes that read it.
struct Link {
    writer: Option<usize>,
    readers: Vec<usize>,
}

fn links(nodes: &[Candidate], values: usize) -> Vec<Link> {
    let mut links: Vec<Link> = (0..values)
        .map(|_| Link {
            writer: None,
            readers: Vec::new(),
        })
        .collect();
    for (i, node) in nodes.iter().enumerate() {
        for &v in &node.writes {
            links[v].writer = Some(i);
        }
        for &v in &node.reads {
            links[v].readers.push(i);
        }
    }
    links
}

/// Seconds that a node takes on a backend.
fn seconds(cost: &Cost, on: &Description) -> f64 {
    let s = &on.speed;
    s.kernel_start + (cost.flops / s.flops_per_second).max(cost.bytes / s.bytes_per_second)
}

fn crossing(bytes: usize, a: &Description, b: &Description) -> f64 {
    let one = |d: &Description| {
        if d.memory == crate::backend::Memory::Host {
            return 0.0;
        }
        d.speed.transfer_start + bytes as f64 / d.speed.transfer_bytes_per_second
    };
    one(a) + one(b)
}

/// Groups of nodes on one backend that are connected by values.
fn islands(nodes: &[Candidate], links: &[Link], at: &[usize]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; nodes.len()];
    let mut islands = Vec::new();
    for start in 0..nodes.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut island = Vec::new();
        let mut queue = vec![start];
        while let Some(i) = queue.pop() {
            island.push(i);
            let around = nodes[i]
                .reads
                .iter()
                .filter_map(|&v| links[v].writer)
                .chain(
                    nodes[i]
                        .writes
                        .iter()
                        .flat_map(|&v| links[v].readers.iter().copied()),
                );
            for j in around {
                if !seen[j] && at[j] == at[i] {
                    seen[j] = true;
                    queue.push(j);
                }
            }
        }
        island.sort_unstable();
        islands.push(island);
    }
    islands
}

fn improve(
    nodes: &[Candidate],
    bytes: &[usize],
    backends: &[&Description],
    placement: Placement,
    links: &[Link],
    at: &mut [usize],
) -> bool {
    let islands = islands(nodes, links, at);
    let work = |island: &[usize], on: usize| -> Option<f64> {
        island.iter().try_fold(0.0, |sum, &i| {
            let cost = nodes[i].answers[on].as_ref().ok()?;
            Some(sum + seconds(cost, backends[on]))
        })
    };
    let flops = |island: &[usize]| -> f64 {
        island
            .iter()
            .filter_map(|&i| nodes[i].answers[at[i]].as_ref().ok())
            .map(|c| c.flops + c.bytes)
            .sum()
    };
    let mut largest: Vec<(f64, usize)> = vec![(-1.0, usize::MAX); backends.len()];
    for (k, island) in islands.iter().enumerate() {
        let b = at[island[0]];
        let f = flops(island);
        if f > largest[b].0 {
            largest[b] = (f, k);
        }
    }
    let mut changed = false;
    for (k, island) in islands.iter().enumerate() {
        let here = at[island[0]];
        if placement == Placement::Prefer && largest[here].1 == k {
            continue;
        }
        let edges = |on: usize| -> f64 {
            let inside = |i: usize| island.binary_search(&i).is_ok();
            let mut sum = 0.0;
            for &i in island {
                for &v in &nodes[i].reads {
                    match links[v].writer {
                        Some(w) if inside(w) => {}
                        Some(w) if at[w] == on => {}
                        Some(w) => sum += crossing(bytes[v], backends[at[w]], backends[on]),
                        None => sum += crossing(bytes[v], backends[on], backends[on]) / 2.0,
                    }
                }
                for &v in &nodes[i].writes {
                    let mut outside = links[v].readers.iter().filter(|&&r| !inside(r)).peekable();
                    if links[v].readers.is_empty() {
                        sum += crossing(bytes[v], backends[on], backends[on]) / 2.0;
                    }
                    if let Some(&r) = outside.find(|&&r| at[r] != on) {
                        sum += crossing(bytes[v], backends[on], backends[at[r]]);
                    }
                }
            }
            sum
        };
        let Some(stay) = work(island, here).map(|w| w + edges(here)) else {
            continue;
        };
        let best = (0..backends.len())
            .filter(|&b| b != here)
            .filter_map(|b| work(island, b).map(|w| (w + edges(b), b)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((cost, b)) = best
            && cost < stay
        {
            for &i in island {
                at[i] = b;
            }
            changed = true;
        }
    }
    changed
}

/// One sentence about a node that no backend takes.
pub fn reasons(candidate: &Candidate, backends: &[BackendId]) -> String {
    let parts: Vec<String> = backends
        .iter()
        .zip(&candidate.answers)
        .filter_map(|(id, a)| a.as_ref().err().map(|r| format!("{id}: {}", r.reason)))
        .collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Memory, Speed};

    fn device(id: &'static str, memory: Memory, flops: f64) -> Description {
        Description {
            id: BackendId::new(id),
            device: String::new(),
            memory,
            dtypes: Vec::new(),
            alignment: 64,
            max_tensor_bytes: u64::MAX,
            max_arena_bytes: u64::MAX,
            speed: Speed {
                flops_per_second: flops,
                bytes_per_second: flops,
                kernel_start: 1e-5,
                transfer_start: 1e-4,
                transfer_bytes_per_second: 1e9,
            },
        }
    }

    fn node(reads: &[usize], writes: &[usize], answers: &[Option<f64>]) -> Candidate {
        Candidate {
            answers: answers
                .iter()
                .map(|a| match a {
                    Some(flops) => Ok(Cost {
                        flops: *flops,
                        bytes: 0.0,
                    }),
                    None => Err(Refusal::new("no")),
                })
                .collect(),
            reads: reads.to_vec(),
            writes: writes.to_vec(),
        }
    }

    #[test]
    fn a_small_side_island_joins_its_neighbours() {
        let gpu = device("gpu", Memory::Device, 1e12);
        let cpu = device("cpu", Memory::Host, 1e10);
        let nodes = [
            node(&[0], &[1], &[Some(1e10), Some(1e10)]),
            node(&[1], &[2], &[None, Some(1e3)]),
            node(&[2], &[3], &[Some(1e3), Some(1e3)]),
            node(&[3], &[4], &[None, Some(1e3)]),
        ];
        let at = place(&nodes, &[64; 5], &[&gpu, &cpu], Placement::Prefer).unwrap();
        assert_eq!(at, [0, 1, 1, 1]);
        let at = place(&nodes, &[64; 5], &[&gpu, &cpu], Placement::Fixed).unwrap();
        assert_eq!(at, [0, 1, 0, 1]);
    }

    #[test]
    fn nodes_that_nobody_takes_are_all_listed() {
        let cpu = device("cpu", Memory::Host, 1e10);
        let nodes = [node(&[0], &[1], &[None]), node(&[1], &[2], &[None])];
        assert_eq!(
            place(&nodes, &[4; 3], &[&cpu], Placement::Prefer),
            Err(vec![0, 1])
        );
    }
}
