//! What a library is given while it loads a file, and what takes its model.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

use kilim_core::ops::{Attribute, Attributes};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Dim, Error, ErrorCode, Limits, Metadata, Result, Shape, Tensor};
use kilim_formats::onnx::raw;
use kilim_formats::{DraftNode, ModelFile};
use kilim_plugin_abi::importer as abi;
use kilim_plugin_abi::{self as plain, Status};

use super::calls;
use super::graphs::Graphs;
use crate::decode::{attribute, list};

/// A file beside the model, all of its bytes.
struct Beside {
    path: String,
    bytes: Tensor,
}

/// A load under way.
pub struct Taking<'a> {
    source: &'a ModelFile<'a>,
    limits: &'a Limits,
    beside: Vec<Beside>,
    whose: String,
    pub graphs: Graphs,
    /// The file of a model in the place of the draft.
    pub model: Option<Arc<AlignedBytes>>,
    /// Why the first call that failed did.
    pub wrong: Option<Error>,
    /// Why the last file beside the model that was asked for is not there.
    pub missing: Option<Error>,
}

impl<'a> Taking<'a> {
    /// Nothing yet.
    pub fn new(id: &str, source: &'a ModelFile<'a>, limits: &'a Limits) -> Taking<'a> {
        Taking {
            source,
            limits,
            beside: Vec::new(),
            whose: format!("the importer `{id}`"),
            graphs: Graphs::new(id),
            model: None,
            wrong: None,
            missing: None,
        }
    }

    /// Has `load` read the file, with functions that lead here.
    pub fn open(
        &mut self,
        name: &CStr,
        bytes: &[u8],
        load: impl FnOnce(*const abi::File, *const abi::Graph) -> Status,
    ) -> Status {
        let this: *mut c_void = (&raw mut *self).cast();
        let file = abi::File {
            size: size_of::<abi::File>() as u32,
            this,
            name: name.as_ptr(),
            bytes: bytes.as_ptr().cast(),
            byte_count: bytes.len(),
            beside: Some(calls::beside),
        };
        let graph = abi::Graph {
            size: size_of::<abi::Graph>() as u32,
            this,
            input: Some(calls::input),
            constant: Some(calls::constant),
            node: Some(calls::node),
            output: Some(calls::output),
            model: Some(calls::model),
            begin_body: Some(calls::begin_body),
            end_body: Some(calls::end_body),
            metadata: Some(calls::metadata),
        };
        load(&raw const file, &raw const graph)
    }

    /// Keeps the first error, and tells the library of this one.
    pub fn said(&mut self, made: Result<()>, message: *mut plain::Message) -> Status {
        let Err(error) = made else {
            return plain::OK;
        };
        let status = calls::tell(message, &error);
        self.wrong.get_or_insert(error);
        status
    }

    /// A mistake of the library's.
    fn invalid(&self, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorCode::InvalidModel, format!("{}: {what}", self.whose))
    }

    /// The text behind a pointer; empty where it is NULL.
    ///
    /// # Safety
    /// `text` is NULL or ends with a zero.
    pub unsafe fn text(&self, text: *const c_char) -> Result<String> {
        if text.is_null() {
            return Ok(String::new());
        }
        // SAFETY: it is not NULL, so it ends with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_str();
        text.map(ToString::to_string)
            .map_err(|_| self.invalid("a name is not valid UTF-8"))
    }

    fn dtype(&self, number: i32) -> Result<DType> {
        kilim_formats::onnx::dtype(number.into()).map_err(|e| e.of(&self.whose))
    }

    /// The elements of a tensor that the library gives, shared where they lie in a file that Kilim has given it.
    ///
    /// # Safety
    /// The shape has `rank` sizes, unless that is negative, and the data is NULL or has `bytes` bytes.
    unsafe fn tensor(&self, told: &plain::Tensor) -> Result<Tensor> {
        let dtype = self.dtype(told.dtype)?;
        let rank = usize::try_from(told.rank).map_err(|_| self.invalid("a rank is negative"))?;
        // SAFETY: by the contract of this function.
        let sizes = unsafe { list(told.shape, rank) };
        if sizes.len() != rank {
            return Err(self.invalid("a shape is missing"));
        }
        let size = |&d: &i64| {
            usize::try_from(d)
                .map_err(|_| self.invalid(format!("a dimension of a constant is {d}")))
        };
        let shape: Vec<usize> = sizes.iter().map(size).collect::<Result<_>>()?;
        if told.data.is_null() && told.bytes > 0 {
            return Err(self.invalid("the elements of a constant are missing"));
        }
        let bytes = match self.shared(told.data as usize, told.bytes)? {
            Some(part) => part,
            None => {
                // SAFETY: the data has so many bytes, by the contract of this function.
                let copied = unsafe { list(told.data.cast(), told.bytes) };
                Tensor::from_raw(DType::U8, &[copied.len()], copied)?
            }
        };
        raw(dtype, &shape, &bytes).map_err(|e| e.of(&self.whose))
    }

