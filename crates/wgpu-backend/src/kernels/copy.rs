//! Copies: whole tensors.

use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage;

/// Output 0 becomes the bytes of input 0.
pub(crate) fn whole(l: &mut Lowering) -> Lowers {
    let (from, to) = (l.input(0)?, l.output(0)?);
    if from.dtype != to.dtype || from.elements() != to.elements() {
        return refuse("the output is not the input under another shape");
    }
    words(l, storage::device_bytes(to.dtype, to.elements()) / 4);
    Ok(())
}

/// The first `words` words of output 0 become those of input 0.
pub(crate) fn words(l: &mut Lowering, words: usize) {
    l.linear(
        "copy",
        &[("T", "u32")],
        &[Operand::Input(0), Operand::Output(0)],
        Params::new().u(words),
        words,
    );
}
