//! What is measured: nodes at shapes that real networks have, and odd ones.

use std::fmt;

/// A square convolution of channels-last data, padded so that the output is the input's size by the stride.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    pub size: usize,
    pub channels: usize,
    pub outputs: usize,
    pub groups: usize,
    pub kernel: usize,
    pub stride: usize,
}

/// A node by its operator and sizes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// MatMul of `float32`, `b` constant.
    Product([usize; 3]),
    /// MatMul of `float32` whose factors are both computed.
    Computed([usize; 3]),
    /// MatMulInteger, `uint8` by constant `int8`.
    IntegerProduct([usize; 3]),
    /// MatMulNBits of 4 bits in blocks of 32.
    Packed { sizes: [usize; 3], int8: bool },
    /// Conv of `float32`.
    Convolution(Layer),
    /// QLinearConv of `uint8` by constant `int8`.
    IntegerConvolution(Layer),
}

use Shape::{Computed, Convolution, IntegerConvolution, IntegerProduct, Packed, Product};

pub(super) const fn layer(
    size: usize,
    channels: usize,
    outputs: usize,
    groups: usize,
    kernel: usize,
    stride: usize,
) -> Layer {
    Layer {
        size,
        channels,
        outputs,
        groups,
        kernel,
        stride,
    }
}

/// Products are rows, depth and columns; layers are size, channels, outputs, groups, kernel and stride.
pub(super) const SHAPES: &[Shape] = &[
    Product([512, 512, 512]),
    Product([1024, 1024, 1024]),
    // BERT base, 128 tokens.
    Product([128, 768, 3072]),
    Product([197, 65, 131]),
    Product([4, 1024, 1024]),
    // Weights beyond the caches of most machines.
    Product([1, 4096, 4096]),
    Product([1, 2048, 1000]),
    Computed([128, 64, 128]),
    Computed([1, 64, 512]),
    // ResNet-50.
    Convolution(layer(56, 64, 64, 1, 3, 1)),
    Convolution(layer(28, 128, 128, 1, 3, 1)),
    Convolution(layer(14, 256, 256, 1, 3, 1)),
    Convolution(layer(7, 512, 512, 1, 3, 1)),
    Convolution(layer(28, 256, 256, 1, 3, 2)),
    Convolution(layer(56, 64, 256, 1, 1, 1)),
    Convolution(layer(14, 1024, 256, 1, 1, 1)),
    Convolution(layer(7, 512, 2048, 1, 1, 1)),
    Convolution(layer(56, 256, 512, 1, 1, 2)),
    Convolution(layer(224, 3, 64, 1, 7, 2)),
    // SqueezeNet, and the first layer of MobileNet.
    Convolution(layer(55, 16, 64, 1, 3, 1)),
    Convolution(layer(13, 64, 256, 1, 3, 1)),
    Convolution(layer(55, 128, 16, 1, 1, 1)),
    Convolution(layer(224, 3, 32, 1, 3, 2)),
    // Super-resolution.
    Convolution(layer(224, 64, 32, 1, 3, 1)),
    Convolution(layer(13, 37, 51, 1, 3, 1)),
    // Depthwise.
    Convolution(layer(112, 32, 32, 32, 3, 1)),
    Convolution(layer(14, 512, 512, 512, 3, 1)),
    Convolution(layer(112, 64, 64, 64, 3, 2)),
    Convolution(layer(28, 120, 120, 120, 5, 1)),
    Convolution(layer(56, 3, 3, 3, 3, 1)),
    // ResNeXt, and ShuffleNet.
    Convolution(layer(14, 256, 256, 32, 3, 1)),
    Convolution(layer(28, 240, 60, 3, 1, 1)),
    IntegerProduct([512, 512, 512]),
    IntegerProduct([128, 768, 3072]),
    IntegerProduct([127, 63, 255]),
    IntegerProduct([1, 2048, 2048]),
    IntegerConvolution(layer(56, 64, 64, 1, 3, 1)),
    IntegerConvolution(layer(14, 256, 1024, 1, 1, 1)),
    IntegerConvolution(layer(224, 3, 32, 1, 3, 2)),
    IntegerConvolution(layer(112, 32, 32, 32, 3, 1)),
    IntegerConvolution(layer(112, 64, 64, 64, 3, 2)),
    // A decoder's row of scores, and a prompt.
    Packed {
        sizes: [1, 4096, 32000],
        int8: false,
    },
    Packed {
        sizes: [1, 4096, 32000],
        int8: true,
    },
    Packed {
        sizes: [1, 2048, 1536],
        int8: false,
    },
    Packed {
        sizes: [1, 2048, 1536],
        int8: true,
    },
    Packed {
        sizes: [128, 2048, 2048],
        int8: false,
    },
    Packed {
        sizes: [128, 2048, 2048],
        int8: true,
    },
];

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = |f: &mut fmt::Formatter<'_>, name: &str, [m, k, n]: [usize; 3]| {
            write!(f, "{name} {m}x{k}x{n}")
        };
        match *self {
            Product(sizes) => product(f, "MatMul", sizes),
            Computed(sizes) => product(f, "MatMul of two inputs", sizes),
            IntegerProduct(sizes) => product(f, "MatMulInteger", sizes),
            Packed { sizes, int8 } => {
                product(f, "MatMulNBits 4 bits", sizes)?;
                f.write_str(if int8 { ", int8" } else { "" })
            }
            Convolution(layer) => write!(f, "Conv {layer}"),
            IntegerConvolution(layer) => write!(f, "QLinearConv {layer}"),
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Layer {
            size,
            channels,
            outputs,
            groups,
            kernel,
            stride,
        } = *self;
        write!(f, "{kernel}x{kernel}")?;
        if stride > 1 {
            write!(f, "/{stride}")?;
        }
        write!(f, " {channels} to {outputs} at {size}")?;
        match groups {
            1 => Ok(()),
            _ if groups == channels => f.write_str(", depthwise"),
            _ => write!(f, ", {groups} groups"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_different() {
        let mut titles: Vec<String> = SHAPES.iter().map(ToString::to_string).collect();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), SHAPES.len());
        let odd = Convolution(layer(28, 240, 60, 3, 1, 1));
        assert_eq!(odd.to_string(), "Conv 1x1 240 to 60 at 28, 3 groups");
        let depthwise = Convolution(layer(112, 64, 64, 64, 3, 2));
        assert_eq!(
            depthwise.to_string(),
            "Conv 3x3/2 64 to 64 at 112, depthwise"
        );
    }
}
