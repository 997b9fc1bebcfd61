//! What inference says of the inputs and outputs of operators, for `docs/attributes.md`: each input is tried with each element type.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::*;
use crate::datum::{Form, Kind};
use crate::graph::{Presence, Signature};
use crate::ops::rules;
use crate::testing::{Known, Random, Taste, content, operators};

/// Small numbers, which fit each other now and then.
struct Modest(Random);

impl Taste for Modest {
    fn random(&mut self) -> &mut Random {
        &mut self.0
    }

    fn int(&mut self, min: i128, max: i128) -> i128 {
        let near = [0, 1, 2, 4, 8, 16, 32, -1].into_iter();
        let near: Vec<i128> = near.filter(|n| (min..=max).contains(n)).collect();
        self.0.of(&near)
    }

    fn float32(&mut self) -> f32 {
        self.0.of(&[0.5, 1.0])
    }

    fn float64(&mut self) -> f64 {
        self.0.of(&[0.5, 1.0])
    }

    fn text(&mut self) -> String {
        "a".to_string()
    }

    fn tensor(&mut self) -> Tensor {
        let dtype = self.0.of(&[DType::F32, DType::I64, DType::U8, DType::F16]);
        Tensor::zeros(dtype, &[1]).unwrap()
    }

    fn length(&mut self) -> usize {
        self.0.next(5)
    }
}

/// Operators of one name, and what inference is given of them.
pub struct Samples {
    pub operators: Vec<Arc<dyn Operator>>,
    base: Base,
}

/// Inputs whose element types are not known.
#[derive(Clone, Copy)]
struct Base {
    /// What the first input is.
    kind: Kind,
    /// Whether optional inputs are there.
    whole: bool,
}

/// Enough operators of a name to meet what attributes change.
const ENOUGH: usize = 60;

/// Operators of a type that inference takes, by their names.
pub fn samples(known: &Known) -> BTreeMap<String, Samples> {
    let kinds = [Form::Tensor, Form::Sequence, Form::Map].map(Kind::from);
    let bases = [false, true].map(|whole| kinds.map(|kind| Base { kind, whole }));
    let mut taste = Modest(Random(7));
    let mut found: BTreeMap<String, Samples> = BTreeMap::new();
    for _ in 0..6000 {
        let op = (known.build)(&content(&known.schema, &mut taste));
        let name = op.name().to_string();
        if found
            .get(&name)
            .is_some_and(|s| s.operators.len() == ENOUGH)
        {
            continue;
        }
        let base = bases
            .as_flattened()
            .iter()
            .find(|&&base| taken(&*op, base, &[]));
        if let Some(&base) = base {
            let operators = Vec::new();
            let samples = found.entry(name).or_insert(Samples { operators, base });
            samples.operators.push(op);
        }
    }
    found
}

/// The element types of outputs, as far as they are known.
type Types = Vec<Option<DType>>;

/// The element types of the outputs, where inference takes these of some inputs; others have any, and optional ones are left out.
fn answer(op: &dyn Operator, base: Base, given: &[(usize, DType)]) -> Result<Types> {
    let slots = op.signature().inputs.iter().enumerate();
    let bodies = !op.subgraphs().is_empty();
    let mut inputs: Vec<_> = slots
        .map(|(i, slot)| {
            let given = given.iter().find(|(at, _)| *at == i).map(|g| g.1);
            let there = match slot.presence {
                Presence::Required => true,
                Presence::Optional => given.is_some() || base.whole,
                // The bodies that there are take nothing.
                Presence::List => !bodies,
            };
            there.then(|| base.input(i, given))
        })
        .collect();
    inputs.truncate(
        inputs
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |last| last + 1),
    );
    types(op, &inputs)
}

/// Whether inference has nothing against these element types. Bodies that fit are not at hand: what is said of them is no matter.
fn taken(op: &dyn Operator, base: Base, given: &[(usize, DType)]) -> bool {
    let bodies = !op.subgraphs().is_empty();
    match answer(op, base, given) {
        Ok(_) => true,
        Err(e) => bodies && e.code() != ErrorCode::DType,
    }
}

impl Base {
    fn input(self, i: usize, dtype: Option<DType>) -> InputFact {
        let fact = Fact {
            dtype,
            kind: if i == 0 { self.kind } else { Kind::default() },
            ..Fact::default()
        };
        InputFact { fact, value: None }
    }
}

