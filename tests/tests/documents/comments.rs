//! Comments that documentation is made from, and those on `unsafe`, stand alone: they are understood without the
//! item before.

use std::path::Path;

use kilim_test_support::material::root;

use super::files_below;

/// Folders whose sources are read.
const FOLDERS: &[&str] = &[
    "bench",
    "crates",
    "examples",
    "shaders",
    "tests",
    "www/app/src",
    "www/package/src",
    "www/test",
    "xtask",
];

/// Openings that continue the comment on the item before.
const OPENINGS: &[&str] = &[
    "Also ", "As ", "Ditto", "It ", "It,", "Its ", "Like `", "Likewise", "Of ", "Same ", "Such ",
    "That of ", "The same", "Their ", "They ", "This one", "Those ",
];

/// Openings of fragments: they say nothing without the name of the item, or the comment on the type around it.
const FRAGMENTS: &[&str] = &["By ", "From ", "To ", "With ", "Without "];

/// Words that point to other comments, and a construction that keeps a reader from the end of a sentence.
const PHRASES: &[&str] = &[
    "as above",
    "as below",
    "calls above",
    "of which",
    "see above",
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Documentation of the module or the file that it stands in.
    File,
    /// Documentation of an item.
    Item,
    Safety,
}

struct Comment {
    line: usize,
    kind: Kind,
    text: String,
}

/// The kind of a comment that begins with this line of Rust, its marker, and what the line says.
fn opened(line: &str) -> Option<(Kind, &'static str, &str)> {
    let line = line.trim_start();
    let [item, file] = ["///", "//!"].map(|marker| line.strip_prefix(marker));
    let safety = line.strip_prefix("// SAFETY:");
    item.map(|text| (Kind::Item, "///", text))
        .or_else(|| file.map(|text| (Kind::File, "//!", text)))
        .or_else(|| safety.map(|text| (Kind::Safety, "// ", text)))
}

fn of_rust(text: &str) -> Vec<Comment> {
    let mut comments = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((line, first)) = lines.next() {
        let Some((kind, marker, said)) = opened(first) else {
            continue;
        };
        let mut words = said.trim().to_owned();
        while let Some((_, next)) = lines.next_if(|(_, next)| next.trim().starts_with(marker)) {
            words.push(' ');
            words.push_str(next.trim()[marker.len()..].trim());
        }
        comments.push(Comment {
            line,
            kind,
            text: words,
        });
    }
    comments
}

/// The comments `/** … */` of TypeScript and JavaScript.
fn of_script(text: &str) -> Vec<Comment> {
    let mut comments = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find("/**").map(|i| at + i) {
        let end = text[begin..].find("*/").map_or(text.len(), |i| begin + i);
        let inside = text[begin + 2..end].lines();
        let words = inside.map(|line| line.trim().trim_start_matches('*').trim());
        let kind = match begin {
            0 => Kind::File,
            _ => Kind::Item,
        };
        comments.push(Comment {
            line: 1 + text[..begin].matches('\n').count(),
            kind,
            text: words.collect::<Vec<_>>().join(" ").trim().to_owned(),
        });
        at = end;
    }
    comments
}

/// The lines `// …` of WGSL, each run of them as one comment.
fn of_shader(text: &str) -> Vec<Comment> {
    let said = |line: &'_ str| line.trim().strip_prefix("// ").map(str::to_owned);
    let mut comments: Vec<Comment> = Vec::new();
    let mut goes_on = false;
    for (line, words) in (1..).zip(text.lines().map(said)) {
        match (words, comments.last_mut().filter(|_| goes_on)) {
            (Some(words), Some(comment)) => comment.text = format!("{} {words}", comment.text),
            (Some(text), None) => comments.push(Comment {
                line,
                kind: Kind::File,
                text,
            }),
            (None, _) => {
                goes_on = false;
                continue;
            }
        }
        goes_on = true;
    }
    comments
}

/// The words by which a comment leans on another one.
fn leans(comment: &Comment) -> Option<&'static str> {
    let lower = comment.text.to_lowercase();
    let openings = OPENINGS.iter().copied();
    let opening = match comment.kind {
        Kind::File => openings.clone().find(|o| comment.text.starts_with(o)),
        Kind::Item => openings
            .clone()
            .chain(FRAGMENTS.iter().copied())
            .find(|o| comment.text.starts_with(o)),
        // These begin with a small letter, and often with what `it` is.
        Kind::Safety => ["as ", "such ", "the same as", "likewise", "see "]
            .into_iter()
            .find(|o| lower.starts_with(o)),
    };
    opening.or_else(|| PHRASES.iter().copied().find(|p| lower.contains(p)))
}

fn comments(file: &Path) -> Vec<Comment> {
    let text = std::fs::read_to_string(file).unwrap();
    match file.extension().and_then(|e| e.to_str()) {
        Some("rs") => of_rust(&text),
        Some("wgsl") => of_shader(&text),
        _ => of_script(&text),
    }
}

#[test]
fn comments_stand_alone() {
    let root = root();
    let mut files = Vec::new();
    for folder in FOLDERS {
        files_below(
            &root.join(folder),
            &["rs", "ts", "tsx", "mjs", "wgsl"],
            &mut files,
        );
    }
    let (mut read, mut wrong) = (0, Vec::new());
    for file in files {
        let own = file.strip_prefix(&root).unwrap().display().to_string();
        for comment in comments(&file) {
            read += 1;
            if let Some(words) = leans(&comment) {
                let Comment { line, text, .. } = comment;
                wrong.push(format!("{own}:{line}: `{}`: {text}", words.trim()));
            }
        }
    }
    assert!(read > 5000, "{read} comments");
    assert!(
        wrong.is_empty(),
        "comments lean on others:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_comment_that_leans_is_noticed() {
    let rust = [
        "/// A list, of which",
        "/// the first counts.",
        "fn first() {}",
        "/// As [`first`].",
        "fn second() {}",
        "/// With a list.",
        "// A comment on what follows.",
        "// SAFETY: as for `first`.",
        "//! From a list to a number.",
        "/// A list with its length.",
    ];
    let found = |comments: Vec<Comment>| {
        let wrong = comments.iter().filter(|c| leans(c).is_some());
        wrong.map(|c| c.line).collect::<Vec<_>>()
    };
    assert_eq!(found(of_rust(&rust.join("\n"))), [1, 4, 6, 8]);
    let script = "/** Its name. */\n/**\n * The same for\n * others.\n */\n/** A name. */";
    assert_eq!(found(of_script(script)), [1, 2]);
    let shader = "// A sum.\n\nx;\n// A product,\n// of which one.\ny;\n// Of the sum.";
    assert_eq!(found(of_shader(shader)), [4, 7]);
}
