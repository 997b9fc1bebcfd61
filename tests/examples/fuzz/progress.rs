//! The bar, and the table at the end.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use kilim_tests::fuzz::{Header, Outcome};

#[derive(Default)]
struct Row {
    cases: usize,
    refused: usize,
    wrong: usize,
    /// The reason of the first refusal.
    why: String,
}

pub struct Progress {
    rows: BTreeMap<String, Row>,
    nodes: usize,
    expected: u64,
    begun: Instant,
    shown: Instant,
}

impl Progress {
    pub fn new(expected: u64) -> Progress {
        Progress {
            rows: BTreeMap::new(),
            nodes: 0,
            expected,
            begun: Instant::now(),
            shown: Instant::now(),
        }
    }

    /// Counts a case; says how many of its operator's were wrong by now.
    pub fn count(&mut self, header: &Header, outcome: &Outcome) -> usize {
        self.nodes += header.ops.len();
        let row = self.rows.entry(header.subject().to_string()).or_default();
        row.cases += 1;
        match outcome {
            Outcome::Passed => {}
            Outcome::Refused(why) => {
                row.refused += 1;
                if row.why.is_empty() {
                    row.why = why.lines().next().unwrap_or_default().to_string();
                }
            }
            Outcome::Wrong(_) => row.wrong += 1,
        }
        row.wrong
    }

    /// Says what is wrong, with the operators of the smallest part that is.
    pub fn found(&self, header: &Header, why: &str) {
        let (name, ops) = (&header.name, header.ops.join(" "));
        let why: String = why.chars().take(300).collect();
        eprintln!("\r\x1b[K{name} [{ops}, opset {}]: {why}", header.opset);
    }

    fn sum(&self, of: impl Fn(&Row) -> usize) -> usize {
        self.rows.values().map(of).sum()
    }

    /// Draws the bar; without a terminal, a line every half minute.
    pub fn show(&mut self) {
        let terminal = std::io::stderr().is_terminal();
        let pause = if terminal { 0 } else { 30 };
        if self.shown.elapsed() < Duration::from_secs(pause) {
            return;
        }
        self.shown = Instant::now();
        let done = self.sum(|r| r.cases);
        let share = done as f64 / self.expected.max(1) as f64;
        let left = self.begun.elapsed().as_secs_f64() * (1.0 / share.max(1e-9) - 1.0);
        let filled = (share * 30.0) as usize;
        let bar: String = (0..30)
            .map(|i| if i < filled { '#' } else { '.' })
            .collect();
        let (refused, wrong) = (self.sum(|r| r.refused), self.sum(|r| r.wrong));
        let line = format!(
            "[{bar}] {done} of {}, {refused} refused, {wrong} wrong, {:.0} min left",
            self.expected,
            (left / 60.0).min(1e6)
        );
        if terminal {
            eprint!("\r\x1b[K{line}");
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{line}");
        }
    }

    /// Prints the table by operator; returns how many cases were wrong.
    pub fn summary(&self) -> usize {
        eprint!("\r\x1b[K");
        println!(
            "{:<28}{:>8}{:>9}{:>7}",
            "operator", "cases", "refused", "wrong"
        );
        for (op, row) in &self.rows {
            let (cases, refused, wrong) = (row.cases, row.refused, row.wrong);
            println!("{op:<28}{cases:>8}{refused:>9}{wrong:>7}  {}", row.why);
        }
        let (cases, wrong) = (self.sum(|r| r.cases), self.sum(|r| r.wrong));
        println!(
            "{cases} cases of {} nodes: {} passed, {} refused, {wrong} wrong in {:.0} s",
            self.nodes,
            cases - wrong - self.sum(|r| r.refused),
            self.sum(|r| r.refused),
            self.begun.elapsed().as_secs_f64()
        );
        wrong
    }
}