fn types(op: &dyn Operator, inputs: &[Option<InputFact>]) -> Result<Types> {
    // Bodies without outputs are all that there are here.
    let outputs = match op.subgraphs().is_empty() {
        true => op.signature().outputs.len(),
        false => 0,
    };
    let facts = op.infer(&InferContext::new(inputs, outputs))?;
    Ok(facts.iter().map(|f| f.dtype).collect())
}

type Set = BTreeSet<DType>;

impl Samples {
    pub fn signature(&self) -> &'static Signature {
        self.operators[0].signature()
    }

    fn takes(&self, given: &[(usize, DType)]) -> bool {
        let mut all = self.operators.iter();
        all.any(|op| taken(&**op, self.base, given))
    }

    fn accepted(&self, i: usize) -> Set {
        let all = DType::ALL.into_iter();
        all.filter(|&d| self.takes(&[(i, d)])).collect()
    }

    /// What input `i` may be where input `j` is there: the type of that, or one of a set.
    fn tied(&self, i: usize, j: usize) -> Option<Set> {
        let (own, other) = (self.accepted(i), self.accepted(j));
        let beside = |d: DType| {
            own.iter()
                .copied()
                .filter(move |&e| self.takes(&[(j, d), (i, e)]))
        };
        let allowed: Vec<(DType, Set)> = other.iter().map(|&d| (d, beside(d).collect())).collect();
        let (_, first) = allowed.first()?;
        let always: Set = first
            .iter()
            .copied()
            .filter(|e| allowed.iter().all(|(_, a)| a.contains(e)))
            .collect();
        let follows = |(d, a): &(DType, Set)| a.iter().all(|e| e == d || always.contains(e));
        let tied = allowed.len() > 1 && always.len() < own.len() && allowed.iter().all(follows);
        tied.then_some(always)
    }

    /// The element types of input `i` in words.
    pub fn input(&self, i: usize) -> String {
        if i == 0 && !self.base.kind.is_tensor() {
            return format!("a {}", self.base.kind);
        }
        let own = self.accepted(i);
        if own.is_empty() {
            return "any".to_string();
        }
        // That of an input with another form says nothing of tensors.
        let before = (0..i).filter(|&j| j > 0 || self.base.kind.is_tensor());
        let ties: Vec<(usize, Set)> = before.filter_map(|j| Some((j, self.tied(i, j)?))).collect();
        match ties.iter().min_by_key(|(_, others)| others.len()) {
            Some((j, others)) if others.is_empty() => self.as_input(*j),
            Some((j, others)) => format!("{}, or {}", self.as_input(*j), words(others)),
            None => words(&own),
        }
    }

    fn as_input(&self, j: usize) -> String {
        format!("as `{}`", self.signature().inputs[j].name)
    }

    /// The element types of output `o` in words.
    pub fn output(&self, o: usize) -> String {
        if !self.operators[0].subgraphs().is_empty() {
            return "any".to_string();
        }
        let of =
            |op: &dyn Operator, given: &[_]| answer(op, self.base, given).ok()?.get(o).copied();
        let (mut said, mut fixed, mut open) = (BTreeSet::new(), Set::new(), Vec::new());
        for op in &self.operators {
            match of(&**op, &[]).flatten() {
                Some(d) => match named_by(&**op, d) {
                    Some(attribute) => drop(said.insert(attribute)),
                    None => drop(fixed.insert(d)),
                },
                None => open.push(op),
            }
        }
        let mut parts: Vec<String> = said.iter().map(|a| format!("what `{a}` says")).collect();
        let inputs = 0..self.signature().inputs.len();
        let follows = |i: &usize| {
            let accepted = self.accepted(*i);
            let all = if open.is_empty() {
                self.operators.iter().collect()
            } else {
                open.clone()
            };
            let same = |op: &&Arc<dyn Operator>| {
                let each = |&d: &DType| match of(&***op, &[(*i, d)]) {
                    Some(found) => found == Some(d),
                    None => true,
                };
                accepted.iter().all(each)
            };
            accepted.len() > 1 && all.iter().all(same)
        };
        match inputs.clone().find(follows) {
            Some(i) if i == 0 && !self.base.kind.is_tensor() => {
                parts.push(format!("that of the {}", self.base.kind))
            }
            Some(i) => parts.push(self.as_input(i)),
            None if !open.is_empty() => {
                let each = |i: usize| {
                    let types = self.accepted(i).into_iter();
                    let of = |d| {
                        open.iter()
                            .filter_map(|op| of(&***op, &[(i, d)])?)
                            .collect::<Vec<_>>()
                    };
                    types.flat_map(of).collect::<Vec<_>>()
                };
                fixed.extend(inputs.flat_map(each));
            }
            None => {}
        }
        if !fixed.is_empty() {
            parts.push(words(&fixed));
        }
        match parts.is_empty() {
            true => "any".to_string(),
            false => parts.join(", or "),
        }
    }
}

