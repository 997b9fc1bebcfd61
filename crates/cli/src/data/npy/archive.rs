//! `.npz`: a ZIP archive with a `.npy` file for each array.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use kilim::{Result, Tensor};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::header::Header;
use super::{decode, elements};
use crate::data::{DataLimits, io_error};

/// What numpy adds to an array's name.
const ENDING: &str = ".npy";

fn open(file: &Path) -> Result<ZipArchive<BufReader<File>>> {
    let opened = File::open(file).map_err(|e| io_error(file, e))?;
    ZipArchive::new(BufReader::new(opened)).map_err(|e| io_error(file, e))
}

/// The names of the arrays of a `.npz` file, in its order.
///
/// # Errors
/// `Io` for a file that is none.
pub fn names(file: &Path) -> Result<Vec<String>> {
    let archive = open(file)?;
    let mut names = Vec::new();
    for entry in archive.file_names() {
        let entry = entry.map_err(|e| io_error(file, e))?;
        names.extend(entry.strip_suffix(ENDING).map(str::to_string));
    }
    Ok(names)
}

/// One array of a `.npz` file.
///
/// # Errors
/// `Io` where there is none of that name or it is damaged; else as [`super::read`]: no more is
/// decompressed than the array's header announces.
pub fn read_named(file: &Path, name: &str, limits: &DataLimits) -> Result<Tensor> {
    let mut archive = open(file)?;
    let names = [format!("{name}{ENDING}"), name.to_string()];
    let index = names.iter().find_map(|name| archive.index_for_name(name));
    let index = index.ok_or_else(|| io_error(file, format!("it has no array `{name}`")))?;
    let mut entry = archive.by_index(index).map_err(|e| io_error(file, e))?;
    let length = entry.size();
    let whole = decode(&mut entry, length, limits).and_then(|tensor| {
        // The archive's checksum is compared at the end of the entry.
        match entry.read(&mut [0]) {
            Ok(0) => Ok(tensor),
            Ok(_) => Err(io_error(
                file,
                "an array has more bytes than its header says",
            )),
            Err(e) => Err(io_error(file, e)),
        }
    });
    whole.map_err(|e| e.with_input(format!("{}: {name}", file.display())))
}

/// Writes tensors as a `.npz` file, uncompressed as `numpy.savez` does: what numpy has no type for as
/// `float32`, integers of less than a byte as `int8`.
///
/// # Errors
/// `Io` where the file cannot be written, `Limit` where the machine has no memory for an array.
pub fn write_all(file: &Path, tensors: &[(String, Tensor)]) -> Result<()> {
    let out = File::create(file).map_err(|e| io_error(file, e))?;
    let mut archive = ZipWriter::new(BufWriter::new(out));
    for (name, tensor) in tensors {
        let (descr, bytes) = elements::written(tensor)?;
        let header = Header::write(&descr, tensor.shape())?;
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(bytes.len() >= LARGE);
        let added = archive.start_file(format!("{name}{ENDING}"), options);
        added.map_err(|e| io_error(file, e))?;
        let written = archive.write_all(&header);
        let written = written.and_then(|()| archive.write_all(bytes.as_slice()));
        written.map_err(|e| io_error(file, e))?;
    }
    let out = archive.finish().map_err(|e| io_error(file, e))?;
    let flushed = out.into_inner().map_err(|e| e.into_error());
    flushed.map(drop).map_err(|e| io_error(file, e))
}

/// Bytes from which on an entry needs the fields of ZIP64, less what a header takes.
const LARGE: usize = (u32::MAX - (1 << 20)) as usize;

#[cfg(test)]
mod tests {
    use kilim::{DType, ErrorCode};

    use super::*;

    /// A file of this test's own.
    fn place(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("kilim-npz-{}-{name}", std::process::id()))
    }

    const MANY: DataLimits = DataLimits { bytes: 1 << 20 };

    fn archive(file: &Path, entries: &[(&str, &[u8])]) {
        let mut archive = ZipWriter::new(File::create(file).unwrap());
        for (name, bytes) in entries {
            let options = SimpleFileOptions::default();
            let options = options.compression_method(CompressionMethod::Deflated);
            archive.start_file(*name, options).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap();
    }

    #[test]
    fn what_is_written_is_read() {
        let file = place("round.npz");
        let tensors = [
            (
                "a/b".to_string(),
                Tensor::from_slice(&[2, 1], &[1.5f32, -2.0]).unwrap(),
            ),
            ("n".to_string(), Tensor::scalar(7i64).unwrap()),
            (
                "none".to_string(),
                Tensor::zeros(DType::F16, &[0, 3]).unwrap(),
            ),
        ];
        write_all(&file, &tensors).unwrap();
        assert_eq!(names(&file).unwrap(), ["a/b", "n", "none"]);
        for (name, tensor) in &tensors {
            let read = read_named(&file, name, &MANY).unwrap();
            assert_eq!(
                (read.dtype(), read.shape()),
                (tensor.dtype(), tensor.shape())
            );
            assert_eq!(read.read().unwrap(), tensor.read().unwrap());
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn no_more_is_decompressed_than_is_allowed() {
        let file = place("limits.npz");
        let mut zeros = Header::write("<f4", &[1 << 20]).unwrap();
        zeros.resize(zeros.len() + (4 << 20), 0);
        let mut longer = Header::write("<f4", &[2]).unwrap();
        longer.resize(longer.len() + 9, 0);
        let cut = Header::write("<f4", &[2]).unwrap();
        archive(
            &file,
            &[
                ("zeros.npy", &zeros),
                ("longer.npy", &longer),
                ("cut.npy", &cut),
            ],
        );
        assert_eq!(names(&file).unwrap(), ["zeros", "longer", "cut"]);
        let read = |name: &str, bytes| read_named(&file, name, &DataLimits { bytes });
        assert_eq!(read("zeros", 1 << 20).unwrap_err().code(), ErrorCode::Limit);
        assert_eq!(read("zeros", 4 << 20).unwrap().len(), 1 << 20);
        for name in ["longer", "cut", "none"] {
            assert_eq!(
                read(name, 4 << 20).unwrap_err().code(),
                ErrorCode::Io,
                "{name}"
            );
        }
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn damage_is_found() {
        let file = place("damage.npz");
        let mut array = Header::write("<f4", &[16]).unwrap();
        array.resize(array.len() + 64, 0);
        let mut archive = ZipWriter::new(File::create(&file).unwrap());
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        archive.start_file("x.npy", stored).unwrap();
        archive.write_all(&array).unwrap();
        archive.finish().unwrap();
        assert!(read_named(&file, "x", &MANY).is_ok());
        let mut bytes = std::fs::read(&file).unwrap();
        // The last elements of the only entry, before the directory of 51 bytes and its end of 22.
        let at = bytes.len() - 22 - 51 - 8;
        bytes[at] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        let error = read_named(&file, "x", &MANY).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Io, "{error}");
        std::fs::write(&file, &bytes[..100]).unwrap();
        assert_eq!(names(&file).unwrap_err().code(), ErrorCode::Io);
        std::fs::remove_file(file).unwrap();
    }
}
