//! Products with the tensors of a file, and rows of them.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use kilim_core::DType;
use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::tensor::Tensor;

use super::blocks::ElementType;
use super::invalid;
use super::matrix::Matrix;
use crate::build::GraphBuilder;

/// Names of tensors that an error shows.
const SHOWN: usize = 8;

/// The tensors of a model by the names that llama.cpp gives them (`gguf-py/gguf/constants.py`).
pub trait Tensors {
    /// What is said of a tensor.
    fn find(&self, name: &str) -> Option<Described<'_>>;

    /// The names of all tensors, in no order.
    fn names(&self) -> Vec<&str>;

    /// The bytes of a tensor that is there: `uint8`, perhaps read when they are needed.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends before, else what the file's source says.
    fn raw(&self, name: &str) -> Result<Tensor>;
}

/// What is said of a tensor.
#[derive(Clone, Copy)]
pub struct Described<'a> {
    /// The outermost dimension first.
    pub shape: &'a [usize],
    pub of: &'static ElementType,
}

/// The tensors of a model, each once in the graph.
pub struct Weights<'a> {
    tensors: &'a dyn Tensors,
    matrices: HashMap<String, Matrix>,
    used: RefCell<HashSet<String>>,
}

impl<'a> Weights<'a> {
    pub fn new(tensors: &'a dyn Tensors) -> Weights<'a> {
        Weights {
            tensors,
            matrices: HashMap::new(),
            used: RefCell::default(),
        }
    }

    /// Whether the file has a tensor `name`.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.find(name).is_some()
    }

    /// Refuses tensors that nothing has asked for, but for `others`: they would change the results.
    ///
    /// # Errors
    /// `Unsupported` where there are any.
    pub fn check_all_used(&self, others: &[&str]) -> Result<()> {
        let used = self.used.borrow();
        let mut unused = self.tensors.names();
        unused.retain(|name| !used.contains(*name) && !others.contains(name));
        unused.sort_unstable();
        if unused.is_empty() {
            return Ok(());
        }
        let shown = &unused[..unused.len().min(SHOWN)];
        let e = unsupported("tensors that this architecture is not known to have");
        Err(e.with_got(format!("{}, {} in all", shown.join(", "), unused.len())))
    }

    /// The elements of a tensor that are not packed, which has these dimensions.
    ///
    /// # Errors
    /// `InvalidModel` where it is missing, of another shape or beyond the end of the file; `Unsupported` where it is packed.
    pub fn plain(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let info = self.info(name)?;
        if info.shape != shape {
            let e = invalid("a tensor of an unexpected shape").with_input(name);
            return Err(e
                .with_expected(format!("{shape:?}"))
                .with_got(format!("{:?}", info.shape)));
        }
        let raw = self.raw(name)?;
        let plain = info.of.plain(&raw, shape);
        plain.map_err(|e| e.with_input(name))
    }

    /// A vector of `len` numbers, as `float32`.
    ///
    /// # Errors
    /// Those of [`Weights::plain`].
    pub fn vector(&self, b: &mut GraphBuilder, name: &str, len: usize) -> Result<ValueId> {
        let tensor = self.plain(name, &[len])?;
        let value = b.add_constant(name, tensor);
        b.cast(value, DType::F32)
    }

    /// Vectors of such lengths one behind the other, as `float32`; `None` where the file has none of them.
    ///
    /// # Errors
    /// Those of [`Weights::plain`], where the file has some of them and not others, too.
    pub fn vectors(
        &self,
        b: &mut GraphBuilder,
        parts: &[(&str, usize)],
    ) -> Result<Option<ValueId>> {
        if !parts.iter().any(|(name, _)| self.has(name)) {
            return Ok(None);
        }
        let vectors = parts.iter().map(|(name, len)| self.vector(b, name, *len));
        let vectors = vectors.collect::<Result<Vec<_>>>()?;
        b.concat(&vectors, 0).map(Some)
    }

    /// The rows of a matrix.
    ///
    /// # Errors
    /// `InvalidModel` where the tensor is missing or no matrix.
    pub fn rows(&self, name: &str) -> Result<usize> {
        Ok(self.dimensions(name)?[0])
    }

    /// The columns of a matrix.
    ///
    /// # Errors
    /// `InvalidModel` where the tensor is missing or no matrix.
    pub fn columns(&self, name: &str) -> Result<usize> {
        Ok(self.dimensions(name)?[1])
    }

    fn dimensions(&self, name: &str) -> Result<[usize; 2]> {
        let info = self.info(name)?;
        match info.shape[..] {
            [rows, columns] if rows > 0 && columns > 0 => Ok([rows, columns]),
            _ => Err(not_a_matrix(name, info)),
        }
    }

    /// `x · wᵀ + bias` with the matrix `w` of the name, of `rows` rows, and a bias `[rows]`.
    ///
    /// # Errors
    /// `InvalidModel` where the tensor is missing or of another shape, `Unsupported` for its type of elements.
    pub fn product(
        &mut self,
        b: &mut GraphBuilder,
        x: ValueId,
        name: &str,
        rows: usize,
        bias: Option<ValueId>,
    ) -> Result<ValueId> {
        self.stacked_product(b, x, &[(name, rows)], bias)
    }

