//! With `quantized=native`: at most a step of quantisation from real numbers.

use kilim_core::ops::BinaryKind;

use crate::common::steps::{self, Extent};
use crate::neon;

#[test]
fn sums() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Add, Extent::Whole);
}

#[test]
fn differences() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Sub, Extent::Whole);
}

#[test]
fn products() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Mul, Extent::Whole);
}

#[test]
fn the_larger_and_the_smaller_of_different_scales() {
    let Some(neon) = neon() else { return };
    steps::of_two(&neon, BinaryKind::Max, Extent::Whole);
    steps::of_two(&neon, BinaryKind::Min, Extent::Whole);
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
fn convolutions_of_channels_first() {
    let Some(neon) = neon() else { return };
    steps::convolutions(&neon, &steps::GENERAL, &steps::FORMS, false);
}

#[test]
fn activations() {
    let Some(neon) = neon() else { return };
    steps::activations(&neon, &steps::FUNCTIONS, Extent::Whole);
}

#[test]
fn averages_of_windows() {
    let Some(neon) = neon() else { return };
    steps::averages(&neon, Extent::Whole);
}

#[test]
fn softmaxes() {
    let Some(neon) = neon() else { return };
    steps::softmaxes(&neon, Extent::Whole);
}

#[test]
fn pictures_are_interpolated() {
    let Some(neon) = neon() else { return };
    steps::resizes(&neon, Extent::Whole);
}
