//! Archives whose entries are not compressed.

/// An archive of these files.
pub fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let size = (bytes.len() as u32).to_le_bytes();
        let said = [
            &[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0],
            &crc32(bytes).to_le_bytes()[..],
            &size,
            &size,
            &(name.len() as u16).to_le_bytes(),
            &[0; 2],
        ]
        .concat();
        directory.extend([b"PK\x01\x02\x14\0".as_slice(), &said, &[0; 10]].concat());
        directory.extend((out.len() as u32).to_le_bytes());
        directory.extend(name.as_bytes());
        out.extend([b"PK\x03\x04".as_slice(), &said, name.as_bytes(), bytes].concat());
    }
    let count = (files.len() as u16).to_le_bytes();
    let place = [directory.len() as u32, out.len() as u32].map(u32::to_le_bytes);
    out.extend(&directory);
    out.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count].concat());
    out.extend([place.concat(), vec![0; 2]].concat());
    out
}

/// The sum that an archive keeps of each file.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
    let sum = bytes
        .iter()
        .fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step));
    !sum
}
