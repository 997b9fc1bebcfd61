//! Texts that end a generation.

/// Passes text on as it comes, but for what may be the beginning of a text that ends it.
pub struct Stops {
    stops: Vec<String>,
    held: String,
}

impl Stops {
    /// Empty texts end nothing.
    pub fn new(stops: &[String]) -> Stops {
        let stops = stops.iter().filter(|stop| !stop.is_empty());
        Stops {
            stops: stops.cloned().collect(),
            held: String::new(),
        }
    }

    /// What may be passed on after `text` has come, and which text has ended it.
    pub fn add(&mut self, text: &str) -> (String, Option<&str>) {
        self.held.push_str(text);
        let found = self.stops.iter().filter_map(|stop| {
            let at = self.held.find(stop.as_str())?;
            Some((at, stop))
        });
        // The first that ends; of those that begin at one place, the longest says more.
        let found = found.min_by_key(|(at, stop)| (*at, usize::MAX - stop.len()));
        if let Some((at, stop)) = found {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), Some(stop));
        }
        let keep = self.stops.iter().map(|stop| begun(&self.held, stop)).max();
        let rest = self.held.split_off(self.held.len() - keep.unwrap_or(0));
        (std::mem::replace(&mut self.held, rest), None)
    }

    /// What was held back, when nothing comes any more.
    pub fn rest(self) -> String {
        self.held
    }
}

/// How many bytes at the end of `text` are the beginning of `stop`.
fn begun(text: &str, stop: &str) -> usize {
    let ends = stop.char_indices().map(|(at, _)| at).rev();
    ends.into_iter()
        .find(|&end| text.ends_with(&stop[..end]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(stops: &[&str], pieces: &[&str]) -> (String, Option<String>) {
        let stops: Vec<String> = stops.iter().map(|s| s.to_string()).collect();
        let mut stops = Stops::new(&stops);
        let mut text = String::new();
        for piece in pieces {
            let (more, ended) = stops.add(piece);
            text += &more;
            if let Some(stop) = ended {
                return (text, Some(stop.to_string()));
            }
        }
        (text + &stops.rest(), None)
    }

    #[test]
    fn text_ends_at_a_stop_that_comes_in_pieces() {
        let ended = |text: &str, stop: &str| (text.to_string(), Some(stop.to_string()));
        assert_eq!(passed(&["\n\n"], &["a\n", "\nb"]), ended("a", "\n\n"));
        assert_eq!(
            passed(&["</é>"], &["x<", "/", "é", "> y"]),
            ended("x", "</é>")
        );
        assert_eq!(passed(&["b", "abc"], &["xab"]), ended("xa", "b"));
        assert_eq!(passed(&["ab", "abc"], &["xabc"]), ended("x", "abc"));
    }

    #[test]
    fn what_is_no_stop_is_passed_on() {
        assert_eq!(
            passed(&["</s>"], &["a</", "b>"]),
            ("a</b>".to_string(), None)
        );
        assert_eq!(
            passed(&["aab"], &["a", "a", "a"]),
            ("aaa".to_string(), None)
        );
        assert_eq!(passed(&[""], &["a"]), ("a".to_string(), None));
    }

    #[test]
    fn text_is_not_held_back_longer_than_needed() {
        let mut stops = Stops::new(&["end".to_string()]);
        assert_eq!(stops.add("hello").0, "hello");
        assert_eq!(stops.add(" e").0, " ");
        assert_eq!(stops.add("x").0, "ex");
    }
}
