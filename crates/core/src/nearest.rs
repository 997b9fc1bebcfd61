//! What somebody may have meant who wrote a name that is not known.

/// The name of `known` that is closest to `name` by insertions, deletions, replacements and exchanged
/// neighbours of letters, capitals aside. `None` where more than a third of the letters are others.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let name = letters(name);
    let distances = known.iter().map(|&other| {
        let letters = letters(other);
        let allowed = name.len().max(letters.len()) / 3;
        (other, distance(&name, &letters), allowed)
    });
    let close = distances.filter(|&(_, distance, allowed)| distance <= allowed);
    close
        .min_by_key(|&(_, distance, _)| distance)
        .map(|(other, ..)| other)
}

/// The optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let replaced = row[j] + usize::from(x != y);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_names_are_not() {
        let known = ["wgpu", "cpu", "acl_neon"];
        for (name, meant) in [
            ("wpgu", Some("wgpu")),
            ("CPU", Some("cpu")),
            ("cpus", Some("cpu")),
            ("aclneon", Some("acl_neon")),
            ("tpu", Some("cpu")),
            ("abacus", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), meant, "{name}");
        }
        assert_eq!(nearest("", &[""]), Some(""));
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn distances_count_single_slips() {
        let of = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|text| text.chars().collect::<Vec<_>>());
            distance(&a, &b)
        };
        for (a, b, n) in [
            ("conv", "conv", 0),
            ("cnov", "conv", 1),
            ("con", "conv", 1),
            ("convv", "conv", 1),
            ("relu", "gelu", 1),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((of(a, b), of(b, a)), (n, n), "{a} {b}");
        }
    }
}
