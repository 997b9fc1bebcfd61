//! What a model says of itself, on its way to JavaScript and from there: a list of its fields in their order, and behind them of each entry the key
//! and the text.

use js_sys::Array;
use kilim::Metadata;
use kilim_core::Result;
use wasm_bindgen::JsValue;

use crate::convert;

/// The list of what a model says.
pub fn list(metadata: &Metadata) -> Array {
    let Metadata {
        name,
        description,
        producer,
        producer_version,
        domain,
        version,
        entries,
    } = metadata;
    let fields = [
        name,
        description,
        producer,
        producer_version,
        domain,
        version,
    ];
    let entries = entries.iter().flat_map(|(key, text)| [key, text]);
    let all = fields.into_iter().chain(entries);
    all.map(|text| JsValue::from(text.as_str())).collect()
}

/// What a list says.
///
/// # Errors
/// `InvalidValue` where it is none of texts, or has a key without a text; those of [`Metadata::add`].
pub fn read(list: &JsValue) -> Result<Metadata> {
    let what = "the metadata of an importer";
    let texts = convert::strings(list, what)?;
    let malformed = || convert::malformed(what, "six texts and pairs");
    let (fields, entries) = texts.split_first_chunk::<6>().ok_or_else(malformed)?;
    let [
        name,
        description,
        producer,
        producer_version,
        domain,
        version,
    ] = fields.clone();
    let mut metadata = Metadata {
        name,
        description,
        producer,
        producer_version,
        domain,
        version,
        entries: Vec::new(),
    };
    for entry in entries.chunks(2) {
        let [key, text] = entry else {
            return Err(malformed());
        };
        metadata.add(key.as_str(), text.as_str())?;
    }
    Ok(metadata)
}
