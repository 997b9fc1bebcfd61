//! What operators answer when passes ask them is what their kernels do.

mod others;

use std::sync::Arc;

use kilim::core::backend::Backend;
use kilim::core::fact::TensorSpec;
use kilim::core::graph::{Axes, Elements, NodeSpec, NodeView, Precision};
use kilim::core::{Node, Operator, Value};
use kilim_tests::operators::all;

use super::flow::{assert_same, computed, given};
use super::*;

/// A node of a case, its inputs, and what a kernel makes of them.
struct Known {
    name: String,
    op: Arc<dyn Operator>,
    inputs: Vec<Option<Tensor>>,
    out: Tensor,
}

/// The cases that the CPU computes from at least one input.
fn known(cpu: &dyn Backend) -> Vec<Known> {
    let known = |(name, op, inputs): (String, Arc<dyn Operator>, Vec<Option<Tensor>>)| {
        inputs.first()?.as_ref()?;
        let out = computed(cpu, &*op, &inputs)?;
        Some(Known {
            name,
            op,
            inputs,
            out,
        })
    };
    let cases = all().into_iter();
    let cases = cases.map(|case| (case.name, case.op, given(&case.inputs)));
    cases.chain(others::others()).filter_map(known).collect()
}

impl Known {
    fn first(&self) -> &Tensor {
        self.inputs[0].as_ref().unwrap()
    }

    /// The case as a node of a graph of constants.
    fn graph(&self) -> (Graph, Node) {
        let mut graph = Graph::new("case");
        let mut inputs = Vec::new();
        for input in &self.inputs {
            inputs.push(
                input
                    .clone()
                    .map(|tensor| graph.add_constant("input", tensor)),
            );
        }
        graph.values.push(Value {
            name: "output".to_string(),
            fact: Fact::of(&self.out),
            constant: None,
        });
        let node = Node {
            name: self.name.clone(),
            op: self.op.clone(),
            inputs,
            outputs: vec![kilim::core::ValueId(graph.values.len() - 1)],
        };
        (graph, node)
    }
}

/// A tensor with other numbers at some places.
fn changed(tensor: &Tensor, at: impl Fn(usize) -> bool) -> Tensor {
    let mut numbers = tensor.as_slice::<f32>().unwrap().to_vec();
    for (_, x) in numbers.iter_mut().enumerate().filter(|(i, _)| at(*i)) {
        *x = 0.75 - *x;
    }
    Tensor::from_slice(tensor.shape(), &numbers).unwrap()
}

/// An output may then take the place of such an input in memory, element by element.
#[test]
fn elements_depend_on_those_in_their_place() {
    let cpu = cpu();
    let mut checked = BTreeSet::new();
    for known in known(&*cpu) {
        let data = match known.op.flow().elements {
            Elements::Mapped | Elements::MappedAlongAxis => 1,
            Elements::Joined { .. } => known.inputs.len(),
            _ if known.op.writes_on(0) == Some(0) => 1,
            _ => continue,
        };
        for i in 0..data {
            let Some(input) = &known.inputs[i] else {
                continue;
            };
            if input.dtype() != DType::F32 || input.shape() != known.out.shape() {
                continue;
            }
            let mut others = known.inputs.clone();
            others[i] = Some(changed(input, |place| place % 2 == 1));
            let Some(out) = computed(&*cpu, &*known.op, &others) else {
                continue;
            };
            let (before, after) = (known.out.to_f64s().unwrap(), out.to_f64s().unwrap());
            let kept = |numbers: Vec<f64>| -> Vec<u64> {
                numbers.iter().step_by(2).map(|x| x.to_bits()).collect()
            };
            assert_eq!(kept(before), kept(after), "{}, input {i}", known.name);
            checked.insert(known.op.name().to_string());
        }
    }
    assert!(checked.len() > 30, "{checked:?}");
    for name in ["ScatterElements", "ScatterND", "TensorScatter"] {
        assert!(checked.contains(name), "no case of {name}: {checked:?}");
    }
}

#[test]
fn nodes_that_pass_on_their_input_do() {
    let cpu = cpu();
    let mut checked = BTreeSet::new();
    for known in known(&*cpu) {
        let (graph, node) = known.graph();
        if NodeView::new(&graph, &node).passes_on() {
            assert_eq!(&known.out, known.first(), "{}", known.name);
            checked.insert(known.op.name().to_string());
        }
    }
    let passing = [
        "Cast",
        "Concat",
        "Div",
        "Dropout",
        "Expand",
        "Gather",
        "Mul",
        "Pad",
        "Pow",
        "Reshape",
        "Slice",
        "Split",
        "Tile",
        "Transpose",
    ];
    for name in passing {
        assert!(checked.contains(name), "no case of {name}: {checked:?}");
    }
}

