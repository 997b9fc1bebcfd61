//! Contents at random, and all that differ from given ones in one place.

use super::schema::{Content, OPAQUE, Schema};
use crate::tensor::Tensor;

/// A linear congruential generator; the same numbers at every run.
pub struct Random(pub u64);

impl Random {
    /// A number below `below`, which is not 0.
    pub fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }

    /// One item of a list.
    pub fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.next(list.len())].clone()
    }
}

/// Which values are made.
pub trait Taste {
    fn random(&mut self) -> &mut Random;
    /// An integer of `min..=max`.
    fn int(&mut self, min: i128, max: i128) -> i128;
    fn float32(&mut self) -> f32;
    fn float64(&mut self) -> f64;
    fn text(&mut self) -> String;
    fn tensor(&mut self) -> Tensor;
    /// How long a list is.
    fn length(&mut self) -> usize;
}

/// A value of a type.
pub fn content(schema: &Schema, taste: &mut dyn Taste) -> Content {
    match schema {
        Schema::Bool => Content::Bool(taste.random().next(2) == 0),
        Schema::Int { min, max } => Content::Int(taste.int(*min, *max)),
        Schema::Float32 => Content::Float32(taste.float32()),
        Schema::Float64 => Content::Float64(taste.float64()),
        Schema::Text => Content::Text(taste.text()),
        Schema::Tensor => Content::Tensor(taste.tensor()),
        Schema::Opaque => Content::Opaque(taste.random().next(OPAQUE)),
        Schema::Optional(_) if taste.random().next(2) == 0 => Content::Absent,
        Schema::Optional(value) => Content::Present(Box::new(content(value, taste))),
        Schema::List { item, length } => {
            let length = length.unwrap_or_else(|| taste.length());
            Content::List((0..length).map(|_| content(item, taste)).collect())
        }
        Schema::Pair(items) => Content::List(items.iter().map(|s| content(s, taste)).collect()),
        Schema::Struct(_) => variant(schema, 0, taste),
        Schema::Enum(variants) => {
            let which = taste.random().next(variants.len());
            variant(schema, which, taste)
        }
    }
}

/// A struct, or variant `which` of an enum.
fn variant(schema: &Schema, which: usize, taste: &mut dyn Taste) -> Content {
    let record = match schema {
        Schema::Enum(variants) => &variants[which],
        Schema::Struct(record) => record,
        other => panic!("{other:?} has no fields"),
    };
    let fields = record.fields.iter().map(|(_, s, _)| content(s, taste));
    Content::Record(which, fields.collect())
}

/// Contents that differ from the given ones in one place, several for each place.
pub fn mutations(schema: &Schema, given: &Content, taste: &mut dyn Taste) -> Vec<Content> {
    match (schema, given) {
        (Schema::Bool, Content::Bool(value)) => vec![Content::Bool(!value)],
        (Schema::Int { min, max }, Content::Int(value)) => {
            let near = [value - 1, value + 1, value * 2, *min, *max];
            let other = near
                .into_iter()
                .filter(|n| n != value && (min..=max).contains(&n));
            other.map(Content::Int).collect()
        }
        (Schema::Float32, Content::Float32(value)) => {
            let bits = [0, 22, 31].map(|bit| f32::from_bits(value.to_bits() ^ (1 << bit)));
            bits.into_iter().map(Content::Float32).collect()
        }
        (Schema::Float64, Content::Float64(value)) => {
            let bits = [0, 51, 63].map(|bit| f64::from_bits(value.to_bits() ^ (1 << bit)));
            bits.into_iter().map(Content::Float64).collect()
        }
        (Schema::Text, Content::Text(text)) => {
            let shorter: String = text.chars().skip(1).collect();
            let others = [format!("{text} "), format!("\"{text}"), shorter];
            let others = others.into_iter().filter(|t| t != text);
            others.map(Content::Text).collect()
        }
        (Schema::Tensor, Content::Tensor(tensor)) => tensors(tensor),
        (Schema::Opaque, Content::Opaque(which)) => vec![Content::Opaque((which + 1) % OPAQUE)],
        (Schema::Optional(value), Content::Absent) => {
            vec![Content::Present(Box::new(content(value, taste)))]
        }
        (Schema::Optional(schema), Content::Present(value)) => {
            let inside = mutations(schema, value, taste).into_iter();
            let inside = inside.map(|c| Content::Present(Box::new(c)));
            inside.chain([Content::Absent]).collect()
        }
        (Schema::List { item, length }, Content::List(items)) => {
            let mut found = each(items, |_| &**item, taste);
            if length.is_none() {
                let longer = items.iter().cloned().chain([content(item, taste)]);
                found.push(longer.collect());
                found.extend(items.split_last().map(|(_, shorter)| shorter.to_vec()));
            }
            found.into_iter().map(Content::List).collect()
        }
        (Schema::Pair(schemas), Content::List(items)) => {
            let found = each(items, |i| &schemas[i], taste).into_iter();
            found.map(Content::List).collect()
        }
        (Schema::Struct(record), Content::Record(_, fields)) => {
            let found = each(fields, |i| &record.fields[i].1, taste).into_iter();
            found.map(|f| Content::Record(0, f)).collect()
        }
        (Schema::Enum(variants), Content::Record(which, fields)) => {
            let record = &variants[*which];
            let found = each(fields, |i| &record.fields[i].1, taste).into_iter();
            let mut found: Vec<_> = found.map(|f| Content::Record(*which, f)).collect();
            let others = (0..variants.len()).filter(|i| i != which);
            found.extend(others.map(|i| variant(schema, i, taste)));
            found
        }
        (schema, given) => panic!("{given:?} is not of the type {schema:?}"),
    }
}

/// Lists in which one item is another.
fn each<'a>(
    items: &[Content],
    schema: impl Fn(usize) -> &'a Schema,
    taste: &mut dyn Taste,
) -> Vec<Vec<Content>> {
    let mut found = Vec::new();
    for (i, item) in items.iter().enumerate() {
        for other in mutations(schema(i), item, taste) {
            let mut items = items.to_vec();
            items[i] = other;
            found.push(items);
        }
    }
    found
}

/// Tensors with another element, element type or shape.
fn tensors(tensor: &Tensor) -> Vec<Content> {
    use crate::dtype::DType;
    let mut shape = tensor.shape().to_vec();
    shape.push(1);
    let mut found = vec![tensor.reshaped(&shape).unwrap()];
    if let Ok(texts) = tensor.texts() {
        for i in 0..texts.len() {
            let mut texts = texts.to_vec();
            texts[i] = format!("{} ", texts[i]).into();
            found.push(Tensor::from_texts(tensor.shape(), texts).unwrap());
        }
    } else {
        // Any byte will do as an element of a type of less than 8 bits: it is not read as a number.
        for i in 0..tensor.byte_len() {
            let mut bytes = tensor.read().unwrap().to_vec();
            bytes[i] ^= 1;
            found.push(Tensor::from_raw(tensor.dtype(), tensor.shape(), &bytes).unwrap());
        }
        let same_size = DType::ALL.into_iter().filter(|&d| {
            d != tensor.dtype() && d.size() == tensor.dtype().size() && d != DType::String
        });
        let (shape, bytes) = (tensor.shape(), tensor.read().unwrap());
        found.extend(same_size.map(|d| Tensor::from_raw(d, shape, bytes).unwrap()));
    }
    found.into_iter().map(Content::Tensor).collect()
}
