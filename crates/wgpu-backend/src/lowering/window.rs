//! Windows with up to three axes.

use kilim_core::ops::WindowAxis;

use super::{Lowers, refuse};
use crate::shaders;

/// The axes, those that are not there in front.
pub(crate) fn three(axes: &[WindowAxis]) -> Lowers<[WindowAxis; 3]> {
    match axes {
        [w] => Ok([WindowAxis::POINT, WindowAxis::POINT, *w]),
        [h, w] => Ok([WindowAxis::POINT, *h, *w]),
        [d, h, w] => Ok([*d, *h, *w]),
        _ => refuse(format!(
            "the GPU kernel has up to three spatial dimensions, these are {}",
            axes.len()
        )),
    }
}

impl From<&[WindowAxis; 3]> for shaders::Window {
    fn from(axes: &[WindowAxis; 3]) -> shaders::Window {
        shaders::Window {
            input: axes.map(|a| a.input),
            kernel: axes.map(|a| a.kernel),
            stride: axes.map(|a| a.stride),
            dilation: axes.map(|a| a.dilation),
            pad: axes.map(|a| a.begin as i64),
        }
    }
}
