//! STFT.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::ops::Gather;

use super::transform::{Length, Transform};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

pub fn stft(b: &mut NodeBuilder) -> Result<()> {
    let signal = b.input(0)?;
    let mut rank = b.rank(signal)?;
    let mut x = signal;
    if rank == 2 {
        x = b.unsqueeze(signal, &[2])?;
        rank = 3;
    }
    if rank != 3 {
        return Err(invalid("a signal needs three dimensions"));
    }
    let step = b.input(1)?;
    let step = b.cast(step, DType::I64)?;
    let step = b.reshape(step, &[1])?;
    let window = b.optional(2)?;
    let length = match (window, b.optional(3)?) {
        (Some(window), _) => match b.shape(window).as_deref() {
            Some(&[n]) => Length::Known(n),
            _ => Length::Computed(b.shape_of(window)?),
        },
        (None, Some(length)) => super::dft::given_length(b, length)?,
        (None, None) => return Err(invalid("neither window nor frame length")),
    };
    let whole = length.value(b)?;
    let total = b.dim(x, 1)?;
    let one = b.i64s(&[1])?;
    let rest = b.sub(total, whole)?;
    let frames = b.div(rest, step)?;
    let frames = b.add(frames, one)?;
    let starts = b.iota(frames)?;
    let starts = b.mul(starts, step)?;
    let starts = b.unsqueeze(starts, &[1])?;
    let offsets = b.iota(whole)?;
    let places = b.add(starts, offsets)?;
    let mut x = b.op(Gather { axis: 1 }, &[x, places])?;
    if let Some(window) = window {
        let window = b.unsqueeze(window, &[1])?;
        x = b.mul(x, window)?;
    }
    let transform = Transform {
        length,
        inverse: false,
        onesided: b.int_or("onesided", 1)? != 0,
    };
    let y = transform.apply(b, x)?;
    b.bind(0, y)
}
