//! What a file says of itself: the fields of `Model`, and the buffers that its `metadata` names. One of these is a FlatBuffer with a schema of
//! its own (`metadata_schema.fbs` of TFLite's support library, version 1.5).

use kilim_core::Metadata;
use kilim_core::error::Result;

use crate::flatbuffer::{FlatBuffer, Table};

/// Slots of `Model`.
const DESCRIPTION: usize = 3;
const METADATA: usize = 6;

/// The name of the buffer with the schema of its own.
const DESCRIBED: &str = "TFLITE_METADATA";

/// Bytes of a buffer that may be a text: versions and words are short, and other tools' FlatBuffers are not.
const TEXT: usize = 1024;

/// Reads what a model says of itself; `buffers` are the tables of its buffers. A buffer that is no text is said by its length.
///
/// # Errors
/// `InvalidModel` where the file is garbled, `Limit` where it names too many buffers. What the schema of its own garbles counts for nothing.
pub fn read(model: &Table, buffers: &[Table]) -> Result<Metadata> {
    let mut metadata = Metadata {
        description: model.string(DESCRIPTION)?,
        ..Metadata::default()
    };
    for named in model.tables(METADATA)? {
        let name = named.string(0)?;
        let buffer = usize::try_from(named.u32(1)?).ok();
        let Some(buffer) = buffer.and_then(|at| buffers.get(at)) else {
            continue;
        };
        let data = buffer.vector(0, 1)?;
        let bytes = match data.len == 0 || !data.is_here(1) {
            true => &[],
            false => data.bytes()?,
        };
        if name == DESCRIBED {
            if let Ok(described) = described(bytes) {
                describe(&mut metadata, described)?;
            }
        } else if !name.is_empty() {
            let said = text(bytes).map_or_else(|| format!("[{} bytes]", data.len), String::from);
            metadata.add(name, said)?;
        }
    }
    Ok(metadata)
}

/// The words of a short text, behind which zeros may stand.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes.get(..bytes.len().min(TEXT + 1))?).ok()?;
    let text = text.trim_end_matches('\0');
    let is_text = bytes.len() <= TEXT && !text.is_empty() && !text.contains(char::is_control);
    is_text.then_some(text)
}

/// What `ModelMetadata` says.
struct Described {
    name: String,
    description: String,
    version: String,
    author: String,
    license: String,
}

fn described(bytes: &[u8]) -> Result<Described> {
    let file = FlatBuffer::within(bytes);
    let table = file.root()?;
    Ok(Described {
        name: table.string(0)?,
        description: table.string(1)?,
        version: table.string(2)?,
        author: table.string(4)?,
        license: table.string(5)?,
    })
}

fn describe(metadata: &mut Metadata, described: Described) -> Result<()> {
    metadata.name = described.name;
    metadata.version = described.version;
    // The converter's description is a word for itself.
    if !described.description.is_empty() {
        metadata.description = described.description;
    }
    for (key, said) in [("author", described.author), ("license", described.license)] {
        if !said.is_empty() {
            metadata.add(key, said)?;
        }
    }
    Ok(())
}
