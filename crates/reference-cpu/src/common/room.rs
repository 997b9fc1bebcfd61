//! Caches with places for what is to come.

use kilim_core::Result;
use kilim_core::error::value_error;
use kilim_host::{Io, by};

/// The places of a cache, and of the cache that is made of it.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Places of the cache.
    pub held: usize,
    /// Places of the output: no fewer.
    pub room: usize,
    /// Bytes of one place.
    pub row: usize,
}

impl Room {
    /// The bytes of output `output` as they are before something is written on it: those of the cache, which is input `input`, with
    /// zeros behind what the cache has.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn begun<'a>(&self, io: &mut Io<'a>, output: usize, input: usize) -> Result<&'a mut [u8]> {
        if self.stays() {
            return io.output_on(output, input);
        }
        let (cpu, x, y) = (io.cpu(), io.input_bytes(input), io.output_bytes(output));
        let (held, room) = (self.held * self.row, self.room * self.row);
        if y.is_empty() {
            return Ok(y);
        }
        cpu.rows(y.len() / room, by(&mut *y, room), room, |piece, y, cpu| {
            for (line, y) in piece.zip(y.chunks_exact_mut(room)) {
                let (kept, behind) = y.split_at_mut(held);
                cpu.copy(&x[line * held..][..held], kept)?;
                cpu.fill(behind, 0)?;
            }
            Ok(())
        })?;
        Ok(y)
    }

    /// Whether the output has as many places as the cache.
    pub fn stays(&self) -> bool {
        self.held == self.room
    }

    /// The place of a step behind `start`.
    ///
    /// # Errors
    /// `InvalidValue` where there is no such place.
    pub fn place(&self, start: usize, step: usize) -> Result<usize> {
        match start.saturating_add(step) {
            at if at < self.room => Ok(at),
            at => Err(value_error("an update reaches past the cache")
                .with_expected(format!("at most {}", self.room))
                .with_got(at)),
        }
    }
}

/// The place at which an update begins.
///
/// # Errors
/// `InvalidValue` where it is negative.
pub fn first(start: i64) -> Result<usize> {
    usize::try_from(start).map_err(|_| value_error("a write index is negative").with_got(start))
}
