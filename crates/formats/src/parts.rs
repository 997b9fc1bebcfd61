//! Files that are not in memory, and tensors of their parts.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Tensor};

/// Bytes from which on data is worth reading when it is needed.
pub const LARGE: usize = 16 << 10;

/// A file that can be read at any place. It may be larger than memory.
pub trait FileParts {
    /// The file's bytes.
    fn size(&self) -> u64;

    /// Fills `to` from the byte `offset` on.
    ///
    /// # Errors
    /// `Io` where the file ends before, cannot be read or is another by now.
    fn read(&self, offset: u64, to: &mut [u8]) -> Result<()>;
}

/// A file that any thread may read.
pub type SharedParts = Arc<dyn FileParts + Send + Sync>;

/// A file whose parts are tensors.
pub struct Parted {
    file: SharedParts,
    on_demand: bool,
    known: RefCell<Known>,
    /// The whole file, where parts overlap.
    whole: OnceCell<Arc<AlignedBytes>>,
}

#[derive(Default)]
struct Known {
    /// Tensors by offset and length: several tensors may have the same data.
    parts: HashMap<(u64, usize), Tensor>,
    bytes: u64,
}

impl Parted {
    /// The parts of `file`. Where they are `on_demand`, those of at least [`LARGE`] bytes are read when they are needed, else all at once.
    pub fn new(file: SharedParts, on_demand: bool) -> Parted {
        Parted {
            file,
            on_demand,
            known: RefCell::default(),
            whole: OnceCell::new(),
        }
    }

    /// The file.
    pub fn file(&self) -> &dyn FileParts {
        &*self.file
    }

    /// `len` bytes from `offset` on, which lie within the file: a tensor of `uint8`, which may read the file when it is needed
    /// ([`Tensor::on_demand`]).
    ///
    /// # Errors
    /// `Io` where they cannot be read, `Limit` where memory is short.
    pub fn part(&self, offset: u64, len: usize) -> Result<Tensor> {
        let view = |whole: &Arc<AlignedBytes>| {
            let offset = usize::try_from(offset).map_err(|_| too_large())?;
            Tensor::view(DType::U8, &[len], whole.clone(), offset, len)
        };
        if let Some(whole) = self.whole.get() {
            return view(whole);
        }
        let mut known = self.known.borrow_mut();
        if let Some(known) = known.parts.get(&(offset, len)) {
            return Ok(known.clone());
        }
        known.bytes = known.bytes.saturating_add(len as u64);
        if known.bytes > self.file.size() {
            let whole = Arc::new(bytes_of(&*self.file, 0..self.file.size())?);
            return view(self.whole.get_or_init(|| whole));
        }
        let part = match self.on_demand && len >= LARGE {
            true => {
                let file = self.file.clone();
                Tensor::on_demand(len, move |from, to| file.read(offset + from as u64, to))?
            }
            false => {
                let bytes = bytes_of(&*self.file, offset..offset + len as u64)?;
                Tensor::from_bytes(DType::U8, &[len], Arc::new(bytes))?
            }
        };
        known.parts.insert((offset, len), part.clone());
        Ok(part)
    }
}

/// Bytes of a file, in memory.
///
/// # Errors
/// `Io` where they cannot be read, `Limit` where memory is short.
pub(crate) fn bytes_of(file: &dyn FileParts, range: Range<u64>) -> Result<AlignedBytes> {
    let len = usize::try_from(range.end - range.start).map_err(|_| too_large())?;
    let mut bytes = AlignedBytes::zeroed(len)?;
    file.read(range.start, bytes.as_mut_slice())?;
    Ok(bytes)
}

fn too_large() -> Error {
    Error::new(ErrorCode::Limit, "a file does not fit into memory")
}

/// Bytes of a file in whose place an importer reads others.
#[derive(Clone, Debug, PartialEq)]
pub struct Replaced {
    pub range: Range<u64>,
    pub by: Vec<u8>,
}

impl Replaced {
    /// Nothing in the place of all that lies behind `from`; nothing is replaced where that is not known.
    pub(crate) fn rest(from: Option<u64>, file: &dyn FileParts) -> Vec<Replaced> {
        let from = from.filter(|from| *from < file.size());
        let rest = from.map(|from| Replaced {
            range: from..file.size(),
            by: Vec::new(),
        });
        rest.into_iter().collect()
    }
}

/// Where the pieces of an outline begin: in memory, and in the file.
pub(crate) type Pieces = Arc<[(usize, u64)]>;

/// A model file in memory, but for data that stays where it lies.
#[derive(Default)]
pub struct Outline {
    pub(crate) bytes: Arc<AlignedBytes>,
    /// Where the parts of the file begin that are in memory: there, and in the file.
    pieces: Vec<(usize, u64)>,
}

