//! A graph while an importer adds nodes to it.

use std::sync::Arc;

use kilim_core::Interrupt;
use kilim_core::dim::Shape;
use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ids::IdMap;
use kilim_core::ops::{Fact, InferContext, Operator, Unary, UnaryKind, check_rank, normalize_axis};
use kilim_core::tensor::Tensor;
use kilim_core::{Form, Kind};

use super::names::{check_port, shortened};

/// A graph that grows node by node. What a node gives is inferred when it is added, and names are kept short.
pub struct GraphBuilder {
    graph: Graph,
    site: Site,
    /// Whether the nodes may never run: what does not fit there is no error of the model.
    conditional: bool,
    interrupt: Interrupt,
    /// The index of the node that writes each value, for the first `indexed` nodes.
    writers: IdMap<ValueId, usize>,
    indexed: usize,
    /// Where the node stands that gave a value its name.
    named: IdMap<ValueId, (usize, usize)>,
}

/// A node of the model that is being brought into the graph.
#[derive(Default)]
pub struct Site {
    name: String,
    /// How many nodes are being brought in around it.
    depth: usize,
    /// How many nodes the graph had before.
    first: usize,
}

/// Goes with the refusal of a node whose form depends on a rank that is not known.
pub const RANK_HINT: &str =
    "infer the shapes of the model (onnx.shape_inference does it for ONNX) and load the result";

impl GraphBuilder {
    /// An empty graph; nodes that are `conditional` may never run.
    pub fn new(name: &str, conditional: bool, interrupt: &Interrupt) -> GraphBuilder {
        GraphBuilder {
            graph: Graph::new(name),
            site: Site::default(),
            conditional,
            interrupt: interrupt.clone(),
            writers: IdMap::default(),
            indexed: 0,
            named: IdMap::default(),
        }
    }

    /// Begins a node of the model, and gives the one around it for [`GraphBuilder::leave`].
    pub fn enter(&mut self, node: &str) -> Site {
        let site = Site {
            name: shortened(node),
            depth: self.site.depth + 1,
            first: self.graph.nodes.len(),
        };
        std::mem::replace(&mut self.site, site)
    }

    /// Goes on with the node around the one that was entered last.
    pub fn leave(&mut self, around: Site) {
        self.site = around;
    }

    /// The name of the model's node that is being brought in.
    pub fn node_name(&self) -> &str {
        &self.site.name
    }

    /// Whether the nodes may never run.
    pub fn is_conditional(&self) -> bool {
        self.conditional
    }

