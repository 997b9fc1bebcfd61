//! Sequences, optional values, texts, pictures and random numbers.

use kilim_core::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{
    Attribute, CaseChange, CountNgrams, ImageDecoder, PixelFormat, Random, StringNormalizer,
};

use super::Family;
use crate::onnx::form::{Form, ML, Rule};
use crate::onnx::node::NodeForm;
use crate::onnx::tensor;
use Rule::{As, Told, Type};
use kilim_formats::build::OpTable;

const NONE: Form = Form::of(&[]);
const RANDOM: Form = Form::of(&[
    ("deviation", As("scale")),
    ("distribution", Told),
    ("dtype", Type("dtype")),
    ("high", As("high")),
    ("low", As("low")),
    ("mean", As("mean")),
    ("seed", Told),
    ("shape", As("shape")),
])
.also(random);

pub static OPERATORS: Family = OpTable(&[
    (
        "ConcatFromSequence",
        Form::of(&[("axis", As("axis")), ("new_axis", As("new_axis"))]),
    ),
    (
        "DictVectorizer",
        Form::of(&[("keys", Told)]).in_domain(ML).also(keys),
    ),
    ("ImageDecoder", Form::by_hand(decoder).since(20)),
    ("LabelEncoder", NONE.in_domain(ML).also(table)),
    ("OptionalGetElement", NONE.since(18)),
    ("OptionalHasElement", NONE.since(18)),
    ("RandomNormal", RANDOM),
    ("RandomNormalLike", RANDOM),
    ("RandomUniform", RANDOM),
    ("RandomUniformLike", RANDOM),
    (
        "RegexFullMatch",
        Form::of(&[("pattern", As("pattern"))]).since(20),
    ),
    ("SequenceAt", NONE),
    ("SequenceConstruct", NONE.also(sequence)),
    ("SequenceErase", NONE),
    ("SequenceInsert", NONE),
    ("SequenceLength", NONE),
    (
        "SplitToSequence",
        Form::of(&[("axis", As("axis")), ("keep_dims", As("keepdims"))]),
    ),
    ("StringConcat", NONE.since(20)),
    (
        "StringNormalizer",
        Form::of(&[
            ("case", Told),
            ("case_sensitive", As("is_case_sensitive")),
            ("stopwords", As("stopwords")),
        ])
        .also(normalizer),
    ),
    (
        "StringSplit",
        Form::of(&[("delimiter", As("delimiter")), ("most", As("maxsplit"))]).since(20),
    ),
    (
        "TfIdfVectorizer",
        Form::of(&[
            ("columns", As("ngram_indexes")),
            ("lengths", Told),
            ("skips", As("max_skip_count")),
            ("starts", As("ngram_counts")),
        ])
        .also(ngrams),
    ),
]);

/// ONNX has another operator for a sequence of nothing, which says of what type the tensors would be.
fn sequence(n: &mut NodeForm) -> Result<()> {
    if !n.inputs.is_empty() {
        return Ok(());
    }
    let output = n.node.outputs.first().map(|&v| n.graph.value(v));
    let dtype = output.and_then(|value| value.fact.dtype);
    n.operator = "SequenceEmpty".to_string();
    let number = tensor::number(dtype.unwrap_or(DType::F32))?;
    n.set_int("dtype", number);
    Ok(())
}

fn normalizer(n: &mut NodeForm) -> Result<()> {
    let action = match n.op::<StringNormalizer>()?.case {
        CaseChange::None => "NONE",
        CaseChange::Lower => "LOWER",
        CaseChange::Upper => "UPPER",
    };
    n.set_text("case_change_action", action);
    Ok(())
}

/// A seed of ONNX is a number of single precision, whose bits as `float64` the graph has.
fn random(n: &mut NodeForm) -> Result<()> {
    let Some(seed) = n.op::<Random>()?.seed else {
        return Ok(());
    };
    let number = f64::from_bits(seed);
    if f64::from(number as f32).to_bits() != seed {
        return Err(unsupported("a seed that is no number of single precision"));
    }
    n.set("seed", Attribute::Float(number));
    Ok(())
}

/// Keys, values and the default, inputs here, are attributes.
fn table(n: &mut NodeForm) -> Result<()> {
    let open = || unsupported("a table that is known only at run time");
    for (i, name) in [(1, "keys_tensor"), (2, "values_tensor")] {
        n.set(
            name,
            Attribute::Tensor(n.constant(i).ok_or_else(open)?.clone()),
        );
    }
    if n.has(3) {
        let default = n.constant(3).ok_or_else(open)?.reshaped(&[1])?;
        n.set("default_tensor", Attribute::Tensor(default));
    }
    n.without_inputs(1);
    Ok(())
}

/// The pool of n-grams, an input here, is an attribute.
fn ngrams(n: &mut NodeForm) -> Result<()> {
    let (shortest, longest) = n.op::<CountNgrams>()?.lengths;
    n.set_int("min_gram_length", shortest as i64);
    n.set_int("max_gram_length", longest as i64);
    n.set_text("mode", "TF");
    let open = || unsupported("n-grams that are known only at run time");
    let pool = n.constant(1).ok_or_else(open)?;
    match pool.texts() {
        Ok(texts) => {
            let texts = texts.iter().map(ToString::to_string).collect();
            n.set("pool_strings", Attribute::Texts(texts));
        }
        Err(_) => n.set("pool_int64s", Attribute::Ints(pool.to_i64s()?)),
    }
    n.without_inputs(1);
    Ok(())
}

fn decoder(n: &mut NodeForm) -> Result<()> {
    let format = match n.op::<ImageDecoder>()?.pixels {
        PixelFormat::Rgb => "RGB",
        PixelFormat::Bgr => "BGR",
        PixelFormat::Grayscale => "Grayscale",
    };
    n.set_text("pixel_format", format);
    Ok(())
}

fn keys(n: &mut NodeForm) -> Result<()> {
    let keys = &n.op::<kilim_core::ops::DictVectorizer>()?.keys;
    match keys.dtype() {
        DType::String => {
            let texts = keys.texts()?.iter().map(ToString::to_string).collect();
            n.set("string_vocabulary", Attribute::Texts(texts));
        }
        _ => n.set("int64_vocabulary", Attribute::Ints(keys.to_i64s()?)),
    }
    Ok(())
}
