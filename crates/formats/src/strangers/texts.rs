//! Texts: pages and errors of servers, pointers, models that are written out.

use super::{EXPORT_FROM_TENSORFLOW, File, Stranger};

/// The text behind a byte order mark and blanks, in lower case; not all of a long file.
fn text(file: &File) -> String {
    let bytes = file
        .bytes
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(file.bytes);
    let begin = &bytes[..bytes.len().min(256)];
    let text = String::from_utf8_lossy(begin).to_ascii_lowercase();
    text.trim_start().to_string()
}

fn begins(file: &File, with: &[&str]) -> bool {
    let text = text(file);
    with.iter().any(|with| text.starts_with(with))
}

fn json(file: &File) -> bool {
    begins(file, &["{", "["]) && is_text(file.bytes)
}

/// Whether the first bytes are UTF-8 without control characters.
pub fn is_text(bytes: &[u8]) -> bool {
    let begin = &bytes[..bytes.len().min(256)];
    let valid = match std::str::from_utf8(begin) {
        Ok(text) => text,
        // A character may be cut at the end.
        Err(error) if begin.len() - error.valid_up_to() < 4 && bytes.len() > begin.len() => {
            std::str::from_utf8(&begin[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    !valid.is_empty() && valid.chars().all(plain)
}

/// Characters of a line that are shown.
const SHOWN: usize = 60;

/// The first line of a text that is not blank.
pub fn first_line(bytes: &[u8]) -> String {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    let line = begin.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(SHOWN).collect()
}

const CHECK_URL: &str = "check the URL: servers answer with such a page where there is no file, or none without logging in";

pub const KNOWN: &[Stranger] = &[
    Stranger {
        what: "a Git LFS pointer, which stands for the file",
        hint: "run `git lfs pull`, or download the file itself",
        looks: |file| begins(file, &["version https://git-lfs.github.com/"]),
    },
    Stranger {
        what: "an HTML page",
        hint: CHECK_URL,
        looks: |file| begins(file, &["<!doctype html", "<html", "<head", "<!--"]),
    },
    Stranger {
        what: "an OpenVINO model",
        hint: "take the .onnx file that it was made of",
        looks: |file| begins(file, &["<?xml", "<net"]) && file.mentions("<net "),
    },
    Stranger {
        what: "an XML document",
        hint: CHECK_URL,
        looks: |file| begins(file, &["<?xml", "<error"]),
    },
    Stranger {
        what: "an ONNX model that is written out as text",
        hint: "save it with onnx.save after onnx.parser.parse_model",
        looks: |file| begins(file, &["<"]) && file.mentions("ir_version"),
    },
    Stranger {
        what: "a TensorFlow.js model",
        hint: EXPORT_FROM_TENSORFLOW,
        looks: |file| {
            json(file)
                && (file.mentions("\"weightsManifest\"") || file.mentions("\"modelTopology\""))
        },
    },
    Stranger {
        what: "the list of files of safetensors: weights without a network",
        hint: "open the config.json that lies beside it; the weights are read with it",
        looks: |file| json(file) && file.mentions("\"weight_map\""),
    },
    Stranger {
        what: "a JSON document",
        hint: CHECK_URL,
        looks: json,
    },
    Stranger {
        what: "a Caffe network",
        hint: "export the original model to ONNX or TFLite",
        looks: |file| {
            let layers = file.mentions("layer {") || file.mentions("layers {");
            is_text(file.bytes) && layers
        },
    },
    Stranger {
        what: "text in UTF-16",
        hint: "check the file's name or URL",
        looks: |file| file.begins(&[0xff, 0xfe]) || file.begins(&[0xfe, 0xff]),
    },
];
