//! A planned stage: its arena, its kernels, and running them.

use std::sync::Arc;

use kilim_core::backend::{Executable, LocalFuture, Place, StageSpec};
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Error, ErrorCode, Result, Tensor};
use web_time::Instant;

use super::context::Scratch;
use super::io::{Io, View};
use super::kernel::{CpuRun, Kernel};
use super::texts::Texts;

/// A node of the stage with its kernel; inputs and outputs are indices of tensors.
pub struct Step {
    pub kernel: Box<dyn Kernel>,
    pub inputs: Box<[u32]>,
    pub outputs: Box<[u32]>,
}

/// Who holds the bytes of a tensor.
enum Holder {
    Arena,
    /// Constants, planned values, and inputs once they are written.
    Tensor(Tensor),
    /// The same of strings; behind the view stand the numbers of their texts.
    Texts {
        value: Tensor,
        _numbers: AlignedBytes,
    },
    /// An input that was not written yet.
    Missing,
    /// An output's own buffer, replaced when the user still has the one of the run before.
    Output(Arc<AlignedBytes>),
}

pub struct CpuExecutable {
    stage: StageSpec,
    steps: Vec<Step>,
    views: Vec<View>,
    /// The tensor that holds the bytes of each tensor: itself, or what it is an alias of.
    roots: Vec<usize>,
    holders: Vec<Holder>,
    /// Behind the views of [`Holder::Arena`]; never touched but through them.
    _arena: AlignedBytes,
    /// Those of the constants stay; the others go when the next run begins.
    texts: Texts,
    /// For each part, the inputs that it reads.
    needed: Vec<Vec<usize>>,
    /// Between `begin` and `end`, when the outputs have buffers of their own.
    begun: bool,
    scratch: Scratch,
    run: CpuRun,
    seconds: Option<Vec<f64>>,
}

// SAFETY: the views point into memory that the executable owns or shares (arena, tensors, output
// buffers), and are only followed under `&mut self`.
unsafe impl Send for CpuExecutable {}

impl CpuExecutable {
    pub fn new(
        stage: StageSpec,
        steps: Vec<Step>,
        scratch: Scratch,
        run: CpuRun,
    ) -> Result<CpuExecutable> {
        let mut arena = AlignedBytes::zeroed(stage.arena_bytes)?;
        let count = stage.tensors.len();
        let roots: Vec<usize> = (0..count).map(|t| stage.root(t)).collect();
        let mut views = Vec::with_capacity(count);
        let mut holders = Vec::with_capacity(count);
        let mut texts = Texts::default();
        let base = View::of_mut(arena.as_mut_slice(), DType::U8);
        for slot in &stage.tensors {
            let dtype = slot.spec.dtype;
            let bytes = byte_count(dtype, &slot.spec.shape)?;
            let (view, holder) = match slot.place {
                Place::Constant(_) | Place::Planned => {
                    let value = slot.spec.value.clone().ok_or_else(|| {
                        state_error(format!("the constant `{}` has no value", slot.name))
                    })?;
                    held(value, &mut texts)?
                }
                Place::Arena { offset } => {
                    let view = base.part(offset, bytes, dtype).ok_or_else(|| {
                        state_error(format!("`{}` lies outside of the arena", slot.name))
                    })?;
                    (view, Holder::Arena)
                }
                Place::Input => (View::empty(dtype), Holder::Missing),
                Place::Output => (
                    View::empty(dtype),
                    Holder::Output(Arc::new(AlignedBytes::default())),
                ),
                Place::Alias(_) => (View::empty(dtype), Holder::Missing),
            };
            views.push(view);
            holders.push(holder);
        }
        let needed = stage
            .parts
            .iter()
            .map(|part| {
                let read = stage.nodes[part.clone()].iter().flat_map(|n| &n.inputs);
                let mut roots: Vec<_> = read.flatten().map(|&t| roots[t]).collect();
                roots.sort_unstable();
                roots.dedup();
                roots.retain(|&t| stage.tensors[t].place == Place::Input);
                roots
            })
            .collect();
        texts.keep();
        let mut executable = CpuExecutable {
            texts,
            needed,
            begun: false,
            stage,
            steps,
            views,
            roots,
            holders,
            _arena: arena,
            scratch,
            run,
            seconds: None,
        };
        for tensor in 0..count {
            executable.follow(tensor);
        }
        Ok(executable)
    }

    /// Gives an alias the bytes that its root has now.
    fn follow(&mut self, tensor: usize) {
        let root = self.roots[tensor];
        if root != tensor {
            self.views[tensor] = self.views[root].with_dtype(self.stage.tensors[tensor].spec.dtype);
        }
    }

