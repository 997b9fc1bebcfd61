//! The outline of a FlatBuffer that is not in memory: the file without its large data, which lies anywhere in it. Offsets stay as they are,
//! since positions are those of the file.

use std::ops::Range;

use kilim_core::error::Result;

use super::{FlatBuffer, Table};
use crate::parts::{FileParts, LARGE, Replaced};

/// Tables that are looked at. A file that has more is read as a whole.
const MOST_TABLES: usize = 1 << 20;

/// No data lies in what formats are recognised by.
const SIGNATURE: u64 = 8;

/// Large data that was found.
pub struct Found {
    /// Bytes from which on data counts as large.
    least: u64,
    size: u64,
    ranges: Vec<Range<u64>>,
}

impl Found {
    /// Data of `len` bytes from `position` on. What is not within the file is left to whoever reads it.
    pub fn add(&mut self, position: u64, len: u64) {
        let end = position.checked_add(len).filter(|end| *end <= self.size);
        if let Some(end) = end
            && len >= self.least
            && position >= SIGNATURE
        {
            self.ranges.push(position..end);
        }
    }

    /// Nothing in the place of each; nothing is left out where some overlap.
    fn replaced(mut self) -> Vec<Replaced> {
        self.ranges.sort_by_key(|range| (range.start, range.end));
        // Several tensors may share their data.
        self.ranges.dedup();
        let mut pairs = self.ranges.windows(2);
        if pairs.any(|pair| pair[0].end > pair[1].start) {
            return Vec::new();
        }
        let nothing = |range| Replaced {
            range,
            by: Vec::new(),
        };
        self.ranges.into_iter().map(nothing).collect()
    }
}

/// What is left out of a file: the large data that `walk` finds from its root table on. Nothing of a file that is garbled or has very many
/// tables: whoever has all of its bytes says what is wrong.
pub fn outline(
    file: &dyn FileParts,
    walk: impl FnOnce(&Table, &mut Found) -> Result<()>,
) -> Vec<Replaced> {
    outline_from(LARGE, file, walk)
}

/// [`outline`] where data counts as large from `least` bytes on.
pub(crate) fn outline_from(
    least: usize,
    file: &dyn FileParts,
    walk: impl FnOnce(&Table, &mut Found) -> Result<()>,
) -> Vec<Replaced> {
    // Small files have none.
    if file.size() < least as u64 {
        return Vec::new();
    }
    let mut found = Found {
        least: least as u64,
        size: file.size(),
        ranges: Vec::new(),
    };
    let buffer = FlatBuffer::lying(file, MOST_TABLES);
    let walked = buffer.root().and_then(|root| walk(&root, &mut found));
    walked.map_or_else(|_| Vec::new(), |()| found.replaced())
}
