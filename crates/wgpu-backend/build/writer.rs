//! Lines of Rust, indented by their braces, and names in Rust's way.

#[derive(Default)]
pub struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    /// Adds a line.
    pub fn line(&mut self, line: &str) {
        if line.starts_with('}') {
            self.depth = self.depth.saturating_sub(1);
        }
        self.text.push_str(&"    ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
        if line.ends_with('{') {
            self.depth += 1;
        }
    }

    /// Adds lines that are indented already.
    pub fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.text.push_str(&"    ".repeat(self.depth));
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// The text.
    pub fn finish(self) -> String {
        self.text
    }
}

/// `READ_A` as `ReadA`.
pub fn camel(name: &str) -> String {
    let words = name.split('_').filter(|w| !w.is_empty());
    words
        .map(|w| w[..1].to_uppercase() + &w[1..].to_lowercase())
        .collect()
}

/// The static of a file: `products/conv_direct.wgsl` is `PRODUCTS_CONV_DIRECT`.
pub fn constant(path: &str) -> String {
    let path = path.trim_end_matches(".wgsl");
    path.replace('/', "_").to_uppercase()
}

/// The variant of a value: `vec2u` as `Vec2u`, `4` as `N4`.
pub fn variant(value: &str) -> String {
    match value.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("N{value}"),
        false => value[..1].to_uppercase() + &value[1..],
    }
}
