//! Importers in libraries, behind the C interface of `include/kilim_importer.h`.

mod calls;
mod graphs;
mod taking;

use std::ffi::CString;
use std::path::Path;

use kilim_core::{Error, ErrorCode, Graph, Limits, Result};
use kilim_formats::{HEAD, Importer, ModelFile, load_model};
use kilim_plugin_abi::importer as abi;
use kilim_plugin_abi::{Host, Status};

use crate::encode::c_text;
use crate::library::{Message, no_library};
use crate::opened::Opened;
use crate::trial;
use taking::Taking;

/// An importer in a library.
pub struct LibraryImporter {
    id: String,
    table: abi::Importer,
    probe: abi::Probe,
    load: abi::Load,
    /// Unloaded last.
    _library: Opened,
}

impl LibraryImporter {
    /// Opens the library of the importer `id`, after a trial.
    ///
    /// # Errors
    /// `InvalidValue` where it cannot be loaded, is not the library of an importer or is for another version; `Device` where it crashes, ends
    /// the process or hangs.
    pub fn open(id: &str, file: &Path) -> Result<LibraryImporter> {
        trial::passed(file, "gives its importer", || {
            LibraryImporter::new(id, file)
        })
    }

    fn new(id: &str, file: &Path) -> Result<LibraryImporter> {
        let wrong = |what: &str| no_library(ErrorCode::InvalidValue, file, what);
        // SAFETY: the user names the folder whose libraries are run; loading runs their initialisers.
        let library =
            unsafe { Opened::new(file) }.map_err(|e| wrong(&format!("cannot be loaded: {e}")))?;
        let missing = |e| wrong("is not the library of an importer").with_hint(e);
        // SAFETY: a function of this name has this type; that is the interface.
        let create = unsafe { library.get::<abi::Create>(b"kilim_importer\0") }.map_err(missing)?;
        let release = CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
        let host = Host {
            version: abi::VERSION,
            size: size_of::<abi::Importer>() as u32,
            release: release.as_ptr(),
        };
        // SAFETY: the host lives during the call.
        let told = unsafe { create(&raw const host) };
        if told.is_null() {
            return Err(wrong("does not work with this Kilim"));
        }
        // SAFETY: version and size come first in every version of the interface.
        let (version, size) = unsafe { ((*told).version, (*told).size as usize) };
        if version != abi::VERSION {
            return Err(wrong("is for another version of the importer interface")
                .with_expected(abi::VERSION)
                .with_got(version));
        }
        let least = size_of::<abi::Importer>();
        if size < least {
            return Err(
                wrong("has a table that is too small for the importer interface")
                    .with_expected(format!("at least {least} bytes"))
                    .with_got(format!("{size} bytes")),
            );
        }
        // SAFETY: the library says that all of it is there.
        let table = unsafe { told.read() };
        let without = |name: &str| wrong(&format!("has an importer without `{name}`"));
        Ok(LibraryImporter {
            id: id.to_string(),
            table,
            probe: table.probe.ok_or_else(|| without("probe"))?,
            load: table.load.ok_or_else(|| without("load"))?,
            _library: library,
        })
    }

    /// What the library says of a load that failed.
    fn failed(&self, status: Status, message: &Message) -> Error {
        let code = match status {
            kilim_plugin_abi::UNSUPPORTED => ErrorCode::Unsupported,
            kilim_plugin_abi::INVALID_VALUE => ErrorCode::InvalidModel,
            kilim_plugin_abi::LIMIT => ErrorCode::Limit,
            _ => ErrorCode::State,
        };
        let text = message.text();
        let text = match text.is_empty() {
            true => format!("status {status}, and no word why"),
            false => text,
        };
        Error::new(code, format!("the importer `{}`: {text}", self.id))
    }
}

impl Importer for LibraryImporter {
    fn format(&self) -> &str {
        &self.id
    }

    fn probe(&self, bytes: &[u8], name: &str) -> bool {
        let head = &bytes[..bytes.len().min(HEAD)];
        let name = c_text(name);
        // SAFETY: a function of the table; the bytes and the name live during the call.
        let known = unsafe {
            let this = self.table.this;
            (self.probe)(this, head.as_ptr().cast(), head.len(), name.as_ptr())
        };
        known == 1
    }

    fn load(&self, source: &ModelFile, limits: &Limits) -> Result<Graph> {
        let mut taking = Taking::new(&self.id, source, limits);
        let name = c_text(source.name);
        let bytes = source.bytes.as_slice();
        let mut message = Message::new();
        let status = taking.open(name.as_c_str(), bytes, |file, graph| {
            // SAFETY: a function of the table; all that it gets lives during the call.
            unsafe { (self.load)(self.table.this, file, graph, message.raw()) }
        });
        if let Some(wrong) = taking.wrong {
            return Err(wrong);
        }
        if status != kilim_plugin_abi::OK {
            let whose = format!("the importer `{}`", self.id);
            let failed = || self.failed(status, &message);
            return Err(taking.missing.map_or_else(failed, |e| e.of(&whose)));
        }
        match taking.model {
            None => taking.graphs.finish()?.graph(source, limits),
            Some(bytes) => {
                let whose = format!("the importer `{}`", self.id);
                load_model(&source.rewritten(bytes), limits).map_err(|e| e.of(&whose))
            }
        }
    }
}
