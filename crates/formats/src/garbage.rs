//! Files that are cut, and files with bytes overwritten, for the tests of the formats.

/// Reads `bytes` cut at many places, and with many bytes overwritten: every `step`th. What comes of it is a graph or an error.
pub fn damaged(bytes: &[u8], step: usize, mut read: impl FnMut(&[u8])) {
    for len in (0..bytes.len()).step_by(step / 2) {
        read(&bytes[..len]);
    }
    let mut bytes = bytes.to_vec();
    for at in (0..bytes.len()).step_by(step) {
        for value in [0, 0xff, !bytes[at], b'-', b'9', b' ', b'='] {
            let old = std::mem::replace(&mut bytes[at], value);
            read(&bytes);
            bytes[at] = old;
        }
    }
}
