//! The one error type. Every failure that bad input can cause carries a code and, where they are
//! known, the node, its operator, the input, what was expected, what came and what to do about it.

use std::fmt;

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
}

/// `Result` with Kilim's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

macro_rules! field {
    ($with:ident, $name:ident, $doc:literal) => {
        #[doc = $doc]
        pub fn $with(mut self, $name: impl fmt::Display) -> Self {
            self.0.$name = Some($name.to_string());
            self
        }
        #[doc = $doc]
        pub fn $name(&self) -> Option<&str> {
            self.0.$name.as_deref()
        }
    };
}

impl Error {
    /// With no more than a code and a message; what else is known is added by `with_…` and [`Error::at`].
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

    /// Adds node and operator where they are not yet known.
    pub fn at(mut self, node: &str, op: &str) -> Self {
        self.0.node.get_or_insert_with(|| node.to_string());
        self.0.op.get_or_insert_with(|| op.to_string());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let d = &self.0;
        write!(f, "{}: {}", d.code.as_str(), d.message)?;
        let fields = [
            ("node", &d.node),
            ("operator", &d.op),
            ("input", &d.input),
            ("expected", &d.expected),
            ("got", &d.got),
            ("hint", &d.hint),
        ];
        let mut open = false;
        for (name, value) in fields {
            if let Some(value) = value {
                f.write_str(if open { "; " } else { " (" })?;
                write!(f, "{name}: {value}")?;
                open = true;
            }
        }
        if open {
            f.write_str(")")?;
        }
        Ok(())
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
