//! Convolutions to test, and what they must give.

use kilim_core::Tensor;
use kilim_core::ops::{Activation, Conv, Padding};
use kilim_host::testing::{noise, tensor};

use crate::conv::{Algorithm, kernel};
use crate::isa::Isa;
use crate::testing::{assert_within, run_kernel};

/// A convolution to test, transposed or not: sizes are (y, x).
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub batch: usize,
    pub size: [usize; 2],
    pub channels: usize,
    pub outputs: usize,
    pub groups: usize,
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub dilation: [usize; 2],
    /// Begin and end of both axes.
    pub pad: [usize; 4],
    pub activation: Activation,
    pub bias: bool,
    pub residual: bool,
}

pub const PLAIN: Case = Case {
    batch: 1,
    size: [9, 11],
    channels: 5,
    outputs: 7,
    groups: 1,
    kernel: [3, 3],
    stride: [1, 1],
    dilation: [1, 1],
    pad: [1, 1, 1, 1],
    activation: Activation::None,
    bias: true,
    residual: false,
};

impl Case {
    fn output(&self) -> [usize; 2] {
        [0, 1].map(|a| {
            let span = (self.kernel[a] - 1) * self.dilation[a] + 1;
            (self.size[a] + self.pad[a] + self.pad[a + 2] - span) / self.stride[a] + 1
        })
    }

    /// `[n, h, w, c]`.
    pub fn data_shape(&self) -> [usize; 4] {
        [self.batch, self.size[0], self.size[1], self.channels]
    }

    /// What a convolution does with its sums.
    pub fn finish(&self, sums: &mut [f64], bias: &[f32], residual: &[f32]) {
        for (i, sum) in sums.iter_mut().enumerate() {
            if self.bias {
                *sum += f64::from(bias[i % self.outputs]);
            }
            if self.residual {
                *sum += f64::from(residual[i]);
            }
            *sum = activate(self.activation, *sum);
        }
    }

    /// Holds the kernel on every instruction set to sums in `float64`.
    pub fn check(&self, algorithm: Option<Algorithm>, tolerance: f64) {
        let (c, m) = (self.channels, self.outputs);
        let [oh, ow] = self.output();
        let out_shape = [self.batch, oh, ow, m];
        let data_shape = self.data_shape();
        let data = noise(data_shape.iter().product(), 1);
        let weight_shape = [m, c / self.groups, self.kernel[0], self.kernel[1]];
        let weights = noise(weight_shape.iter().product(), 2);
        let bias = noise(m, 3);
        let residual = noise(out_shape.iter().product(), 4);
        let mut want = self.reference(&data, &weights);
        self.finish(&mut want, &bias, &residual);
        let op = Conv {
            strides: self.stride.to_vec(),
            dilations: self.dilation.to_vec(),
            padding: Padding::Explicit(self.pad.to_vec()),
            groups: self.groups,
            channels_last: true,
            activation: self.activation,
        };
        let data: Tensor = tensor(&data_shape, &data);
        let weights = tensor(&weight_shape, &weights);
        let bias = self.bias.then(|| tensor(&[m], &bias));
        let residual = self.residual.then(|| tensor(&out_shape, &residual));
        let inputs = [
            Some(&data),
            Some(&weights),
            bias.as_ref(),
            residual.as_ref(),
        ];
        for isa in Isa::available() {
            let got = run_kernel(&op, &inputs, &out_shape, |node, build| {
                kernel(&op, node, build, isa, algorithm)
            });
            assert_within(
                &got,
                &want,
                tolerance,
                &format!("{self:?} {algorithm:?} {isa:?}"),
            );
        }
    }

