//! Models of formats that cannot be read.

use super::{DOWNLOAD_AGAIN, EXPORT_FROM_PYTORCH, EXPORT_FROM_TENSORFLOW, File, Stranger};
use crate::onnx::Look;

const OF_NCNN: &str = "open the .param file that lies beside it; the weights are read with it";
const OF_TNN: &str = "weights of a TNN network";
const OPEN_TNN: &str = "open the .tnnproto file that lies beside it; the weights are read with it";
const FROM_THE_ORIGINAL: &str = "export the original model to ONNX or TFLite";

/// Protocol 2 or later: an opcode with the version, then one of those that a file of PyTorch begins with.
fn pickle(file: &File) -> bool {
    matches!(
        file.bytes,
        [0x80, 2..=5, 0x8a | 0x95 | b'}' | b']' | b'c' | b'(', ..]
    )
}

/// `SavedModel.saved_model_schema_version` 1, then the first graph.
fn saved_model(file: &File) -> bool {
    file.begins(&[8, 1, 18]) && file.mentions("serve")
}

/// `GraphDef.node`, then its name.
fn graph_def(file: &File) -> bool {
    file.begins(&[10]) && (file.mentions("Placeholder") || file.mentions("attr_value"))
}

/// The signatures are from the projects' own descriptions of their formats.
pub const BY_CONTENT: &[Stranger] = &[
    Stranger {
        what: "a GGML model",
        hint: "take the model's GGUF or ONNX files instead",
        looks: |file| [b"lmgg", b"fmgg", b"tjgg"].iter().any(|m| file.begins(*m)),
    },
    Stranger {
        what: "a pickle, an older PyTorch checkpoint for instance",
        hint: EXPORT_FROM_PYTORCH,
        looks: pickle,
    },
    Stranger {
        what: "HDF5, a Keras model for instance",
        hint: EXPORT_FROM_TENSORFLOW,
        looks: |file| file.begins(b"\x89HDF\r\n\x1a\n"),
    },
    Stranger {
        what: "a TensorFlow SavedModel",
        hint: EXPORT_FROM_TENSORFLOW,
        looks: saved_model,
    },
    Stranger {
        what: "a TensorFlow graph",
        hint: EXPORT_FROM_TENSORFLOW,
        looks: graph_def,
    },
    Stranger {
        what: "an ONNX model that is cut off",
        hint: DOWNLOAD_AGAIN,
        looks: |file| Look::of(file.bytes) == Look::CutOff,
    },
    // The tags of halves and of integers in ncnn's `src/modelbin.cpp`.
    Stranger {
        what: "weights of an ncnn network",
        hint: OF_NCNN,
        looks: |file| {
            file.is_named(&[".bin"]) && (file.begins(b"Gk0\x01") || file.begins(b"8K\x0d\0"))
        },
    },
    // `g_version_magic_number` in TNN's `source/tnn/interpreter/tnn/objseri.h`, and its second version.
    Stranger {
        what: OF_TNN,
        hint: OPEN_TNN,
        looks: |file| file.begins(b"\x02\0\xbc\xfa") || file.begins(b"\x04\0\xbc\xfa"),
    },
    Stranger {
        what: "a TensorRT engine",
        hint: "take the .onnx file that it was made of",
        looks: |file| file.begins(b"ftrt") || file.begins(b"ptrt"),
    },
    Stranger {
        what: "a NumPy array (.npy)",
        hint: "open the model, and give the array as an input",
        looks: |file| file.begins(b"\x93NUMPY"),
    },
];

/// Formats without a signature.
pub const BY_NAME: &[Stranger] = &[
    Stranger {
        what: "an MNN model that is cut off or garbled",
        hint: "take the file from where it came from once more",
        looks: |file| file.is_named(&[".mnn"]),
    },
    Stranger {
        what: "weights of an MNN model",
        hint: "open the .mnn file that lies beside it; the weights are read with it",
        looks: |file| file.is_named(&[".mnn.weight"]),
    },
    Stranger {
        what: "weights of an ncnn network",
        hint: OF_NCNN,
        looks: |file| file.is_named(&[".ncnn.bin"]),
    },
    Stranger {
        what: OF_TNN,
        hint: OPEN_TNN,
        looks: |file| file.is_named(&[".tnnmodel"]),
    },
    Stranger {
        what: "weights of a Caffe model",
        hint: FROM_THE_ORIGINAL,
        looks: |file| file.is_named(&[".caffemodel"]),
    },
    Stranger {
        what: "a Core ML model",
        hint: FROM_THE_ORIGINAL,
        looks: |file| file.is_named(&[".mlmodel"]),
    },
    Stranger {
        what: "a Paddle model",
        hint: "convert it with paddle2onnx",
        looks: |file| file.is_named(&[".pdmodel", ".pdiparams"]),
    },
    Stranger {
        what: "a TensorRT engine",
        hint: "take the .onnx file that it was made of",
        looks: |file| file.is_named(&[".engine", ".plan", ".trt"]),
    },
    Stranger {
        what: "a file of PyTorch",
        hint: EXPORT_FROM_PYTORCH,
        looks: |file| file.is_named(&[".pt", ".pth", ".ckpt"]),
    },
    Stranger {
        what: "weights of an ONNX model",
        hint: "open the .onnx file that they belong to",
        looks: |file| file.is_named(&[".onnx.data", ".onnx_data", ".weight"]),
    },
    Stranger {
        what: "weights, of an ncnn network for instance",
        hint: OF_NCNN,
        looks: |file| file.is_named(&[".bin"]),
    },
    Stranger {
        what: "a protobuf message that is no ONNX model",
        hint: "a TensorFlow graph is converted with tf2onnx",
        looks: |file| file.is_named(&[".pb"]),
    },
];