    /// `len` bytes at an address, where they are a part of a file.
    fn shared(&self, address: usize, len: usize) -> Result<Option<Tensor>> {
        let within = |file: &[u8]| {
            let offset = address.checked_sub(file.as_ptr() as usize)?;
            let end = offset.checked_add(len)?;
            (len > 0 && end <= file.len()).then_some(offset)
        };
        if let Some(offset) = within(self.source.bytes.as_slice()) {
            return self.source.shared(offset, len).map(Some);
        }
        for Beside { path, bytes } in &self.beside {
            if let Some(offset) = within(bytes.read()?) {
                return self
                    .source
                    .external(path, offset as u64, len, self.limits)
                    .map(Some);
            }
        }
        Ok(None)
    }

    /// The next input.
    ///
    /// # Safety
    /// `told` is NULL or an input as the interface describes it.
    pub unsafe fn input(&mut self, told: *const abi::Input) -> Result<()> {
        // SAFETY: by the contract of this function.
        let told = unsafe { told.as_ref() }.ok_or_else(|| self.invalid("an input is NULL"))?;
        // SAFETY: names end with a zero.
        let name = unsafe { self.text(told.name) }?;
        if told.dtype == abi::UNTYPED {
            return self.graphs.draft().untyped_input(&name);
        }
        let rank = usize::try_from(told.rank).map_err(|_| self.invalid("a rank is negative"))?;
        // SAFETY: an input has as many dimensions as it says.
        let dims = unsafe { list(told.dims, rank) };
        if dims.len() != rank {
            return Err(self
                .invalid("the dimensions of an input are missing")
                .with_input(name));
        }
        let dim = |dim: &abi::Dim| match usize::try_from(dim.size) {
            Ok(size) => Ok(Dim::Known(size)),
            Err(_) if dim.size != -1 => {
                let what = format!("a dimension of an input is {}", dim.size);
                Err(self.invalid(what).with_input(&name))
            }
            Err(_) => {
                // SAFETY: names end with a zero.
                let symbol = unsafe { self.text(dim.symbol) }?;
                Ok(match symbol.as_str() {
                    "" => Dim::Unknown,
                    symbol => Dim::Symbol(symbol.into()),
                })
            }
        };
        let shape = Shape(dims.iter().map(dim).collect::<Result<_>>()?);
        let dtype = self.dtype(told.dtype)?;
        self.graphs.draft().input(&name, dtype, shape)
    }

    /// The next constant.
    ///
    /// # Safety
    /// `told` is NULL or a constant as the interface describes it.
    pub unsafe fn constant(&mut self, told: *const plain::Tensor) -> Result<()> {
        // SAFETY: by the contract of this function.
        let told = unsafe { told.as_ref() }.ok_or_else(|| self.invalid("a constant is NULL"))?;
        // SAFETY: names end with a zero, shape and data are as long as the tensor says.
        let (name, tensor) = unsafe { (self.text(told.name)?, self.tensor(told)) };
        let tensor = tensor.map_err(|e| e.with_input(&name))?;
        self.graphs.draft().constant(&name, tensor)
    }

