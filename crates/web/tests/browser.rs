//! The JavaScript classes in a browser: what crosses, and how errors look there.
#![cfg(target_arch = "wasm32")]

use js_sys::{Array, Object, Promise, Reflect, Uint8Array};
use kilim_web::{WasmFile, WasmSession};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

const DIGITS: &[u8] = include_bytes!("../../../assets/digits.onnx");

fn file(bytes: &[u8]) -> WasmFile {
    let mut file = WasmFile::new(bytes.len()).expect("memory for a file");
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    file.write(0, &Uint8Array::from(head)).expect("the head");
    file.write(head.len(), &Uint8Array::from(tail))
        .expect("the tail");
    file
}

fn options(backend: &str) -> JsValue {
    let options = Object::new();
    let backends = Array::of1(&backend.into());
    Reflect::set(&options, &"backends".into(), &backends).expect("an object takes fields");
    options.into()
}

fn text(object: &JsValue, field: &str) -> String {
    let value = Reflect::get(object, &field.into()).expect("an object has fields");
    value.as_string().unwrap_or_default()
}

fn feed(kind: &str, dims: &[f64], bytes: &[u8]) -> Array {
    let feed = Object::new();
    let dims: Array = dims.iter().map(|&dim| JsValue::from_f64(dim)).collect();
    let fields: [(&str, JsValue); 4] = [
        ("name", "image".into()),
        ("type", kind.into()),
        ("dims", dims.into()),
        ("bytes", Uint8Array::from(bytes).into()),
    ];
    for (name, value) in fields {
        Reflect::set(&feed, &name.into(), &value).expect("an object takes fields");
    }
    Array::of1(&feed)
}

async fn digits() -> WasmSession {
    WasmSession::load(vec![file(DIGITS)], vec![String::new()], options("cpu"))
        .await
        .expect("the embedded model loads")
}

async fn load_error(bytes: &[u8], backend: &str) -> JsValue {
    WasmSession::load(vec![file(bytes)], vec![String::new()], options(backend))
        .await
        .err()
        .expect("this does not load")
}

/// What a call comes to, whether it fails at once or later.
async fn outcome(call: Result<Promise, JsValue>) -> Result<Array, JsValue> {
    Ok(JsFuture::from(call?).await?.into())
}

#[wasm_bindgen_test]
async fn a_run_gives_tensors_of_their_own() {
    let session = digits().await;
    let zeros = [0; 28 * 28 * 4];
    let image = feed("float32", &[1.0, 1.0, 28.0, 28.0], &zeros);
    let outputs = outcome(session.run(&image, None, None, None, None))
        .await
        .expect("it runs");
    let output = outputs.get(0);
    assert_eq!(text(&output, "name"), "probabilities");
    assert_eq!(text(&output, "type"), "float32");
    let bytes: Uint8Array = Reflect::get(&output, &"bytes".into())
        .expect("an output has bytes")
        .into();
    let values: Vec<f32> = bytes
        .to_vec()
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    assert_eq!(values.len(), 10);
    assert!((values.iter().sum::<f32>() - 1.0).abs() < 1e-5);
}

#[wasm_bindgen_test]
async fn errors_are_plain_objects() {
    assert_eq!(
        text(&load_error(b"no model at all", "cpu").await, "code"),
        "UNKNOWN_FORMAT"
    );
    let half = load_error(&DIGITS[..DIGITS.len() / 2], "cpu").await;
    assert_eq!(text(&half, "code"), "INVALID_MODEL");
    let unknown = load_error(DIGITS, "abacus").await;
    assert_eq!(text(&unknown, "code"), "NO_BACKEND");
    assert!(text(&unknown, "expected").contains("cpu"));

    let session = digits().await;
    let wrong = outcome(session.run(&feed("int64", &[1.0], &[0; 8]), None, None, None, None)).await;
    let wrong = wrong.expect_err("the input is of another type");
    assert_eq!(text(&wrong, "code"), "DTYPE");
    assert_eq!(text(&wrong, "input"), "image");
    let short =
        outcome(session.run(&feed("float32", &[2.0], &[0; 4]), None, None, None, None)).await;
    assert_eq!(
        text(&short.expect_err("bytes are missing"), "code"),
        "SHAPE"
    );
    let missing = outcome(session.run(&Array::new(), None, None, None, None)).await;
    assert_eq!(
        text(&missing.expect_err("an input is missing"), "code"),
        "INPUT"
    );
    let negative =
        outcome(session.run(&feed("float32", &[-1.0], &[]), None, None, None, None)).await;
    assert_eq!(
        text(&negative.expect_err("a size is negative"), "code"),
        "INVALID_VALUE"
    );
}

#[wasm_bindgen_test]
fn a_file_takes_no_bytes_outside_of_it() {
    let mut file = WasmFile::new(4).expect("memory for a file");
    for offset in [2, 5, usize::MAX] {
        let outside = file.write(offset, &Uint8Array::from(&[1, 2, 3][..]));
        assert_eq!(
            text(&outside.expect_err("it does not fit"), "code"),
            "INVALID_VALUE"
        );
    }
}

#[wasm_bindgen_test]
async fn a_timeout_stops_a_run() {
    let session = digits().await;
    let zeros = vec![0; 256 * 28 * 28 * 4];
    let images = feed("float32", &[256.0, 1.0, 28.0, 28.0], &zeros);
    let late = outcome(session.run(&images, Some(0.0), None, None, None)).await;
    assert_eq!(
        text(&late.expect_err("there is no time"), "code"),
        "ABORTED"
    );
}

#[wasm_bindgen_test]
async fn a_run_reads_its_inputs_before_it_returns() {
    let session = digits().await;
    let picture = feed("float32", &[1.0, 1.0, 28.0, 28.0], &[0; 28 * 28 * 4]);
    let blank = outcome(session.run(&picture, None, None, None, None))
        .await
        .expect("it runs");
    let bytes = Reflect::get(&picture.get(0), &"bytes".into()).expect("a feed has bytes");
    let bytes: Uint8Array = bytes.into();
    let run = session.run(&picture, None, None, None, None);
    bytes.fill(0x3f, 0, bytes.length());
    let again = outcome(run).await.expect("it runs");
    let of = |outputs: &Array| {
        let bytes = Reflect::get(&outputs.get(0), &"bytes".into()).expect("an output has bytes");
        Uint8Array::from(bytes).to_vec()
    };
    assert_eq!(of(&again), of(&blank));
}
