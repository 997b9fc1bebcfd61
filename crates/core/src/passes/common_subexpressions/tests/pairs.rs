//! Two nodes that differ in one field of their operator stay two through all rules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::apply_all;
use super::fitting::{Fitting, inputs};
use crate::dtype::DType;
use crate::graph::{Graph, ValueId};
use crate::ops::{
    Cast, Concat, ConstantOfShape, DequantizeLinear, Fact, InferContext, InputFact, Operator,
    QuantizeLinear, Reshape, ShapeOf, Split, Transpose, Unary, UnaryKind,
};
use crate::passes::Rule;
use crate::tensor::Tensor;
use crate::testing::{Content, Random, Schema, content, mutations, operators};

/// How many pairs that differ in one field are tried.
const PAIRS: usize = 30;

/// How often an operator is made to find them.
const TRIES: usize = 30_000;

/// Contents that differ in one place, with the field where they do.
fn others(schema: &Schema, given: &Content, taste: &mut Fitting) -> Vec<(usize, Content)> {
    let (Schema::Struct(record), Content::Record(_, fields)) = (schema, given) else {
        let found = mutations(schema, given, taste).into_iter();
        return found.map(|other| (0, other)).collect();
    };
    let mut found = Vec::new();
    for (i, (_, schema, _)) in record.fields.iter().enumerate() {
        for other in mutations(schema, &fields[i], taste) {
            let mut fields = fields.clone();
            fields[i] = other;
            found.push((i, Content::Record(0, fields)));
        }
    }
    found
}

/// What a graph holds beside the two nodes, for rules that look at more than one node.
#[derive(Clone, Copy, Debug)]
enum Around {
    Nothing,
    /// An activation of each output.
    Activation,
    /// The first input is dequantised, each output quantised.
    Quantized,
}

const AROUND: [Around; 3] = [Around::Nothing, Around::Activation, Around::Quantized];

/// Two nodes on the same inputs, with all their outputs.
struct Pair<'a> {
    nodes: [&'a Arc<dyn Operator>; 2],
    inputs: &'a [Option<InputFact>],
    outputs: usize,
}

impl Pair<'_> {
    /// Whether inference takes both nodes.
    fn fits(&self) -> bool {
        self.nodes.iter().all(|op| self.infers(op).is_some())
    }

    fn infers(&self, op: &Arc<dyn Operator>) -> Option<Vec<Fact>> {
        let facts = op.infer(&InferContext::new(self.inputs, self.outputs));
        facts.ok().filter(|facts| facts.len() >= self.outputs)
    }

    /// Whether a graph can have this around the nodes.
    fn allows(&self, around: Around) -> bool {
        let float = |fact: &Fact| fact.dtype == Some(DType::F32) && fact.kind.is_tensor();
        let floats = || {
            let facts = self.nodes.iter().filter_map(|op| self.infers(op));
            facts.flatten().take(2 * self.outputs).all(|f| float(&f))
        };
        match around {
            Around::Nothing => true,
            Around::Activation => floats(),
            Around::Quantized => {
                let first = self.inputs.first().and_then(Option::as_ref);
                first.is_some_and(|i| i.value.is_none() && float(&i.fact)) && floats()
            }
        }
    }

    fn graph(&self, around: Around) -> Graph {
        let mut graph = Graph::new("test");
        let scale = graph.add_constant("scale", Tensor::scalar(0.125f32).unwrap());
        let zero = graph.add_constant("zero", Tensor::scalar(3u8).unwrap());
        let mut read: Vec<Option<ValueId>> = Vec::new();
        for (i, input) in self.inputs.iter().enumerate() {
            read.push(input.as_ref().map(|input| match (&input.value, around) {
                (Some(value), _) => graph.add_constant(format!("c{i}"), value.clone()),
                (None, Around::Quantized) if i == 0 => {
                    let mut fact = input.fact.clone();
                    fact.dtype = Some(DType::U8);
                    let x = graph.add_input("x0", fact);
                    let op = DequantizeLinear { axis: 0, block: 0 };
                    graph.apply("real", op, &[x, scale, zero])
                }
                (None, _) => graph.add_input(format!("x{i}"), input.fact.clone()),
            }));
        }
        for (i, op) in self.nodes.into_iter().enumerate() {
            let of = |k| graph.add_value(format!("y{i}:{k}"), Fact::default());
            let written: Vec<ValueId> = (0..self.outputs).map(of).collect();
            graph.push_shared(format!("n{i}"), op.clone(), &read, &written);
            for y in written {
                let y = match around {
                    Around::Nothing => y,
                    Around::Activation => graph.apply("relu", Unary(UnaryKind::Relu), &[y]),
                    Around::Quantized => {
                        let op = QuantizeLinear {
                            axis: 0,
                            block: 0,
                            output: None,
                        };
                        graph.apply("bytes", op, &[y, scale, zero])
                    }
                };
                graph.outputs.push(y);
            }
        }
        graph
    }

    /// Whether some output of one node is that of the other after all rules, or comes from the same node; and the rules
    /// that changed something.
    fn becomes_one(&self, around: Around) -> (bool, BTreeSet<Rule>) {
        let mut graph = self.graph(around);
        let rules = apply_all(&mut graph);
        let producers = graph.producers();
        let (a, b) = graph.outputs.split_at(self.outputs);
        let mut both = a.iter().zip(b);
        let one = both
            .any(|(a, b)| a == b || (producers[a.0].is_some() && producers[a.0] == producers[b.0]));
        (one, rules)
    }

    /// The nodes' operators, where they are of this type.
    fn both<T: Operator>(&self) -> Option<[&T; 2]> {
        let [a, b] = self.nodes.map(|op| op.downcast_ref::<T>());
        Some([a?, b?])
    }

    /// Why the nodes compute the same from these inputs, by the definition of their operator.
    fn same_by_definition(&self) -> Option<&'static str> {
        let x = &self.inputs.first()?.as_ref()?.fact;
        let dims = x.concrete();
        if let Some([a, b]) = self.both::<Cast>() {
            let own = x.dtype == Some(a.to) && a.to == b.to;
            return own.then_some("a cast to the type of its input changes nothing");
        }
        if let Some([_, _]) = self.both::<Concat>() {
            let alone = self.inputs.len() == 1;
            return alone.then_some("a tensor alone is joined with nothing, along any axis");
        }
        if let Some([_, _]) = self.both::<Split>() {
            return (self.outputs == 1).then_some("one part is the whole, along any axis");
        }
        if let Some([a, b]) = self.both::<ConstantOfShape>() {
            let bytes = |op: &ConstantOfShape| op.value.read().unwrap().to_vec();
            let same = a.value.dtype() == b.value.dtype() && bytes(a) == bytes(b);
            return same.then_some("one number fills a tensor, whatever its own shape");
        }
        if self.both::<Reshape>().is_some() {
            let shape = self.inputs[1].as_ref()?.value.as_ref()?.to_i64s().ok()?;
            return (!shape.contains(&0)).then_some("no dimension of the shape is 0");
        }
        if let Some([a, b]) = self.both::<ShapeOf>() {
            let dims = dims?;
            let of = |op: &ShapeOf| dims[op.range(dims.len())].to_vec();
            return (of(a) == of(b)).then_some("the dimensions asked for are equal");
        }
        if let Some([a, b]) = self.both::<Transpose>() {
            let rank = dims?.len();
            let order = |op: &Transpose| match &op.perm[..] {
                [] => (0..rank).rev().collect(),
                perm => perm.to_vec(),
            };
            return (order(a) == order(b)).then_some("no permutation reverses the dimensions");
        }
        None
    }
}

