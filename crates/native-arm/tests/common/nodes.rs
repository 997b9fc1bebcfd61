//! Operators whose attributes most tests have in common.

use kilim_core::ops::{
    AspectPolicy, Conv, ConvTranspose, CoordinateMode, MaxPool, NearestMode, Padding, Resize,
    ResizeMode, Window,
};
use kilim_core::{DType, Tensor};

use super::Given::{self, Constant, Fed};
use super::{bytes, scalar, zero};

/// A convolution of 3x3, with a border of one.
pub fn conv(groups: usize, channels_last: bool) -> Conv {
    Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::Explicit(vec![1, 1, 1, 1]),
        groups,
        channels_last,
        activation: Default::default(),
    }
}

/// A transposed convolution of 3x3, with a border of one.
pub fn conv_transpose(stride: usize, channels_last: bool) -> ConvTranspose {
    ConvTranspose {
        strides: vec![stride; 2],
        dilations: vec![1, 1],
        padding: Padding::Explicit(vec![1; 4]),
        output_padding: Vec::new(),
        output_shape: None,
        groups: 1,
        channels_last,
        activation: Default::default(),
    }
}

pub fn window(kernel: usize, stride: usize, pad: usize) -> Window {
    Window {
        kernel: vec![kernel; 2],
        strides: vec![stride; 2],
        dilations: vec![1, 1],
        padding: Padding::Explicit(vec![pad; 4]),
        ceil_mode: false,
    }
}

pub fn max_pool(window: Window, channels_last: bool) -> MaxPool {
    MaxPool {
        window,
        column_major: false,
        channels_last,
    }
}

pub fn resize(mode: ResizeMode, coordinates: CoordinateMode) -> Resize {
    Resize {
        mode,
        coordinates,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: None,
        policy: AspectPolicy::Stretch,
    }
}

/// What ACL can do of resizing.
pub const RESIZES: [(ResizeMode, CoordinateMode); 4] = [
    (ResizeMode::Linear, CoordinateMode::HalfPixel),
    (ResizeMode::Linear, CoordinateMode::Asymmetric),
    (ResizeMode::Linear, CoordinateMode::AlignCorners),
    (
        ResizeMode::Nearest(NearestMode::Floor),
        CoordinateMode::Asymmetric,
    ),
];

/// The inputs of a Resize to `y`, neither regions nor scales given.
pub fn resized(x: Tensor, y: &[usize]) -> Vec<Given> {
    let none = || Constant(Tensor::from_slice::<f32>(&[0], &[]).unwrap());
    let sizes: Vec<i64> = y.iter().map(|&d| d as i64).collect();
    let sizes = Tensor::from_slice(&[y.len()], &sizes).unwrap();
    vec![Fed(x), none(), none(), Constant(sizes)]
}

/// int8 of data, weights and result with scales, as the QLinear operators take them.
pub fn quantised(x: &[usize], w: &[usize]) -> Vec<Given> {
    let scales = || [scalar(0.01), zero(DType::I8, 0)];
    let data = [Fed(bytes(x, 37))].into_iter().chain(scales());
    let weights = [Constant(bytes(w, 91))].into_iter().chain(scales());
    data.chain(weights).chain(scales()).collect()
}
