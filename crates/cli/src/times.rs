//! The times of many runs in little memory.

use serde::Serialize;

/// Times that are kept at most.
const KEPT: usize = 1 << 16;

/// Takes the times of runs one after another. As long as there are few, all of them are kept; then every
/// second, every fourth, and so on.
#[derive(Default)]
pub struct Times {
    /// The time of every run whose number is a multiple of the stride.
    kept: Vec<f64>,
    /// 2 to the power of this is the stride.
    halvings: u32,
    count: u64,
    least: Option<f64>,
    most: Option<f64>,
}

/// What is said of the times, in their own unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub median: f64,
    pub least: f64,
    pub most: f64,
    /// How many runs there were.
    pub runs: u64,
    /// The median is that of every run of so many; of all where this is 1.
    pub stride: u64,
}

impl Times {
    fn stride(&self) -> u64 {
        1 << self.halvings
    }

    /// Adds the time of the next run.
    pub fn add(&mut self, time: f64) {
        if self.count.is_multiple_of(self.stride()) {
            if self.kept.len() == KEPT {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.halvings += 1;
            }
            if self.count.is_multiple_of(self.stride()) {
                self.kept.push(time);
            }
        }
        self.count += 1;
        self.least = Some(self.least.map_or(time, |least| least.min(time)));
        self.most = Some(self.most.map_or(time, |most| most.max(time)));
    }

    /// What is known; `None` where nothing was added.
    pub fn summary(mut self) -> Option<Summary> {
        self.kept.sort_by(f64::total_cmp);
        let median = *self.kept.get(self.kept.len() / 2)?;
        let stride = self.stride();
        Some(Summary {
            median,
            least: self.least?,
            most: self.most?,
            runs: self.count,
            stride,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl Iterator<Item = f64>) -> (Summary, usize) {
        let mut all = Times::default();
        times.for_each(|time| all.add(time));
        let kept = all.kept.capacity();
        (all.summary().unwrap(), kept)
    }

    #[test]
    fn few_are_all_kept() {
        let (summary, _) = of([3.0, 1.0, 2.0].into_iter());
        let want = Summary {
            median: 2.0,
            least: 1.0,
            most: 3.0,
            runs: 3,
            stride: 1,
        };
        assert_eq!(summary, want);
        assert!(Times::default().summary().is_none());
    }

    #[test]
    fn many_take_no_more_memory_and_have_nearly_the_same_median() {
        let count = 10 * KEPT as u64 + 7;
        // In no order, with the extremes where they are not kept.
        let time = |i: u64| match i {
            1 => -1.0,
            3 => 1e9,
            _ => (i * 7919 % count) as f64,
        };
        let (summary, kept) = of((0..count).map(time));
        assert!(kept <= KEPT, "{kept}");
        assert_eq!((summary.least, summary.most), (-1.0, 1e9));
        assert_eq!((summary.runs, summary.stride), (count, 16));
        let exact = count as f64 / 2.0;
        assert!((summary.median / exact - 1.0).abs() < 0.01, "{summary:?}");
    }
}