/// How many operators, of those that have fields, and how many fields.
#[derive(Debug, Default)]
struct Count {
    operators: usize,
    fields: usize,
}

/// What became of all pairs.
#[derive(Debug, Default)]
struct Tally {
    tried: Count,
    all: Count,
    pairs: usize,
    /// Rules that changed something.
    rules: BTreeSet<Rule>,
    same_by_definition: BTreeMap<&'static str, usize>,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, pair: &Pair) {
        for around in AROUND.into_iter().filter(|&around| pair.allows(around)) {
            let (one, rules) = pair.becomes_one(around);
            self.pairs += 1;
            self.rules.extend(rules);
            match pair.same_by_definition() {
                _ if !one => {}
                Some(reason) => *self.same_by_definition.entry(reason).or_default() += 1,
                None => {
                    let [a, b] = pair.nodes;
                    let inputs = pair.inputs;
                    self.wrong
                        .push(format!("{a:?} and {b:?} of {inputs:?}, {around:?}"));
                }
            }
        }
    }
}

#[test]
fn nodes_that_differ_in_one_field_stay_two_through_all_rules() {
    let mut tally = Tally::default();
    for known in operators() {
        let taste = &mut Fitting(Random(13));
        let fields = match &known.schema {
            Schema::Struct(record) => record.fields.len(),
            _ => 1,
        };
        let mut found = vec![0; fields];
        for _ in 0..TRIES {
            if found.iter().all(|&count| count >= PAIRS) {
                break;
            }
            let one = content(&known.schema, taste);
            let first = (known.build)(&one);
            let inputs = inputs(&*first, &mut taste.0);
            let alone = Pair {
                nodes: [&first, &first],
                inputs: &inputs,
                outputs: taste.0.of(&[1, 1, 2, 3]),
            };
            if !alone.fits() {
                continue;
            }
            for (field, other) in others(&known.schema, &one, taste) {
                let second = (known.build)(&other);
                let nodes = [&first, &second];
                let pair = Pair { nodes, ..alone };
                if found[field] < PAIRS && pair.fits() {
                    found[field] += 1;
                    tally.add(&pair);
                }
            }
        }
        let tried = found.iter().filter(|&&count| count > 0).count();
        if tried < fields {
            let name = known.type_name;
            println!("{name}: {tried} of {fields} fields are tried");
        }
        tally.tried.operators += usize::from(tried > 0);
        tally.tried.fields += tried;
        tally.all.operators += usize::from(fields > 0);
        tally.all.fields += fields;
    }
    println!("{tally:#?}");
    let wrong = &tally.wrong;
    assert!(wrong.is_empty(), "{} pairs become one", wrong.len());
    // If, Loop and Scan are left: the random bodies are empty, and inference takes none of them.
    let Count { operators, fields } = tally.tried;
    assert!(operators >= 93 && fields >= 221 && tally.pairs >= 10_000);
    assert!(tally.rules.len() >= 9, "{:?}", tally.rules);
}
