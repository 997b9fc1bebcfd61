mod case;

use kilim_core::memory::MemoryMode;
use kilim_core::ops::{Activation, WindowAxis};

use super::Algorithm;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;

pub(super) use case::Case;
use case::{ACTIVATIONS, PLAIN, geometries};

#[test]
fn dense_geometries() {
    for case in geometries(PLAIN) {
        case.check(Some(Algorithm::Dense), 1e-5);
    }
}

#[test]
fn dense_channels() {
    for channels in [1, 3, 4, 16, 33] {
        for outputs in [1, 4, 8, 9, 16, 17, 31, 32, 40, 65] {
            let case = Case {
                channels,
                outputs,
                residual: true,
                ..PLAIN
            };
            case.check(Some(Algorithm::Dense), 1e-5);
            Case {
                kernel: [1, 1],
                pad: [0; 4],
                ..case
            }
            .check(Some(Algorithm::Dense), 1e-5);
        }
    }
}

#[test]
fn dense_deep() {
    // More depth than a block, more rows than a block, more rows than a strip.
    let case = Case {
        channels: 130,
        outputs: 20,
        residual: true,
        ..PLAIN
    };
    case.check(Some(Algorithm::Dense), 2e-5);
    Case {
        kernel: [1, 1],
        pad: [0; 4],
        channels: 1300,
        ..case
    }
    .check(Some(Algorithm::Dense), 2e-5);
    Case {
        size: [50, 70],
        channels: 24,
        ..case
    }
    .check(Some(Algorithm::Dense), 2e-5);
    Case {
        size: [50, 70],
        channels: 24,
        stride: [2, 2],
        groups: 4,
        ..case
    }
    .check(Some(Algorithm::Dense), 2e-5);
}

#[test]
fn dense_groups() {
    for (groups, channels, outputs) in [(2, 6, 10), (4, 16, 4), (5, 5, 5), (6, 6, 18)] {
        for case in geometries(Case {
            groups,
            channels,
            outputs,
            ..PLAIN
        }) {
            case.check(Some(Algorithm::Dense), 1e-5);
        }
    }
}

#[test]
fn activations() {
    for activation in ACTIVATIONS {
        Case {
            activation,
            residual: true,
            ..PLAIN
        }
        .check(Some(Algorithm::Dense), 1e-5);
    }
}

#[test]
fn depthwise() {
    for channels in [1, 3, 4, 8, 19, 32, 40] {
        let case = Case {
            channels,
            outputs: channels,
            groups: channels,
            ..PLAIN
        };
        for case in geometries(case) {
            case.check(Some(Algorithm::Depthwise), 1e-5);
        }
        for stride in [1, 2, 3] {
            let case = Case {
                stride: [stride; 2],
                size: [17, 21],
                residual: true,
                ..case
            };
            case.check(Some(Algorithm::Depthwise), 1e-5);
            Case {
                kernel: [5, 5],
                pad: [2, 1, 2, 2],
                activation: Activation::HardSwish,
                ..case
            }
            .check(Some(Algorithm::Depthwise), 1e-5);
        }
    }
}

/// All inside of what minimal filtering computes; its transforms cost some digits.
#[test]
fn winograd() {
    for (algorithm, tolerance) in [(Algorithm::Winograd2, 1e-5), (Algorithm::Winograd4, 1e-4)] {
        for channels in [1, 4, 7, 16, 33] {
            for outputs in [1, 8, 9, 35] {
                let case = Case {
                    channels,
                    outputs,
                    ..PLAIN
                };
                case.check(Some(algorithm), tolerance);
                for (pad, size) in [
                    ([0; 4], [12, 8]),
                    ([0, 2, 1, 1], [7, 7]),
                    ([1; 4], [1, 3]),
                    ([2; 4], [4, 30]),
                ] {
                    Case {
                        pad,
                        size,
                        batch: 2,
                        residual: true,
                        ..case
                    }
                    .check(Some(algorithm), tolerance);
                }
            }
        }
        for activation in ACTIVATIONS {
            Case {
                activation,
                ..PLAIN
            }
            .check(Some(algorithm), tolerance);
        }
        Case {
            channels: 64,
            outputs: 70,
            size: [41, 40],
            bias: false,
            ..PLAIN
        }
        .check(Some(algorithm), 4.0 * tolerance);
    }
}

#[test]
fn choices() {
    let sized = |lanes, size, groups, channels, outputs| {
        let axis = WindowAxis {
            input: size,
            kernel: 3,
            stride: 1,
            dilation: 1,
            begin: 1,
            end: 1,
            output: size,
        };
        let shape = super::Shape {
            window: super::Window::new(1, channels, &[axis; 2]).expect("a window"),
            groups,
            m: outputs,
        };
        let thrifty = super::choose(&shape, lanes, MemoryMode::Limit);
        assert!(matches!(thrifty, Algorithm::Dense | Algorithm::Depthwise));
        super::choose(&shape, lanes, MemoryMode::Normal)
    };
    let choice = |groups, channels, outputs| sized(16, 8, groups, channels, outputs);
    assert_eq!(choice(8, 8, 8), Algorithm::Depthwise);
    assert_eq!(choice(8, 8, 16), Algorithm::Dense);
    assert_eq!(choice(1, 1, 1), Algorithm::Dense);
    assert_eq!(choice(1, 64, 64), Algorithm::Winograd4);
    assert_eq!(choice(1, 32, 9), Algorithm::Winograd4);
    assert_eq!(choice(1, 8, 8), Algorithm::Dense);
    assert_eq!(sized(16, 7, 1, 512, 512), Algorithm::Dense);
    assert_eq!(sized(4, 7, 1, 512, 512), Algorithm::Winograd2);
    assert_eq!(sized(16, 14, 1, 256, 256), Algorithm::Winograd2);
    assert_eq!(sized(4, 14, 1, 256, 256), Algorithm::Winograd4);
    assert_eq!(sized(16, 14, 1, 512, 512), Algorithm::Winograd2);
    assert_eq!(sized(16, 14, 1, 2048, 2048), Algorithm::Dense);
    assert_eq!(choice(4, 8, 8), Algorithm::Dense);
}
