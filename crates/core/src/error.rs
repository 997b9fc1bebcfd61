//! The one error type. Every failure that bad input can cause carries a code and, where they are
//! known, the node, its operator, the input, what was expected, what came and what to do about it.

use std::fmt;

use crate::nearest::nearest;

/// What went wrong, stable across releases; the JavaScript API exposes the same strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The bytes are not a model of any known format.
    UnknownFormat,
    /// The file is of a known format but truncated, garbled or inconsistent.
    InvalidModel,
    /// The graph has a cycle or a value that nothing produces.
    InvalidGraph,
    /// Operators, attributes or types that Kilim does not implement; the message lists them all.
    Unsupported,
    /// No backend of the session takes a node.
    NoBackend,
    /// Shapes do not fit an operator.
    Shape,
    /// An element type does not fit.
    DType,
    /// An input of the model was not given, or is not one of its inputs.
    Input,
    /// An attribute or a value given at run time is out of range.
    InvalidValue,
    /// A limit was passed: bytes, nodes, iterations, time, or what a device can hold.
    Limit,
    /// The device was lost or an operation on it failed.
    Device,
    /// The run was aborted or timed out.
    Aborted,
    /// A file or stream could not be read.
    Io,
    /// The session is closed or busy.
    State,
}

impl ErrorCode {
    /// The code as a string, `INVALID_MODEL` for instance.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorCode::UnknownFormat => "UNKNOWN_FORMAT",
            ErrorCode::InvalidModel => "INVALID_MODEL",
            ErrorCode::InvalidGraph => "INVALID_GRAPH",
            ErrorCode::Unsupported => "UNSUPPORTED",
            ErrorCode::NoBackend => "NO_BACKEND",
            ErrorCode::Shape => "SHAPE",
            ErrorCode::DType => "DTYPE",
            ErrorCode::Input => "INPUT",
            ErrorCode::InvalidValue => "INVALID_VALUE",
            ErrorCode::Limit => "LIMIT",
            ErrorCode::Device => "DEVICE",
            ErrorCode::Aborted => "ABORTED",
            ErrorCode::Io => "IO",
            ErrorCode::State => "STATE",
        }
    }
}

/// An error with its context. Build it with [`Error::new`] and the `with_*` methods.
#[derive(Clone, Debug)]
pub struct Error(Box<Detail>);

#[derive(Clone, Debug)]
struct Detail {
    code: ErrorCode,
    message: String,
    node: Option<String>,
    op: Option<String>,
    input: Option<String>,
    expected: Option<String>,
    got: Option<String>,
    hint: Option<String>,
    limit: Option<&'static str>,
}

/// `Result` with Kilim's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! field {
    ($with:ident, $name:ident, $doc:literal) => {
        #[doc = $doc]
        ///
        /// An empty text says nothing and is left out.
        pub fn $with(mut self, $name: impl fmt::Display) -> Self {
            self.0.$name = Some($name.to_string()).filter(|text| !text.is_empty());
            self
        }
        #[doc = $doc]
        pub fn $name(&self) -> Option<&str> {
            self.0.$name.as_deref()
        }
    };
}

