//! What the model file says of itself, as a list.

use kilim::Metadata;

/// Letters of a text that are printed: templates of chats have thousands.
const MOST: usize = 100;

/// Prints each field and entry in a line, texts that are long or have several lines by their beginning; nothing where the file says nothing.
pub fn print(metadata: &Metadata) {
    let entries = metadata.entries.iter();
    let entries = entries.map(|(key, text)| (key.as_str(), text.as_str()));
    let mut said = metadata.fields().chain(entries).peekable();
    if said.peek().is_none() {
        return;
    }
    say!("metadata");
    for (key, text) in said {
        say!("  {}: {}", line(key), line(text));
    }
    say!("");
}

/// A text as one line of letters that a terminal shows.
fn line(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let begin: String = text.chars().take(MOST).map(shown).collect();
    match text.chars().count() {
        ..=MOST => begin,
        all => format!("{begin}… ({all} letters)"),
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn texts_are_shown_in_one_line() {
        assert_eq!(line("a\u{1b}[31m\nb"), "a [31m b");
        let long = line(&"ä".repeat(101));
        assert_eq!(long, format!("{}… (101 letters)", "ä".repeat(100)));
    }
}