    /// The graph as it is.
    pub fn graph(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// The graph, its nodes in an order in which every value is written before it is read.
    ///
    /// # Errors
    /// `InvalidGraph` on a cycle, on a value that is written twice and on one that nothing produces.
    pub fn finish(mut self) -> Result<Graph> {
        self.graph.sort()?;
        Ok(self.graph)
    }

    /// The graph as it was built.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// A new input of the graph.
    ///
    /// # Errors
    /// `Limit` where its name is too long.
    pub fn add_input(&mut self, name: &str, fact: Fact) -> Result<ValueId> {
        check_port(name)?;
        Ok(self.graph.add_input(name, fact))
    }

    /// Makes `value` the next output of the graph, under its whole name where it has the beginning of it.
    ///
    /// # Errors
    /// `Limit` where the name is too long.
    pub fn add_output(&mut self, name: &str, value: ValueId) -> Result<()> {
        check_port(name)?;
        let known = &mut self.graph.value_mut(value).name;
        if *known == shortened(name) {
            *known = name.to_string();
        }
        self.graph.outputs.push(value);
        Ok(())
    }

    /// Adds a value that a later node writes, with what is known about it.
    pub fn add_value(&mut self, name: &str, fact: Fact) -> ValueId {
        self.graph.add_value(shortened(name), fact)
    }

    /// A constant of the model.
    pub fn add_constant(&mut self, name: &str, tensor: Tensor) -> ValueId {
        self.graph.add_constant(shortened(name), tensor)
    }

    /// A constant of the node that is being brought in, which is named after it.
    pub fn node_constant(&mut self, what: &str, tensor: Tensor) -> ValueId {
        let name = format!("{}/{what}", self.site.name);
        self.graph.add_constant(name, tensor)
    }

    /// What is known of `v`.
    pub fn fact(&self, v: ValueId) -> Fact {
        self.graph.value(v).fact.clone()
    }

    /// The element type of `v` where it is known.
    pub fn dtype(&self, v: ValueId) -> Option<DType> {
        self.graph.value(v).fact.dtype
    }

    /// The dimensions of `v` where all are known.
    pub fn shape(&self, v: ValueId) -> Option<Vec<usize>> {
        self.graph.value(v).fact.concrete()
    }

    /// What is known of the shape of `v`.
    pub fn known_shape(&self, v: ValueId) -> Option<&Shape> {
        self.graph.value(v).fact.shape.as_ref()
    }

    /// The elements of `v` where they are known already.
    pub fn constant(&self, v: ValueId) -> Option<Tensor> {
        self.graph.value(v).constant.clone()
    }

    /// The rank of `v`; `Unsupported` where it is not known.
    pub fn rank(&self, v: ValueId) -> Result<usize> {
        let value = self.graph.value(v);
        value.fact.rank().ok_or_else(|| {
            unsupported(format!("the rank of `{}` is not known", value.name)).with_hint(RANK_HINT)
        })
    }

    /// `axis`, brought into `0..rank` of `v`.
    pub fn axis_of(&self, v: ValueId, axis: i64) -> Result<usize> {
        normalize_axis(axis, self.rank(v)?)
    }

    /// Adds the node that is being brought in, with new outputs.
    ///
    /// # Errors
    /// What inference says of inputs that do not fit.
    pub fn push(
        &mut self,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        let name = self.site.name.clone();
        self.push_named(name, op, inputs, outputs)
    }

    /// Adds the node that is being brought in, whose outputs are there already. What is known of them is completed.
    ///
    /// # Errors
    /// What inference says of inputs that do not fit.
    pub fn push_into(
        &mut self,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
        outputs: &[ValueId],
    ) -> Result<()> {
        let inputs = present(inputs);
        let facts = self.inferred(&*op, inputs, outputs.len())?;
        for (&value, found) in outputs.iter().zip(facts) {
            let known = &mut self.graph.value_mut(value).fact;
            *known = unify(found, std::mem::take(known));
        }
        let name = self.site.name.clone();
        self.graph.push_shared(name, op, inputs, outputs);
        Ok(())
    }

    /// A node on the way to the outputs of the one that is being brought in.
    ///
    /// # Errors
    /// What inference says of inputs that do not fit.
    pub fn apply_shared(
        &mut self,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        let name = format!("{}/{}", self.site.name, op.name());
        self.push_named(name, op, inputs, outputs)
    }

    fn push_named(
        &mut self,
        name: String,
        op: Arc<dyn Operator>,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<ValueId>> {
        let inputs = present(inputs);
        let mut facts = self.inferred(&*op, inputs, outputs)?.into_iter();
        let graph = &mut self.graph;
        let values: Vec<_> = (0..outputs)
            .map(|i| graph.add_value(format!("{name}:{i}"), facts.next().unwrap_or_default()))
            .collect();
        graph.push_shared(name, op, inputs, &values);
        Ok(values)
    }

    /// What a node gives; nothing where it does not fit but may never run.
    fn inferred(
        &self,
        op: &dyn Operator,
        inputs: &[Option<ValueId>],
        outputs: usize,
    ) -> Result<Vec<Fact>> {
        let inputs = self.graph.input_facts(inputs);
        let facts = op.infer(&InferContext {
            interrupt: &self.interrupt,
            ..InferContext::new(&inputs, outputs)
        });
        let facts = match facts {
            Err(_) if self.conditional => Vec::new(),
            facts => facts?,
        };
        for fact in &facts {
            check_rank(fact.rank().unwrap_or(0))?;
        }
        Ok(facts)
    }

    /// Gives `value` the name `name`. A value that the node which is being brought in does not write, or has given a
    /// name already, is passed through Identity, since outputs are found by their names: what comes of it is returned.
    pub fn name(&mut self, value: ValueId, name: &str) -> ValueId {
        if self.takes_name(value) {
            self.graph.value_mut(value).name = shortened(name);
            return value;
        }
        let fact = self.fact(value);
        let renamed = self.add_value(name, fact);
        self.copy(value, renamed);
        renamed
    }

    /// Makes `to`, which no node has written yet, a copy of `value`.
    pub fn copy(&mut self, value: ValueId, to: ValueId) {
        let fact = self.fact(value);
        self.graph.value_mut(to).fact = fact;
        let (name, op) = (self.site.name.clone(), Arc::new(Unary(UnaryKind::Identity)));
        self.graph.push_shared(name, op, &[Some(value)], &[to]);
    }

    /// Whether the node that is being brought in writes `value`, which has got no name since. From then on it has one.
    fn takes_name(&mut self, value: ValueId) -> bool {
        for (i, node) in self.graph.nodes.iter().enumerate().skip(self.indexed) {
            self.writers.extend(node.outputs.iter().map(|&v| (v, i)));
        }
        self.indexed = self.graph.nodes.len();
        let Site { depth, first, .. } = self.site;
        let fresh = self.writers.get(&value).is_some_and(|&w| w >= first);
        fresh && self.named.insert(value, (depth, first)) != Some((depth, first))
    }

    /// Completes what is known of `value` by what the file says of it.
    pub fn declare(&mut self, value: ValueId, declared: Fact) {
        let known = &mut self.graph.value_mut(value).fact;
        *known = unify(std::mem::take(known), declared);
    }
}

/// The inputs of a node without those that are left out at the end.
fn present(inputs: &[Option<ValueId>]) -> &[Option<ValueId>] {
    let last = inputs.iter().rposition(Option::is_some);
    &inputs[..last.map_or(0, |i| i + 1)]
}

/// What inference found, completed by what the file declares. Where they contradict, inference
/// stands: files are often declared for another batch size than they hold.
pub fn unify(found: Fact, declared: Fact) -> Fact {
    let shape = match (found.shape, declared.shape) {
        (Some(a), Some(b)) if a.rank() == b.rank() => {
            let dims = a.0.into_iter().zip(b.0);
            let dims = dims.map(|(a, b)| a.unify(&b).unwrap_or(a));
            Some(Shape(dims.collect()))
        }
        (found, declared) => found.or(declared),
    };
    let form = match found.kind.form {
        Form::Tensor => declared.kind.form,
        form => form,
    };
    Fact {
        dtype: found.dtype.or(declared.dtype),
        shape,
        kind: Kind {
            form,
            optional: found.kind.optional || declared.kind.optional,
        },
    }
}
