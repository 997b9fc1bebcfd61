//! A small stage, call by call.

use std::sync::Arc;

use kilim_core::backend::{
    Backend, BackendContext, ConstantKey, ContextConfig, Executable, KernelSpec, Location,
    StageSpec, TensorSlot, TensorSpec,
};
use kilim_core::error::value_error;
use kilim_core::ids::{KernelIndex, PartIndex, TensorIndex};
use kilim_core::memory::MemoryMode;
use kilim_core::ops::{Binary, BinaryKind, ScatterNd, ScatterReduction, Unary, UnaryKind};
use kilim_core::{DType, ErrorCode, Interrupt, Operator, Result, Tensor};

use crate::registry::{KernelRegistry, any};
use crate::testing::tensor;
use crate::{CpuBackend, Io, Kernel};

struct Add;

impl Kernel for Add {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (a, b) = (io.input::<f32>(0), io.input::<f32>(1));
        for (y, (a, b)) in io.output::<f32>(0).iter_mut().zip(a.iter().zip(b)) {
            *y = a + b;
        }
        Ok(())
    }
}

struct Negate;

impl Kernel for Negate {
    fn run(&self, io: &mut Io) -> Result<()> {
        for (y, x) in io.output::<f32>(0).iter_mut().zip(io.input::<f32>(0)) {
            *y = -x;
        }
        Ok(())
    }
}

/// Makes the first element that of the updates, unless that is no number.
struct WriteFirst {
    writes_on: bool,
}

impl Kernel for WriteFirst {
    fn run(&self, io: &mut Io) -> Result<()> {
        let first = io.input::<f32>(2)[0];
        let y = match self.writes_on {
            true => io.output_on(0, 0)?,
            false => {
                let (x, y) = (io.input_bytes(0), io.output_bytes(0));
                y.copy_from_slice(x);
                y
            }
        };
        if first.is_nan() {
            return Err(value_error("no number"));
        }
        y[..4].copy_from_slice(&first.to_ne_bytes());
        Ok(())
    }

    fn writes_on(&self) -> bool {
        self.writes_on
    }
}

fn backend() -> CpuBackend {
    let mut registry = KernelRegistry::default();
    registry.add::<ScatterNd>(any, |op, _, _| {
        let writes_on = op.reduction == ScatterReduction::None;
        Ok(Box::new(WriteFirst { writes_on }))
    });
    registry.add::<Binary>(any, |_, _, _| Ok(Box::new(Add)));
    registry.add::<Unary>(any, |_, _, _| Ok(Box::new(Negate)));
    CpuBackend::with_registry(registry, "portable")
}

fn slot(name: &str, location: Location, value: Option<Tensor>) -> TensorSlot {
    TensorSlot {
        name: name.to_string(),
        spec: TensorSpec {
            value,
            ..TensorSpec::new(DType::F32, &[2])
        },
        location,
    }
}

fn node(op: impl Operator, inputs: &[usize], output: usize) -> KernelSpec {
    KernelSpec {
        name: format!("node of {output}"),
        op: Arc::new(op),
        inputs: inputs.iter().map(|&t| Some(TensorIndex(t))).collect(),
        outputs: vec![TensorIndex(output)],
    }
}

/// `y = -(x + c)`, with the sum in the arena and `z` another name for `y`.
fn executable() -> (Box<dyn BackendContext>, Box<dyn Executable>) {
    let constant = tensor(&[2], &[10.0f32, 20.0]);
    let stage = StageSpec {
        tensors: [
            slot("x", Location::Input, None),
            slot("c", Location::Constant(ConstantKey(7)), Some(constant)),
            slot("sum", Location::Arena { offset: 64 }, None),
            slot("y", Location::Output, None),
            slot("z", Location::Alias(TensorIndex(3)), None),
        ]
        .into(),
        nodes: [
            node(Binary::new(BinaryKind::Add), &[0, 1], 2),
            node(Unary(UnaryKind::Neg), &[2], 3),
        ]
        .into(),
        parts: [KernelIndex(0)..KernelIndex(2)].into(),
        arena_bytes: 128,
        inputs: vec![TensorIndex(0)],
        outputs: vec![TensorIndex(3)],
    };
    let mut context = backend().create_context(&ContextConfig::default()).unwrap();
    let executable = context.prepare(stage, &Interrupt::NEVER).unwrap();
    (context, executable)
}