    fn reference(&self, data: &[f32], weights: &[f32]) -> Vec<f64> {
        let (c, m, [oh, ow]) = (self.channels, self.outputs, self.output());
        let (cg, mg, [kh, kw]) = (c / self.groups, m / self.groups, self.kernel);
        let mut out = Vec::new();
        for n in 0..self.batch {
            for (y, x, o) in (0..oh * ow * m).map(|i| (i / m / ow, i / m % ow, i % m)) {
                let mut sum = 0.0;
                for (ky, kx) in (0..kh * kw).map(|i| (i / kw, i % kw)) {
                    let iy = (y * self.stride[0] + ky * self.dilation[0]).wrapping_sub(self.pad[0]);
                    let ix = (x * self.stride[1] + kx * self.dilation[1]).wrapping_sub(self.pad[1]);
                    if iy >= self.size[0] || ix >= self.size[1] {
                        continue;
                    }
                    for i in 0..cg {
                        let at =
                            ((n * self.size[0] + iy) * self.size[1] + ix) * c + o / mg * cg + i;
                        let weight = weights[((o * cg + i) * kh + ky) * kw + kx];
                        sum += f64::from(data[at]) * f64::from(weight);
                    }
                }
                out.push(sum);
            }
        }
        out
    }
}

fn activate(activation: Activation, x: f64) -> f64 {
    let sigmoid = 1.0 / (1.0 + (-x).exp());
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Clip { min, max } => x.clamp(min.into(), max.into()),
        Activation::LeakyRelu { alpha } if x < 0.0 => f64::from(alpha) * x,
        Activation::LeakyRelu { .. } => x,
        Activation::Sigmoid => sigmoid,
        Activation::Tanh => x.tanh(),
        Activation::HardSwish => x * (x / 6.0 + 0.5).clamp(0.0, 1.0),
        Activation::HardSigmoid { alpha, beta } => {
            (f64::from(alpha) * x + f64::from(beta)).clamp(0.0, 1.0)
        }
        Activation::Silu => x * sigmoid,
    }
}

pub const ACTIVATIONS: [Activation; 9] = [
    Activation::None,
    Activation::Relu,
    Activation::Clip {
        min: -0.5,
        max: 0.75,
    },
    Activation::LeakyRelu { alpha: 0.1 },
    Activation::Sigmoid,
    Activation::Tanh,
    Activation::HardSwish,
    Activation::HardSigmoid {
        alpha: 0.2,
        beta: 0.5,
    },
    Activation::Silu,
];

/// Sizes, strides, dilations and paddings that kernels of any kind must get right.
pub fn geometries(case: Case) -> Vec<Case> {
    vec![
        case,
        Case { batch: 3, ..case },
        Case {
            stride: [2, 2],
            ..case
        },
        Case {
            stride: [1, 3],
            pad: [2, 0, 1, 2],
            ..case
        },
        Case {
            dilation: [2, 1],
            ..case
        },
        Case {
            dilation: [2, 3],
            pad: [2, 3, 2, 3],
            ..case
        },
        Case {
            pad: [0; 4],
            ..case
        },
        Case {
            pad: [0, 1, 2, 0],
            ..case
        },
        Case {
            kernel: [1, 1],
            pad: [0; 4],
            ..case
        },
        Case {
            kernel: [1, 1],
            pad: [0; 4],
            stride: [2, 2],
            batch: 2,
            ..case
        },
        Case {
            kernel: [1, 1],
            pad: [1, 0, 0, 1],
            ..case
        },
        Case {
            kernel: [5, 5],
            pad: [2; 4],
            ..case
        },
        Case {
            kernel: [1, 7],
            pad: [0, 3, 0, 3],
            ..case
        },
        Case {
            kernel: [3, 2],
            size: [40, 37],
            pad: [0, 0, 1, 1],
            ..case
        },
        Case {
            size: [1, 23],
            kernel: [1, 3],
            pad: [0, 1, 0, 1],
            ..case
        },
        Case {
            size: [2, 2],
            kernel: [3, 3],
            pad: [3, 3, 3, 3],
            ..case
        },
        Case {
            residual: true,
            bias: false,
            ..case
        },
    ]
}
