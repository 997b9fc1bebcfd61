//! Copies: whole tensors.

use crate::device::storage;
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::movement::copy::{Launch, Params};
use crate::shaders::{Operand, Target};

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
    let launch = Launch {
        x: Operand::Input(0),
        y: Target::Output(0),
        params: Params { count: words },
    };
    l.linear(launch, words);
}
