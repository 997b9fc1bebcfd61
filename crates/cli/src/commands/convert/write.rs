//! Writing a model, and its weights beside it, without leaving a part of it behind.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use kilim_convert::OnnxModel;

use crate::Failure;
use crate::data::io_error;

/// The name of the file with the weights beside a model.
pub fn beside(out: &Path) -> Result<String, Failure> {
    let name = out.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Failure::Usage("the file's name is no text".to_string()))?;
    Ok(format!("{name}.data"))
}

/// Writes what a model consists of under other names first. Gives the files and their sizes.
pub fn save(model: &OnnxModel, out: &Path) -> Result<Vec<(PathBuf, u64)>, Failure> {
    let [inside, outside] = model.bytes();
    let mut files = Vec::new();
    if outside > 0 {
        let data = out.with_file_name(beside(out)?);
        whole(&data, &|to| model.write_beside(to))?;
        files.push((data, outside));
    }
    whole(out, &|to| model.write(to))?;
    files.insert(0, (out.to_path_buf(), inside));
    Ok(files)
}

/// Writes a file that has its name only once it is whole.
fn whole(file: &Path, write: &dyn Fn(&mut dyn Write) -> kilim::Result<()>) -> Result<(), Failure> {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = PathBuf::from(name);
    let written = || -> Result<(), Failure> {
        let mut to = BufWriter::new(File::create(&new).map_err(|e| io_error(file, e))?);
        write(&mut to)?;
        to.flush().map_err(|e| io_error(file, e))?;
        std::fs::rename(&new, file).map_err(|e| io_error(file, e))?;
        Ok(())
    };
    let result = written();
    if result.is_err() {
        // Nothing is there where it could not be created.
        let _ = std::fs::remove_file(&new);
    }
    result
}
