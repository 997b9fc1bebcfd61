//! RegexFullMatch. The patterns are those of RE2 that `regex-lite` knows: all but classes of Unicode,
//! and letters beyond ASCII where case is ignored.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::RegexFullMatch;
use kilim_core::{Error, ErrorCode, Result};
use kilim_host::{Build, Io, Kernel};
use regex_lite::{Regex, RegexBuilder};

/// The pattern between the ends of a text; or why it is none.
fn anchored(pattern: &str) -> std::result::Result<Regex, String> {
    let pattern = with_spaces(pattern)?;
    let regex = |pattern: &str| Regex::new(pattern).map_err(|e| e.to_string());
    // By itself it has to be a pattern, too: `a)(b` is none.
    regex(&pattern)?;
    regex(&format!(r"\A(?:{pattern})\z"))
}

/// The pattern with `\s` and `\S` written out: the white space of RE2 is without the vertical tab,
/// which is in that of `regex-lite`.
fn with_spaces(pattern: &str) -> std::result::Result<String, String> {
    const SPACES: &str = r"\t\n\f\r\x20";
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('s') if in_class => out.push_str(SPACES),
                Some('S') if in_class => return Err(r"`\S` in a class".to_string()),
                Some('s') => out.push_str(&format!("[{SPACES}]")),
                Some('S') => out.push_str(&format!("[^{SPACES}]")),
                escaped => {
                    out.push(c);
                    out.extend(escaped);
                }
            },
            '[' if in_class => {
                out.push(c);
                // The name of a class, as in `[[:alpha:]]`.
                if chars.peek() == Some(&':') {
                    for inner in chars.by_ref() {
                        out.push(inner);
                        if inner == ']' {
                            break;
                        }
                    }
                }
            }
            '[' => {
                in_class = true;
                out.push(c);
                out.extend(chars.next_if_eq(&'^'));
                // A bracket that stands first is no end.
                out.extend(chars.next_if_eq(&']'));
            }
            ']' => {
                in_class = false;
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// Whether some of the pattern ignores case, as `(?i)` has it.
fn ignores_case(pattern: &str) -> bool {
    pattern.split("(?").skip(1).any(|rest| {
        let flags = rest.split(|c: char| !c.is_ascii_alphabetic()).next();
        flags.is_some_and(|f| f.contains('i'))
    })
}

pub fn accepts(op: &RegexFullMatch, _: &NodeSpec) -> Result<(), Refusal> {
    if ignores_case(&op.pattern) && !op.pattern.is_ascii() {
        let why = format!(
            "case of letters beyond ASCII is ignored in `{}`",
            op.pattern
        );
        return Err(Refusal::new(why));
    }
    let refused = |e| Refusal::new(format!("the pattern `{}`: {e}", op.pattern));
    anchored(&op.pattern).map(|_| ()).map_err(refused)
}

pub fn build(op: &RegexFullMatch, _: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let refused = |e| unsupported(format!("the pattern `{}`: {e}", op.pattern));
    Ok(Box::new(Matches {
        regex: anchored(&op.pattern).map_err(refused)?,
        ignores_case: ignores_case(&op.pattern),
        states: states(&op.pattern),
    }))
}

struct Matches {
    regex: Regex,
    ignores_case: bool,
    /// The most states that the automaton has: each may be looked at for each byte of a text.
    states: usize,
}

/// Steps of the automaton for a text at most, which take some tenths of a second at worst.
const MOST_STEPS: usize = 1 << 26;

/// States of the automaton of a pattern, rounded up to a power of 4. The library tells only whether it is larger than
/// some bytes; a state takes 32 or more.
fn states(pattern: &str) -> usize {
    let fits = |states: &usize| {
        let mut builder = RegexBuilder::new(pattern);
        builder.size_limit(32 * states).build().is_ok()
    };
    let mut sizes = (2..10).map(|power| 1usize << (2 * power));
    sizes.find(fits).unwrap_or(1 << 20)
}

/// The letters beyond ASCII that in another case are in it: long s and the sign of Kelvin.
const FOLDED: [char; 2] = ['\u{17f}', '\u{212a}'];

impl Kernel for Matches {
    fn run(&self, io: &mut Io) -> Result<()> {
        let x = io.input::<u32>(0);
        let (cpu, y) = (io.cpu(), io.output::<u8>(0));
        let texts = io.texts();
        for (y, &x) in y.iter_mut().zip(x) {
            let text = texts.text(x);
            // No look at what may stop the run is taken within a text.
            let steps = (text.len() + 1).saturating_mul(self.states);
            if steps > MOST_STEPS {
                return Err(
                    Error::new(ErrorCode::Limit, "a text is too long for its pattern")
                        .with_expected(format!("at most {} bytes", MOST_STEPS / self.states))
                        .with_got(format!("{} bytes", text.len())),
                );
            }
            cpu.spend(steps)?;
            if self.ignores_case && text.contains(FOLDED) {
                return Err(unsupported("a pattern that ignores case, on this text").with_got(text));
            }
            *y = u8::from(self.regex.is_match(text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::{DType, Tensor};

    use super::*;
    use crate::testing::run;

    fn matches(pattern: &str, text: &str) -> Option<bool> {
        let op = RegexFullMatch {
            pattern: pattern.to_string(),
        };
        let text = Tensor::from_texts(&[1], vec![text.into()]).unwrap();
        let out = run(&op, &[Some(&text)], &[(DType::Bool, &[1])]).ok()?;
        Some(out[0].read().unwrap() == [1])
    }

    #[test]
    fn the_whole_text_has_to_match() {
        for (pattern, text, want) in [
            ("a|ab", "ab", true),
            ("a", "ab", false),
            ("^a$", "a", true),
            ("a", "a\n", false),
            ("", "", true),
            (r"\w+@\w+\.com", "x@y.com", true),
            ("(?i)ab?", "AB", true),
            ("a(?i)b", "Ab", false),
            ("ü.", "üß", true),
            (r"\s+\S", " \t\n\u{c}\ra", true),
            (r"\s", "\u{b}", false),
            (r"\S", "\u{b}", true),
            (r"[\s,]+", " ,\t", true),
            (r"[^\s]", "\u{b}", true),
            (r"[]\s]+", "] ", true),
            (r"[[:alpha:]\s]+x\s", "a b x ", true),
            (r"\\s", "\\s", true),
        ] {
            assert_eq!(
                matches(pattern, text),
                Some(want),
                "`{pattern}` of {text:?}"
            );
        }
        for pattern in ["a)(b", "[", r"\p{Greek}", "(?i)ä", r"[\S]"] {
            assert_eq!(matches(pattern, "a"), None, "`{pattern}`");
        }
        assert_eq!(matches("(?i)s", "\u{17f}"), None);
    }
}