    fn set_view(&mut self, root: usize, view: View) {
        self.views[root] = view;
        for tensor in 0..self.roots.len() {
            if self.roots[tensor] == root {
                self.follow(tensor);
            }
        }
    }

    /// The tensor as the host sees it now.
    fn host_tensor(&self, tensor: usize) -> Result<Tensor> {
        let slot = &self.stage.tensors[tensor];
        let (dtype, shape) = (slot.spec.dtype, &slot.spec.shape[..]);
        match &self.holders[self.roots[tensor]] {
            Holder::Tensor(value) | Holder::Texts { value, .. } => value.reshaped(shape),
            Holder::Output(buffer) if dtype == DType::String => {
                self.texts.tensor(shape, buffer.as_slice())
            }
            Holder::Output(buffer) => Tensor::from_bytes(dtype, shape, buffer.clone()),
            Holder::Arena => {
                // SAFETY: the arena lives as long as `self`, and no kernel runs now.
                let bytes = unsafe { self.views[tensor].read() };
                match dtype {
                    DType::String => self.texts.tensor(shape, bytes),
                    _ => Tensor::from_raw(dtype, shape, bytes),
                }
            }
            Holder::Missing => Err(missing(&slot.name)),
        }
    }

    fn run_step(&mut self, i: usize, scratch: &mut [u8]) -> Result<()> {
        let step = &self.steps[i];
        // SAFETY: the views of a stage are live (inputs were checked to be written in `run`,
        // outputs got their buffers in `begin`), aligned to their element type by the planner and
        // by `Tensor`; the planner gives outputs places that overlap nothing still in use; the
        // scratch memory is locked.
        let mut io = unsafe {
            Io::new(
                &self.views,
                &step.inputs,
                &step.outputs,
                scratch,
                &mut self.texts,
                self.run,
            )
        };
        step.kernel.run(&mut io).map_err(|e| {
            let node = &self.stage.nodes[i];
            e.at(&node.name, node.op.name())
        })
    }
}

impl Executable for CpuExecutable {
    fn begin(&mut self) -> Result<()> {
        self.texts.forget();
        for tensor in 0..self.holders.len() {
            let written = self.stage.tensors[tensor].place == Place::Input;
            if written && matches!(self.holders[tensor], Holder::Texts { .. }) {
                self.holders[tensor] = Holder::Missing;
            }
            let Holder::Output(buffer) = &mut self.holders[tensor] else {
                continue;
            };
            let spec = &self.stage.tensors[tensor].spec;
            let bytes = byte_count(spec.dtype, &spec.shape)?;
            if buffer.len() != bytes || Arc::get_mut(buffer).is_none() {
                *buffer = Arc::new(AlignedBytes::zeroed(bytes)?);
            }
            let dtype = spec.dtype;
            if let Some(own) = Arc::get_mut(buffer) {
                let view = View::of_mut(own.as_mut_slice(), dtype);
                self.set_view(tensor, view);
            }
        }
        self.begun = true;
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.begun = false;
        Ok(())
    }

    fn write(&mut self, tensor: usize, data: &Tensor) -> Result<()> {
        let slot = &self.stage.tensors[tensor];
        if data.dtype() != slot.spec.dtype || data.shape() != slot.spec.shape {
            return Err(Error::new(
                ErrorCode::Shape,
                "a tensor is not what the stage was planned for",
            )
            .with_input(&slot.name)
            .with_expected(format!("{}{:?}", slot.spec.dtype, slot.spec.shape))
            .with_got(format!("{}{:?}", data.dtype(), data.shape())));
        }
        if self.roots[tensor] != tensor || slot.place != Place::Input {
            return Err(state_error(format!("`{}` is not an input", slot.name)));
        }
        let (view, holder) = held(data.clone(), &mut self.texts)?;
        self.set_view(tensor, view);
        self.holders[tensor] = holder;
        Ok(())
    }

    fn run(&mut self, part: usize) -> Result<()> {
        let Some(nodes) = self.stage.parts.get(part).cloned() else {
            return Err(state_error(format!("the stage has no part {part}")));
        };
        if !self.begun {
            return Err(state_error("a stage runs that was not begun".to_string()));
        }
        for &tensor in &self.needed[part] {
            if matches!(self.holders[tensor], Holder::Missing) {
                return Err(missing(&self.stage.tensors[tensor].name));
            }
        }
        let scratch = self.scratch.clone();
        let mut scratch = scratch.lock();
        let scratch = scratch.as_mut_slice();
        if let Some(mut seconds) = self.seconds.take() {
            for i in nodes {
                let start = Instant::now();
                let done = self.run_step(i, scratch);
                seconds[i] = start.elapsed().as_secs_f64();
                done?;
            }
            self.seconds = Some(seconds);
        } else {
            for i in nodes {
                self.run_step(i, scratch)?;
            }
        }
        Ok(())
    }

