//! What a placement costs: work by the speed of each backend, and what crosses between them.

use super::Candidate;
use crate::backend::{DataLayout, Description, Memory, Speed};
use crate::fact::Cost;
use crate::ids::{BackendIndex, PerBackend};

/// A backend as the prices see it.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    pub memory: Memory,
    pub speed: Speed,
    /// The layout of data here, where transposes between layouts are no nodes yet: what crosses to a site with another
    /// one is priced with a transpose.
    pub layout: DataLayout,
}

impl Site {
    /// The site of a backend by its own description, where nothing was measured.
    pub fn of(description: &Description) -> Site {
        Site {
            memory: description.memory,
            speed: description.speed,
            layout: DataLayout::ChannelsFirst,
        }
    }

    /// Seconds for bringing a value into another layout here.
    fn turn(&self, bytes: usize) -> f64 {
        self.speed.seconds(&Cost {
            flops: 0.0,
            bytes: 2.0 * bytes as f64,
        })
    }

    /// Seconds between this backend's memory and the host's.
    fn transfer(&self, bytes: usize) -> f64 {
        match self.memory {
            Memory::Host => 0.0,
            Memory::Device => {
                self.speed.transfer_start + bytes as f64 / self.speed.transfer_bytes_per_second
            }
        }
    }
}

/// The node that writes a value, and the nodes that read it.
#[derive(Clone, Default)]
struct Link {
    writer: Option<usize>,
    readers: Vec<usize>,
}

/// The nodes of a stage with everything that their prices need.
pub struct CostModel<'a> {
    nodes: &'a [Candidate],
    bytes: &'a [usize],
    pub sites: &'a PerBackend<Site>,
    links: Vec<Link>,
}

impl<'a> CostModel<'a> {
    /// `bytes` are those of each value; a site is a place where nodes may run.
    pub fn new(
        nodes: &'a [Candidate],
        bytes: &'a [usize],
        sites: &'a PerBackend<Site>,
    ) -> CostModel<'a> {
        let mut links = vec![Link::default(); bytes.len()];
        for (i, node) in nodes.iter().enumerate() {
            for &v in &node.writes {
                links[v].writer = Some(i);
            }
            for &v in &node.reads {
                links[v].readers.push(i);
            }
        }
        CostModel {
            nodes,
            bytes,
            sites,
            links,
        }
    }

    /// Nodes that share a value with node `i`.
    pub fn neighbours(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let node = &self.nodes[i];
        let before = node.reads.iter().filter_map(|&v| self.links[v].writer);
        let after = node.writes.iter().flat_map(|&v| &self.links[v].readers);
        before.chain(after.copied())
    }

    /// Whether backend `b` takes every node.
    pub fn takes(&self, b: BackendIndex) -> bool {
        self.nodes.iter().all(|n| n.answers[b].is_ok())
    }

    /// How much of the stage an island on backend `b` is.
    pub fn size(&self, island: &[usize], b: BackendIndex) -> f64 {
        let costs = island
            .iter()
            .filter_map(|&i| self.nodes[i].answers[b].as_ref().ok());
        costs.map(|c| c.flops + c.bytes).sum()
    }

    fn crossing(&self, value: usize, from: BackendIndex, to: BackendIndex) -> f64 {
        let bytes = self.bytes[value];
        let (from, to) = (&self.sites[from], &self.sites[to]);
        let turned = match from.layout == to.layout {
            true => 0.0,
            false => from.turn(bytes).min(to.turn(bytes)),
        };
        from.transfer(bytes) + to.transfer(bytes) + turned
    }

    fn work(
        &self,
        nodes: impl Iterator<Item = usize>,
        at: impl Fn(usize) -> BackendIndex,
    ) -> Option<f64> {
        let mut sum = 0.0;
        for i in nodes {
            let cost = self.nodes[i].answers[at(i)].as_ref().ok()?;
            sum += self.sites[at(i)].speed.seconds(cost);
        }
        Some(sum)
    }

    /// Seconds of an island and of what crosses its border if it were on backend `on`, while all
    /// others are where `at` says; `None` where the backend does not take it whole.
    pub fn island(&self, island: &[usize], on: BackendIndex, at: &[BackendIndex]) -> Option<f64> {
        let mut sum = self.work(island.iter().copied(), |_| on)?;
        let inside = |i: usize| island.binary_search(&i).is_ok();
        for &i in island {
            for &v in &self.nodes[i].reads {
                match self.links[v].writer {
                    Some(w) if inside(w) || at[w] == on => {}
                    Some(w) => sum += self.crossing(v, at[w], on),
                    None => sum += self.sites[on].transfer(self.bytes[v]),
                }
            }
            for &v in &self.nodes[i].writes {
                let readers = &self.links[v].readers;
                if readers.is_empty() {
                    sum += self.sites[on].transfer(self.bytes[v]);
                }
                let outside = readers.iter().find(|&&r| !inside(r) && at[r] != on);
                if let Some(&r) = outside {
                    sum += self.crossing(v, on, at[r]);
                }
            }
        }
        Some(sum)
    }

    /// Seconds of the whole stage, infinite where a backend does not take what it is given. A value
    /// crosses once to each backend that reads it.
    pub fn whole(&self, at: &[BackendIndex]) -> f64 {
        let Some(mut sum) = self.work(0..self.nodes.len(), |i| at[i]) else {
            return f64::INFINITY;
        };
        for (v, link) in self.links.iter().enumerate() {
            for b in self.sites.indices() {
                if !link.readers.iter().any(|&r| at[r] == b) {
                    continue;
                }
                match link.writer {
                    Some(w) if at[w] == b => {}
                    Some(w) => sum += self.crossing(v, at[w], b),
                    None => sum += self.sites[b].transfer(self.bytes[v]),
                }
            }
            if let Some(w) = link.writer
                && link.readers.is_empty()
            {
                sum += self.sites[at[w]].transfer(self.bytes[v]);
            }
        }
        sum
    }
}
