//! The blocks of code in the repository's documents.

use std::path::{Path, PathBuf};

/// A fenced block of code.
#[derive(Debug)]
pub struct Block {
    /// The document, relative to the root of the repository.
    pub document: PathBuf,
    /// The line of the document in which the fence opens, from 1.
    pub line: usize,
    /// What stands behind the opening fence: `rust,no_run`, for instance.
    pub language: String,
    /// The lines in between, without the fence's indentation.
    pub code: String,
    /// The file that the block is a part of, where a comment above the fence names one: `<!-- path -->`.
    pub source: Option<PathBuf>,
}

impl Block {
    /// The document and the line, as compilers write them.
    pub fn place(&self) -> String {
        format!("{}:{}", self.document.display(), self.line)
    }

    /// The commands of a block of shell lines, each as the words that a shell would make of it. Comments are left
    /// out, and a line that ends with `\` goes on in the next.
    pub fn commands(&self) -> Vec<Vec<String>> {
        let joined = self.code.replace("\\\n", " ");
        let lines = joined.lines().map(words);
        lines.filter(|words| !words.is_empty()).collect()
    }
}

/// The words of one shell line. Quotes join words; nothing is escaped or expanded.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, '#') if word.is_none() => break,
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The blocks of every Markdown file of the repository, by their documents' paths.
///
/// # Panics
/// Where a document cannot be read.
pub fn blocks() -> Vec<Block> {
    let root = crate::material::root();
    let mut documents = Vec::new();
    find(&root, &mut documents);
    documents.sort();
    let read = |document: PathBuf| {
        let text = std::fs::read_to_string(&document)
            .unwrap_or_else(|error| panic!("{}: {error}", document.display()));
        blocks_of(document.strip_prefix(&root).unwrap_or(&document), &text)
    };
    documents.into_iter().flat_map(read).collect()
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = !["target", "node_modules", "dist", "pkg"].contains(&&*name);
        let path = entry.path();
        if path.is_dir() && ours && !name.starts_with('.') {
            find(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

fn blocks_of(document: &Path, text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut inside, mut before) = (None, "");
    for (i, line) in text.lines().enumerate() {
        let plain = line.trim();
        match (inside, plain.strip_prefix("```")) {
            (Some(_), Some("")) => inside = None,
            (None, Some(language)) => {
                inside = Some(line.len() - line.trim_start().len());
                let source = before.strip_prefix("<!-- ");
                let source = source.and_then(|rest| rest.strip_suffix(" -->"));
                blocks.push(Block {
                    document: document.to_path_buf(),
                    line: i + 1,
                    language: language.to_owned(),
                    code: String::new(),
                    source: source.map(PathBuf::from),
                });
            }
            (Some(indent), _) => {
                if let Some(block) = blocks.last_mut() {
                    block.code.push_str(line.get(indent..).unwrap_or_default());
                    block.code.push('\n');
                }
            }
            (None, None) => {}
        }
        if inside.is_none() && !plain.is_empty() {
            before = plain;
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::{blocks_of, words};
    use std::path::Path;

    #[test]
    fn blocks_have_their_lines_and_sources() {
        let text = "Text.\n\n<!-- a/b.rs -->\n```rust\nfn f() {\n}\n```\n1. list\n   ```sh\n   ls\n   ```\n";
        let blocks = blocks_of(Path::new("x.md"), text);
        let [rust, shell] = &blocks[..] else {
            panic!("{blocks:?}")
        };
        assert_eq!((rust.line, rust.language.as_str()), (4, "rust"));
        assert_eq!(rust.code, "fn f() {\n}\n");
        assert_eq!(rust.source.as_deref(), Some(Path::new("a/b.rs")));
        assert_eq!((shell.code.as_str(), &shell.source), ("ls\n", &None));
        assert_eq!(shell.place(), "x.md:9");
    }

    #[test]
    fn shell_lines_are_words() {
        assert_eq!(words("a \"b c\" d=1 # e"), ["a", "b c", "d=1"]);
        assert!(words("# nothing").is_empty());
        assert_eq!(words("x '' y#z"), ["x", "", "y#z"]);
    }
}
