//! The layouts of spatial operators: those that the backends want which get them. Where all of these want the same, the
//! graph has it. Where they differ, the graph is placed before its layouts are settled, with every backend asked about
//! each operator in the layouts that it offers.

use std::collections::HashMap;
use std::sync::Arc;

use super::SessionOptions;
use crate::backend::{Backend, BackendConfig, DataLayout};
use crate::builtin;
use crate::dim::Dim;
use crate::error::Result;
use crate::fact::TensorSpec;
use crate::graph::{Graph, Node, NodeId, NodeSpec, ValueId};
use crate::ids::{BackendId, IdMap, IdSet, PerBackend};
use crate::interrupt::Interrupt;
use crate::partition::{self, Answers, Candidate, Placement};
use crate::passes::{Turned, infer_graph};
use crate::pin;

/// The size that a dimension is taken to have which the model leaves open: the first one, mostly a batch, and others.
const OPEN: [usize; 2] = [1, 64];

/// Who may get the operators of a graph.
pub(super) struct Layouts<'a> {
    pub backends: &'a [Arc<dyn Backend>],
    /// What each backend is to do.
    pub configs: &'a [BackendConfig],
    pub options: &'a SessionOptions,
    pub interrupt: &'a Interrupt,
}

/// A node that backends were asked about.
struct Asked {
    candidate: Candidate,
    /// The layouts in which each backend takes the node, the one first that it is fastest with.
    layouts: PerBackend<Vec<DataLayout>>,
}

/// The layouts of operators that a backend offers, the one first that it is fastest with.
fn offered(config: &BackendConfig) -> impl Iterator<Item = DataLayout> + '_ {
    let known = [DataLayout::ChannelsFirst, DataLayout::ChannelsLast];
    config
        .layouts
        .iter()
        .copied()
        .filter(move |l| known.contains(l))
}

impl Layouts<'_> {
    /// The layout that all backends are fastest with; `None` where they differ, or where one says it for each node.
    pub fn common(&self) -> Option<DataLayout> {
        if self.backends.iter().any(|b| b.node_layouts().is_some()) {
            return None;
        }
        let mut fastest = self.configs.iter().map(|config| offered(config).next());
        let first = fastest.next()??;
        fastest.all(|l| l == Some(first)).then_some(first)
    }

    /// The nodes that go to backends which want them on channels-last data. A node that does not convolve follows the
    /// convolution before it, so that layouts change at convolutions only.
    ///
    /// # Errors
    /// `Aborted` where loading is to stop.
    pub fn choose(&self, graph: &Graph) -> Result<IdSet<NodeId>> {
        let Questions { list, bytes, .. } = self.ask(&self.sized(graph)?)?;
        let mut layouts = Vec::with_capacity(list.len());
        let mut candidates = Vec::with_capacity(list.len());
        for (id, asked) in list {
            layouts.push((id, asked.layouts));
            candidates.push(asked.candidate);
        }
        let placement = match self.options.strict {
            true => Placement::Fixed,
            false => self.options.placement,
        };
        let mut sites = self.options.sites(self.backends);
        for (site, config) in sites.iter_mut().zip(self.configs) {
            site.layout = offered(config).next().unwrap_or(site.layout);
        }
        let placed = partition::place(&candidates, &bytes, &sites, placement);
        let Ok(placed) = placed else {
            return Ok(IdSet::default());
        };
        let taken = layouts.into_iter().zip(placed.at);
        let taken = taken.map(|((id, mut layouts), at)| (id, std::mem::take(&mut layouts[at])));
        let mut taken: IdMap<NodeId, Vec<DataLayout>> = taken.collect();
        let mut last = IdSet::default();
        let mut before: IdMap<ValueId, DataLayout> = IdMap::default();
        for (i, node) in graph.nodes.iter().enumerate() {
            let mut inputs = node.present_inputs();
            let from = inputs.find_map(|v| before.get(&v).copied());
            let own = taken.remove(&NodeId(i)).unwrap_or_default();
            let convolves = node.op.spatial().map(|spatial| spatial.convolves);
            let layout = match convolves {
                Some(true) => own.first().copied(),
                Some(false) => from.filter(|l| own.contains(l)).or(own.first().copied()),
                None => from,
            };
            if let Some(layout) = layout {
                before.extend(node.outputs.iter().map(|&v| (v, layout)));
                if convolves.is_some() && layout == DataLayout::ChannelsLast {
                    last.insert(NodeId(i));
                }
            }
        }
        Ok(last)
    }

    /// The graph with sizes for dimensions that it leaves open, as far as they fit it.
    fn sized(&self, graph: &Graph) -> Result<Graph> {
        let mut sized = graph.clone();
        let mut sizes: HashMap<Dim, usize> = HashMap::new();
        let mut open = false;
        for v in graph.inputs.iter().copied() {
            let shape = sized.value_mut(v).fact.shape.as_mut();
            let dims = shape.into_iter().flat_map(|s| s.0.iter_mut().enumerate());
            for (axis, dim) in dims.filter(|(_, d)| d.known().is_none()) {
                open = true;
                let usual = OPEN[axis.min(1)];
                let size = self.options.plan_unknown_as.unwrap_or(usual);
                *dim = Dim::Known(match &*dim {
                    Dim::Unknown => size,
                    named => *sizes.entry(named.clone()).or_insert(size),
                });
            }
        }
        if !open || infer_graph(&mut sized, self.interrupt).is_ok() {
            return Ok(sized);
        }
        self.interrupt.check()?;
        Ok(graph.clone())
    }

    /// Asks every backend about every node that it may get.
    fn ask(&self, graph: &Graph) -> Result<Questions> {
        let ids: Vec<BackendId> = self
            .backends
            .iter()
            .map(|b| b.describe().id.clone())
            .collect();
        let mut questions = Questions::default();
        for (i, node) in graph.nodes.iter().enumerate() {
            self.interrupt.check()?;
            if node.op.is_view()
                && let Some(of) = node.input(0)
            {
                questions.view(node.outputs[0], of);
                continue;
            }
            let Some((inputs, outputs)) = specs(graph, node) else {
                continue;
            };
            let constant = inputs.iter().flatten().all(|s| s.value.is_some());
            if builtin::runs(graph, node) || constant {
                continue;
            }
            let spec = NodeSpec {
                name: &node.name,
                op: node.op.as_ref(),
                inputs: &inputs,
                outputs: &outputs,
            };
            let turned = Turned::of(graph, node);
            let mut layouts = PerBackend::new();
            let mut answers = Answers::new();
            for (backend, config) in self.backends.iter().zip(self.configs) {
                let mut taken = Vec::new();
                let mut answer = None;
                let mut wanted: Vec<DataLayout> = offered(config).collect();
                if let (Some(own), true) = (backend.node_layouts(), turned.is_some())
                    && let Some(first) = own.fastest(&spec)
                {
                    // Whoever offers a layout less than this still gets what it offers.
                    wanted.sort_by_key(|&l| l != first);
                }
                for layout in wanted {
                    let said = match (&turned, layout) {
                        (Some(turned), DataLayout::ChannelsLast) => {
                            turned.supported(&spec, &**backend)
                        }
                        (Some(_), _) => backend.supports(&spec),
                        // There is one form only.
                        (None, _) if answer.is_none() => backend.supports(&spec),
                        (None, _) => continue,
                    };
                    if said.is_ok() {
                        taken.push(layout);
                    }
                    answer = match answer {
                        Some(Ok(cost)) => Some(Ok(cost)),
                        _ => Some(said),
                    };
                }
                layouts.push(taken);
                answers.push(answer.unwrap_or_else(|| backend.supports(&spec)));
            }
            if let Some(to) = pin::backend_of(&self.options.pins, &node.name, node.op.name()) {
                pin::hold(&mut answers, &ids, to);
            }
            // What nobody takes is an error later, or is computed while planning.
            if answers.iter().any(Result::is_ok) {
                let candidate = questions.candidate(node, answers, &inputs, &outputs);
                questions
                    .list
                    .push((NodeId(i), Asked { candidate, layouts }));
            }
        }
        Ok(questions)
    }
}

