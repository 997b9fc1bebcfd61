//! Where the weights lie in a file that is not in memory.

use std::collections::HashSet;
use std::ops::Range;

use super::proto::Reader;
use crate::source::{FileParts, LARGE};

/// Bytes that are read at once. Between two weights there is little else.
const WINDOW: usize = 4096;
/// A varint has no more bytes.
const VARINT: usize = 10;

/// The data of initializers, where it is large. None of a file that is garbled or has two initializers of one name: whoever has all
/// of its bytes says what is wrong.
pub fn weights(file: &dyn FileParts) -> Vec<Range<usize>> {
    let mut walk = Walk {
        file,
        window: Vec::new(),
        start: 0,
        names: HashSet::new(),
        found: Vec::new(),
    };
    match walk.model() {
        Some(()) => walk.found,
        None => Vec::new(),
    }
}

struct Walk<'f> {
    file: &'f dyn FileParts,
    /// Bytes of the file from `start` on.
    window: Vec<u8>,
    start: usize,
    names: HashSet<Vec<u8>>,
    found: Vec<Range<usize>>,
}

/// What is done with a field, by its number and where its bytes lie.
type Each<'e, W> = dyn FnMut(&mut W, u32, Range<usize>) -> Option<()> + 'e;

impl Walk<'_> {
    fn model(&mut self) -> Option<()> {
        const GRAPH: u32 = 7;
        const INITIALIZER: u32 = 5;
        self.fields(0..self.file.size(), &mut |walk, field, graph| match field {
            GRAPH => walk.fields(graph, &mut |walk, field, tensor| match field {
                INITIALIZER => walk.tensor(tensor),
                _ => Some(()),
            }),
            _ => Some(()),
        })
    }

    fn tensor(&mut self, tensor: Range<usize>) -> Option<()> {
        const NAME: u32 = 8;
        const RAW_DATA: u32 = 9;
        let mut data = None;
        let mut names = 0;
        self.fields(tensor, &mut |walk, field, body| {
            match field {
                NAME => {
                    names += 1;
                    let name = walk.bytes(body)?.to_vec();
                    return walk.names.insert(name).then_some(());
                }
                // Only the last counts.
                RAW_DATA => data = Some(body),
                _ => {}
            }
            Some(())
        })?;
        let large = data.filter(|data| names == 1 && data.len() >= LARGE);
        self.found.extend(large);
        Some(())
    }

    /// Shows the fields of a message that have bytes, with their numbers and where the bytes lie.
    fn fields(&mut self, message: Range<usize>, each: &mut Each<Self>) -> Option<()> {
        let mut at = message.start;
        while at < message.end {
            let head = self.bytes(at..message.end.min(at + 2 * VARINT))?;
            let length = head.len();
            let mut reader = Reader::new(head);
            let (field, wire) = reader.tag().ok()??;
            let body = match wire {
                0 => {
                    reader.varint().ok()?;
                    0
                }
                1 => 8,
                2 => usize::try_from(reader.varint().ok()?).ok()?,
                5 => 4,
                _ => return None,
            };
            at += length - reader.left();
            let end = at.checked_add(body).filter(|end| *end <= message.end)?;
            if wire == 2 {
                each(self, field, at..end)?;
            }
            at = end;
        }
        Some(())
    }

    fn bytes(&mut self, part: Range<usize>) -> Option<&[u8]> {
        let read = self.start..self.start + self.window.len();
        if part.len() > WINDOW {
            return None;
        }
        if part.start < read.start || part.end > read.end {
            let left = self.file.size() - part.start;
            self.window.clear();
            self.window.resize(left.min(WINDOW), 0);
            self.start = part.start;
            self.file.read(self.start, &mut self.window).ok()?;
        }
        let from = part.start - self.start;
        self.window.get(from..from + part.len())
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::error::{Error, ErrorCode, Result};

    use super::*;

    /// A file in memory that counts what is read of it.
    struct Counted(Vec<u8>, std::cell::Cell<usize>);

    impl FileParts for Counted {
        fn size(&self) -> usize {
            self.0.len()
        }

        fn read(&self, offset: usize, to: &mut [u8]) -> Result<()> {
            let part = self.0.get(offset..offset + to.len());
            let part = part.ok_or_else(|| Error::new(ErrorCode::Io, "beyond the end"))?;
            to.copy_from_slice(part);
            self.1.set(self.1.get() + to.len());
            Ok(())
        }

        fn part(&self, _: usize, _: usize) -> Result<Option<kilim_core::Tensor>> {
            Ok(None)
        }
    }

    fn field(number: u8, body: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut left = body.len();
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
        out.extend(body);
        out
    }

    fn tensor(name: &str, bytes: usize) -> Vec<u8> {
        let body = [
            vec![2 << 3, 1],
            field(8, name.as_bytes()),
            field(9, &vec![7; bytes]),
        ];
        field(5, &body.concat())
    }

    fn found(graph: &[Vec<u8>]) -> (Vec<Range<usize>>, Vec<u8>, usize) {
        let file = [vec![1 << 3, 8], field(7, &graph.concat())].concat();
        let counted = Counted(file, Default::default());
        let found = weights(&counted);
        (found, counted.0, counted.1.get())
    }

    #[test]
    fn large_data_is_found_and_not_read() {
        let large = 10 * LARGE;
        let (parts, file, read) = found(&[
            tensor("a", large),
            field(2, b"graph"),
            tensor("small", LARGE - 1),
            tensor("b", large),
        ]);
        let lengths: Vec<usize> = parts.iter().map(Range::len).collect();
        assert_eq!(lengths, [large, large]);
        for part in parts {
            assert!(file[part.clone()].iter().all(|&b| b == 7));
            assert_ne!((file[part.start - 1], file.get(part.end)), (7, Some(&7)));
        }
        assert!(read < LARGE, "{read} bytes were read");
    }

    #[test]
    fn nothing_is_found_where_something_is_wrong() {
        let twice = [tensor("a", LARGE), tensor("a", LARGE)];
        assert!(found(&twice).0.is_empty());
        let cut = [tensor("a", LARGE), vec![5 << 3 | 2, 100]];
        assert!(found(&cut).0.is_empty());
        assert_eq!(found(&[tensor("a", LARGE)]).0.len(), 1);
    }
}
