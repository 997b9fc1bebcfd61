//! RegexFullMatch. The patterns are those of RE2 that `regex-lite` knows: all but classes of Unicode.

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::RegexFullMatch;
use regex_lite::Regex;

use crate::frame::{Build, Io, Kernel};

/// The pattern between the ends of a text.
fn anchored(pattern: &str) -> std::result::Result<Regex, regex_lite::Error> {
    // By itself it has to be a pattern, too: `a)(b` is none.
    Regex::new(pattern)?;
    Regex::new(&format!(r"\A(?:{pattern})\z"))
}

pub fn accepts(op: &RegexFullMatch, _: &NodeSpec) -> Result<(), Refusal> {
    let refused = |e| Refusal::new(format!("the pattern `{}`: {e}", op.pattern));
    anchored(&op.pattern).map(|_| ()).map_err(refused)
}

pub fn build(op: &RegexFullMatch, _: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let refused = |e| kilim_core::error::unsupported(format!("the pattern `{}`: {e}", op.pattern));
    Ok(Box::new(Matches(anchored(&op.pattern).map_err(refused)?)))
}

struct Matches(Regex);

impl Kernel for Matches {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<u32>(0);
        let y = io.output::<u8>(0);
        let texts = io.texts();
        for (y, &x) in y.iter_mut().zip(x) {
            *y = u8::from(self.0.is_match(texts.text(x)));
        }
        Ok(())
    }
}
