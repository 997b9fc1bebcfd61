//! The names of nodes and values.

use kilim_core::error::{Error, ErrorCode, Result};

/// Bytes of a name that are kept. Names are copied for every reader of a value and everything that a
/// node becomes: a long one in a small file would fill the memory.
const KEPT: usize = 1 << 10;

/// Bytes that the name of an input or output, which is never shortened, may have.
const MOST: usize = 1 << 16;

/// `Limit` where the name of an input or output is too long.
pub fn check_port(name: &str) -> Result<()> {
    if name.len() <= MOST {
        return Ok(());
    }
    let message = "the name of an input or output is too long";
    Err(Error::new(ErrorCode::Limit, message)
        .with_expected(format!("at most {MOST} bytes"))
        .with_got(format!("{} bytes", name.len())))
}

/// `name`, or the beginning of a very long one.
pub fn shortened(name: &str) -> String {
    match name.len() {
        ..=KEPT => name.to_string(),
        _ => format!("{}…", &name[..name.floor_char_boundary(KEPT)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_end_between_characters() {
        assert_eq!(shortened("node"), "node");
        let long = format!("a{}", "é".repeat(KEPT));
        let short = shortened(&long);
        assert!(short.len() <= KEPT + 3 && short.ends_with("é…"), "{short}");
    }
}
