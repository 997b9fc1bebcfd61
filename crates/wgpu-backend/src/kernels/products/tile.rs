//! How products are cut up among workgroups.

use crate::lowering::{Caps, Lowering};
use crate::shaders::products::matmul::{self, Case, Fetch, Tile};
use crate::shaders::products::matmul_merge as merge;
use crate::shaders::{MOST_GROUPS, Parted};

/// Elements along k that are worth a part of their own.
const FEW: usize = 96;
/// A part of k is a multiple of this many elements: whole tiles of `products/matmul/tiles.wgsl`.
const STEP: usize = 32;
/// Into how many parts k is cut where that is measured.
const COUNTS: [usize; 4] = [2, 4, 8, 16];

impl Tile {
    /// Rows of a thread: `ROWS` of `products/matmul/tiles.wgsl`.
    const fn rows(self) -> usize {
        match self {
            Tile::Flat => 1,
            Tile::Small | Tile::Large => 4,
        }
    }

    /// The workgroups of a product; a thread has four columns.
    fn groups(self, m: usize, n: usize, batch: usize) -> [usize; 3] {
        let [x, y, _] = self.workgroup();
        [m.div_ceil(y * self.rows()), n.div_ceil(x * 4), batch]
    }
}

/// A product of `batch` matrices of `m` by `k` and `k` by `n` elements.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    pub batch: usize,
}

impl Extent {
    /// The workgroups of its tiles.
    fn groups(self, tile: Tile) -> usize {
        let groups = tile.groups(self.m, self.n, self.batch);
        groups.into_iter().fold(1, usize::saturating_mul)
    }

    /// Into how many parts k may be cut so that there are no more than `most` workgroups, and each part is worth one.
    fn most_parts(self, tile: Tile, most: usize) -> usize {
        let groups = self.groups(tile);
        let fits = |parts: &usize| {
            groups.saturating_mul(*parts) <= most && self.k >= parts.saturating_mul(FEW)
        };
        COUNTS.into_iter().rev().find(fits).unwrap_or(1)
    }
}

/// How it is cut up: its tiles, and into how many parts k is, with workgroups of their own.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Cut {
    pub tile: Tile,
    pub fetch: Fetch,
    parts: usize,
}

impl Cut {
    fn new(caps: &Caps, tile: Tile, parts: usize) -> Cut {
        let fetch = match parts {
            0..=1 if caps.software => Fetch::Direct,
            0..=1 => Fetch::Tiled,
            _ => Fetch::Parts,
        };
        Cut { tile, fetch, parts }
    }

    /// The name among the kernels between which there is a choice.
    const fn name(self) -> &'static str {
        match (self.tile, self.parts) {
            (Tile::Large, 0..=1) => "large tiles",
            (Tile::Large, 2..=3) => "large tiles, k in 2 parts",
            (Tile::Large, 4..=7) => "large tiles, k in 4 parts",
            (Tile::Large, 8..=15) => "large tiles, k in 8 parts",
            (Tile::Large, _) => "large tiles, k in 16 parts",
            (Tile::Flat, 0..=1) => "flat tiles",
            (Tile::Flat, 2..=3) => "flat tiles, k in 2 parts",
            (Tile::Flat, 4..=7) => "flat tiles, k in 4 parts",
            (Tile::Flat, 8..=15) => "flat tiles, k in 8 parts",
            (Tile::Flat, _) => "flat tiles, k in 16 parts",
            (Tile::Small, 0..=1) => "small tiles",
            (Tile::Small, 2..=3) => "small tiles, k in 2 parts",
            (Tile::Small, 4..=7) => "small tiles, k in 4 parts",
            (Tile::Small, 8..=15) => "small tiles, k in 8 parts",
            (Tile::Small, _) => "small tiles, k in 16 parts",
        }
    }

    /// The cut that is expected to be the fastest. The bounds come from measurements of `kilim bench --tune` on an NVIDIA H200
    /// with torchvision's networks.
    fn expected(caps: &Caps, extent: Extent) -> Cut {
        let Extent { m, k, n, .. } = extent;
        let busy = caps.busy;
        let groups = |tile: Tile| extent.groups(tile);
        let few = m <= 8;
        let small = if few { Tile::Flat } else { Tile::Small };
        if caps.software {
            return Cut::new(caps, small, 1);
        }
        let most = |tile| Cut::new(caps, tile, extent.most_parts(tile, 7 * busy / 4));
        let wide = n >= 48 && m > 32;
        if wide && groups(Tile::Large) > 3 * busy / 4 {
            Cut::new(caps, Tile::Large, 1)
        } else if few {
            most(small)
        } else if groups(small) >= busy {
            Cut::new(caps, small, 1)
        } else if wide && groups(Tile::Large) * most(Tile::Large).parts >= busy {
            most(Tile::Large)
        } else if k < 4 * FEW {
            Cut::new(caps, Tile::Flat, 1)
        } else {
            most(small)
        }
    }

    /// The cuts that a device computes a product with, the one that is expected to be the fastest first.
    pub fn all(caps: &Caps, extent: Extent) -> Vec<(&'static str, Cut)> {
        let expected = Cut::expected(caps, extent);
        let tiles = [Tile::Small, Tile::Flat, Tile::Large].into_iter();
        let tiles = tiles.filter(|tile| !caps.software || *tile != Tile::Large);
        // More workgroups than three times those that keep the device busy only add sums.
        let others = tiles.flat_map(|tile| {
            let most = match caps.software {
                true => 1,
                false => extent.most_parts(tile, 3 * caps.busy),
            };
            let counts = std::iter::once(1).chain(COUNTS);
            let counts = counts.take_while(move |&parts| parts <= most);
            counts.map(move |parts| Cut::new(caps, tile, parts))
        });
        let starts = |cut: &Cut| cut.groups(extent).iter().all(|&g| g <= MOST_GROUPS);
        let others = others.filter(|cut| *cut != expected && starts(cut));
        let all = std::iter::once(expected).chain(others);
        all.map(|cut| (cut.name(), cut)).collect()
    }

    fn groups(self, extent: Extent) -> [usize; 3] {
        let Extent { m, n, batch, .. } = extent;
        self.tile.groups(m, n, batch.saturating_mul(self.parts))
    }

    /// Adds the dispatches of a product that `launch` describes as if it were of one part.
    pub fn emit(self, extent: Extent, mut launch: matmul::Launch, l: &mut Lowering) {
        let groups = self.groups(extent);
        if self.parts == 1 {
            return l.dispatch(launch, groups);
        }
        let Extent { m, k, n, batch } = extent;
        let parted = Parted {
            parts: self.parts,
            part: k.div_ceil(self.parts).next_multiple_of(STEP),
        };
        let units = [batch, m, n.div_ceil(4)]
            .into_iter()
            .fold(1, usize::saturating_mul);
        let bytes = units
            .saturating_mul(self.parts)
            .saturating_mul(size_of::<[f32; 4]>());
        let sums = l.scratch(bytes);
        let merged = merge::Launch {
            case: match launch.case {
                Case::Matrix { .. } => merge::Case::Matrix,
                Case::Im2col { .. } => merge::Case::Im2col,
            },
            s: launch.s,
            c4: launch.c4,
            x: sums.into(),
            c: launch.c,
            bias: launch.bias.take(),
            residual: launch.residual.take(),
            params: merge::Params {
                act: launch.params.act,
                product: launch.params.product,
                im2col: launch.params.im2col,
                parted,
                units,
            },
        };
        launch.c4 = true;
        launch.c = sums;
        launch.params.parted = parted;
        l.dispatch(launch, groups);
        l.linear(merged, units);
    }
}