/// A node that is planned as a view of its input gives the elements of that in their order.
#[test]
fn views_keep_elements_in_their_order() {
    let cpu = cpu();
    let (mut views, mut others) = (BTreeSet::new(), BTreeSet::new());
    for known in known(&*cpu) {
        let inputs = known.inputs.iter().map(|t| t.as_ref().map(TensorSpec::of));
        let node = NodeSpec {
            name: &known.name,
            op: &*known.op,
            inputs: &inputs.collect::<Vec<_>>(),
            outputs: &[TensorSpec::new(known.out.dtype(), known.out.shape())],
        };
        let operator = known.op.name().to_string();
        if known.op.is_view_for(&node) {
            let shown = known.first().reshaped(known.out.shape()).unwrap();
            assert_eq!(known.out, shown, "{}", known.name);
            views.insert(operator);
        } else {
            others.insert(operator);
        }
    }
    let at_some_shapes = ["Concat", "Expand", "Gather", "Slice", "Tile", "Transpose"];
    for name in at_some_shapes.into_iter().chain(["Reshape"]) {
        assert!(views.contains(name), "no case of {name}: {views:?}");
    }
    for name in at_some_shapes {
        assert!(others.contains(name), "no other case of {name}: {others:?}");
    }
}

/// What selects elements gives the same of numbers that were rounded before as it gives when these are rounded after it.
#[test]
fn what_selects_elements_does_so_in_any_type() {
    let cpu = cpu();
    let mut checked = BTreeSet::new();
    for known in known(&*cpu) {
        let (graph, node) = known.graph();
        let single = known.first().dtype() == DType::F32 && known.out.dtype() == DType::F32;
        if !single || !NodeView::new(&graph, &node).selects() {
            continue;
        }
        let count = match known.op.flow().takes_several() {
            true => known.inputs.len(),
            false => 1,
        };
        let half = |tensor: &Tensor| tensor.in_precision(DType::F16).unwrap();
        let mut others = known.inputs.clone();
        for input in others[..count].iter_mut().flatten() {
            *input = half(input);
        }
        if let Some(out) = computed(&*cpu, &*known.op, &others) {
            assert_eq!(out, half(&known.out), "{}", known.name);
            checked.insert(known.op.name().to_string());
        }
    }
    for name in ["Concat", "MaxPool", "Slice", "Transpose"] {
        assert!(checked.contains(name), "no case of {name}: {checked:?}");
    }
}

/// One place along an axis.
fn place(cpu: &dyn Backend, tensor: &Tensor, axis: usize, at: usize) -> Tensor {
    let index = Tensor::from_slice(&[1], &[at as i64]).unwrap();
    let gather = Gather { axis: axis as i64 };
    computed(cpu, &gather, &[Some(tensor.clone()), Some(index)]).unwrap()
}

/// One place of some inputs is enough for that place of the output.
#[test]
fn places_are_computed_apart() {
    let cpu = cpu();
    let mut checked = BTreeSet::new();
    for known in known(&*cpu) {
        let (graph, node) = known.graph();
        let dims = known.out.shape();
        for axis in (0..dims.len()).filter(|&axis| dims[axis] > 1) {
            let Some(apart) = NodeView::new(&graph, &node).apart(axis) else {
                continue;
            };
            let at = dims[axis] - 1;
            let mut others = known.inputs.clone();
            let mut taken = false;
            for i in apart {
                let Some(Some(input)) = others.get_mut(i) else {
                    continue;
                };
                let own = (axis + input.rank()).checked_sub(dims.len());
                let Some(own) = own.filter(|&own| input.shape()[own] != 1) else {
                    continue;
                };
                assert_eq!(input.shape()[own], dims[axis], "{}", known.name);
                *input = place(&*cpu, input, own, at);
                taken = true;
            }
            if taken && let Some(out) = computed(&*cpu, &*known.op, &others) {
                let wanted = place(&*cpu, &known.out, axis, at);
                assert_near(&out, &wanted, 1e-5, &format!("{}, axis {axis}", known.name));
                checked.insert(known.op.name().to_string());
            }
        }
    }
    for name in [
        "Add",
        "Gelu",
        "Gemm",
        "LayerNormalization",
        "MatMul",
        "MatMulNBits",
        "RMSNormalization",
        "Softmax",
        "Where",
    ] {
        assert!(checked.contains(name), "no case of {name}: {checked:?}");
    }
}

fn to_last(tensor: &Tensor) -> Tensor {
    let perm: Vec<usize> = [0].into_iter().chain(2..tensor.rank()).chain([1]).collect();
    tensor.permuted(&perm).unwrap()
}

#[test]
fn channels_last_operators_give_the_same_in_their_layout() {
    let cpu = cpu();
    let mut checked = BTreeSet::new();
    for known in known(&*cpu) {
        let Some(spatial) = known.op.spatial() else {
            continue;
        };
        let Some(op) = spatial.channels_last else {
            continue;
        };
        let last = op.spatial().expect("it is still spatial");
        assert!(last.channels_last.is_none(), "{}", known.name);
        assert_eq!(last.convolves, spatial.convolves, "{}", known.name);
        let mut turned = known.inputs.clone();
        for &i in spatial.data {
            if let Some(Some(input)) = turned.get_mut(i) {
                *input = to_last(input);
            }
        }
        if let Some(out) = computed(&*cpu, &*op, &turned) {
            assert_near(&out, &to_last(&known.out), 1e-5, &known.name);
            checked.insert(known.op.name().to_string());
        }
    }
    let spatial = [
        "AveragePool",
        "Conv",
        "ConvTranspose",
        "DepthToSpace",
        "LRN",
        "LpPool",
        "MaxPool",
        "SpaceToDepth",
    ];
    for name in spatial {
        assert!(checked.contains(name), "no case of {name}: {checked:?}");
    }
}

