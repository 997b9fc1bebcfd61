//! What one model may use.

use std::fmt;

use crate::error::{Error, ErrorCode, Result, value_error};

/// Declares [`Limits`] with its two sets of values and its names, each limit once.
macro_rules! limits {
    ($($(#[doc = $doc:literal])* $name:ident: $kind:ty = $default:expr, $strict:expr;)*) => {
        /// What one model may use before it is refused, or stopped, with a typed error: `Aborted` by the
        /// limits in seconds, `Limit` by all others, with the name of the limit in the hint.
        ///
        /// [`Limits::default`] refuses nothing that a machine could run. [`Limits::strict`] is for models
        /// that somebody else chose.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Limits {
            $($(#[doc = $doc])* pub $name: $kind,)*
        }

        impl Default for Limits {
            fn default() -> Limits {
                Limits { $($name: $default,)* }
            }
        }

        impl Limits {
            /// The names of all limits, as [`Limits::set`] takes them.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The limits for models that are not trusted: what a large picture network or a small language
            /// model needs.
            pub fn strict() -> Limits {
                Limits { $($name: $strict,)* }
            }

            /// Sets the limit of this name to `value`: bytes, a count, or seconds.
            ///
            /// # Errors
            /// `InvalidValue` for an unknown name, and for a value that is negative or no number.
            pub fn set(&mut self, name: &str, value: f64) -> Result<()> {
                if value.is_nan() || value < 0.0 {
                    return Err(value_error(format!("the limit `{name}` is a number of at least 0"))
                        .with_got(value));
                }
                match name {
                    $(stringify!($name) => self.$name = value as $kind,)*
                    _ => return Err(value_error(format!("there is no limit `{name}`"))
                        .with_expected(Limits::NAMES.join(", "))),
                }
                Ok(())
            }
        }
    };
}

limits! {
    /// Bytes of the model file, and of each file that belongs to it.
    file_bytes: u64 = u64::MAX, 1 << 30;
    /// Nodes in all graphs together, with functions written out.
    nodes: usize = 1 << 20, 1 << 16;
    /// Graphs, functions and messages of the file in each other.
    depth: usize = 24, 16;
    /// Bytes of constants that are computed while the model is loaded. What goes beyond them is computed
    /// by each run.
    folded_bytes: usize = 1 << 30, 1 << 26;
    /// Bytes of one tensor.
    tensor_bytes: usize = usize::MAX / 4, 1 << 29;
    /// Bytes of weights in the form that a backend keeps, on each backend.
    weight_bytes: usize = usize::MAX, 1 << 31;
    /// Bytes of intermediates and scratch memory, on each backend.
    intermediate_bytes: usize = usize::MAX, 1 << 30;
    /// Bytes of outputs and of what else single stages keep, on each backend.
    output_bytes: usize = usize::MAX, 1 << 29;
    /// Iterations of one Loop.
    iterations: u64 = 1 << 32, 100_000;
    /// Operations of one run, estimated from shapes: a multiplication with an addition counts two.
    operations: f64 = f64::INFINITY, 1e13;
    /// Seconds that loading may take.
    load_seconds: f64 = f64::INFINITY, 20.0;
    /// Seconds that one run may take.
    run_seconds: f64 = f64::INFINITY, 20.0;
}

impl Limits {
    /// The error of something that is over the limit `name`.
    #[cold]
    pub fn exceeded(
        name: &'static str,
        what: impl Into<String>,
        most: impl fmt::Display,
        got: impl fmt::Display,
    ) -> Error {
        debug_assert!(Limits::NAMES.contains(&name));
        Error::new(ErrorCode::Limit, what)
            .with_expected(format!("at most {most}"))
            .with_got(got)
            .with_hint(format!("the limit `{name}` can be raised"))
            .with_limit(name)
    }

    /// Checks the size of a model file, or of a file that belongs to one.
    ///
    /// # Errors
    /// `Limit` where it is larger than [`Limits::file_bytes`].
    pub fn check_file(&self, bytes: u64) -> Result<()> {
        match bytes <= self.file_bytes {
            true => Ok(()),
            false => Err(Limits::exceeded(
                "file_bytes",
                "the model file is too large",
                format_args!("{} bytes", self.file_bytes),
                format_args!("{bytes} bytes"),
            )),
        }
    }

    /// Checks the number of nodes of all graphs of a model.
    ///
    /// # Errors
    /// `Limit` where there are more than [`Limits::nodes`].
    pub fn check_nodes(&self, nodes: usize) -> Result<()> {
        match nodes <= self.nodes {
            true => Ok(()),
            false => Err(Limits::exceeded(
                "nodes",
                "the model has too many nodes",
                self.nodes,
                nodes,
            )),
        }
    }
}

impl std::str::FromStr for Limits {
    type Err = Error;

    /// Reads `strict`, `default`, or one of the two with limits of its own:
    /// `strict,nodes=1000,load_seconds=5`.
    fn from_str(text: &str) -> Result<Limits> {
        let mut limits = Limits::default();
        for (i, word) in text.split(',').map(str::trim).enumerate() {
            match (word, word.split_once('=')) {
                ("strict", _) if i == 0 => limits = Limits::strict(),
                ("default", _) if i == 0 => {}
                (_, Some((name, value))) => {
                    let number = value.trim().parse();
                    let number = number.map_err(|_| {
                        value_error(format!("the limit `{name}` is a number")).with_got(value)
                    })?;
                    limits.set(name.trim(), number)?;
                }
                _ => {
                    return Err(value_error("limits are malformed")
                        .with_expected("`strict`, or NAME=NUMBER, separated by commas")
                        .with_got(word));
                }
            }
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_name_and_is_stricter_for_what_is_not_trusted() {
        for name in Limits::NAMES {
            let mut limits = Limits::strict();
            limits.set(name, 3.0).unwrap();
            assert_ne!(limits, Limits::strict(), "{name}");
            let text = format!("strict,{name}=3");
            assert_eq!(text.parse::<Limits>().unwrap(), limits, "{name}");
            assert!(limits.set(name, -1.0).is_err() && limits.set(name, f64::NAN).is_err());
        }
        let (strict, default) = (Limits::strict(), Limits::default());
        assert!(strict.nodes < default.nodes && strict.iterations < default.iterations);
        assert!(strict.run_seconds < default.run_seconds);
    }

    #[test]
    fn words_that_are_no_limits_are_refused() {
        for text in [
            "lenient",
            "strict,",
            "nodes",
            "nodes=many",
            "knots=1",
            "nodes=1,strict",
        ] {
            assert!(text.parse::<Limits>().is_err(), "{text}");
        }
        assert_eq!("default".parse::<Limits>().unwrap(), Limits::default());
    }
}
