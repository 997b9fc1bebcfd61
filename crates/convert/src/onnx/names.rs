//! Names that no other value of the file has.

use std::collections::HashSet;

/// The names that are given already.
#[derive(Default)]
pub struct Names {
    given: HashSet<String>,
}

impl Names {
    /// Gives a name that must stay as it is.
    pub fn keep(&mut self, name: &str) {
        self.given.insert(name.to_string());
    }

    /// `name`, with a number behind it where it is given already; `otherwise` stands for an empty one.
    pub fn fresh(&mut self, name: &str, otherwise: &str) -> String {
        let stem = if name.is_empty() { otherwise } else { name };
        let mut fresh = stem.to_string();
        let mut number = 1;
        while !self.given.insert(fresh.clone()) {
            number += 1;
            fresh = format!("{stem}_{number}");
        }
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_once() {
        let mut names = Names::default();
        names.keep("x");
        let given = ["x", "y", "x", "", "x_2"].map(|name| names.fresh(name, "value"));
        assert_eq!(given, ["x_2", "y", "x_3", "value", "x_2_2"]);
    }
}
