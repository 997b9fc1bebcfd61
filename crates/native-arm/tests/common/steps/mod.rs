//! ACL's own arithmetic of quantised tensors against real numbers in `float64`: no result is further than a
//! step of quantisation from the real number, and the default is a refusal that says so. A room for each family
//! of operators.

mod activation;
mod binary;
mod convolution;
mod pooling;
mod resize;
mod softmax;

pub use activation::{FUNCTIONS, activations};
pub use binary::of_two;
pub use convolution::{DEPTHWISE, FORMS, GENERAL, GROUPED, WITHOUT_BIAS, convolutions};
pub use pooling::averages;
pub use resize::resizes;
pub use softmax::softmaxes;

use kilim_core::fixed::Factor;
use kilim_core::ops::{Affine, Requantize};
use kilim_core::{DType, Operator, Tensor};
use kilim_native_arm::AclBackend;

use super::Given::{self, Constant, Fed};
use super::real::{Geometry, Quanta, quanta};
use super::{run, turned};

/// How much of what there is to try: an emulated OpenCL device compiles for seconds.
#[derive(Clone, Copy)]
pub enum Extent {
    Whole,
    Sample,
}

impl Extent {
    fn of<T>(self, all: &[T]) -> &[T] {
        match self {
            Extent::Whole => all,
            Extent::Sample => &all[..1],
        }
    }
}

const BYTES: [DType; 2] = [DType::I8, DType::U8];

fn limits(dtype: DType) -> [f64; 2] {
    match dtype {
        DType::U8 => [0.0, 255.0],
        _ => [-128.0, 127.0],
    }
}

/// Nodes whose results are real numbers of their inputs; what is wrong is said of all of them at the end.
struct Checks<'a> {
    acl: &'a AclBackend,
    native: AclBackend,
    wrong: Vec<String>,
}

impl<'a> Checks<'a> {
    fn on(acl: &'a AclBackend) -> Checks<'a> {
        Checks {
            acl,
            native: acl.native(),
            wrong: Vec::new(),
        }
    }

    /// Runs a node, whose results are `real` in steps.
    fn check(
        &mut self,
        what: &str,
        op: impl Operator + Clone,
        inputs: &[Given],
        (dtype, y): (DType, &[usize]),
        real: impl Fn(&[Tensor]) -> Vec<f64>,
    ) {
        self.clamped(what, op, inputs, (dtype, y), limits(dtype), real);
    }

    /// Runs a node, whose results are `real` in steps, clamped to `range`.
    fn clamped(
        &mut self,
        what: &str,
        op: impl Operator + Clone,
        inputs: &[Given],
        output: (DType, &[usize]),
        range: [f64; 2],
        real: impl Fn(&[Tensor]) -> Vec<f64>,
    ) {
        let wrong = self.steps(what, op, inputs, output, range, real).err();
        self.wrong.extend(wrong.map(|why| format!("{what}: {why}")));
    }

    fn steps(
        &self,
        what: &str,
        op: impl Operator + Clone,
        inputs: &[Given],
        output: (DType, &[usize]),
        [low, high]: [f64; 2],
        real: impl Fn(&[Tensor]) -> Vec<f64>,
    ) -> Result<(), String> {
        let native = run(&self.native, op.clone(), inputs, output);
        if native.as_ref().is_err_and(|e| e.contains("with SME")) {
            println!("{what}: not on this processor");
            return Ok(());
        }
        match run(self.acl, op, inputs, output) {
            Err(reason) if reason.contains("quantized=native") => {}
            other => {
                let native = native.err();
                return Err(format!("without the config {other:?}, with it {native:?}"));
            }
        }
        let (mut largest, mut steps) = (0.0f64, 0.0f64);
        for (again, got) in native?.iter().enumerate() {
            let given = inputs.iter().map(|given| match given {
                Fed(t) if again == 1 => turned(t),
                Fed(t) | Constant(t) => t.clone(),
            });
            let want = real(&given.collect::<Vec<_>>());
            let got = got.to_f64s().unwrap();
            assert_eq!(got.len(), want.len(), "{what}");
            for (g, w) in got.iter().zip(want) {
                let w = w.clamp(low, high);
                largest = largest.max((g - w).abs());
                steps = steps.max((g - w.round()).abs());
            }
        }
        println!("{what}: {steps} steps, {largest:.3} from the real number");
        match steps <= 1.0 {
            true => Ok(()),
            false => Err(format!("{steps} steps")),
        }
    }

    /// Fails with all that was wrong.
    fn finish(self) {
        let wrong = self.wrong;
        assert!(wrong.is_empty(), "ACL is wrong:\n{}", wrong.join("\n"));
    }
}

fn affine(q: Quanta) -> Affine {
    Affine {
        scale: q.scale as f32,
        zero: q.zero as f32,
    }
}

fn requantize(factors: &[f64], zero_point: i32, range: [f64; 2], output: DType) -> Requantize {
    Requantize {
        factors: factors.iter().map(|&f| Factor::new(f).unwrap()).collect(),
        zero_point,
        range: range.map(|v| v as i32),
        output,
    }
}

const fn geometry(kernel: usize, stride: usize, pad: usize, dilation: usize) -> Geometry {
    Geometry {
        kernel,
        stride,
        pad,
        dilation,
    }
}

/// Scales and zero points of two tensors and their result.
fn scales(dtype: DType) -> [[Quanta; 3]; 3] {
    match dtype {
        DType::U8 => [
            [quanta(0.05, 128), quanta(0.03, 100), quanta(0.06, 131)],
            [quanta(0.02, 0), quanta(0.07, 255), quanta(0.05, 0)],
            [quanta(0.5, 255), quanta(0.013, 3), quanta(0.7, 255)],
        ],
        _ => [
            [quanta(0.05, -5), quanta(0.03, 7), quanta(0.06, 3)],
            [quanta(0.02, -128), quanta(0.07, 127), quanta(0.05, -128)],
            [quanta(0.5, 127), quanta(0.013, 0), quanta(0.7, 127)],
        ],
    }
}