impl Outline {
    /// The file with what is `replaced`, in the order of the file.
    ///
    /// # Errors
    /// `Io` where the file cannot be read, `Limit` where memory is short.
    pub(crate) fn read(file: &dyn FileParts, replaced: &[Replaced]) -> Result<Outline> {
        let mut len = file.size();
        for Replaced { range, by } in replaced {
            len = len - (range.end - range.start) + by.len() as u64;
        }
        let len = usize::try_from(len).map_err(|_| too_large())?;
        let mut bytes = AlignedBytes::zeroed(len)?;
        let mut rest = bytes.as_mut_slice();
        let (mut from, mut pieces) = (0, Vec::new());
        let ends = replaced.iter().map(|r| (r.range.clone(), &*r.by));
        for (range, by) in ends.chain([(file.size()..file.size(), &[][..])]) {
            let own = usize::try_from(range.start - from).map_err(|_| too_large())?;
            let (piece, behind) = rest.split_at_mut(own);
            pieces.push((len - own - behind.len(), from));
            file.read(from, piece)?;
            let (instead, behind) = behind.split_at_mut(by.len());
            instead.copy_from_slice(by);
            (rest, from) = (behind, range.end);
        }
        Ok(Outline {
            bytes: Arc::new(bytes),
            pieces,
        })
    }

    /// Where the byte `at` of the bytes in memory lies in the file.
    pub(crate) fn place(pieces: &[(usize, u64)], at: usize) -> u64 {
        let behind = pieces.partition_point(|(start, _)| *start <= at);
        let piece = behind.checked_sub(1).and_then(|i| pieces.get(i));
        piece.map_or(at as u64, |(start, from)| from + (at - start) as u64)
    }

    /// Where the byte `place` of the file would be in memory, if the piece before it has it, and the number of that piece; nothing before the
    /// first piece.
    pub(crate) fn inside(pieces: &[(usize, u64)], place: u64) -> Option<(usize, usize)> {
        let behind = pieces.partition_point(|(_, from)| *from <= place);
        let piece = behind.checked_sub(1)?;
        let (start, from) = pieces[piece];
        let at = start.checked_add(usize::try_from(place - from).ok()?)?;
        Some((at, piece))
    }

    pub(crate) fn into_parts(self) -> (Arc<AlignedBytes>, Vec<(usize, u64)>) {
        (self.bytes, self.pieces)
    }

    /// The bytes in memory.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is larger than the memory of 32 bits: each byte says where it is.
    struct Huge;

    const SIZE: u64 = 6 << 30;

    fn byte(at: u64) -> u8 {
        (at % 251) as u8
    }

    impl FileParts for Huge {
        fn size(&self) -> u64 {
            SIZE
        }

        fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
            assert!(offset + to.len() as u64 <= SIZE);
            for (at, to) in (offset..).zip(to) {
                *to = byte(at);
            }
            Ok(())
        }
    }

    #[test]
    fn places_beyond_four_gigabytes_are_read() {
        let parted = Parted::new(Arc::new(Huge), true);
        for offset in [0, 5 << 30, SIZE - 3 * LARGE as u64] {
            for len in [3, 2 * LARGE] {
                let part = parted.part(offset, len).expect("a part");
                let mut bytes = [0; 2];
                part.copy_to(1, &mut bytes).expect("bytes");
                assert_eq!(bytes, [byte(offset + 1), byte(offset + 2)], "{offset}");
            }
        }
    }

    #[test]
    fn an_outline_is_what_is_left_and_knows_where_that_lies() {
        let replaced = [
            (10..SIZE / 2, vec![1; 4]),
            (SIZE / 2 + 6..SIZE - 2, Vec::new()),
        ];
        let replaced = replaced.map(|(range, by)| Replaced { range, by });
        let outline = Outline::read(&Huge, &replaced).expect("an outline");
        let half = SIZE / 2;
        let places: Vec<u64> = (0..10)
            .chain(half..half + 6)
            .chain(SIZE - 2..SIZE)
            .collect();
        let own = (0..10).chain(14..22);
        for (at, &place) in own.zip(&places) {
            assert_eq!(outline.as_slice()[at], byte(place), "{at}");
            assert_eq!(Outline::place(&outline.pieces, at), place, "{at}");
            let inside = Outline::inside(&outline.pieces, place);
            assert_eq!(inside.map(|(at, _)| at), Some(at), "{at}");
        }
        assert_eq!(outline.as_slice()[10..14], [1; 4]);
    }
}
