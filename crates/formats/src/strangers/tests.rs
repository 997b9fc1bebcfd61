use super::refuse;

/// Bytes, a name, and what they are.
const CASES: &[(&[u8], &str, &str)] = &[
    (b"", "m.onnx", "an empty file"),
    (
        b"\x08\x08\x12\x07pyto",
        "m.onnx",
        "an ONNX model that is cut off",
    ),
    (b"tjgg\x03\0\0\0", "m", "a GGML model"),
    (
        b"\x80\x02}q\0",
        "m.pth",
        "a pickle, an older PyTorch checkpoint for instance",
    ),
    (
        b"\x80\x02\x8a\nl\xfc\x9c",
        "m",
        "a pickle, an older PyTorch checkpoint for instance",
    ),
    (
        b"\x89HDF\r\n\x1a\n\0\0",
        "m.h5",
        "HDF5, a Keras model for instance",
    ),
    (
        b"\x08\x01\x12\x90\x08\x0a\x05serve",
        "m.pb",
        "a TensorFlow SavedModel",
    ),
    (
        b"\x0a\x20\x0a\x05input\x12\x0bPlaceholder",
        "m.pb",
        "a TensorFlow graph",
    ),
    (b"ftrt\0\0", "m", "a TensorRT engine"),
    (b"\x93NUMPY\x01\0", "m", "a NumPy array (.npy)"),
    (
        b"PK\x03\x04..archive/data.pkl..archive/code/x.py",
        "m.pt",
        "a TorchScript archive",
    ),
    (
        b"PK\x03\x04..archive/data.pkl..",
        "m.pt",
        "a PyTorch archive",
    ),
    (
        b"PK\x03\x04..metadata.json..model.weights.h5",
        "m",
        "a Keras archive",
    ),
    (
        b"PK\x03\x04..Data/com.apple.CoreML/model.mlmodel",
        "m",
        "a Core ML package",
    ),
    (b"PK\x03\x04..x.npy..", "m", "NumPy arrays (.npz)"),
    (b"PK\x03\x04..readme", "m", "a zip archive"),
    (b"\x1f\x8b\x08\0", "m.onnx.gz", "a compressed file (gzip)"),
    (b"\xfd7zXZ\0", "m", "a compressed file (xz)"),
    (b"\x28\xb5\x2f\xfd", "m", "a compressed file (Zstandard)"),
    (b"BZh9", "m", "a compressed file (bzip2)"),
    (b"7z\xbc\xaf\x27\x1c", "m", "a 7z archive"),
    (b"Rar!\x1a\x07", "m", "a RAR archive"),
    (b"%PDF-1.7", "m", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "m", "a picture"),
    (b"\xff\xd8\xff\xe0", "m", "a picture"),
    (b"RIFF....WEBPVP8 ", "m", "a picture"),
    (b"RIFF....WAVEfmt ", "m", "a sound"),
    (b"\0asm\x01\0\0\0", "m", "WebAssembly"),
    (b"\x7fELF\x02", "m", "a program or library"),
    (&[0; 64], "m", "nothing but zeros"),
    (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        "m.onnx",
        "a Git LFS pointer, which stands for the file",
    ),
    (
        b"\xef\xbb\xbf \n<!DOCTYPE HTML><title>",
        "m",
        "an HTML page",
    ),
    (b"<html lang=en>", "m", "an HTML page"),
    (
        b"<?xml version=\"1.0\"?><net name=\"a\" version=\"11\">",
        "m",
        "an OpenVINO model",
    ),
    (
        b"<?xml version=\"1.0\"?><Error><Code>NoSuchKey",
        "m",
        "an XML document",
    ),
    (
        b"<ir_version: 8, opset_import: [\"\": 17]> g (",
        "m",
        "an ONNX model that is written out as text",
    ),
    (
        b"{\"format\": \"graph-model\", \"weightsManifest\": []}",
        "m",
        "a TensorFlow.js model",
    ),
    (
        b"{\"metadata\": {}, \"weight_map\": {}}",
        "m",
        "the list of files of safetensors: weights without a network",
    ),
    (b"{\"error\": \"not found\"}", "m", "a JSON document"),
    (b"Gk0\x01\0\x3c", "m.bin", "weights of an ncnn network"),
    (
        b"\x1c\0\0\0\x01\x02",
        "m.ncnn.bin",
        "weights of an ncnn network",
    ),
    (
        b"\0\0\0\0\x01\x02",
        "m.bin",
        "weights, of an ncnn network for instance",
    ),
    (
        b"name: \"LeNet\"\nlayer {\n",
        "m.prototxt",
        "a Caffe network",
    ),
    (b"\xff\xfeh\0i\0", "m", "text in UTF-16"),
    (b"Entry not found", "m.onnx", "text: “Entry not found”"),
    (b"\n\nGr\xc3\xbc\xc3\x9fe\n", "m.onnx", "text: “Grüße”"),
    (
        b"\x1c\0\0\0\x01\x02",
        "/a.b/Net.MNN",
        "an MNN model that is cut off or garbled",
    ),
    (
        b"\0\0\0\x3f\x01\x02",
        "m.mnn.weight",
        "weights of an MNN model",
    ),
    (
        b"\x1c\0\0\0\x01\x02",
        "https://a/m.caffemodel?b=1.mnn",
        "weights of a Caffe model",
    ),
    (
        b"\x1c\0\0\0\x01\x02",
        "m.onnx.data",
        "weights of an ONNX model",
    ),
    (b"\x04\0\xbc\xfa\x05\0\0\0", "m", "weights of a TNN network"),
    (b"\x1c\0\0\0", "m.tnnmodel", "weights of a TNN network"),
    (
        b"\x1c\0\0\0\x01\x02",
        "m",
        "6 bytes that begin with 1c 00 00 00 01 02",
    ),
];

#[test]
fn what_came_instead_of_a_model_is_named() {
    for &(bytes, name, what) in CASES {
        let error = refuse(bytes, name, "onnx, tflite");
        assert_eq!(error.got(), Some(what), "{error}");
        assert!(error.hint().is_some(), "{error}");
        assert!(error.message().contains(name), "{error}");
    }
    let tar = [&[b'a'; 257][..], b"ustar\0"].concat();
    assert_eq!(refuse(&tar, "m", "").got(), Some("a tar archive"));
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let text = "ä".repeat(400);
    let error = refuse(text.as_bytes(), "m", "");
    assert_eq!(error.got(), Some(&*format!("text: “{}”", "ä".repeat(60))));
    // A character that is cut where the search ends.
    let odd = format!("a{text}");
    assert!(
        refuse(odd.as_bytes(), "m", "")
            .got()
            .unwrap()
            .starts_with("text")
    );
}
