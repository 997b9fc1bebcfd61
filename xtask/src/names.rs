//! Short names for what wasm-bindgen's script and its binary import and export of each other: pages fetch each of them twice.

use anyhow::{Result, ensure};
use std::collections::HashMap;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{ExportSection, ImportSection, Module};
use wasmparser::{Parser, Payload, TypeRef};

/// What the binary imports its functions from.
const SCRIPT: &str = "./kilim_bg.js";
/// The export that others than the script use.
const MEMORY: &str = "memory";
/// How the script speaks of an export.
const EXPORTS: &str = "wasm.";

/// The script and the binary with short names, the same in both.
///
/// # Errors
/// Where the script is not of the form that this wasm-bindgen writes.
pub fn shorten(script: &str, binary: &[u8]) -> Result<(String, Vec<u8>)> {
    let mut names = Names::default();
    for payload in Parser::new(0).parse_all(binary) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    if import.module == SCRIPT && matches!(import.ty, TypeRef::Func(_)) {
                        let name = short(names.imports.len());
                        names.imports.insert(import.name.to_owned(), name);
                    }
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.name != MEMORY {
                        let name = short(names.exports.len());
                        names.exports.insert(export.name.to_owned(), name);
                    }
                }
            }
            _ => {}
        }
    }
    let script = names.script(script)?;
    let mut module = Module::new();
    utils::parse_core_module(&mut names, &mut module, Parser::new(0), binary)?;
    Ok((script, module.finish()))
}

/// The name of a number: one letter, then two.
pub fn short(number: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let last = char::from(LETTERS[number % LETTERS.len()]);
    match number / LETTERS.len() {
        0 => last.to_string(),
        more => format!("{}{last}", short(more - 1)),
    }
}

/// The short names of functions, by those that they had.
#[derive(Default)]
struct Names {
    imports: HashMap<String, String>,
    exports: HashMap<String, String>,
}

impl Names {
    fn script(&self, script: &str) -> Result<String> {
        let mut made = String::new();
        let mut found = 0;
        for line in script.lines() {
            let item = line.trim_start();
            let blanks = &line[..line.len() - item.len()];
            let import = item.split_once(": ").and_then(|(name, rest)| {
                let name = self.imports.get(name)?;
                Some(format!("{blanks}{name}: {rest}"))
            });
            found += usize::from(import.is_some());
            made.push_str(&self.exported(import.as_deref().unwrap_or(line)));
            made.push('\n');
        }
        ensure!(
            found == self.imports.len(),
            "wasm-bindgen's script gives {found} functions and not {}",
            self.imports.len()
        );
        Ok(made)
    }

    /// A line with the short names of the exports that it uses.
    fn exported(&self, line: &str) -> String {
        let mut parts = line.split(EXPORTS);
        let mut made = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let whole = made.ends_with(is_of_name);
            let end = part.find(|c| !is_of_name(c)).unwrap_or(part.len());
            let name = self.exports.get(&part[..end]).filter(|_| !whole);
            made.push_str(EXPORTS);
            made.push_str(name.map_or(&part[..end], String::as_str));
            made.push_str(&part[end..]);
        }
        made
    }
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

impl Reencode for Names {
    type Error = Infallible;

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        for import in section.into_imports() {
            let import = import?;
            let of = self.entity_type(import.ty)?;
            let name = self.imports.get(import.name).map(String::as_str);
            let name = name.filter(|_| import.module == SCRIPT);
            imports.import(import.module, name.unwrap_or(import.name), of);
        }
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        for export in section {
            let export = export?;
            let kind = self.export_kind(export.kind)?;
            let index = self.external_index(export.kind, export.index)?;
            let name = self.exports.get(export.name).map(String::as_str);
            exports.export(name.unwrap_or(export.name), kind, index);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{short, shorten};
    use crate::sh;
    use wasm_encoder::{
        EntityType, ExportKind, ExportSection, ImportSection, MemorySection, MemoryType, Module,
        TypeSection,
    };

    const SCRIPT: &str = "
const memory = 'wasm.load';
const initwasm = { load: 5 };
let wasm;
function imports() {
    const import0 = {
        __wbg_log_1234: (x) => x + 1,
    };
    return { './kilim_bg.js': import0, './other.js': { __wbg_log_1234: () => 7 } };
}
function run(module) {
    wasm = new WebAssembly.Instance(module, imports()).exports;
    return [wasm.load(3), wasm.memory.buffer.byteLength, initwasm.load, Object.keys(wasm).join(' ')];
}
";

    /// Exports one of its imports, and its memory.
    fn binary() -> Vec<u8> {
        let mut types = TypeSection::new();
        let int = wasm_encoder::ValType::I32;
        types.ty().function([int], [int]);
        let mut imports = ImportSection::new();
        for module in ["./other.js", "./kilim_bg.js"] {
            imports.import(module, "__wbg_log_1234", EntityType::Function(0));
        }
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: 1,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0);
        exports.export("load", ExportKind::Func, 1);
        let mut module = Module::new();
        module.section(&types).section(&imports);
        module.section(&memories).section(&exports);
        module.finish()
    }

    #[test]
    fn script_and_binary_have_the_same_short_names() {
        let (script, binary) = shorten(SCRIPT, &binary()).unwrap();
        let run = format!(
            "{script} console.log(run(new WebAssembly.Module(new Uint8Array({binary:?}))).join(';'))"
        );
        let told = sh::capture(sh::cmd("node").args(["-e", &run])).expect("the script runs");
        assert_eq!(told.trim(), "4;65536;5;memory a");
    }

    #[test]
    fn a_script_without_a_function_is_refused() {
        let other = SCRIPT.replace("__wbg_log_1234: (x)", "__wbg_log_5678: (x)");
        assert!(shorten(&other, &binary()).is_err());
    }

    #[test]
    fn names_differ() {
        let names: std::collections::HashSet<String> = (0..10_000).map(short).collect();
        assert_eq!(names.len(), 10_000);
        assert_eq!(
            [short(0), short(51), short(52), short(104)],
            ["a", "Z", "aa", "ba"]
        );
    }
}
