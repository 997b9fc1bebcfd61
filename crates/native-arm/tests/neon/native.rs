//! With `quantized=native`: at most a step of quantisation from real numbers.

use kilim_core::ops::BinaryKind;

use crate::common::steps;
use crate::neon;

#[test]
fn sums() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Add);
}

#[test]
fn differences() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Sub);
}

#[test]
fn products() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Mul);
}

#[test]
fn the_larger_and_the_smaller_of_different_scales() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Max);
    steps::of_two(&neon, BinaryKind::Min);
}

#[test]
fn depthwise_convolutions() {
    let Some(neon) = neon() else { return };
    steps::convolutions(&neon, &steps::DEPTHWISE, &steps::FORMS, true);
}

#[test]
fn depthwise_convolutions_of_channels_first() {
    let Some(neon) = neon() else { return };
    steps::convolutions(&neon, &steps::DEPTHWISE[..3], &steps::FORMS[..1], false);
}

#[test]
fn averages_of_windows() {
    let Some(neon) = neon() else { return };
    steps::averages(&neon);
}

#[test]
fn softmaxes() {
    let Some(neon) = neon() else { return };
    steps::softmaxes(&neon);
}

#[test]
fn pictures_are_interpolated() {
    let Some(neon) = neon() else { return };
    steps::resizes(&neon);
}
