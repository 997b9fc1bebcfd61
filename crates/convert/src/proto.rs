//! Messages of protobuf as they are written: fields in the order in which they are added.

use std::io::Write;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::Tensor;

/// A message. The elements of large tensors are not copied into it: they are read when it is written.
#[derive(Default)]
pub struct Message {
    pieces: Vec<Piece>,
    len: u64,
}

enum Piece {
    Bytes(Vec<u8>),
    Elements(Tensor),
}

/// How a field is stored (Protocol Buffers, Encoding).
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Bytes = 2,
    Fixed32 = 5,
}

/// The bytes that a tensor's elements take in a file.
pub fn stored_bytes(tensor: &Tensor) -> Result<u64> {
    let bits = tensor.dtype().bits();
    Ok(match bits {
        ..8 => kilim_core::narrow::packed_bytes(bits, tensor.len())? as u64,
        _ => tensor.byte_len() as u64,
    })
}

/// Writes the elements of a tensor as files have them. What is read on demand is let go of again.
pub fn write_elements(tensor: &Tensor, to: &mut dyn Write) -> Result<()> {
    to.write_all(&tensor.unread().to_packed()?)
        .map_err(not_written)
}

pub fn not_written(error: std::io::Error) -> Error {
    Error::new(
        ErrorCode::Io,
        format!("the model cannot be written: {error}"),
    )
}

impl Message {
    /// The bytes of the message.
    pub fn len(&self) -> u64 {
        self.len
    }

    fn tail(&mut self) -> &mut Vec<u8> {
        if !matches!(self.pieces.last(), Some(Piece::Bytes(_))) {
            self.pieces.push(Piece::Bytes(Vec::new()));
        }
        match self.pieces.last_mut() {
            Some(Piece::Bytes(bytes)) => bytes,
            _ => unreachable!("a piece of bytes was pushed"),
        }
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.tail().extend_from_slice(bytes);
    }

    fn varint(&mut self, mut n: u64) {
        let mut bytes = [0; 10];
        let mut count = 0;
        loop {
            bytes[count] = n as u8 & 0x7f | if n >= 0x80 { 0x80 } else { 0 };
            count += 1;
            n >>= 7;
            if n == 0 {
                break;
            }
        }
        self.raw(&bytes[..count]);
    }

    fn tag(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    /// An integer or an enum.
    pub fn int(&mut self, field: u32, n: i64) {
        self.tag(field, Wire::Varint);
        self.varint(n as u64);
    }

    /// A number of single precision.
    pub fn float(&mut self, field: u32, x: f32) {
        self.tag(field, Wire::Fixed32);
        self.raw(&x.to_le_bytes());
    }

    /// Bytes or a text.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, Wire::Bytes);
        self.varint(bytes.len() as u64);
        self.raw(bytes);
    }

    /// A text; nothing where it is empty.
    pub fn text(&mut self, field: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(field, text.as_bytes());
        }
    }

    /// A message in this one.
    pub fn message(&mut self, field: u32, inner: Message) {
        self.tag(field, Wire::Bytes);
        self.varint(inner.len);
        self.len += inner.len;
        for piece in inner.pieces {
            match piece {
                Piece::Bytes(bytes) => self.tail().extend_from_slice(&bytes),
                elements => self.pieces.push(elements),
            }
        }
    }

    /// The elements of a tensor, as files have them.
    ///
    /// # Errors
    /// `Shape` where they are too many.
    pub fn elements(&mut self, field: u32, tensor: &Tensor) -> Result<()> {
        let len = stored_bytes(tensor)?;
        self.tag(field, Wire::Bytes);
        self.varint(len);
        self.len += len;
        self.pieces.push(Piece::Elements(tensor.clone()));
        Ok(())
    }

    /// Writes the message.
    ///
    /// # Errors
    /// `Io` where that fails, and what reading elements says.
    pub fn write(&self, to: &mut dyn Write) -> Result<()> {
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => to.write_all(bytes).map_err(not_written)?,
                Piece::Elements(tensor) => write_elements(tensor, to)?,
            }
        }
        Ok(())
    }
}
