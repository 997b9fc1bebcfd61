//! The outline of a file that is not in memory: what it is without its weights.

use std::collections::HashSet;
use std::ops::Range;

use super::proto::Reader;
use crate::parts::{FileParts, LARGE, Replaced};

/// Bytes that are read at once. Between two weights there is little else.
const WINDOW: usize = 4096;
/// A varint has no more bytes.
const VARINT: u64 = 10;

const RAW_DATA: u32 = 9;

/// Where the data of large initializers lies, in its place, and the lengths of the messages around it. Nothing of a file that is
/// garbled or has two initializers of one name: whoever has all of its bytes says what is wrong.
pub fn outline(file: &dyn FileParts) -> Vec<Replaced> {
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
    start: u64,
    names: HashSet<Vec<u8>>,
    found: Vec<Replaced>,
}

/// Where a field with bytes lies: its length, and the bytes.
#[derive(Clone)]
struct Place {
    tag: u64,
    length: Range<u64>,
    body: Range<u64>,
}

/// What is done with a field, by its number and where it lies.
type Each<'e, W> = dyn FnMut(&mut W, u32, Place) -> Option<()> + 'e;

impl Walk<'_> {
    fn model(&mut self) -> Option<()> {
        const GRAPH: u32 = 7;
        let model = 0..self.file.size();
        self.fields(model, &mut |walk, field, place| match field {
            GRAPH => walk.graph(place),
            _ => Some(()),
        })
    }

    fn graph(&mut self, graph: Place) -> Option<()> {
        const INITIALIZER: u32 = 5;
        let first = self.found.len();
        let mut less = 0;
        self.fields(graph.body.clone(), &mut |walk, field, place| {
            if field == INITIALIZER {
                less += walk.tensor(place)?;
            }
            Some(())
        })?;
        if less > 0 {
            let (replaced, _) = shorter(&graph, less);
            self.found.insert(first, replaced);
        }
        Some(())
    }

    /// Leaves out the data of a tensor where it is large: how many bytes fewer the tensor then is.
    fn tensor(&mut self, tensor: Place) -> Option<u64> {
        const NAME: u32 = 8;
        let mut data = None;
        let mut names = 0;
        self.fields(tensor.body.clone(), &mut |walk, field, place| {
            match field {
                NAME => {
                    names += 1;
                    let name = walk.bytes(place.body)?.to_vec();
                    return walk.names.insert(name).then_some(());
                }
                // Only the last counts.
                RAW_DATA => data = Some(place),
                _ => {}
            }
            Some(())
        })?;
        let len = |of: &Range<u64>| of.end - of.start;
        let large = data.filter(|data| names == 1 && len(&data.body) >= LARGE as u64);
        let Some(Place { tag, body, .. }) = large else {
            return Some(0);
        };
        let mut by = varint(u64::from(RAW_DATA) << 3);
        by.extend(varint(len(&body)));
        by.extend(varint(u64::from(RAW_DATA) << 3 | 1));
        by.extend(body.start.to_le_bytes());
        let range = tag..body.end;
        let less = len(&range) - by.len() as u64;
        let (length, shrunk) = shorter(&tensor, less);
        self.found.extend([length, Replaced { range, by }]);
        Some(less + shrunk)
    }

    /// Shows the fields of a message that have bytes, with their numbers and where they lie.
    fn fields(&mut self, message: Range<u64>, each: &mut Each<Self>) -> Option<()> {
        let mut at = message.start;
        while at < message.end {
            let head = self.bytes(at..message.end.min(at + 2 * VARINT))?;
            let length = head.len();
            let mut reader = Reader::new(head);
            let (field, wire) = reader.tag().ok()??;
            let number = at + (length - reader.left()) as u64;
            let body = match wire {
                0 => {
                    reader.varint().ok()?;
                    0
                }
                1 => 8,
                2 => reader.varint().ok()?,
                5 => 4,
                _ => return None,
            };
            let start = at + (length - reader.left()) as u64;
            let end = start.checked_add(body).filter(|end| *end <= message.end)?;
            if wire == 2 {
                let place = Place {
                    tag: at,
                    length: number..start,
                    body: start..end,
                };
                each(self, field, place)?;
            }
            at = end;
        }
        Some(())
    }

    fn bytes(&mut self, part: Range<u64>) -> Option<&[u8]> {
        let read = self.start..self.start + self.window.len() as u64;
        let len = usize::try_from(part.end - part.start).ok()?;
        if len > WINDOW {
            return None;
        }
        if part.start < read.start || part.end > read.end {
            let left = self.file.size() - part.start;
            self.window.clear();
            self.window.resize(left.min(WINDOW as u64) as usize, 0);
            self.start = part.start;
            self.file.read(self.start, &mut self.window).ok()?;
        }
        let from = (part.start - self.start) as usize;
        self.window.get(from..from + len)
    }
}

