//! Archives, compressed files, and files of other kinds.

use super::{EXPORT_FROM_PYTORCH, EXPORT_FROM_TENSORFLOW, File, Stranger};

const UNPACK: &str = "unpack it, and open the .onnx or .tflite file inside";

/// Names stand in front of each file of a zip archive, uncompressed.
fn zip(file: &File) -> bool {
    file.begins(b"PK\x03\x04") || file.begins(b"PK\x05\x06")
}

fn zip_with(file: &File, names: &[&str]) -> bool {
    zip(file) && names.iter().all(|name| file.mentions(name))
}

pub const KNOWN: &[Stranger] = &[
    Stranger {
        what: "a TorchScript archive",
        hint: EXPORT_FROM_PYTORCH,
        looks: |file| zip_with(file, &["data.pkl", "/code/"]),
    },
    Stranger {
        what: "a PyTorch archive",
        hint: EXPORT_FROM_PYTORCH,
        looks: |file| {
            zip_with(file, &["data.pkl"]) || zip_with(file, &["serialized_exported_program"])
        },
    },
    Stranger {
        what: "a Keras archive",
        hint: EXPORT_FROM_TENSORFLOW,
        looks: |file| zip_with(file, &["model.weights.h5"]),
    },
    Stranger {
        what: "a Core ML package",
        hint: "export the original model to ONNX or TFLite",
        looks: |file| zip_with(file, &["com.apple.CoreML"]),
    },
    Stranger {
        what: "NumPy arrays (.npz)",
        hint: "open the model, and give the arrays as inputs",
        looks: |file| zip_with(file, &[".npy"]),
    },
    Stranger {
        what: "a zip archive",
        hint: UNPACK,
        looks: zip,
    },
    Stranger {
        what: "a compressed file (gzip)",
        hint: UNPACK,
        looks: |file| file.begins(&[0x1f, 0x8b]),
    },
    Stranger {
        what: "a compressed file (xz)",
        hint: UNPACK,
        looks: |file| file.begins(b"\xfd7zXZ\0"),
    },
    Stranger {
        what: "a compressed file (Zstandard)",
        hint: UNPACK,
        looks: |file| file.begins(&[0x28, 0xb5, 0x2f, 0xfd]),
    },
    Stranger {
        what: "a compressed file (bzip2)",
        hint: UNPACK,
        looks: |file| file.begins(b"BZh"),
    },
    Stranger {
        what: "a 7z archive",
        hint: UNPACK,
        looks: |file| file.begins(b"7z\xbc\xaf\x27\x1c"),
    },
    Stranger {
        what: "a RAR archive",
        hint: UNPACK,
        looks: |file| file.begins(b"Rar!\x1a\x07"),
    },
    Stranger {
        what: "a tar archive",
        hint: UNPACK,
        looks: |file| file.has_at(257, b"ustar"),
    },
    Stranger {
        what: "a PDF document",
        hint: "check the file's name or URL",
        looks: |file| file.begins(b"%PDF-"),
    },
    Stranger {
        what: "a picture",
        hint: "open the model, and give the picture as an input",
        looks: |file| {
            let webp = file.begins(b"RIFF") && file.has_at(8, b"WEBP");
            let signatures = [&b"\x89PNG\r\n\x1a\n"[..], b"\xff\xd8\xff", b"GIF8"];
            webp || signatures.iter().any(|s| file.begins(s))
        },
    },
    Stranger {
        what: "a sound",
        hint: "open the model, and give the samples as an input",
        looks: |file| file.begins(b"RIFF") && file.has_at(8, b"WAVE"),
    },
    Stranger {
        what: "WebAssembly",
        hint: "check the file's name or URL",
        looks: |file| file.begins(b"\0asm"),
    },
    Stranger {
        what: "a program or library",
        hint: "check the file's name or URL",
        looks: |file| file.begins(b"\x7fELF") || file.begins(b"MZ"),
    },
    Stranger {
        what: "nothing but zeros",
        hint: "the file was made, and never written: download or copy it again",
        looks: |file| file.bytes.len() >= 64 && file.bytes.iter().all(|&b| b == 0),
    },
];
