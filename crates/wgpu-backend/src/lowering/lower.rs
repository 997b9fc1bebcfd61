//! Lowering: from a concrete node to the dispatches that compute it, without a device.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ids::TensorIndex;
use kilim_core::tuning::{Choice, Tuned};
use kilim_core::{DType, Error, ErrorCode};

use super::pack::{Pack, PackKind};
use crate::device::storage;
use crate::shaders::{Call, LINEAR, MOST_GROUPS, Operand, Stored, Target};

/// Why a node is not lowered.
#[derive(Debug)]
pub(crate) enum Stop {
    /// No kernel runs the node, or the device cannot run one.
    Refused(Refusal),
    /// A mistake of this crate: an error of the code `State`.
    Wrong(Error),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

/// Lowering succeeds or says why not.
pub(crate) type Lowers<T = ()> = Result<T, Stop>;

/// A refusal from a sentence.
pub(crate) fn refuse<T>(reason: impl Into<String>) -> Lowers<T> {
    Err(Stop::Refused(Refusal::new(reason)))
}

/// A mistake of this crate.
pub(crate) fn wrong<T>(message: impl Into<String>) -> Lowers<T> {
    Err(Stop::Wrong(Error::new(ErrorCode::State, message)))
}

/// Turns a typed error of core into a refusal.
pub(crate) fn ok<T>(result: kilim_core::Result<T>) -> Lowers<T> {
    result.or_else(|e| refuse(e.message()))
}

/// Why nothing computes in half precision.
pub(crate) const NO_HALF: &str = "the adapter has no shader-f16";

/// One launch of a shader.
pub(crate) struct Dispatch {
    pub call: Call,
    pub groups: [u32; 3],
}

/// What the lowering depends on beside the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub max_binding: u64,
    pub max_bindings: usize,
    /// The device is a CPU.
    pub software: bool,
    /// Workgroups that keep the device busy.
    pub busy: usize,
    /// Shaders may compute with `f16`.
    pub half: bool,
}

/// The work of one node.
#[derive(Default)]
pub(crate) struct Lowered {
    pub dispatches: Vec<Dispatch>,
    /// Bytes of each temporary.
    pub scratch: Vec<usize>,
    pub packs: Vec<Pack>,
    pub tables: Vec<Vec<u32>>,
    /// The kernels between which there was a choice.
    pub choice: Option<Choice>,
    /// A kernel reads half precision as it is.
    pub half: bool,
    /// The outputs are the inputs that the operator writes on, in their memory.
    pub on_input: bool,
}

/// The place of the norm's weights among the inputs of a product that normalises its rows ([`Lowering::norm`]).
pub(crate) const WEIGHT: usize = 8;

/// A node being lowered.
pub(crate) struct Lowering<'a> {
    pub node: &'a NodeSpec<'a>,
    pub caps: Caps,
    pub lowered: Lowered,
    /// The tensor behind each input where that is known.
    pub roots: &'a [Option<TensorIndex>],
    pub tuned: Tuned,
    /// The outputs may be written on the inputs that [`kilim_core::Operator::writes_on`] names, in their memory.
    pub may_be_on_input: bool,
    /// The epsilon of the root mean square by which rows of the first input are to be normalised, where they are.
    pub norm: Option<f32>,
}