fn read(executable: &mut dyn Executable, t: usize) -> Tensor {
    let which = [TensorIndex(t)];
    let mut read = executable.read(&which);
    let waker = std::task::Waker::noop();
    match read
        .as_mut()
        .poll(&mut std::task::Context::from_waker(waker))
    {
        std::task::Poll::Ready(tensors) => tensors.unwrap().remove(0),
        std::task::Poll::Pending => panic!("reading host memory waits for nothing"),
    }
}

#[test]
fn an_output_that_is_still_held_is_not_written_again() {
    let (context, mut stage) = executable();
    assert_eq!(context.constant_bytes(), 8);
    let mut held = Vec::new();
    for x in [1.0f32, 2.0] {
        stage.execute_begin().unwrap();
        stage.write(TensorIndex(0), &tensor(&[2], &[x, x])).unwrap();
        stage.run(PartIndex(0), &Interrupt::NEVER).unwrap();
        stage.execute_end().unwrap();
        held.push(read(&mut *stage, 4));
    }
    assert_eq!(held[0].as_slice::<f32>().unwrap(), [-11.0, -21.0]);
    assert_eq!(held[1].as_slice::<f32>().unwrap(), [-12.0, -22.0]);
    assert_eq!(
        read(&mut *stage, 2).as_slice::<f32>().unwrap(),
        [12.0, 22.0]
    );
}

#[test]
fn an_input_must_be_there_and_fit() {
    let (_context, mut stage) = executable();
    assert_eq!(
        stage
            .run(PartIndex(0), &Interrupt::NEVER)
            .unwrap_err()
            .code(),
        ErrorCode::State
    );
    stage.execute_begin().unwrap();
    let e = stage.run(PartIndex(0), &Interrupt::NEVER).unwrap_err();
    assert_eq!((e.code(), e.input()), (ErrorCode::Input, Some("x")));
    let e = stage
        .write(TensorIndex(0), &tensor(&[3], &[0.0f32; 3]))
        .unwrap_err();
    assert_eq!(e.code(), ErrorCode::Shape);
    assert_eq!(
        stage
            .write(TensorIndex(2), &tensor(&[2], &[0.0f32; 2]))
            .unwrap_err()
            .code(),
        ErrorCode::State
    );
}

/// A result that is the input of the next run gives its memory to the result of the run behind that.
#[test]
fn memory_of_inputs_becomes_that_of_outputs() {
    let slot = |name: &str, location| TensorSlot {
        spec: TensorSpec::new(DType::F32, &[5000]),
        ..slot(name, location, None)
    };
    let stage = StageSpec {
        tensors: [slot("x", Location::Input), slot("y", Location::Output)].into(),
        nodes: [node(Unary(UnaryKind::Neg), &[0], 1)].into(),
        parts: [KernelIndex(0)..KernelIndex(1)].into(),
        inputs: vec![TensorIndex(0)],
        outputs: vec![TensorIndex(1)],
        ..StageSpec::default()
    };
    let turns = |memory| {
        let config = ContextConfig {
            memory,
            ..ContextConfig::default()
        };
        let mut context = backend().create_context(&config).unwrap();
        let mut stage = context.prepare(stage.clone(), &Interrupt::NEVER).unwrap();
        let mut x = tensor(&[5000], &[1.0f32; 5000]);
        // Memory that is given back goes to these.
        let (mut others, mut places) = (Vec::new(), Vec::new());
        for turn in 0..6 {
            others.push(vec![0u8; 20_000]);
            stage.execute_begin().unwrap();
            stage.write(TensorIndex(0), &x).unwrap();
            drop(x);
            others.push(vec![0u8; 20_000]);
            stage.run(PartIndex(0), &Interrupt::NEVER).unwrap();
            stage.execute_end().unwrap();
            x = read(&mut *stage, 1);
            let want = if turn % 2 == 0 { -1.0 } else { 1.0 };
            assert_eq!(x.as_slice::<f32>().unwrap(), [want; 5000]);
            places.push(x.read().unwrap().as_ptr());
        }
        places
    };
    let places = turns(MemoryMode::Normal);
    // One for the input, one for the output, and one that the next output goes to.
    assert_eq!(places[3..], places[..3]);
    assert!(places[0] != places[1] && places[1] != places[2]);
}

