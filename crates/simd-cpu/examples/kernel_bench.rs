//! Times single operators on the `cpu` backend, at shapes that real models have.
//!
//! Natively: `cargo run --release -p kilim-simd-cpu --example kernel_bench [filter]`. In wasm the
//! same binary exports what `kernel_bench.mjs` calls.

use std::sync::Arc;

use kilim_core::backend::{
    Backend, ConstantKey, ContextConfig, Executable, KernelSpec, Location, StageSpec, TensorSlot,
    TensorSpec,
};
use kilim_core::ids::{KernelIndex, PartIndex, PerTensor, TensorIndex};
use kilim_core::ops::{Activation, Conv, Padding};
use kilim_core::{DType, Interrupt, Operator, Result, Tensor};

/// A convolution: name, size, channels, outputs, groups, kernel, stride.
type Layer = (&'static str, usize, usize, usize, usize, usize, usize);

const LAYERS: [Layer; 27] = [
    ("product 1024", 32, 1024, 1024, 1, 1, 1),
    ("resnet 1x1", 56, 64, 256, 1, 1, 1),
    ("resnet 1x1", 56, 256, 64, 1, 1, 1),
    ("resnet 1x1", 28, 512, 128, 1, 1, 1),
    ("resnet 1x1", 14, 1024, 256, 1, 1, 1),
    ("resnet 1x1", 14, 256, 1024, 1, 1, 1),
    ("resnet 1x1", 7, 512, 2048, 1, 1, 1),
    ("resnet 1x1", 7, 2048, 512, 1, 1, 1),
    ("resnet 1x1/2", 56, 256, 512, 1, 1, 2),
    ("resnet 3x3", 56, 64, 64, 1, 3, 1),
    ("resnet 3x3", 28, 128, 128, 1, 3, 1),
    ("resnet 3x3", 14, 256, 256, 1, 3, 1),
    ("resnet 3x3", 7, 512, 512, 1, 3, 1),
    ("resnet 3x3/2", 28, 256, 256, 1, 3, 2),
    ("resnet 7x7/2", 224, 3, 64, 1, 7, 2),
    ("espcn 5x5", 224, 1, 64, 1, 5, 1),
    ("espcn 3x3", 224, 64, 64, 1, 3, 1),
    ("espcn 3x3", 224, 64, 32, 1, 3, 1),
    ("espcn 3x3", 224, 32, 9, 1, 3, 1),
    ("squeezenet 3x3/2", 224, 3, 64, 1, 3, 2),
    ("squeezenet 3x3", 55, 16, 64, 1, 3, 1),
    ("squeezenet 3x3", 13, 64, 256, 1, 3, 1),
    ("squeezenet 1x1", 55, 128, 16, 1, 1, 1),
    ("depthwise 3x3", 112, 32, 32, 32, 3, 1),
    ("depthwise 3x3/2", 112, 64, 64, 64, 3, 2),
    ("depthwise 5x5", 28, 120, 120, 120, 5, 1),
    ("product, one row", 1, 2048, 1000, 1, 1, 1),
];

/// Numbers in -1..1, the same every time.
fn noise(shape: &[usize]) -> Result<Tensor> {
    let mut state = 1u32;
    let data: Vec<f32> = (0..shape.iter().product())
        .map(|_| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect();
    Tensor::from_slice(shape, &data)
}

fn slot(spec: TensorSpec, location: Location) -> TensorSlot {
    TensorSlot {
        name: String::new(),
        spec,
        location,
    }
}

struct Bench {
    executable: Box<dyn Executable>,
    flops: f64,
}

impl Bench {
    fn new(layer: Layer) -> Result<Bench> {
        let (_, size, c, m, groups, kernel, stride) = layer;
        let out = size.div_ceil(stride);
        let op = Conv {
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            padding: Padding::SameUpper,
            groups,
            channels_last: true,
            activation: Activation::Relu,
        };
        let data = noise(&[1, size, size, c])?;
        let weights = noise(&[m, c / groups, kernel, kernel])?;
        let taps = c / groups * kernel * kernel;
        Bench::of(
            Arc::new(op),
            &data,
            &[weights, noise(&[m])?],
            &[1, out, out, m],
            2.0 * (out * out * m * taps) as f64,
        )
    }

    /// An operator of one input that is written and others that are constant.
    fn of(
        op: Arc<dyn Operator>,
        data: &Tensor,
        constants: &[Tensor],
        output: &[usize],
        flops: f64,
    ) -> Result<Bench> {
        let spec = TensorSpec::new(data.dtype(), data.shape());
        let mut tensors = PerTensor::from([slot(spec, Location::Input)]);
        for (i, c) in constants.iter().enumerate() {
            let key = ConstantKey(i as u64);
            tensors.push(slot(TensorSpec::of(c), Location::Constant(key)));
        }
        let out = TensorSpec::new(DType::F32, output);
        let arena_bytes = out.bytes();
        let output = tensors.push(slot(out, Location::Arena { offset: 0 }));
        let stage = StageSpec {
            nodes: [KernelSpec {
                name: "bench".into(),
                op,
                inputs: tensors
                    .indices()
                    .map(Some)
                    .take(1 + constants.len())
                    .collect(),
                outputs: vec![output],
            }]
            .into(),
            tensors,
            parts: [KernelIndex(0)..KernelIndex(1)].into(),
            arena_bytes,
            ..StageSpec::default()
        };
        let backend = kilim_simd_cpu::backend();
        let mut executable = backend
            .create_context(&ContextConfig::default())?
            .prepare(stage, &Interrupt::NEVER)?;
        executable.write(TensorIndex(0), data)?;
        Ok(Bench { executable, flops })
    }

    fn run(&mut self, times: usize) -> Result<()> {
        for _ in 0..times {
            self.executable.execute_begin()?;
            self.executable.run(PartIndex(0), &Interrupt::NEVER)?;
            self.executable.execute_end()?;
        }
        Ok(())
    }
}

fn title(layer: Layer) -> String {
    let (name, size, c, m, ..) = layer;
    format!("{name} {c} -> {m} at {size}")
}

fn main() -> Result<()> {
    let filter = std::env::args().nth(1).unwrap_or_default();
    for layer in LAYERS {
        if !title(layer).contains(&filter) {
            continue;
        }
        let mut bench = Bench::new(layer)?;
        bench.run(2)?;
        let mut best = f64::INFINITY;
        let begin = std::time::Instant::now();
        while begin.elapsed().as_secs_f64() < 0.3 {
            let start = std::time::Instant::now();
            bench.run(1)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{:36} {:9.1} us {:7.1} GFLOP/s",
            title(layer),
            best * 1e6,
            bench.flops / best * 1e-9
        );
    }
    Ok(())
}

/// The exports that the script calls.
#[cfg(target_arch = "wasm32")]
mod exports {
    use super::{Bench, LAYERS, title};

    #[unsafe(no_mangle)]
    extern "C" fn layers() -> usize {
        LAYERS.len()
    }

    /// A benchmark to run, or null.
    #[unsafe(no_mangle)]
    extern "C" fn open(layer: usize) -> *mut Bench {
        match Bench::new(LAYERS[layer]) {
            Ok(bench) => Box::into_raw(Box::new(bench)),
            Err(_) => std::ptr::null_mut(),
        }
    }

    /// # Safety
    /// `bench` comes from `open`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn run(bench: *mut Bench, times: usize) -> bool {
        // SAFETY: `bench` comes from `open` and was not closed.
        unsafe { (*bench).run(times).is_ok() }
    }

    /// # Safety
    /// `bench` comes from `open`.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn flops(bench: *mut Bench) -> f64 {
        // SAFETY: `bench` comes from `open` and was not closed.
        unsafe { (*bench).flops }
    }

    /// # Safety
    /// `bench` comes from `open` and is not used again.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn close(bench: *mut Bench) {
        // SAFETY: `bench` is the box of `open`, and is not used again.
        drop(unsafe { Box::from_raw(bench) });
    }

    /// Writes the title of a layer and returns its length.
    ///
    /// # Safety
    /// `to` is valid for writes of 100 bytes.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn name(layer: usize, to: *mut u8) -> usize {
        let name = title(LAYERS[layer]);
        let len = name.len().min(100);
        // SAFETY: `to` is valid for writes of 100 bytes, and `len` is at most that.
        unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), to, len) };
        len
    }

    #[unsafe(no_mangle)]
    extern "C" fn buffer() -> *mut u8 {
        Box::into_raw(Box::new([0u8; 100])).cast()
    }
}
