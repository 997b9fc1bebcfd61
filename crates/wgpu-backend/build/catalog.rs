//! All shader files, with what they take from the files that they include.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use crate::head::{self, Case, Define, FAULT, Head, Item, Operand, Presence, Result, Types};
use crate::preprocess::{self, Defined};

/// One file.
pub struct File {
    /// Under `shaders/`.
    pub path: String,
    pub head: Head,
}

/// Every file, in the order of their paths.
pub struct Catalog {
    pub types: Types,
    pub files: Vec<File>,
}

/// A file with an entry point, and the declarations of what it includes.
pub struct Shader {
    pub path: String,
    /// The index of the shader among the files.
    pub id: usize,
    pub common: Vec<Define>,
    /// At least one; a single one may have no name.
    pub cases: Vec<Case>,
    /// The file that declares the cases.
    pub cases_of: String,
    pub operands: Vec<Operand>,
    /// Whether `#fault` is among them.
    pub reports: bool,
}

impl Catalog {
    /// Reads the folder.
    pub fn read(folder: &Path) -> Result<Catalog> {
        let mut texts = Vec::new();
        append(folder, "", &mut texts).map_err(|e| e.to_string())?;
        let mut types = Types::new();
        for (path, text) in &texts {
            for (name, values) in head::types(text).map_err(|e| format!("{path}: {e}"))? {
                if types.insert(name.clone(), values).is_some() {
                    return Err(format!("{path}: the type `{name}` is declared twice"));
                }
            }
        }
        let mut files = Vec::with_capacity(texts.len());
        for (path, text) in texts {
            let head = head::read(&text, &types).map_err(|e| format!("{path}: {e}"))?;
            files.push(File { path, head });
        }
        Ok(Catalog { types, files })
    }

    fn find(&self, path: &str) -> Result<&File> {
        let file = self.files.iter().find(|f| f.path == path);
        file.ok_or_else(|| format!("there is no shader file `{path}`"))
    }

    /// The files that a file includes, and those that they include, each once.
    pub fn includes(&self, file: &File) -> Result<Vec<&File>> {
        let mut found: Vec<&File> = Vec::new();
        let mut open = vec![self.find(&file.path)?];
        while let Some(file) = open.pop() {
            for item in &file.head.operands {
                let Item::Include { path, .. } = item else {
                    continue;
                };
                if !found.iter().any(|f| f.path == *path) {
                    let included = self.find(path)?;
                    found.push(included);
                    open.push(included);
                }
            }
        }
        Ok(found)
    }

    /// Every file with an entry point.
    pub fn shaders(&self) -> Result<Vec<Shader>> {
        let mut shaders = Vec::new();
        for (id, file) in self.files.iter().enumerate() {
            if file.head.body.contains("@compute") {
                let shader = self.shader(id, file);
                shaders.push(shader.map_err(|e| format!("{}: {e}", file.path))?);
            }
        }
        Ok(shaders)
    }

    fn shader(&self, id: usize, file: &File) -> Result<Shader> {
        let mut shader = Shader {
            path: file.path.clone(),
            id,
            common: Vec::new(),
            cases: Vec::new(),
            cases_of: String::new(),
            operands: Vec::new(),
            reports: false,
        };
        self.take(file, &mut Vec::new(), &mut shader)?;
        shader.reports = shader.operands.iter().any(|o| o.name == FAULT);
        if shader.cases.is_empty() {
            shader.cases.push(Case::default());
        }
        shader.check()?;
        Ok(shader)
    }

    /// Adds the declarations of a file and of what it includes, in the order of the text.
    fn take(&self, file: &File, seen: &mut Vec<String>, to: &mut Shader) -> Result<()> {
        let own = file.path == to.path;
        let typed = |d: &Define| own || d.named.is_some() || d.values.len() == 1;
        if let Some(define) = file.head.common.iter().find(|d| !typed(d)) {
            let (name, path) = (&define.name, &file.path);
            return Err(format!("`{name}` of {path} needs a declared type"));
        }
        to.common.extend(file.head.common.iter().cloned());
        if !file.head.cases.is_empty() {
            if !to.cases.is_empty() {
                return Err(format!("{} and {} have cases", to.cases_of, file.path));
            }
            to.cases.clone_from(&file.head.cases);
            to.cases_of.clone_from(&file.path);
        }
        for item in &file.head.operands {
            match item {
                Item::Operand(operand) => to.operands.push(operand.clone()),
                Item::Include { path, conditional } => {
                    if seen.contains(path) {
                        continue;
                    }
                    seen.push(path.clone());
                    let included = self.find(path)?;
                    if *conditional && included.head.declares() {
                        return Err(format!("{path} declares, and is included conditionally"));
                    }
                    self.take(included, seen, to)?;
                }
            }
        }
        Ok(())
    }

    /// The WGSL of a shader where its definitions are `chosen`; every buffer that is read is read only.
    pub fn expand(&self, shader: &Shader, chosen: &BTreeMap<String, String>) -> Result<String> {
        let file = self.find(&shader.path)?;
        let include = |path: &str| Some(self.find(path).ok()?.head.body.as_str());
        let defined: Defined = &|name| chosen.get(name).map(String::as_str);
        preprocess::expand(&file.head.body, &include, defined, &|_| true)
    }
}

impl Head {
    fn declares(&self) -> bool {
        let operand = |i: &Item| matches!(i, Item::Operand(_));
        !self.common.is_empty() || !self.cases.is_empty() || self.operands.iter().any(operand)
    }
}

impl Shader {
    /// All definitions of a case, in the order in which variants are numbered.
    pub fn defines(&self, case: &Case) -> Vec<Define> {
        let flags = head::flags(&self.operands);
        let all = self.common.iter().chain(&case.defines).chain(&flags);
        all.cloned().collect()
    }

    /// How many variants a case has.
    pub fn count(&self, case: &Case) -> usize {
        self.defines(case).iter().map(|d| d.values.len()).product()
    }

    /// The first value of every definition of a case.
    pub fn first(&self, case: &Case) -> BTreeMap<String, String> {
        let first = |d: Define| (d.name, d.values[0].clone());
        self.defines(case).into_iter().map(first).collect()
    }

    fn check(&self) -> Result<()> {
        let variants: usize = self.cases.iter().map(|c| self.count(c)).sum();
        if variants > usize::from(u16::MAX) {
            return Err(format!("{variants} variants are too many"));
        }
        for case in &self.cases {
            let defines = self.defines(case);
            for (i, define) in defines.iter().enumerate() {
                if defines[..i].iter().any(|d| d.name == define.name) {
                    return Err(format!("`{}` is defined twice", define.name));
                }
            }
        }
        for operand in &self.operands {
            if let Presence::Where { define, .. } = &operand.presence {
                let own = |d: &Define| d.name == *define && d.named.is_none();
                if !self.common.iter().any(own) {
                    let name = &operand.name;
                    return Err(format!(
                        "`{name}` depends on `{define}`, which is not its own"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The folder of shaders that scripts of pages launch. They are plain WGSL.
const OF_PAGES: &str = "page";

/// Appends path and text of every shader in `dir` but those of pages. `at` is the path of `dir`, with a slash behind it.
fn append(dir: &Path, at: &str, all: &mut Vec<(String, String)>) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = format!("{at}{}", name.to_string_lossy());
        if name == OF_PAGES {
            continue;
        }
        if entry.file_type()?.is_dir() {
            append(&path, &format!("{name}/"), all)?;
        } else if path.extension().is_some_and(|e| e == "wgsl") {
            all.push((name, fs::read_to_string(path)?));
        }
    }
    Ok(())
}