/// The length of a message that has `less` bytes fewer than it says, and how much shorter that length is written.
fn shorter(message: &Place, less: u64) -> (Replaced, u64) {
    let Place { length, body, .. } = message;
    let by = varint(body.end - body.start - less);
    let shrunk = (length.end - length.start).saturating_sub(by.len() as u64);
    let range = length.clone();
    (Replaced { range, by }, shrunk)
}

/// A number in groups of seven bits, the lowest first.
pub(super) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kilim_core::Limits;
    use kilim_core::error::{ErrorCode, Result};

    use super::*;
    use crate::counted::Counted;
    use crate::{ImporterRegistry, ModelFile, Parted};

    fn field(number: u8, body: &[u8]) -> Vec<u8> {
        [
            vec![number << 3 | 2],
            varint(body.len() as u64),
            body.to_vec(),
        ]
        .concat()
    }

    fn tensor(name: &str, bytes: usize) -> Vec<u8> {
        let dims = [vec![1 << 3], varint(bytes as u64)].concat();
        let body = [
            dims,
            vec![2 << 3, 2],
            field(8, name.as_bytes()),
            field(9, &vec![7; bytes]),
        ];
        field(5, &body.concat())
    }

    fn file(graph: &[Vec<u8>]) -> Counted {
        let opset = field(8, &[2 << 3, 13]);
        let file = [vec![1 << 3, 8], opset, field(7, &graph.concat())].concat();
        Counted::new(file)
    }

    fn found(graph: &[Vec<u8>]) -> Vec<Replaced> {
        outline(&file(graph))
    }

    #[test]
    fn large_data_is_left_out_and_not_read() -> Result<()> {
        let large = 10 * LARGE;
        let outputs = ["a", "small", "b"].map(|name| field(12, &field(1, name.as_bytes())));
        let counted = file(&[
            tensor("a", large),
            field(2, b"graph"),
            tensor("small", LARGE - 1),
            tensor("b", large),
            outputs.concat(),
        ]);
        let counted = Arc::new(counted);
        let replaced = outline(&*counted);
        let parts = replaced
            .iter()
            .filter(|part| part.range.end - part.range.start > 100);
        for Replaced { range, .. } in parts.clone() {
            let data = &counted.bytes[range.start as usize..range.end as usize];
            assert_eq!(data.iter().filter(|&&b| b == 7).count(), large);
        }
        assert_eq!(parts.count(), 2);
        let read = counted.read_so_far();
        assert!(read < LARGE, "{read} bytes were read");
        // The graph, read of its outline, has all of the data.
        let parted = Parted::new(counted.clone(), true);
        let outline = ImporterRegistry::default().read(&*counted, "m")?;
        assert!(outline.as_slice().len() < 2 * LARGE);
        let graph = crate::load_model(
            &ModelFile::parted(&parted, outline, "m"),
            &Limits::default(),
        )?;
        for (name, bytes) in [("a", large), ("small", LARGE - 1), ("b", large)] {
            let value = graph.values.iter().find(|value| value.name == name);
            let tensor = value.and_then(|value| value.constant.as_ref());
            assert_eq!(
                tensor.expect("a constant").read()?,
                vec![7; bytes],
                "{name}"
            );
        }
        Ok(())
    }

    #[test]
    fn nothing_is_left_out_where_something_is_wrong() {
        let twice = [tensor("a", LARGE), tensor("a", LARGE)];
        assert!(found(&twice).is_empty());
        let cut = [tensor("a", LARGE), vec![5 << 3 | 2, 100]];
        assert!(found(&cut).is_empty());
        assert_eq!(found(&[tensor("a", LARGE)]).len(), 3);
    }

    #[test]
    fn only_an_outline_says_that_data_is_left_out() {
        let place = [vec![9 << 3, 2, 9 << 3 | 1], vec![0; 8]].concat();
        let body = [vec![1 << 3, 2, 2 << 3, 2], field(8, b"a"), place].concat();
        let output = field(12, &field(1, b"a"));
        let counted = file(&[field(5, &body), output]);
        let bytes = kilim_core::tensor::AlignedBytes::copy_of(&counted.bytes).expect("memory");
        let source = ModelFile::new(Arc::new(bytes), "m");
        let error = crate::load_model(&source, &Limits::default()).expect_err("refused");
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    }
}