impl Error {
    /// An error with a code and a message; `with_…` and [`Error::at`] add what else is known.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error(Box::new(Detail {
            code,
            message: message.into(),
            node: None,
            op: None,
            input: None,
            expected: None,
            got: None,
            hint: None,
            limit: None,
        }))
    }

    /// What kind of error it is.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The sentence, without the context.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    field!(with_node, node, "The node's name in the model.");
    field!(with_op, op, "The operator's name.");
    field!(with_input, input, "The input or value concerned.");
    field!(with_expected, expected, "What was expected.");
    field!(with_got, got, "What came.");
    field!(with_hint, hint, "What to do about it.");

    /// The field of [`crate::Limits`] that was passed, where it is one of these and not what a device can hold.
    pub fn limit(&self) -> Option<&'static str> {
        self.0.limit
    }

    /// Says which field of [`crate::Limits`] was passed.
    #[must_use]
    pub fn with_limit(mut self, name: &'static str) -> Self {
        self.0.limit = Some(name);
        self
    }

    /// The message with all that is known, without the code: what a person reads.
    pub fn sentence(&self) -> String {
        let d = &self.0;
        let mut text = d.message.clone();
        let names = [("node", &d.node), ("operator", &d.op), ("input", &d.input)];
        let names = names.into_iter().filter_map(|(what, name)| {
            let name = format!("`{}`", name.as_ref()?);
            (!d.message.contains(&name)).then(|| format!("{what} {name}"))
        });
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            text += &format!(" ({})", names.join(", "));
        }
        let rest = [
            ("expected ", &d.expected),
            ("got ", &d.got),
            ("hint: ", &d.hint),
        ];
        let mut separator = if d.expected.is_some() || d.got.is_some() {
            ": "
        } else {
            "; "
        };
        for (what, value) in rest {
            if let Some(value) = value {
                text.extend([separator, what, value]);
                separator = "; ";
            }
        }
        text
    }

    /// Says what could be meant where `name` is none of the `known` names: the first of these as what was
    /// expected, and the closest as the hint.
    pub fn with_known(self, name: &str, known: &[&str]) -> Self {
        /// A list of more is no help to anybody.
        const LISTED: usize = 24;
        let mut listed = known[..known.len().min(LISTED)].join(", ");
        if known.len() > LISTED {
            listed += &format!(" and {} more", known.len() - LISTED);
        }
        let error = self.with_expected(listed);
        match nearest(name, known) {
            Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
            None => error,
        }
    }

    /// Puts `whose` in front of the message: who has made what is wrong.
    #[must_use]
    pub fn of(mut self, whose: &str) -> Self {
        self.0.message = format!("{whose}: {}", self.0.message);
        self
    }

    /// Adds node and operator where they are not yet known.
    pub fn at(mut self, node: &str, op: &str) -> Self {
        for (field, name) in [(&mut self.0.node, node), (&mut self.0.op, op)] {
            if field.is_none() && !name.is_empty() {
                *field = Some(name.to_string());
            }
        }
        self
    }
}

impl fmt::Display for Error {
    /// ``CODE: message (node `n`, operator `Conv`, input `x`): expected A; got B; hint: what to do``. What is
    /// not known is left out, and a name that the message says already.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code().as_str(), self.sentence())
    }
}

impl std::error::Error for Error {}

/// Shorthands for the codes that shape inference and kernels use most.
pub fn shape_error(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Shape, message)
}

/// See [`ErrorCode::DType`].
pub fn dtype_error(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::DType, message)
}

/// See [`ErrorCode::InvalidValue`].
pub fn value_error(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidValue, message)
}

/// See [`ErrorCode::Unsupported`].
pub fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_known_is_said_once() {
        let error = shape_error("the shapes do not fit");
        assert_eq!(error.to_string(), "SHAPE: the shapes do not fit");
        let whole = error.at("c1", "Conv").with_input("w");
        let whole = whole
            .with_expected("[8, 3]")
            .with_got("[8]")
            .with_hint("reshape it");
        assert_eq!(
            whole.to_string(),
            "SHAPE: the shapes do not fit (node `c1`, operator `Conv`, input `w`): expected [8, 3]; \
             got [8]; hint: reshape it"
        );
        let named = value_error("the input `x` is not there").with_input("x");
        assert_eq!(
            named.to_string(),
            "INVALID_VALUE: the input `x` is not there"
        );
        let hint = value_error("no").with_hint("ask").at("n", "");
        assert_eq!(hint.sentence(), "no (node `n`); hint: ask");
    }

    #[test]
    fn an_empty_part_is_left_out() {
        let error = value_error("no").with_expected("").with_got(String::new());
        assert_eq!(error.expected(), None);
        assert_eq!(error.to_string(), "INVALID_VALUE: no");
    }
}
