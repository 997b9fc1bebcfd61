//! Where the bytes of a FlatBuffer are. Positions are those of the file, whatever of it is in memory.

use std::cell::{Cell, RefCell};

use crate::parts::{FileParts, Outline};

/// Bytes that are read at once of a file that is not in memory.
const PAGE: usize = 4096;

/// Pages that are kept. Tables stand near each other, and so do the tables of their fields.
const PAGES: usize = 64;

/// The bytes of a file.
pub enum Stored<'a> {
    /// The file in memory, or its outline with where its pieces begin, there and in the file.
    Memory {
        bytes: &'a [u8],
        pieces: &'a [(usize, u64)],
    },
    Lying(Pages<'a>),
}

impl<'a> Stored<'a> {
    /// `len` bytes in memory from `position` on; nothing where one of them is not there.
    pub fn slice(&self, position: usize, len: usize) -> Option<&'a [u8]> {
        let Stored::Memory { bytes, pieces } = self else {
            return None;
        };
        let (at, end) = match pieces {
            [] | [_] => (position, bytes.len()),
            _ => {
                let (at, piece) = Outline::inside(pieces, position as u64)?;
                let end = pieces.get(piece + 1).map_or(bytes.len(), |next| next.0);
                (at, end)
            }
        };
        let behind = at.checked_add(len).filter(|behind| *behind <= end)?;
        bytes.get(at..behind)
    }

    /// The bytes from `position` on; nothing where one of them is not there.
    pub fn array<const N: usize>(&self, position: usize) -> Option<[u8; N]> {
        match self {
            Stored::Memory { .. } => self.slice(position, N)?.try_into().ok(),
            Stored::Lying(pages) => {
                let mut bytes = [0; N];
                pages.read(position as u64, &mut bytes)?;
                Some(bytes)
            }
        }
    }
}

/// The number of a page, and its bytes.
type Page = (u64, Vec<u8>);

/// A file that is read page by page.
pub struct Pages<'a> {
    file: &'a dyn FileParts,
    /// Pages with their numbers, each at its number modulo [`PAGES`].
    known: RefCell<Vec<Option<Page>>>,
    /// Pages that may still be read: about twice as many as the file has, so that offsets that lead to and fro cost no more than reading it.
    left: Cell<u64>,
}

impl<'a> Pages<'a> {
    pub fn new(file: &'a dyn FileParts) -> Pages<'a> {
        Pages {
            file,
            known: RefCell::new(vec![None; PAGES]),
            left: Cell::new(2 * (file.size() / PAGE as u64) + PAGES as u64),
        }
    }

    /// Fills `to` from `position` on; nothing where the file ends before, cannot be read, or was read too often.
    fn read(&self, position: u64, to: &mut [u8]) -> Option<()> {
        let mut known = self.known.borrow_mut();
        let (mut at, mut rest) = (position, to);
        while !rest.is_empty() {
            let (number, from) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let place = known.get_mut((number % PAGES as u64) as usize)?;
            if place.as_ref().is_none_or(|(of, _)| *of != number) {
                *place = Some((number, self.page(number)?));
            }
            let (_, page) = place.as_ref()?;
            let len = rest.len().min(PAGE - from);
            let (piece, behind) = rest.split_at_mut(len);
            piece.copy_from_slice(page.get(from..from + len)?);
            (at, rest) = (at.checked_add(len as u64)?, behind);
        }
        Some(())
    }

    fn page(&self, number: u64) -> Option<Vec<u8>> {
        self.left.set(self.left.get().checked_sub(1)?);
        let start = number.checked_mul(PAGE as u64)?;
        let left = self.file.size().checked_sub(start)?;
        let mut page = vec![0; left.min(PAGE as u64) as usize];
        self.file.read(start, &mut page).ok()?;
        Some(page)
    }
}
