//! Operators on strings.

use super::rules::{InputValues, STRINGS, broadcast, fact, some_of};
use std::sync::Arc;

use super::case::case_mapping;
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::fallible::{push, shared_text, try_collect};
use crate::graph::{Flow, InferContext, Operator};
use crate::interrupt::Meter;
use crate::tensor::Tensor;

/// Joins two texts, broadcast.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct StringConcat;

/// Whether a whole text matches a pattern (RE2 syntax); `bool`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct RegexFullMatch {
    pub pattern: String,
}

/// Splits texts. Outputs: the parts along a new last dimension, filled up with empty texts, and how
/// many there are of each, `int64`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct StringSplit {
    /// Empty: runs of white space, and none at the ends.
    pub delimiter: String,
    /// Splits of one text at most.
    pub most: Option<usize>,
}

/// What [`StringNormalizer`] does to the letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Reflect)]
pub enum CaseChange {
    #[attribute(absent)]
    None,
    Lower,
    Upper,
}

/// Drops stop words from `[n]` or `[1, n]`, and changes the case of the rest. Where nothing is left
/// there is one empty text.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct StringNormalizer {
    pub case: CaseChange,
    /// Whether stop words are told apart by case.
    pub case_sensitive: bool,
    pub stopwords: Vec<String>,
}

impl Operator for StringConcat {
    fn name(&self) -> &'static str {
        "StringConcat"
    }

    signature! { (a, b) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &STRINGS)?;
        ctx.typed(1, &STRINGS)?;
        let shape = match (ctx.shape(0)?, ctx.shape(1)?) {
            (Some(a), Some(b)) => Some(broadcast(a, b)?),
            _ => None,
        };
        Ok(vec![fact(Some(DType::String), shape)])
    }
}

impl Operator for RegexFullMatch {
    fn name(&self) -> &'static str {
        "RegexFullMatch"
    }

    signature! { (texts) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &STRINGS)?;
        Ok(vec![fact(Some(DType::Bool), ctx.shape(0)?.cloned())])
    }
}

impl StringSplit {
    /// Shows `each` part of one text, in order.
    ///
    /// # Errors
    /// Those of `each`, and `Aborted` where the work is to stop.
    pub fn parts<'t>(
        &self,
        meter: &Meter,
        text: &'t str,
        each: &mut dyn FnMut(&'t str) -> Result<()>,
    ) -> Result<()> {
        let blank = self.delimiter.is_empty();
        let mut rest = if blank { trimmed(meter, text)? } else { text };
        let mut splits = self.most.unwrap_or(usize::MAX);
        loop {
            if blank && rest.is_empty() {
                return Ok(());
            }
            let end = match (splits, blank) {
                (0, _) => None,
                (_, true) => find(meter, rest, 0, &|s| s.find(char::is_whitespace))?,
                (_, false) => {
                    let delimiter = self.delimiter.as_str();
                    find(meter, rest, delimiter.len(), &|s| s.find(delimiter))?
                }
            };
            let Some(end) = end else {
                return each(rest);
            };
            each(&rest[..end])?;
            meter.spend(16)?;
            splits -= 1;
            rest = match blank {
                true => trimmed(meter, &rest[end..])?,
                false => &rest[end + self.delimiter.len()..],
            };
        }
    }
}

/// A text without the white space that it begins with.
fn trimmed<'t>(meter: &Meter, mut text: &'t str) -> Result<&'t str> {
    loop {
        let end = text.ceil_char_boundary(STRETCH);
        let left = text[..end].trim_start().len();
        if left > 0 || end == text.len() {
            return Ok(&text[end - left..]);
        }
        meter.spend(end)?;
        text = &text[end..];
    }
}

/// Where in a text something of at most `len` bytes stands first; `of` finds it in a part of the text.
fn find(
    meter: &Meter,
    text: &str,
    len: usize,
    of: &dyn Fn(&str) -> Option<usize>,
) -> Result<Option<usize>> {
    let mut start = 0;
    while start < text.len() {
        let end = text.ceil_char_boundary(start.saturating_add(STRETCH).saturating_add(len));
        meter.spend(end - start)?;
        if let Some(at) = of(&text[start..end]) {
            return Ok(Some(start + at));
        }
        start = text.ceil_char_boundary(start + STRETCH);
    }
    Ok(None)
}

/// Bytes of a text that are searched without a look at what may stop the work.
const STRETCH: usize = 64 * 1024;

impl Operator for StringSplit {
    fn name(&self) -> &'static str {
        "StringSplit"
    }

    signature! { (texts) -> (parts, optional counts) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &STRINGS)?;
        let longest = match ctx.value(0) {
            Some(t) => {
                let (meter, mut longest) = (ctx.meter(), 0usize);
                for text in t.texts()? {
                    let mut count = 0;
                    self.parts(&meter, text, &mut |_| {
                        count += 1;
                        Ok(())
                    })?;
                    longest = longest.max(count);
                }
                Dim::Known(longest)
            }
            None => Dim::Unknown,
        };
        let counts = ctx.shape(0)?.cloned();
        let parts = counts.clone().map(|mut shape| {
            shape.0.push(longest);
            shape
        });
        let parts = fact(Some(DType::String), parts);
        Ok(some_of(ctx, [parts, fact(Some(DType::I64), counts)]))
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }
}

impl StringNormalizer {
    /// The texts that are left, with their case changed; at least one.
    ///
    /// # Errors
    /// `DType` where the data is no string tensor, `State` where there is no [`CaseMapping`], `Limit` where memory is
    /// short, `Aborted` where the work is to stop.
    pub fn normalized(&self, meter: &Meter, data: &Tensor) -> Result<Vec<Arc<str>>> {
        let mapping = case_mapping()?;
        let folded = |text: &str| -> Result<String> {
            meter.spend(COST.saturating_add(text.len()).saturating_mul(COST))?;
            Ok(match self.case_sensitive {
                true => text.to_string(),
                false => (mapping.lower)(text),
            })
        };
        let stopwords = try_collect(self.stopwords.iter().map(|w| folded(w)))?;
        let mut texts: Vec<Arc<str>> = Vec::new();
        for text in data.texts()? {
            meter.spend(stopwords.len().saturating_mul(COST))?;
            if stopwords.contains(&folded(text)?) {
                continue;
            }
            let changed = match self.case {
                CaseChange::None => text.clone(),
                CaseChange::Lower => shared_text(&(mapping.lower)(text))?,
                CaseChange::Upper => shared_text(&(mapping.upper)(text))?,
            };
            push(&mut texts, changed)?;
        }
        if texts.is_empty() {
            texts.push("".into());
        }
        Ok(texts)
    }
}

/// Operations of a letter whose case is changed, and of a comparison with a word.
const COST: usize = 8;

impl Operator for StringNormalizer {
    fn name(&self) -> &'static str {
        "StringNormalizer"
    }

    signature! { (texts) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &STRINGS)?;
        let count = match ctx.value(0) {
            Some(data) => Dim::Known(self.normalized(&ctx.meter(), data)?.len()),
            None => Dim::Unknown,
        };
        let shape = match ctx.shape(0)? {
            None => None,
            Some(x) => match &x.0[..] {
                [_] => Some(Shape(vec![count])),
                [one, _] if one.known().is_none_or(|n| n == 1) => {
                    Some(Shape(vec![Dim::Known(1), count]))
                }
                _ => {
                    return Err(shape_error("StringNormalizer takes one row of texts")
                        .with_expected("[n] or [1, n]")
                        .with_got(x));
                }
            },
        };
        Ok(vec![fact(Some(DType::String), shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }
}