    /// The next node.
    ///
    /// # Safety
    /// `told` is NULL or a node as the interface describes it.
    pub unsafe fn node(&mut self, told: *const abi::Operation) -> Result<()> {
        self.limits.check_nodes(self.graphs.node_count() + 1)?;
        self.source.interrupt.check()?;
        // SAFETY: by the contract of this function.
        let told = unsafe { told.as_ref() }.ok_or_else(|| self.invalid("a node is NULL"))?;
        // SAFETY: texts end with a zero, and the node has as many attributes, inputs and outputs as it says.
        let (name, domain, op, attributes, inputs, outputs) = unsafe {
            (
                self.text(told.name)?,
                self.text(told.domain)?,
                self.text(told.op)?,
                list(told.attributes, told.attribute_count),
                list(told.inputs, told.input_count),
                list(told.outputs, told.output_count),
            )
        };
        let mut known = Attributes::default();
        for a in attributes {
            // SAFETY: names end with a zero, and an attribute has as many values of its kind as it says.
            let (of, value) = unsafe { (self.text(a.name)?, self.attribute(a)) };
            let value = value.map_err(|e| e.at(&name, &op))?;
            if known.get(&of).is_some() {
                let what = format!("the attribute `{of}` stands twice");
                return Err(self.invalid(what).at(&name, &op));
            }
            known.set(of, value);
        }
        let names = |list: &[*const c_char]| -> Result<Vec<String>> {
            // SAFETY: names end with a zero.
            list.iter().map(|&n| unsafe { self.text(n) }).collect()
        };
        let node = DraftNode {
            inputs: names(inputs)?,
            outputs: names(outputs)?,
            name,
            domain,
            op,
            attributes: known,
            bodies: Vec::new(),
        };
        self.graphs.node(node)
    }

    /// # Safety
    /// The attribute has as many values of its kind as it says; texts end with a zero.
    unsafe fn attribute(&self, a: &plain::Attribute) -> Result<Attribute> {
        if a.kind == plain::TENSORS {
            // SAFETY: by the contract of this function.
            return match unsafe { list::<plain::Tensor>(a.values.cast(), a.count) } {
                // SAFETY: an attribute's tensor is as the interface describes it.
                [tensor] => unsafe { self.tensor(tensor) }.map(Attribute::Tensor),
                _ => Err(self.invalid("an attribute of several tensors")),
            };
        }
        // SAFETY: by the contract of this function.
        unsafe { attribute(a) }.ok_or_else(|| self.invalid("an attribute is of no kind"))
    }

    /// What the model says of itself.
    ///
    /// # Safety
    /// `told` is NULL or metadata as the interface describes them.
    pub unsafe fn metadata(&mut self, told: *const abi::Metadata) -> Result<()> {
        // SAFETY: by the contract of this function.
        let told = unsafe { told.as_ref() }.ok_or_else(|| self.invalid("the metadata is NULL"))?;
        // SAFETY: texts end with a zero, and there are as many keys and texts as the metadata say.
        let (mut metadata, keys, texts) = unsafe {
            let metadata = Metadata {
                name: self.text(told.name)?,
                description: self.text(told.description)?,
                producer: self.text(told.producer)?,
                producer_version: self.text(told.producer_version)?,
                domain: self.text(told.domain)?,
                version: self.text(told.version)?,
                entries: Vec::new(),
            };
            let keys = list(told.keys, told.entry_count);
            (metadata, keys, list(told.texts, told.entry_count))
        };
        if keys.len() != told.entry_count || texts.len() != told.entry_count {
            return Err(self.invalid("the entries of the metadata are missing"));
        }
        for (&key, &text) in keys.iter().zip(texts) {
            // SAFETY: texts end with a zero.
            let (key, text) = unsafe { (self.text(key)?, self.text(text)?) };
            let added = metadata.add(key, text);
            added.map_err(|e| e.of(&self.whose))?;
        }
        self.graphs.model().set_metadata(metadata);
        Ok(())
    }

    /// Begins a body of the next node.
    pub fn begin_body(&mut self, attribute: &str) -> Result<()> {
        self.source.interrupt.check()?;
        self.graphs.begin(attribute, self.limits)
    }

    /// The file of a model in the place of the draft.
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        if self.model.is_some() {
            return Err(self.invalid("a second model is given"));
        }
        self.limits.check_file(bytes.len() as u64)?;
        self.model = Some(Arc::new(AlignedBytes::copy_of(bytes)?));
        Ok(())
    }

    /// The bytes of a file beside the model, which stay as long as this.
    pub fn beside(&mut self, path: &str) -> Result<&[u8]> {
        let at = match self.beside.iter().position(|known| known.path == path) {
            Some(at) => at,
            None => {
                let bytes = self.source.whole_external(path, self.limits)?;
                let path = path.to_string();
                self.beside.push(Beside { path, bytes });
                self.beside.len() - 1
            }
        };
        self.beside[at].bytes.read()
    }
}