    fn read<'a>(&'a mut self, tensors: &'a [usize]) -> LocalFuture<'a, Result<Vec<Tensor>>> {
        let read = tensors.iter().map(|&t| self.host_tensor(t)).collect();
        Box::pin(std::future::ready(read))
    }

    fn set_profiling(&mut self, on: bool) {
        self.seconds = on.then(|| vec![0.0; self.steps.len()]);
    }

    fn profile(&mut self) -> LocalFuture<'_, Result<Vec<f64>>> {
        let seconds = self.seconds.clone().unwrap_or_default();
        Box::pin(std::future::ready(Ok(seconds)))
    }

    fn launches(&self) -> usize {
        self.steps.len()
    }

    fn bytes(&self) -> usize {
        let scratch = self.scratch.lock().len();
        self.stage.arena_bytes + scratch
    }
}

/// Where the elements of a host tensor are, and what holds them.
fn held(value: Tensor, texts: &mut Texts) -> Result<(View, Holder)> {
    if value.dtype() != DType::String {
        return Ok((View::of(&value), Holder::Tensor(value)));
    }
    let numbers = texts.admit(&value)?;
    let view = View::of_bytes(numbers.as_slice(), DType::String);
    let holder = Holder::Texts {
        value,
        _numbers: numbers,
    };
    Ok((view, holder))
}

fn state_error(message: String) -> Error {
    Error::new(ErrorCode::State, message)
}

fn missing(name: &str) -> Error {
    Error::new(ErrorCode::Input, "a tensor was not given").with_input(name)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kilim_core::backend::{
        Backend, BackendContext, ConstantKey, ContextConfig, Executable, KernelSpec, Place,
        StageSpec, TensorSlot, TensorSpec,
    };
    use kilim_core::ops::{Binary, BinaryKind, Unary, UnaryKind};
    use kilim_core::{DType, ErrorCode, Operator, Tensor};

    use crate::CpuBackend;
    use crate::common::testing::tensor;

    fn slot(name: &str, place: Place, value: Option<Tensor>) -> TensorSlot {
        TensorSlot {
            name: name.to_string(),
            spec: TensorSpec {
                dtype: DType::F32,
                shape: vec![2],
                value,
            },
            place,
        }
    }

    fn node(op: impl Operator, inputs: &[usize], output: usize) -> KernelSpec {
        KernelSpec {
            name: format!("node of {output}"),
            op: Arc::new(op),
            inputs: inputs.iter().copied().map(Some).collect(),
            outputs: vec![output],
        }
    }

    /// `y = -(x + c)`, with the sum in the arena and `z` another name for `y`.
    fn executable() -> (Box<dyn BackendContext>, Box<dyn Executable>) {
        let constant = tensor(&[2], &[10.0f32, 20.0]);
        let stage = StageSpec {
            tensors: vec![
                slot("x", Place::Input, None),
                slot("c", Place::Constant(ConstantKey(7)), Some(constant)),
                slot("sum", Place::Arena { offset: 64 }, None),
                slot("y", Place::Output, None),
                slot("z", Place::Alias(3), None),
            ],
            nodes: vec![
                node(Binary::new(BinaryKind::Add), &[0, 1], 2),
                node(Unary(UnaryKind::Neg), &[2], 3),
            ],
            parts: std::iter::once(0..2).collect(),
            arena_bytes: 128,
        };
        let backend = CpuBackend::new();
        let mut context = backend.create_context(&ContextConfig::default()).unwrap();
        let executable = context.prepare(stage).unwrap();
        (context, executable)
    }

    fn read(executable: &mut dyn Executable, t: usize) -> Tensor {
        let which = [t];
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
            stage.begin().unwrap();
            stage.write(0, &tensor(&[2], &[x, x])).unwrap();
            stage.run(0).unwrap();
            stage.end().unwrap();
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
        assert_eq!(stage.run(0).unwrap_err().code(), ErrorCode::State);
        stage.begin().unwrap();
        let e = stage.run(0).unwrap_err();
        assert_eq!((e.code(), e.input()), (ErrorCode::Input, Some("x")));
        let e = stage.write(0, &tensor(&[3], &[0.0f32; 3])).unwrap_err();
        assert_eq!(e.code(), ErrorCode::Shape);
        assert_eq!(
            stage
                .write(2, &tensor(&[2], &[0.0f32; 2]))
                .unwrap_err()
                .code(),
            ErrorCode::State
        );
    }
}
