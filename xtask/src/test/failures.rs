//! What failed, said once more at the end of a long log.

use std::sync::{Mutex, PoisonError};

/// Lines that are repeated after one that tells of a failure.
const AFTER: usize = 12;

/// Most lines of one command.
const MOST: usize = 150;

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps what the output of a command that failed says about it: cargo's and the page tests' reports of single
/// tests, panics and errors of the compiler, or the end of the output where there is none of them.
pub fn keep(lines: &[String]) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend(excerpt(lines).into_iter().map(str::to_owned));
}

/// Prints what was kept.
pub fn again() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if !kept.is_empty() {
        println!("\n== what failed\n{}", kept.join("\n"));
    }
}

fn tells(line: &str) -> bool {
    let line = line.trim_start();
    let marks = ["---- ", "error[", "error: ", "FAILED ", "failed  "];
    marks.iter().any(|mark| line.starts_with(mark))
        || line.contains("panicked at")
        || line.ends_with("... FAILED")
        || line.ends_with("... FAIL")
}

fn excerpt(lines: &[String]) -> Vec<&str> {
    let mut out = Vec::new();
    let mut left = 0;
    for line in lines {
        if tells(line) {
            left = AFTER + 1;
        }
        if left > 0 {
            left -= 1;
            out.push(line.as_str());
        }
    }
    if out.is_empty() {
        out = lines.iter().map(String::as_str).collect();
    }
    out.split_off(out.len().saturating_sub(MOST))
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_failure_is_found_in_a_long_log() {
        let fine = "test fine ... ok\n".repeat(500);
        let bad =
            "---- worse stdout ----\nthread 'worse' panicked at here.rs:1:2:\nleft is not right";
        let page = "  failed  a digit is read (12 ms)\n    it says 4";
        let log = lines(&format!("{fine}{bad}\n{fine}{page}"));
        let text = excerpt(&log).join("\n");
        assert!(text.contains("left is not right") && text.contains("it says 4"));
        assert!(text.lines().count() < 40);
    }

    #[test]
    fn without_a_mark_the_end_is_shown() {
        let log = lines(&"linking\n".repeat(500));
        assert_eq!(excerpt(&log).len(), super::MOST);
    }
}
