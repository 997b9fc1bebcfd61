//! What was skipped and why, said once more at the end of a long log.

use super::Counts;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The names of the tests and checks that were skipped, by reason.
static KEPT: Mutex<BTreeMap<String, Vec<String>>> = Mutex::new(BTreeMap::new());

/// Most names that are listed for one reason.
const MOST: usize = 8;

/// A check of this program itself that cannot be made here.
pub fn skip(name: &str, reason: &str) -> Counts {
    println!("skipped: {name}: {reason}");
    keep(name, reason);
    Counts {
        skipped: 1,
        ..Counts::default()
    }
}

/// Keeps what is to be repeated.
pub fn keep(name: &str, reason: &str) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let names = kept.entry(reason.to_owned()).or_default();
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// Prints what was kept.
pub fn again() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if !kept.is_empty() {
        println!("\n== what was skipped\n{}", listed(&kept).join("\n"));
    }
}

fn listed(kept: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let line = |(reason, names): (&String, &Vec<String>)| {
        let shown = names[..names.len().min(MOST)].join(", ");
        let more = names.len().saturating_sub(MOST);
        let more = (more > 0).then(|| format!(" and {more} more"));
        format!("{reason}: {shown}{}", more.unwrap_or_default())
    };
    kept.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn many_names_are_cut() {
        let names = (0..10).map(|i| format!("t{i}")).collect();
        let kept = [("no GPU".to_owned(), names)].into();
        let line = "no GPU: t0, t1, t2, t3, t4, t5, t6, t7 and 2 more";
        assert_eq!(listed(&kept), [line]);
    }
}
