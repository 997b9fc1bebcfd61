//! Which taps the outputs of a phase use.

use kilim_core::ops::WindowAxis;

use crate::window::Window;

/// A kernel position, and the input element that it reads for the first output of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tap {
    pub kernel: usize,
    pub shift: isize,
}

/// The taps of each phase along both axes, in the order of the input.
pub(super) struct Phases {
    pub y: Vec<Vec<Tap>>,
    pub x: Vec<Vec<Tap>>,
}

impl Phases {
    pub fn new(window: &Window) -> Phases {
        Phases {
            y: taps(&window.y),
            x: taps(&window.x),
        }
    }

    /// All phases: their places and taps.
    pub fn each(&self) -> impl Iterator<Item = (usize, usize, &[Tap], &[Tap])> {
        self.y.iter().enumerate().flat_map(move |(py, ty)| {
            let along_x = self.x.iter().enumerate();
            along_x.map(move |(px, tx)| (py, px, ty.as_slice(), tx.as_slice()))
        })
    }
}

fn taps(axis: &WindowAxis) -> Vec<Vec<Tap>> {
    let stride = axis.stride as isize;
    (0..axis.stride)
        .map(|phase| {
            let position = (phase + axis.begin) as isize;
            (0..axis.kernel)
                .rev()
                .map(|kernel| (kernel, position - (kernel * axis.dilation) as isize))
                .filter(|(_, distance)| distance % stride == 0)
                .map(|(kernel, distance)| Tap {
                    kernel,
                    shift: distance / stride,
                })
                .collect()
        })
        .collect()
}

/// Padding before and after an axis, so that all taps of all outputs read something.
pub(super) fn margins(axis: &WindowAxis, phases: &[Vec<Tap>]) -> (usize, usize) {
    let (mut before, mut after) = (0, 0);
    for (phase, taps) in phases.iter().enumerate() {
        let last = ((axis.output - phase).div_ceil(axis.stride) - 1) as isize;
        for t in taps {
            before = before.max(-t.shift);
            after = after.max(last + t.shift + 1 - axis.input as isize);
        }
    }
    (before as usize, after as usize)
}
