//! Which values are the same: those whose canonical bytes are equal.

use std::hash::{Hash, Hasher};

use super::{Items, Leaf, Reflect, Visitor};
use crate::error::Result;
use crate::fallible::out_of_memory;
use crate::tensor::Tensor;

/// A value that is equal to others of its type, and hashed, by its contents. Floats are compared by their
/// bits, tensors by element type, shape and bytes, code and graphs by their addresses. Where memory to
/// compare in is short, values are not equal.
///
/// Hashing is cheap: it sees the first [`Contents::HASHED`] items of a list and bytes of a tensor only, so that those
/// of a large one may be hashed alike and still differ.
#[derive(Clone, Copy)]
pub struct Contents<'a>(pub &'a dyn Reflect);

impl Contents<'_> {
    /// Items of a list, and bytes or texts of a tensor, that a hash depends on.
    pub const HASHED: usize = 256;
}

impl Hash for Contents<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let state: &mut dyn Hasher = state;
        let written = write(self.0, Contents::HASHED, &mut |bytes| {
            state.write(bytes);
            Ok(())
        });
        // What cannot be read is equal to nothing, so that any hash will do.
        written.unwrap_or_default();
    }
}

impl PartialEq for Contents<'_> {
    fn eq(&self, other: &Self) -> bool {
        let mut key = Vec::new();
        let written = write(self.0, usize::MAX, &mut |bytes| {
            key.try_reserve(bytes.len())
                .map_err(|_| out_of_memory(bytes.len()))?;
            key.extend_from_slice(bytes);
            Ok(())
        });
        let mut rest = Some(&key[..]);
        let compared = write(other.0, usize::MAX, &mut |bytes| {
            rest = rest.and_then(|r| r.strip_prefix(bytes));
            Ok(())
        });
        written.is_ok() && compared.is_ok() && rest == Some(&[])
    }
}

impl Eq for Contents<'_> {}

/// Writes bytes that are equal exactly for equal values of one type, as far as `most` items of each list and bytes
/// of each tensor tell.
///
/// # Errors
/// Those of `out`, and `Limit` where memory for a tensor that is computed late is short.
fn write(value: &dyn Reflect, most: usize, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut writer = Writer {
        most,
        out,
        done: Ok(()),
    };
    value.visit(&mut writer);
    writer.done
}

/// What follows. Texts and lists begin with their length, variants with their name, so that different contents of one
/// type never have equal bytes. Fields need no names: the type gives their order.
#[derive(Clone, Copy)]
enum Tag {
    List,
    Absent,
    Name,
    Bool,
    Int,
    Float32,
    Float64,
    Text,
    Tensor,
    Opaque,
}

struct Writer<'a> {
    most: usize,
    out: &'a mut dyn FnMut(&[u8]) -> Result<()>,
    /// The first error; nothing is written after it.
    done: Result<()>,
}

impl Writer<'_> {
    fn raw(&mut self, bytes: &[u8]) {
        if self.done.is_ok() {
            self.done = (self.out)(bytes);
        }
    }

    fn tagged(&mut self, tag: Tag, number: u64) {
        let mut bytes = [tag as u8; 9];
        bytes[1..].copy_from_slice(&number.to_le_bytes());
        self.raw(&bytes);
    }

    fn text(&mut self, tag: Tag, text: &str) {
        self.tagged(tag, text.len() as u64);
        self.raw(text.as_bytes());
    }

    fn tensor(&mut self, tensor: &Tensor) {
        self.tagged(Tag::Tensor, tensor.dtype() as u64);
        self.tagged(Tag::List, tensor.rank() as u64);
        for &dim in tensor.shape() {
            self.tagged(Tag::Int, dim as u64);
        }
        for text in tensor.texts().unwrap_or_default().iter().take(self.most) {
            self.text(Tag::Text, text);
        }
        match tensor.read() {
            Ok(bytes) => self.raw(&bytes[..bytes.len().min(self.most)]),
            Err(error) => self.done = Err(error),
        }
    }
}

impl Visitor for Writer<'_> {
    fn field(&mut self, _: &str, value: &dyn Reflect) {
        value.visit(self);
    }

    fn list(&mut self, items: &dyn Items) {
        self.tagged(Tag::List, items.count() as u64);
        for i in 0..items.count().min(self.most) {
            items.visit(i, self);
        }
    }

    fn leaf(&mut self, leaf: Leaf) {
        match leaf {
            Leaf::Absent => self.tagged(Tag::Absent, 0),
            Leaf::Name(name) => self.text(Tag::Name, name),
            Leaf::Bool(value) => self.tagged(Tag::Bool, value.into()),
            Leaf::Int(value) => self.tagged(Tag::Int, value as u64),
            Leaf::Float32(value) => self.tagged(Tag::Float32, value.to_bits().into()),
            Leaf::Float64(value) => self.tagged(Tag::Float64, value.to_bits()),
            Leaf::Text(text) => self.text(Tag::Text, text),
            Leaf::Tensor(tensor) => self.tensor(tensor),
            Leaf::Opaque(address) => self.tagged(Tag::Opaque, address as u64),
        }
    }
}
