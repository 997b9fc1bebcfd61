//! Changes within the messages of protocol buffers: the lengths in front of all messages around a change follow it. A change that does not
//! know of them would end the file early nearly each time.

use crate::input::Input;

/// A field of a message: its key, and what stands behind it.
#[derive(Clone)]
enum Field {
    Number(u64, u64),
    Bytes(u64, Vec<u8>),
    /// Fixed numbers of 8 or 4 bytes.
    Fixed(u64, Vec<u8>),
}

/// Wire types.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED32: u64 = 5;

/// The highest number of a field in `onnx.proto`.
const HIGHEST: u64 = 26;

/// Numbers that importers stumble over.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    3,
    7,
    16,
    u64::MAX,
    u64::MAX - 1,
    i64::MAX as u64,
    i64::MIN as u64,
    u32::MAX as u64,
    1 << 31,
];

/// Numbers at random, from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        // Knuth's multiplier for 64 bits (MMIX).
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The fields of a message; `None` where the bytes are none.
fn fields(bytes: &[u8]) -> Option<Vec<Field>> {
    let (mut fields, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let key = varint(bytes, &mut at)?;
        if key >> 3 == 0 || key >> 3 > HIGHEST {
            return None;
        }
        let len = match key & 7 {
            VARINT => {
                fields.push(Field::Number(key, varint(bytes, &mut at)?));
                continue;
            }
            LENGTH => usize::try_from(varint(bytes, &mut at)?).ok()?,
            FIXED64 => 8,
            FIXED32 => 4,
            _ => return None,
        };
        let part = bytes.get(at..at.checked_add(len)?)?.to_vec();
        at += len;
        fields.push(match key & 7 {
            LENGTH => Field::Bytes(key, part),
            _ => Field::Fixed(key, part),
        });
    }
    Some(fields)
}

fn message(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        match field {
            Field::Number(key, number) => {
                write_varint(&mut bytes, *key);
                write_varint(&mut bytes, *number);
            }
            Field::Bytes(key, part) => {
                write_varint(&mut bytes, *key);
                write_varint(&mut bytes, part.len() as u64);
                bytes.extend(part);
            }
            Field::Fixed(key, part) => {
                write_varint(&mut bytes, *key);
                bytes.extend(part);
            }
        }
    }
    bytes
}

/// Bytes with libFuzzer's own change.
fn plain(bytes: &[u8]) -> Vec<u8> {
    let (len, most) = (bytes.len(), bytes.len() + 16);
    let mut room = bytes.to_vec();
    room.resize(most, 0);
    let len = libfuzzer_sys::fuzzer_mutate(&mut room, len, most);
    room.truncate(len);
    room
}

/// A message with one change, somewhere in it.
fn change(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let Some(mut fields) = fields(bytes).filter(|fields| !fields.is_empty()) else {
        return plain(bytes);
    };
    let at = dice.below(fields.len());
    let other = dice.below(fields.len());
    match dice.below(24) {
        0 => _ = fields.remove(at),
        1 => fields.insert(at, fields[other].clone()),
        2 => fields.swap(at, other),
        _ => match &mut fields[at] {
            Field::Number(_, number) => {
                let chosen = NUMBERS[dice.below(NUMBERS.len())];
                *number = match dice.below(4) {
                    0 => number.wrapping_add(1),
                    1 => number.wrapping_sub(1),
                    2 => dice.below(30) as u64,
                    _ => chosen,
                };
            }
            Field::Bytes(_, part) => *part = change(part, dice),
            Field::Fixed(_, part) => {
                let new = plain(part);
                let len = part.len().min(new.len());
                part[..len].copy_from_slice(&new[..len]);
            }
        },
    }
    message(&fields)
}

/// An input whose model is a message, with one change in it; `None` in one of four cases, for changes that know nothing of messages.
pub fn changed(input: &[u8], seed: u32) -> Option<Vec<u8>> {
    let mut dice = Dice(u64::from(seed));
    if dice.below(4) == 0 {
        return None;
    }
    let input = Input::read(input);
    fields(input.model)?;
    let model = &change(input.model, &mut dice)[..];
    Some(Input { model, ..input }.write())
}
