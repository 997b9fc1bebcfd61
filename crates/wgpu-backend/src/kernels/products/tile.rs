//! How products are cut up among workgroups.

use crate::lowering::Caps;
use crate::shaders::MOST_GROUPS;
use crate::shaders::products::matmul::Tile;

impl Tile {
    /// The name among the kernels between which there is a choice.
    const fn name(self) -> &'static str {
        match self {
            Tile::Large => "large tiles",
            Tile::Flat => "flat tiles",
            Tile::Small => "small tiles",
        }
    }

    /// Rows of a thread: `ROWS` of `products/matmul.wgsl`.
    const fn rows(self) -> usize {
        match self {
            Tile::Flat => 1,
            Tile::Small | Tile::Large => 4,
        }
    }

    /// The tiles that a device computes a product with, the one that is expected to be the fastest first.
    pub fn all(caps: &Caps, m: usize, n: usize, batch: usize) -> Vec<(&'static str, Tile)> {
        let large = m.div_ceil(64) * n.div_ceil(64) * batch >= 128;
        let expected = if large && n >= 48 && !caps.software {
            Tile::Large
        } else if m <= 8 {
            Tile::Flat
        } else {
            Tile::Small
        };
        let mut tiles = vec![expected];
        let starts = |t: &Tile| t.groups(m, n, batch).iter().all(|&g| g <= MOST_GROUPS);
        let others = [Tile::Small, Tile::Flat, Tile::Large].into_iter();
        tiles.extend(others.filter(|t| {
            let possible = !caps.software || *t != Tile::Large;
            *t != expected && possible && starts(t)
        }));
        tiles.into_iter().map(|t| (t.name(), t)).collect()
    }

    /// The workgroups of a product; a thread has four columns.
    pub fn groups(self, m: usize, n: usize, batch: usize) -> [usize; 3] {
        let [x, y, _] = self.workgroup();
        [m.div_ceil(y * self.rows()), n.div_ceil(x * 4), batch]
    }
}