impl<'a> Lowering<'a> {
    /// Begins to lower `node`; there are no dispatches yet.
    pub fn new(node: &'a NodeSpec<'a>, caps: Caps) -> Lowering<'a> {
        Lowering {
            node,
            caps,
            lowered: Lowered::default(),
            roots: &[],
            tuned: Tuned::default(),
            may_be_on_input: false,
            norm: None,
        }
    }

    /// Whether two inputs of one shape are one tensor.
    pub fn same(&self, i: usize, j: usize) -> bool {
        let root = |k: usize| self.roots.get(k).copied().flatten();
        let shape = |k: usize| self.optional(k).map(|s| &s.shape);
        root(i).is_some() && root(i) == root(j) && shape(i) == shape(j)
    }

    /// The spec of an input that must be there.
    pub fn input(&self, i: usize) -> Lowers<&'a TensorSpec> {
        match self.node.inputs.get(i).and_then(Option::as_ref) {
            Some(spec) => Ok(spec),
            None => refuse(format!("input {i} is missing")),
        }
    }

    /// The spec of an input that may be left out.
    pub fn optional(&self, i: usize) -> Option<&'a TensorSpec> {
        self.node.inputs.get(i).and_then(Option::as_ref)
    }

    /// The spec of an output.
    pub fn output(&self, i: usize) -> Lowers<&'a TensorSpec> {
        match self.node.outputs.get(i) {
            Some(spec) => Ok(spec),
            None => refuse(format!("output {i} is missing")),
        }
    }

    /// The numbers of an input that is known while planning.
    pub fn known_ints(&self, i: usize) -> Lowers<Option<Vec<i64>>> {
        match self.optional(i) {
            None => Ok(None),
            Some(spec) => match spec.value.as_ref().map(|v| v.to_i64s()) {
                Some(Ok(v)) => Ok(Some(v)),
                Some(Err(e)) => refuse(e.message()),
                None => refuse(format!("input {i} is not known while planning")),
            },
        }
    }

    /// Refuses unless input `i`, if it is there, has element type `dtype`.
    pub fn want(&self, i: usize, dtype: DType) -> Lowers {
        match self.optional(i) {
            Some(spec) if spec.dtype != dtype => refuse(format!(
                "input {i} is {}; the GPU kernel takes {dtype}",
                spec.dtype
            )),
            _ => Ok(()),
        }
    }

    /// Refuses unless all inputs and outputs that are there are `float32`.
    pub fn want_f32(&self) -> Lowers {
        self.want_f32_of(0..self.node.inputs.len())
    }

    /// Refuses unless those of `inputs` that are there, and all outputs, are `float32`.
    pub fn want_f32_of(&self, inputs: impl IntoIterator<Item = usize>) -> Lowers {
        for i in inputs {
            self.want(i, DType::F32)?;
        }
        match self.node.outputs.iter().find(|o| o.dtype != DType::F32) {
            Some(o) => refuse(format!(
                "the output is {}; the GPU kernel makes float32",
                o.dtype
            )),
            None => Ok(()),
        }
    }

    /// The element type in memory, where all inputs and outputs that are there are `float32`, or all
    /// `float16` and the device computes with it.
    pub fn float(&mut self) -> Lowers<Stored> {
        self.float_of(0..self.node.inputs.len())
    }

    /// What [`Lowering::float`] says, where only `inputs` are numbers that are computed with.
    pub fn float_of(&mut self, inputs: impl IntoIterator<Item = usize>) -> Lowers<Stored> {
        let halves = self.node.outputs.iter().any(|o| o.dtype == DType::F16);
        if !halves {
            return self.want_f32_of(inputs).map(|()| Stored::F32);
        }
        if !self.caps.half {
            return refuse(NO_HALF);
        }
        for i in inputs {
            self.want(i, DType::F16)?;
        }
        self.lowered.half = true;
        Ok(Stored::F16)
    }

    /// Takes the one of several kernels that was measured to be the fastest for `class`, else the
    /// first.
    pub fn choose<T: Copy>(&mut self, class: String, kernels: &[(&'static str, T)]) -> T {
        let choice = Choice {
            class,
            algorithms: kernels.iter().map(|(name, _)| (*name).into()).collect(),
        };
        let (_, kernel) = &kernels[self.tuned.pick(&choice)];
        if kernels.len() > 1 {
            self.lowered.choice = Some(choice);
        }
        *kernel
    }

    /// Bytes that the node needs while it runs.
    pub fn scratch(&mut self, bytes: usize) -> Target {
        self.lowered.scratch.push(bytes);
        Target::Scratch(self.lowered.scratch.len() - 1)
    }

    /// Words that are made while planning.
    pub fn table(&mut self, words: Vec<u32>) -> Operand {
        self.lowered.tables.push(words);
        Operand::Table(self.lowered.tables.len() - 1)
    }

    /// Input `i`, which must be known, rearranged once for the session.
    pub fn pack(&mut self, i: usize, kind: PackKind) -> Operand {
        self.lowered.packs.push(Pack { input: i, kind });
        Operand::Pack(self.lowered.packs.len() - 1)
    }

    /// Whether the value of input `i` is known while planning.
    pub fn is_known(&self, i: usize) -> bool {
        self.optional(i).is_some_and(|s| s.value.is_some())
    }

    /// A dispatch of `groups` workgroups along each dimension; none where there are none.
    pub fn dispatch(&mut self, call: impl Into<Call>, groups: [usize; 3]) {
        if groups.contains(&0) {
            return;
        }
        self.lowered.dispatches.push(Dispatch {
            call: call.into(),
            groups: groups.map(|g| u32::try_from(g).unwrap_or(u32::MAX)),
        });
    }

    /// A dispatch with one thread for each of `items`.
    pub fn linear(&mut self, call: impl Into<Call>, items: usize) {
        self.dispatch(call, spread(items.div_ceil(LINEAR)));
    }

    /// A dispatch with one workgroup for each of `items`.
    pub fn grouped(&mut self, call: impl Into<Call>, items: usize) {
        self.dispatch(call, spread(items));
    }

    /// The result, if everything in it is within the limits of the device.
    pub fn finish(self) -> Lowers<Lowered> {
        for d in &self.lowered.dispatches {
            let bound = d.call.operands.len();
            if bound > self.caps.max_bindings {
                return refuse(format!(
                    "the kernel needs {bound} buffers; the device binds {}",
                    self.caps.max_bindings
                ));
            }
            if d.call.params.overflow || d.groups.iter().any(|&g| g as usize > MOST_GROUPS) {
                return refuse("the shapes are too large for the GPU kernel");
            }
            for operand in &d.call.operands {
                self.binds(*operand)?;
            }
        }
        Ok(self.lowered)
    }

    /// Whether the device holds what a dispatch binds.
    fn binds(&self, operand: Operand) -> Lowers {
        let spec = match operand {
            Operand::Input(i) => self.optional(i),
            Operand::Output(i) => self.node.outputs.get(i),
            Operand::Scratch(i) => return self.fits(self.lowered.scratch[i]),
            Operand::Pack(i) => {
                let pack = &self.lowered.packs[i];
                return self.fits(pack.kind.bytes(self.input(pack.input)?));
            }
            Operand::Table(_) | Operand::Fault => return Ok(()),
        };
        let Some(spec) = spec else {
            let op = self.node.op.name();
            return wrong(format!(
                "a kernel of {op} binds {operand:?}, which is missing"
            ));
        };
        if !storage::holds(spec.dtype) {
            return refuse(format!("the GPU does not hold {} tensors", spec.dtype));
        }
        self.fits(storage::device_bytes(spec.dtype, spec.elements()))
    }

    fn fits(&self, bytes: usize) -> Lowers {
        let limit = self.caps.max_binding.min(u32::MAX.into());
        if bytes as u64 > limit {
            return refuse(format!(
                "a tensor of {bytes} bytes does not fit in a GPU binding of {limit}"
            ));
        }
        Ok(())
    }
}

/// Workgroups spread over two dimensions where there are more than one dimension may have.
pub(crate) fn spread(groups: usize) -> [usize; 3] {
    if groups <= MOST_GROUPS {
        return [groups, 1, 1];
    }
    let rows = groups.div_ceil(MOST_GROUPS);
    [groups.div_ceil(rows), rows, 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shaders::movement::copy;

    #[test]
    fn workgroups_spread_over_two_dimensions() {
        assert_eq!(spread(65535), [65535, 1, 1]);
        let [x, y, _] = spread(1_000_000);
        assert!(x <= 65535 && y <= 65535 && x * y >= 1_000_000);
    }

    #[test]
    fn a_missing_buffer_is_a_mistake_and_no_refusal() {
        let spec = TensorSpec::new(DType::F32, &[4]);
        let op = kilim_core::ops::Unary(kilim_core::ops::UnaryKind::Abs);
        let (inputs, outputs) = ([Some(spec.clone())], [spec]);
        let node = NodeSpec {
            name: "node",
            op: &op,
            inputs: &inputs,
            outputs: &outputs,
        };
        let caps = Caps {
            max_binding: 1 << 30,
            max_bindings: 8,
            software: false,
            busy: 128,
            half: false,
        };
        let lowered = |input| {
            let mut l = Lowering::new(&node, caps);
            let launch = copy::Launch {
                x: Operand::Input(input),
                y: Target::Output(0),
                params: copy::Params { count: 4 },
            };
            l.linear(launch, 4);
            l.finish().map(drop)
        };
        assert!(lowered(0).is_ok());
        match lowered(1) {
            Err(Stop::Wrong(error)) => assert_eq!(error.code(), ErrorCode::State),
            other => panic!("{other:?}"),
        }
    }
}