/// The attribute that says that an output is of a type.
fn named_by(op: &dyn Operator, dtype: DType) -> Option<String> {
    let attributes = op.attributes().ok()?;
    let says = |value: &Attribute| match value {
        Attribute::Text(text) => *text == super::attributes::variant_name(&dtype),
        Attribute::Tensor(tensor) => tensor.dtype() == dtype,
        _ => false,
    };
    let mut all = attributes.0.into_iter();
    all.find(|(_, value)| says(value)).map(|(name, _)| name)
}

/// Sets of element types that have a name.
const NAMED: [&rules::Types; 12] = [
    &rules::ANY,
    &rules::NOT_COMPLEX,
    &rules::FLOATS,
    &rules::INTEGERS,
    &rules::NUMBERS,
    &rules::VALUES,
    &rules::SIGNED,
    &rules::WIDE_NUMBERS,
    &rules::QUANTIZED,
    &rules::BYTES,
    &rules::INDICES,
    &rules::BOOL,
];

fn members(types: &rules::Types) -> Set {
    let all = DType::ALL.into_iter();
    all.filter(|&d| (types.contains)(d)).collect()
}

fn list(set: &Set) -> String {
    let names: Vec<String> = set.iter().map(DType::to_string).collect();
    names.join(", ")
}

/// A set of element types by its name, else one after the other.
fn words(set: &Set) -> String {
    let named = NAMED.iter().find(|types| members(types) == *set);
    named.map_or_else(|| list(set), |types| types.name.to_string())
}

/// The names of sets that do not say what is in them.
pub fn legend() -> String {
    let sets = NAMED.iter().map(|types| (types.name, members(types)));
    let vague = sets.filter(|(name, set)| {
        set.len() > 2 && set.len() < DType::ALL.len() && !name.contains("but")
    });
    let lines = vague.map(|(name, set)| format!("| {name} | {} |\n", list(&set)));
    lines.collect()
}

#[test]
fn inference_takes_what_signatures_say() {
    let mut wrong = BTreeSet::new();
    for known in operators().iter().filter(|o| o.type_name != "Custom") {
        let named = samples(known);
        assert!(!named.is_empty(), "inference takes no {}", known.type_name);
        for (name, samples) in named {
            let signature = samples.signature();
            assert!(!signature.outputs.is_empty(), "{name}");
            let optional = signature
                .outputs
                .iter()
                .any(|o| o.presence == Presence::Optional);
            for op in &samples.operators {
                wrong.extend(disagreement(&**op, samples.base));
                assert!(optional || !op.has_optional_outputs(), "{name}");
            }
            for (i, slot) in signature.inputs.iter().enumerate() {
                let some = samples.accepted(i).len();
                let bodies = !samples.operators[0].subgraphs().is_empty();
                if some == 0 && !bodies {
                    wrong.insert(format!("{name} never takes `{}`", slot.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Required inputs that inference does without, and outputs that it says nothing about.
fn disagreement(op: &dyn Operator, base: Base) -> Vec<String> {
    let signature = op.signature();
    if !op.subgraphs().is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let outputs = answer(op, base, &[]).map_or(0, |facts| facts.len());
    let lists = signature
        .outputs
        .iter()
        .any(|o| o.presence == Presence::List);
    if outputs != signature.outputs.len() && !lists {
        found.push(format!("{}: {outputs} outputs", op.name()));
    }
    let required = |i: usize| signature.inputs[i].presence == Presence::Required;
    let all = 0..signature.inputs.len();
    for i in all.clone().filter(|&i| required(i)) {
        let there = |j: usize| j != i && required(j);
        let inputs = all.clone().map(|j| there(j).then(|| base.input(j, None)));
        let inputs: Vec<_> = inputs.collect();
        if types(op, &inputs).is_ok() {
            found.push(format!(
                "{} does without `{}`",
                op.name(),
                signature.inputs[i].name
            ));
        }
    }
    found
}
