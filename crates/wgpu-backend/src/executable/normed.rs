//! Products of one row that normalise it themselves: the norm in front of them needs no launch then.

use std::collections::HashMap;

use kilim_core::backend::{KernelSpec, Location, StageSpec, StageTensors, TensorSpec};
use kilim_core::ids::{KernelIndex, PerTensor, TensorIndex};
use kilim_core::ops::{MatMulNBits, RmsNorm, normalize_axis};
use kilim_core::{DType, Result};

use crate::lowering::WEIGHT;

/// Which nodes of a stage are norms that need no launch, and which products take them along. These have the norm's input as their first, and
/// its weights behind their own.
#[derive(Clone, Default)]
pub(crate) struct Normed {
    norms: Vec<KernelIndex>,
    /// The epsilon of each product's norm.
    products: HashMap<KernelIndex, f32>,
}

impl Normed {
    /// Has products of the stage take along the norms that they alone read, where that is as good for the stage as it was planned.
    pub fn join(stage: &mut StageSpec) -> Normed {
        let mut joined = Normed::default();
        let mut readers: PerTensor<Vec<(KernelIndex, usize)>> =
            vec![Vec::new(); stage.tensors.len()].into();
        for (kernel, node) in stage.nodes.entries() {
            for (i, input) in node.inputs.iter().enumerate() {
                let root = input.map(|input| stage.root(input));
                if let Some(root) = root.filter(|root| !shows(stage, node, *root)) {
                    readers[root].push((kernel, i));
                }
            }
        }
        let norms = stage.nodes.entries().filter_map(|(kernel, node)| {
            let norm = Norm::of(stage, node, &readers)?;
            Some((kernel, norm))
        });
        for (kernel, norm) in norms.collect::<Vec<_>>() {
            joined.norms.push(kernel);
            for product in norm.products {
                let inputs = &mut stage.nodes[product].inputs;
                inputs.resize(WEIGHT, None);
                inputs[0] = Some(norm.x);
                inputs.push(Some(norm.weight));
                joined.products.insert(product, norm.epsilon);
            }
        }
        joined
    }

    /// Whether a node is a norm that needs no launch.
    pub fn is_norm(&self, kernel: KernelIndex) -> bool {
        self.norms.contains(&kernel)
    }

    /// The epsilon of the norm that a product takes along.
    pub fn epsilon(&self, kernel: KernelIndex) -> Option<f32> {
        self.products.get(&kernel).copied()
    }

    /// The specs of what a node reads, where `inputs` are those of the node as it was planned.
    ///
    /// # Errors
    /// `State` where the stage has no such tensors.
    pub fn inputs(
        &self,
        kernel: KernelIndex,
        node: &KernelSpec,
        inputs: &[Option<TensorSpec>],
        tensors: &StageTensors,
    ) -> Result<Vec<Option<TensorSpec>>> {
        let mut inputs = inputs.to_vec();
        if self.products.contains_key(&kernel) {
            inputs.resize(WEIGHT + 1, None);
            for i in [0, WEIGHT] {
                if let Some(tensor) = node.inputs[i] {
                    inputs[i] = Some(tensors.slot(tensor)?.spec.clone());
                }
            }
        }
        Ok(inputs)
    }
}

/// A norm, and the products that take it along.
struct Norm {
    x: TensorIndex,
    weight: TensorIndex,
    epsilon: f32,
    products: Vec<KernelIndex>,
}

impl Norm {
    fn of(
        stage: &StageSpec,
        node: &KernelSpec,
        readers: &PerTensor<Vec<(KernelIndex, usize)>>,
    ) -> Option<Norm> {
        let op = node.op.downcast_ref::<RmsNorm>()?;
        let (&[Some(x), Some(weight)], &[y]) = (&node.inputs[..], &node.outputs[..]) else {
            return None;
        };
        let [spec, scale] = [x, weight].map(|t| &stage.tensors[t].spec);
        let of_row = normalize_axis(op.axis, spec.shape.len()).ok()? + 1 == spec.shape.len();
        let row = *spec.shape.last()?;
        let alone = spec.elements() == row && scale.elements() == row;
        let floats = [spec, scale].iter().all(|spec| spec.dtype == DType::F32);
        let root = stage.root(y);
        let leaves = stage.outputs.iter().any(|&t| stage.root(t) == root);
        if !of_row || !alone || !floats || leaves || root == stage.root(x) {
            return None;
        }
        let takes = |&(kernel, input): &(KernelIndex, usize)| {
            let product = &stage.nodes[kernel];
            let op = product.op.downcast_ref::<MatMulNBits>();
            let fits = op.is_some_and(|op| op.k == row) && input == 0;
            (fits && product.inputs.len() <= WEIGHT).then_some(kernel)
        };
        let products: Vec<KernelIndex> = readers[root].iter().map(takes).collect::<Option<_>>()?;
        // What the norm reads must last until the products have read it.
        let last = *products.iter().max()?;
        let lasts = |t: TensorIndex| {
            let root = stage.root(t);
            !matches!(stage.tensors[root].location, Location::Arena { .. })
                || readers[root].iter().any(|(kernel, _)| *kernel > last)
                || stage.outputs.iter().any(|&t| stage.root(t) == root)
        };
        (lasts(x) && lasts(weight)).then_some(Norm {
            x,
            weight,
            epsilon: op.epsilon,
            products,
        })
    }
}

/// Whether a node only gives what it reads another shape.
fn shows(stage: &StageSpec, node: &KernelSpec, root: TensorIndex) -> bool {
    node.op.is_view() && node.outputs.first().is_some_and(|&t| stage.root(t) == root)
}
