//! Whether bytes are an MNN file, which has no signature: the root table must have the fields of a `Net`, and these must be what the
//! schema says. Of a large file only the beginning is looked at.

use super::schema::{NET_FIELDS, OP_TYPES, net, op};

/// Fields that a later schema may add to the root table.
const MORE_FIELDS: usize = 8;

/// The root table stands at the beginning, behind its table of fields.
const ROOT_WITHIN: usize = 256;

/// Operators and tensors of the largest networks.
const MOST: usize = 1 << 24;

/// The bytes of a name that are looked at.
const NAME: usize = 64;

/// A part of a file from its beginning on.
struct Head<'a>(&'a [u8]);

/// What is known of something in the file: nothing where it lies behind the part that is looked at.
enum Seen<T> {
    Here(T),
    Behind,
}

impl<'a> Head<'a> {
    fn word(&self, at: usize) -> Option<usize> {
        let bytes = self.0.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    }

    fn half(&self, at: usize) -> Option<usize> {
        let bytes = self.0.get(at..at.checked_add(2)?)?;
        Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
    }

    /// The places of the fields of the table at `at`; 0 where one is left out. Nothing where no table stands there.
    fn fields(&self, at: usize, most: usize) -> Option<Vec<usize>> {
        let back = self.word(at)? as u32 as i32;
        let vtable = usize::try_from(i64::try_from(at).ok()? - i64::from(back)).ok()?;
        let (size, table) = (self.half(vtable)?, self.half(vtable + 2)?);
        let count = size.checked_sub(4)? / 2;
        if size % 2 != 0 || table < 4 || count > most {
            return None;
        }
        let fields = (0..count).map(|slot| {
            let offset = self.half(vtable + 4 + 2 * slot)?;
            match offset {
                0 => Some(0),
                4.. if offset < table => Some(at + offset),
                _ => None,
            }
        });
        fields.collect()
    }

    /// What the offset at `at` leads to: always to what stands behind it.
    fn follow(&self, at: usize) -> Option<Seen<usize>> {
        let offset = self.word(at)?;
        let target = at.checked_add(offset)?;
        match offset {
            0 => None,
            _ if target.checked_add(4)? <= self.0.len() => Some(Seen::Here(target)),
            _ => Some(Seen::Behind),
        }
    }

    /// The length of the vector whose offset stands at `at`, and the place of its first element.
    fn vector(&self, at: usize) -> Option<Seen<(usize, usize)>> {
        match self.follow(at)? {
            Seen::Here(start) => {
                let len = self.word(start)?;
                (len <= MOST).then_some(Seen::Here((len, start + 4)))
            }
            Seen::Behind => Some(Seen::Behind),
        }
    }

    /// Whether a text, or its beginning, stands where the offset at `at` leads.
    fn is_text(&self, at: usize) -> Option<bool> {
        let Seen::Here((len, start)) = self.vector(at)? else {
            return Some(true);
        };
        let name = self.0.get(start..self.0.len().min(start + len.min(NAME)))?;
        let cut = std::str::from_utf8(name).err();
        Some(cut.is_none_or(|error| error.error_len().is_none()))
    }

    /// Whether an operator stands where the offset at `at` leads.
    fn is_op(&self, at: usize) -> Option<bool> {
        let Seen::Here(table) = self.follow(at)? else {
            return Some(true);
        };
        let fields = self.fields(table, MORE_FIELDS * 2)?;
        let kind = match fields.get(op::TYPE).copied().unwrap_or(0) {
            0 => 0,
            at => self.word(at)?,
        };
        Some(kind < OP_TYPES && fields.get(op::OUTPUTS).is_some_and(|&at| at != 0))
    }
}

/// Whether the beginning of a file is that of an MNN network.
pub fn is_net(bytes: &[u8]) -> bool {
    looks(&Head(bytes)).unwrap_or(false)
}

fn looks(head: &Head) -> Option<bool> {
    // What other formats of FlatBuffers are called by.
    let identifier = head.0.get(4..8)?;
    if identifier.iter().all(u8::is_ascii_alphanumeric) {
        return Some(false);
    }
    let root = head.word(0)?;
    if root > ROOT_WITHIN {
        return Some(false);
    }
    let fields = head.fields(root, NET_FIELDS + MORE_FIELDS)?;
    let field = |slot: usize| fields.get(slot).copied().filter(|&at| at != 0);
    let small = |slot: usize, most: u8| {
        let byte = field(slot).map_or(Some(0), |at| head.0.get(at).copied());
        byte.is_some_and(|byte| byte <= most)
    };
    if !small(net::FORWARD_TYPE, 31) || !small(net::SOURCE_TYPE, 15) || !small(net::USAGE, 7) {
        return Some(false);
    }
    let (ops, names) = (field(net::OPS)?, field(net::TENSOR_NAMES)?);
    let seen = match head.vector(ops)? {
        Seen::Here((len, first)) => len > 0 && head.is_op(first).unwrap_or(first >= head.0.len()),
        Seen::Behind => true,
    };
    Some(
        seen && match head.vector(names)? {
            Seen::Here((len, first)) => {
                len > 0 && head.is_text(first).unwrap_or(first >= head.0.len())
            }
            Seen::Behind => true,
        },
    )
}
