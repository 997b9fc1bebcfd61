//! Lowering: from a concrete node to the dispatches that compute it, without a device.

use std::sync::Arc;

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::tuning::{Choice, Tuned};

use crate::constants::{Pack, PackKind};
use crate::kernels::custom::UserShader;
use crate::params::Params;
use crate::shaders::{self, LINEAR, MOST_GROUPS};
use crate::storage;

/// Lowering succeeds or gives the reason why the node is refused.
pub(crate) type Lowers<T = ()> = Result<T, Refusal>;

/// A refusal from a sentence.
pub(crate) fn refuse<T>(reason: impl Into<String>) -> Lowers<T> {
    Err(Refusal::new(reason))
}

/// Why nothing computes in half precision.
pub(crate) const NO_HALF: &str = "the adapter has no shader-f16";

/// What a dispatch binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Input(usize),
    Output(usize),
    /// A temporary of the node.
    Scratch(usize),
    /// A constant input in another arrangement.
    Pack(usize),
    /// Numbers computed while lowering.
    Table(usize),
    /// The word for what only the device can find wrong. The parameters of the dispatch end with the
    /// node's number, which is added when the dispatch is bound.
    Fault,
}

/// One launch of a kernel.
pub(crate) struct Dispatch {
    pub shader: &'static str,
    /// The WGSL of a custom operator, where it is not one of the shader files.
    pub text: Option<Arc<UserShader>>,
    pub defines: Vec<(&'static str, &'static str)>,
    pub operands: Vec<Operand>,
    pub params: Params,
    pub groups: [u32; 3],
}

/// What the lowering depends on beside the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caps {
    pub max_binding: u64,
    pub max_bindings: usize,
    /// The device is a CPU.
    pub software: bool,
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
}

impl Lowered {
    /// Whether a kernel reads half precision as it is.
    pub fn computes_in_half(&self) -> bool {
        let mut defines = self.dispatches.iter().flat_map(|d| &d.defines);
        defines.any(|define| *define == ("S", "f16"))
    }
}

/// A node being lowered.
pub(crate) struct Lowering<'a> {
    pub node: &'a NodeSpec<'a>,
    pub caps: Caps,
    pub lowered: Lowered,
    /// The tensor behind each input where that is known.
    pub roots: &'a [Option<usize>],
    pub tuned: Tuned,
}

impl<'a> Lowering<'a> {
    /// Without dispatches.
    pub fn new(node: &'a NodeSpec<'a>, caps: Caps) -> Lowering<'a> {
        Lowering {
            node,
            caps,
            lowered: Lowered::default(),
            roots: &[],
            tuned: Tuned::default(),
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
        for i in 0..self.node.inputs.len() {
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

    /// The element type in the shader, where all inputs and outputs that are there are `float32`, or all
    /// `float16` and the device computes with it.
    pub fn float(&self) -> Lowers<&'static str> {
        let halves = self.node.outputs.iter().any(|o| o.dtype == DType::F16);
        if !halves {
            return self.want_f32().map(|()| "f32");
        }
        if !self.caps.half {
            return refuse(NO_HALF);
        }
        for i in 0..self.node.inputs.len() {
            self.want(i, DType::F16)?;
        }
        Ok("f16")
    }

    /// Takes the one of several kernels that was measured to be the fastest for `class`, else the
    /// first.
    pub fn choose<T: Copy>(&mut self, class: String, kernels: &[(&'static str, T)]) -> T {
        let choice = Choice {
            class,
            algorithms: kernels.iter().map(|(name, _)| *name).collect(),
        };
        let picked = self.tuned.pick(&choice);
        let known = kernels.iter().find(|(name, _)| *name == picked);
        let (_, kernel) = known.unwrap_or(&kernels[0]);
        if kernels.len() > 1 {
            self.lowered.choice = Some(choice);
        }
        *kernel
    }

    /// Bytes that the node needs while it runs.
    pub fn scratch(&mut self, bytes: usize) -> Operand {
        self.lowered.scratch.push(bytes);
        Operand::Scratch(self.lowered.scratch.len() - 1)
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

    /// A dispatch of `groups` workgroups. Bindings are `operands` in order.
    pub fn dispatch(
        &mut self,
        shader: &'static str,
        defines: &[(&'static str, &'static str)],
        operands: &[Operand],
        params: Params,
        groups: [usize; 3],
    ) {
        if groups.contains(&0) {
            return;
        }
        self.lowered.dispatches.push(Dispatch {
            shader,
            text: None,
            defines: defines.to_vec(),
            operands: operands.to_vec(),
            params,
            groups: groups.map(|g| u32::try_from(g).unwrap_or(u32::MAX)),
        });
    }

    /// A dispatch with one thread for each of `items`.
    pub fn linear(
        &mut self,
        shader: &'static str,
        defines: &[(&'static str, &'static str)],
        operands: &[Operand],
        params: Params,
        items: usize,
    ) {
        let groups = spread(items.div_ceil(LINEAR));
        self.dispatch(shader, defines, operands, params, groups);
    }

    /// A dispatch with one workgroup for each of `items`.
    pub fn grouped(
        &mut self,
        shader: &'static str,
        defines: &[(&'static str, &'static str)],
        operands: &[Operand],
        params: Params,
        items: usize,
    ) {
        self.dispatch(shader, defines, operands, params, spread(items));
    }

    /// The result, if everything in it is within the limits of the device.
    pub fn finish(self) -> Lowers<Lowered> {
        for d in &self.lowered.dispatches {
            match shaders::find(d.shader) {
                _ if d.text.is_some() => {}
                Some(shader) => {
                    debug_assert!(shader.allows(&d.defines), "{} {:?}", d.shader, d.defines);
                }
                None => return refuse(format!("there is no shader `{}`", d.shader)),
            }
            if d.operands.len() > self.caps.max_bindings {
                return refuse(format!(
                    "the kernel needs {} buffers; the device binds {}",
                    d.operands.len(),
                    self.caps.max_bindings
                ));
            }
            if d.params.overflow || d.groups.iter().any(|&g| g as usize > MOST_GROUPS) {
                return refuse("the shapes are too large for the GPU kernel");
            }
            for o in &d.operands {
                let spec = match *o {
                    Operand::Input(i) => self.input(i)?,
                    Operand::Output(i) => self.output(i)?,
                    Operand::Scratch(i) => {
                        self.fits(self.lowered.scratch[i])?;
                        continue;
                    }
                    Operand::Pack(_) | Operand::Table(_) | Operand::Fault => continue,
                };
                if !storage::holds(spec.dtype) {
                    return refuse(format!("the GPU does not hold {} tensors", spec.dtype));
                }
                self.fits(storage::device_bytes(spec.dtype, spec.elements()))?;
            }
        }
        Ok(self.lowered)
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

    #[test]
    fn workgroups_spread_over_two_dimensions() {
        assert_eq!(spread(65535), [65535, 1, 1]);
        let [x, y, _] = spread(1_000_000);
        assert!(x <= 65535 && y <= 65535 && x * y >= 1_000_000);
    }
}
