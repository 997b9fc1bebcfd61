//! Which file has the weights of a network: by its name, or the only one that was given.

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result};

use crate::ModelFile;

/// What the file of the weights is called beside a network of this name: `x.bin` beside `x.param` and `x.param.bin`. Parts of a URL
/// behind its path do not count.
pub fn name_of_weights(name: &str) -> Option<String> {
    let path = name.split(['?', '#']).next().unwrap_or_default();
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = [".param.bin", ".param"].iter().find_map(|end| {
        let at = file.len().checked_sub(end.len())?;
        let same = file.is_char_boundary(at) && file[at..].eq_ignore_ascii_case(end);
        (same && at > 0).then(|| &file[..at])
    })?;
    Some(format!("{stem}.bin"))
}

/// The path of the weights among the files beside `source`.
///
/// # Errors
/// `Io` where no file is the one, `Limit` where it is larger than allowed.
pub fn weights_of(source: &ModelFile, limits: &Limits) -> Result<String> {
    let by_name = name_of_weights(source.name);
    let missing = match &by_name {
        Some(path) => match source.external(path, 0, 0, limits) {
            Ok(_) => return Ok(path.clone()),
            Err(error) if error.code() == ErrorCode::Io => error,
            Err(error) => return Err(error),
        },
        None => Error::new(
            ErrorCode::Io,
            "the weights of the ncnn network are in another file",
        ),
    };
    let given = source.external_names();
    match <[String; 1]>::try_from(given) {
        Ok([only]) => Ok(only),
        Err(_) => Err(missing
            .with_expected(by_name.unwrap_or_else(|| "the .bin file beside the .param".to_string()))
            .with_hint("give the .bin file that belongs to the network along with it")),
    }
}

#[cfg(test)]
mod tests {
    use super::name_of_weights;

    #[test]
    fn weights_are_named_after_the_network() {
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
            assert_eq!(name_of_weights(network).as_deref(), weights, "{network}");
        }
    }
}
