//! How products are cut up among workgroups.

use crate::lower::Caps;
use crate::shaders::MOST_GROUPS;

/// How a product is cut up: workgroups of `side` times `side` threads, each with `rows` times four
/// elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub shader: &'static str,
    pub side: usize,
    pub rows: usize,
}

impl Tile {
    const LARGE: Tile = Tile::new("matmul_large", 16, 4);
    const SMALL: Tile = Tile::new("matmul", 8, 4);
    const FLAT: Tile = Tile::new("matmul", 8, 1);

    const fn new(shader: &'static str, side: usize, rows: usize) -> Tile {
        Tile { shader, side, rows }
    }

    const fn name(self) -> &'static str {
        match (self.side, self.rows) {
            (16, _) => "large tiles",
            (_, 1) => "flat tiles",
            _ => "small tiles",
        }
    }

    /// Those that a device computes a product with, the one that is expected to be the fastest first.
    pub fn all(caps: &Caps, m: usize, n: usize, batch: usize) -> Vec<(&'static str, Tile)> {
        let large = m.div_ceil(64) * n.div_ceil(64) * batch >= 128;
        let expected = if large && n >= 48 && !caps.software {
            Tile::LARGE
        } else if m <= 8 {
            Tile::FLAT
        } else {
            Tile::SMALL
        };
        let mut tiles = vec![expected];
        let starts = |t: &Tile| t.groups(m, n, batch).iter().all(|&g| g <= MOST_GROUPS);
        let others = [Tile::SMALL, Tile::FLAT, Tile::LARGE].into_iter();
        tiles.extend(others.filter(|t| {
            let possible = !caps.software || *t != Tile::LARGE;
            *t != expected && possible && starts(t)
        }));
        tiles.into_iter().map(|t| (t.name(), t)).collect()
    }

    /// Its definitions in the shader.
    pub fn defines(self) -> [(&'static str, &'static str); 3] {
        let large = self.side == 16;
        [
            ("RM", if self.rows == 1 { "1" } else { "4" }),
            ("W", if large { "16" } else { "8" }),
            ("TK", if large { "16" } else { "32" }),
        ]
    }

    /// The workgroups of a product.
    pub fn groups(self, m: usize, n: usize, batch: usize) -> [usize; 3] {
        let (rows, columns) = (self.side * self.rows, self.side * 4);
        [m.div_ceil(rows), n.div_ceil(columns), batch]
    }
}