/// `y` is `x` with another first element.
fn writing(reduction: ScatterReduction) -> (Box<dyn BackendContext>, Box<dyn Executable>) {
    let wide = |name, location| TensorSlot {
        spec: TensorSpec::new(DType::F32, &[5000]),
        ..slot(name, location, None)
    };
    let stage = StageSpec {
        tensors: [
            wide("x", Location::Input),
            slot("u", Location::Input, None),
            wide("y", Location::Output),
        ]
        .into(),
        nodes: [node(ScatterNd { reduction }, &[0, 1, 1], 2)].into(),
        parts: [KernelIndex(0)..KernelIndex(1)].into(),
        inputs: vec![TensorIndex(0), TensorIndex(1)],
        outputs: vec![TensorIndex(2)],
        ..StageSpec::default()
    };
    let mut context = backend().create_context(&ContextConfig::default()).unwrap();
    let executable = context.prepare(stage, &Interrupt::NEVER).unwrap();
    (context, executable)
}

fn written(stage: &mut dyn Executable, x: Tensor, first: f32) -> Result<Tensor> {
    stage.execute_begin()?;
    stage.write(TensorIndex(0), &x)?;
    stage.write(TensorIndex(1), &tensor(&[2], &[first; 2]))?;
    drop(x);
    let run = stage.run(PartIndex(0), &Interrupt::NEVER);
    let y = run.map(|_| read(stage, 2));
    stage.execute_end()?;
    y
}

fn place(tensor: &Tensor) -> *const u8 {
    tensor.read().unwrap().as_ptr()
}

#[test]
fn an_output_inherits_the_memory_of_what_it_is_written_on() {
    let numbers = |first: f32| {
        let mut numbers = vec![1.0f32; 5000];
        numbers[0] = first;
        tensor(&[5000], &numbers)
    };
    let (_context, mut stage) = writing(ScatterReduction::None);
    let (_other, mut another) = writing(ScatterReduction::None);
    let mut x = numbers(1.0);
    let at = place(&x);
    for turn in [2.0, 3.0, 4.0, 5.0] {
        // The plans of a session take turns.
        let stage = if turn == 4.0 {
            &mut another
        } else {
            &mut stage
        };
        x = written(&mut **stage, x, turn).unwrap();
        assert_eq!((place(&x), &x), (at, &numbers(turn)));
    }
    // Somebody else holds it.
    let y = written(&mut *stage, x.clone(), 6.0).unwrap();
    assert_ne!(place(&y), at);
    assert_eq!((&x, &y), (&numbers(5.0), &numbers(6.0)));
    // The input is gone with the run that has used it up, also where it fails.
    let error = written(&mut *stage, x, f32::NAN).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    stage.execute_begin().unwrap();
    let error = stage.run(PartIndex(0), &Interrupt::NEVER).unwrap_err();
    assert_eq!((error.code(), error.input()), (ErrorCode::Input, Some("x")));
    stage.execute_end().unwrap();
    let z = written(&mut *stage, numbers(8.0), 9.0).unwrap();
    assert_eq!((&y, &z), (&numbers(6.0), &numbers(9.0)));
    // A kernel that reads its input where it lies finds it there.
    let (_context, mut stage) = writing(ScatterReduction::Add);
    let x = numbers(1.0);
    let at = place(&x);
    let y = written(&mut *stage, x, 2.0).unwrap();
    assert!(place(&y) != at && y == numbers(2.0));
}
