//! Networks whose weights lie in a second file: which file it is, and what stands for numbers that are not there.

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::Tensor;

use crate::ModelFile;

/// How the two files of a format are named.
pub struct Pair {
    /// What a network of the format is called.
    pub format: &'static str,
    /// The endings of networks, the longest first.
    pub networks: &'static [&'static str],
    /// The ending of the weights.
    pub weights: &'static str,
}

impl Pair {
    /// What the file of the weights is called beside a network of this name: `x.bin` beside `x.param`. Parts of a URL behind its path
    /// do not count.
    pub fn name_of_weights(&self, name: &str) -> Option<String> {
        let path = name.split(['?', '#']).next().unwrap_or_default();
        let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let stem = self.networks.iter().find_map(|end| {
            let at = file.len().checked_sub(end.len())?;
            let same = file.is_char_boundary(at) && file[at..].eq_ignore_ascii_case(end);
            (same && at > 0).then(|| &file[..at])
        })?;
        Some(format!("{stem}{}", self.weights))
    }

    /// The path of the weights among the files beside `source`: by its name, or the only one that was given.
    ///
    /// # Errors
    /// `Io` where no file is the one, `Limit` where it is larger than allowed.
    pub fn weights_of(&self, source: &ModelFile, limits: &Limits) -> Result<String> {
        let by_name = self.name_of_weights(source.name);
        let missing = match &by_name {
            Some(path) => match source.external(path, 0, 0, limits) {
                Ok(_) => return Ok(path.clone()),
                Err(error) if error.code() == ErrorCode::Io => error,
                Err(error) => return Err(error),
            },
            None => Error::new(
                ErrorCode::Io,
                format!(
                    "the weights of the {} network are in another file",
                    self.format
                ),
            ),
        };
        match <[String; 1]>::try_from(source.external_names()) {
            Ok([only]) => Ok(only),
            Err(_) => {
                let network = self.networks.last().copied().unwrap_or_default();
                let expected = by_name
                    .unwrap_or_else(|| format!("the {} file beside the {network}", self.weights));
                Err(missing.with_expected(expected).with_hint(format!(
                    "give the {} file that belongs to the network along with it",
                    self.weights
                )))
            }
        }
    }

    /// What to do where the weights end too early.
    pub fn hint(&self) -> String {
        let network = self.networks.last().copied().unwrap_or_default();
        format!(
            "the {} file must be of the same network as the {network} file",
            self.weights
        )
    }
}

/// Bytes that stand for some that are not there. None of them take memory before they are read.
///
/// # Errors
/// `Limit` where they are too many.
pub fn zeros(len: usize) -> Result<Tensor> {
    Tensor::on_demand(len, |_, to| {
        to.fill(0);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::Pair;

    #[test]
    fn weights_are_named_after_the_network() {
        let pair = Pair {
            format: "ncnn",
            networks: &[".param.bin", ".param"],
            weights: ".bin",
        };
        for (network, weights) in [
            ("m.param", Some("m.bin")),
            ("a/b/m.ncnn.param", Some("m.ncnn.bin")),
            ("m.param.bin", Some("m.bin")),
            ("https://host/m.param?v=1#x", Some("m.bin")),
            ("C:\\models\\M.PARAM", Some("M.bin")),
            (".param", None),
            ("the model", None),
            ("äparam", None),
        ] {
            assert_eq!(
                pair.name_of_weights(network).as_deref(),
                weights,
                "{network}"
            );
        }
    }
}