#[test]
fn activations_are_applied_to_results() {
    let cpu = cpu();
    let mut checked = BTreeSet::new();
    let activation = Activation::Clip {
        min: -0.25,
        max: 0.5,
    };
    for known in known(&*cpu) {
        let Some(op) = known.op.with_activation(activation) else {
            continue;
        };
        assert!(op.with_activation(activation).is_none(), "{}", known.name);
        if known.out.dtype() != DType::F32 {
            continue;
        }
        let clamped = known.out.as_slice::<f32>().unwrap().iter();
        let clamped: Vec<f32> = clamped.map(|x| x.clamp(-0.25, 0.5)).collect();
        let wanted = Tensor::from_slice(known.out.shape(), &clamped).unwrap();
        if let Some(out) = computed(&*cpu, &*op, &known.inputs) {
            assert_same(&out, &wanted, &known.name);
            checked.insert(known.op.name().to_string());
        }
    }
    for name in [
        "Add",
        "AveragePool",
        "Conv",
        "ConvTranspose",
        "Gemm",
        "MatMul",
    ] {
        assert!(checked.contains(name), "no case of {name}: {checked:?}");
    }
}

/// Elements may differ by `share` of the largest magnitude: sums are rounded in another order.
fn assert_near(wide: &Tensor, single: &Tensor, share: f64, what: &str) {
    assert_eq!(wide.shape(), single.shape(), "{what}");
    let (wide, single) = (wide.to_f64s().unwrap(), single.to_f64s().unwrap());
    let largest = single.iter().filter(|x| x.is_finite());
    let largest = largest.fold(1.0f64, |most, x| most.max(x.abs()));
    for (a, b) in wide.iter().zip(&single) {
        let near = (a - b).abs() <= share * largest || !b.is_finite();
        assert!(near, "{what}: {a} and {b}");
    }
}

/// In a wider type an operator that computes in that of its inputs gives the same, where its outputs follow.
#[test]
fn precision_follows_the_inputs() {
    let cpu = cpu();
    let mut checked = BTreeSet::new();
    for known in known(&*cpu) {
        if known.op.flow().precision != Precision::OfInputs || known.out.dtype() != DType::F32 {
            continue;
        }
        let mut wide = known.inputs.clone();
        let planned = known.op.value_inputs();
        for (i, input) in wide.iter_mut().enumerate() {
            if let Some(tensor) = input
                && tensor.dtype() == DType::F32
                && !planned.contains(&i)
            {
                *tensor = tensor.in_precision(DType::F64).unwrap();
            }
        }
        let out = computed(&*cpu, &*known.op, &wide);
        if let Some(out) = out.filter(|out| out.dtype() == DType::F64) {
            assert_near(&out, &known.out, 1e-4, &known.name);
            checked.insert(known.op.name().to_string());
        }
    }
    assert!(checked.len() > 60, "{checked:?}");
}

/// Outputs that nobody reads may be left out: the others are the same.
#[test]
fn optional_outputs_may_be_left_out() {
    let mut checked = BTreeSet::new();
    for known in known(&*cpu()) {
        if !known.op.has_optional_outputs() {
            continue;
        }
        let facts: Vec<Option<kilim::core::fact::InputFact>> = known
            .inputs
            .iter()
            .map(|t| {
                t.as_ref().map(|t| kilim::core::fact::InputFact {
                    fact: Fact::of(t),
                    value: Some(t.clone()),
                })
            })
            .collect();
        let infer = |outputs| known.op.infer(&InferContext::new(&facts, outputs)).unwrap();
        let (one, two) = (infer(1), infer(2));
        assert_eq!((one.len(), two.len()), (1, 2), "{}", known.name);
        assert_eq!(one[0], two[0], "{}", known.name);
        checked.insert(known.op.name().to_string());
    }
    assert!(checked.contains("MaxPool"), "{checked:?}");
}

/// Operators on axes say which: those that keep dimensions give outputs of the rank of their inputs.
#[test]
fn kept_dimensions_are_as_many() {
    let mut checked = 0;
    for known in known(&*cpu()) {
        if known.op.flow().axes != Axes::Kept {
            continue;
        }
        let ranks = known.inputs.iter().flatten().map(Tensor::rank);
        let widest = ranks.max().unwrap_or(0);
        let data = match known.op.flow().joins() {
            true => widest,
            false => known.first().rank(),
        };
        assert_eq!(known.out.rank(), data, "{}", known.name);
        checked += 1;
    }
    assert!(checked > 100, "{checked}");
}