/// What a node reads and writes.
type Specs = (Vec<Option<TensorSpec>>, Vec<TensorSpec>);

/// The inputs and outputs of a node; `None` where a shape or an element type is not known.
fn specs(graph: &Graph, node: &Node) -> Option<Specs> {
    let spec = |v: ValueId| {
        let value = graph.value(v);
        let spec = match &value.constant {
            Some(constant) => TensorSpec::of(constant),
            None => {
                let tensor = value.fact.kind.is_tensor();
                let shape = value.fact.concrete().filter(|_| tensor)?;
                TensorSpec::new(value.fact.dtype?, &shape)
            }
        };
        Some(spec.named(&value.name))
    };
    let inputs = node.inputs.iter().map(|v| match v {
        Some(v) => Some(Some(spec(*v)?)),
        None => Some(None),
    });
    let outputs = node.outputs.iter().map(|&v| spec(v));
    Some((
        inputs.collect::<Option<_>>()?,
        outputs.collect::<Option<_>>()?,
    ))
}

/// What backends said of the nodes of a graph, as the partitioner takes it.
#[derive(Default)]
struct Questions {
    list: Vec<(NodeId, Asked)>,
    /// The bytes of each value that goes from node to node.
    bytes: Vec<usize>,
    index: IdMap<ValueId, usize>,
    /// The value that a view shows, which is no view itself.
    view_of: IdMap<ValueId, ValueId>,
}

impl Questions {
    fn view(&mut self, view: ValueId, of: ValueId) {
        let root = self.view_of.get(&of).copied().unwrap_or(of);
        self.view_of.insert(view, root);
    }

    fn number(&mut self, v: ValueId, spec: &TensorSpec) -> usize {
        let root = self.view_of.get(&v).copied().unwrap_or(v);
        *self.index.entry(root).or_insert_with(|| {
            self.bytes.push(spec.bytes());
            self.bytes.len() - 1
        })
    }

    fn candidate(
        &mut self,
        node: &Node,
        answers: Answers,
        inputs: &[Option<TensorSpec>],
        outputs: &[TensorSpec],
    ) -> Candidate {
        let mut candidate = Candidate {
            answers,
            ..Candidate::default()
        };
        for (v, spec) in node.inputs.iter().zip(inputs) {
            if let (Some(v), Some(spec)) = (v, spec)
                && spec.value.is_none()
            {
                candidate.reads.push(self.number(*v, spec));
            }
        }
        for (v, spec) in node.outputs.iter().zip(outputs) {
            candidate.writes.push(self.number(*v, spec));
        }
        candidate
    }
}
