//! Operators on strings.

use std::sync::Arc;

use super::case::case_mapping;
use super::*;

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

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &STRINGS)?;
        Ok(vec![fact(Some(DType::Bool), ctx.shape(0)?.cloned())])
    }
}

impl StringSplit {
    /// The parts of one text.
    pub fn parts<'t>(&self, text: &'t str) -> Vec<&'t str> {
        if !self.delimiter.is_empty() {
            return match self.most {
                Some(most) => text
                    .splitn(most.saturating_add(1), &self.delimiter)
                    .collect(),
                None => text.split(&self.delimiter).collect(),
            };
        }
        let mut parts = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let more = self.most.is_none_or(|most| parts.len() < most);
            match rest.find(char::is_whitespace).filter(|_| more) {
                Some(end) => {
                    parts.push(&rest[..end]);
                    rest = rest[end..].trim_start();
                }
                None => {
                    // With splits left there is no white space in what is left.
                    parts.push(rest);
                    break;
                }
            }
        }
        parts
    }
}

impl Operator for StringSplit {
    fn name(&self) -> &'static str {
        "StringSplit"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &STRINGS)?;
        let longest = match ctx.value(0) {
            Some(t) => {
                let counts = t.texts()?.iter().map(|text| self.parts(text).len());
                Dim::Known(counts.max().unwrap_or(0))
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
    /// `DType` where the data is no string tensor, `State` where there is no [`CaseMapping`].
    pub fn normalized(&self, data: &Tensor) -> Result<Vec<Arc<str>>> {
        let mapping = case_mapping()?;
        let folded = |text: &str| match self.case_sensitive {
            true => text.to_string(),
            false => (mapping.lower)(text),
        };
        let stopwords: Vec<String> = self.stopwords.iter().map(|w| folded(w)).collect();
        let kept = data
            .texts()?
            .iter()
            .filter(|t| !stopwords.contains(&folded(t)));
        let mut texts: Vec<Arc<str>> = kept
            .map(|text| match self.case {
                CaseChange::None => text.clone(),
                CaseChange::Lower => (mapping.lower)(text).into(),
                CaseChange::Upper => (mapping.upper)(text).into(),
            })
            .collect();
        if texts.is_empty() {
            texts.push("".into());
        }
        Ok(texts)
    }
}

impl Operator for StringNormalizer {
    fn name(&self) -> &'static str {
        "StringNormalizer"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &STRINGS)?;
        let count = match ctx.value(0) {
            Some(data) => Dim::Known(self.normalized(data)?.len()),
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