    /// `x · wᵀ`, and a bias where the file has one; `name` is that of the tensors without `.weight` and `.bias`.
    ///
    /// # Errors
    /// Those of [`Weights::product`].
    pub fn biased_product(
        &mut self,
        b: &mut GraphBuilder,
        x: ValueId,
        name: &str,
        rows: usize,
    ) -> Result<ValueId> {
        let bias = self.vectors(b, &[(&format!("{name}.bias"), rows)])?;
        self.product(b, x, &format!("{name}.weight"), rows, bias)
    }

    /// Whether tensors are matrices of one type of elements and as many columns, so that they can stand below each other in one.
    pub fn stack(&self, names: &[String]) -> bool {
        let mut forms = names.iter().map(|name| {
            let info = self.tensors.find(name)?;
            let [_, columns] = info.shape[..] else {
                return None;
            };
            Some((info.of.name, columns))
        });
        let first = forms.next().flatten();
        first.is_some() && forms.all(|form| form == first)
    }

    /// `x · wᵀ + bias` with the matrices of the names below each other, each with so many rows.
    ///
    /// # Errors
    /// Those of [`Weights::product`].
    pub fn stacked_product(
        &mut self,
        b: &mut GraphBuilder,
        x: ValueId,
        parts: &[(&str, usize)],
        bias: Option<ValueId>,
    ) -> Result<ValueId> {
        for (name, rows) in parts {
            let [got, _] = self.dimensions(name)?;
            if got != *rows {
                let e = invalid("a matrix with another number of rows").with_input(name);
                return Err(e.with_expected(rows).with_got(got));
            }
        }
        let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
        let matrix = self.matrix(b, &names)?;
        let made = matrix.product(b, x, bias);
        made.map_err(|e| e.with_input(names.join(", ")))
    }

    /// The rows at `indices` of the matrix of the name, which has `columns` columns, as `float32`.
    ///
    /// # Errors
    /// Those of [`Weights::product`].
    pub fn gather(
        &mut self,
        b: &mut GraphBuilder,
        indices: ValueId,
        name: &str,
        columns: usize,
    ) -> Result<ValueId> {
        let matrix = self.matrix(b, &[name])?;
        if matrix.columns != columns {
            let e = invalid("a matrix with another number of columns").with_input(name);
            return Err(e.with_expected(columns).with_got(matrix.columns));
        }
        matrix.gather(b, indices).map_err(|e| e.with_input(name))
    }

    fn info(&self, name: &str) -> Result<Described<'a>> {
        let info = self.tensors.find(name);
        self.used.borrow_mut().insert(name.to_string());
        info.ok_or_else(|| invalid(format!("the file has no tensor `{name}`")))
    }

    /// The bytes of a tensor.
    fn raw(&self, name: &str) -> Result<Tensor> {
        self.tensors.raw(name).map_err(|e| e.with_input(name))
    }

    /// The matrices of the names below each other, of one type and as many columns: brought into the graph where they are asked for
    /// first.
    fn matrix(&mut self, b: &mut GraphBuilder, names: &[&str]) -> Result<Matrix> {
        let name = names.join("+");
        if let Some(matrix) = self.matrices.get(&name) {
            return Ok(*matrix);
        }
        let [mut rows, mut columns] = [0, 0];
        let mut raws = Vec::new();
        for part in names {
            let [below, of_part] = self.dimensions(part)?;
            raws.push(self.raw(part)?);
            // There are no more rows than bytes in the file.
            (rows, columns) = (rows + below, of_part);
        }
        let info = self.info(names[0])?;
        let raw = below_each_other(raws)?;
        let matrix = Matrix::new(b, &name, info.of, &raw, [rows, columns]);
        let matrix = matrix.map_err(|e| e.with_input(&name))?;
        self.matrices.insert(name, matrix);
        Ok(matrix)
    }
}

/// The bytes of several tensors, one behind the other, each read when it is needed.
fn below_each_other(mut raws: Vec<Tensor>) -> Result<Tensor> {
    if raws.len() == 1 {
        return Ok(raws.remove(0));
    }
    let mut lens = raws.iter().map(Tensor::byte_len);
    let len = lens.try_fold(0, |sum: usize, len| sum.checked_add(len));
    let len = len.ok_or_else(|| invalid("tensors are too large to stand below each other"))?;
    Tensor::on_demand(len, move |from, to| {
        let mut start = 0;
        for raw in &raws {
            let end = start + raw.byte_len();
            let (a, b) = (from.max(start), (from + to.len()).min(end));
            if a < b {
                raw.copy_to(a - start, &mut to[a - from..b - from])?;
            }
            start = end;
        }
        Ok(())
    })
}

fn not_a_matrix(name: &str, info: Described) -> Error {
    let e = invalid("a tensor that is no matrix").with_input(name);
    e.with_got(format!("{:?}", info.shape))
}
