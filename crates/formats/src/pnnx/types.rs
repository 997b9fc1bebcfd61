//! Operands in a common element type, as PyTorch finds it.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use super::import::Import;
use super::invalid;
use super::value::Value;

/// Element types in PyTorch's order: a larger one takes in a smaller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Category {
    Bool,
    Integer,
    Float,
}

fn category(dtype: DType) -> Category {
    match dtype {
        DType::Bool => Category::Bool,
        DType::F64 | DType::F32 | DType::F16 | DType::BF16 => Category::Float,
        _ => Category::Integer,
    }
}

/// The element type that holds the numbers of both, which are of one category.
fn wider(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::F16, DType::BF16) | (DType::BF16, DType::F16) => DType::F32,
        // An unsigned byte and a signed one have 16 bits together.
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        (DType::U8, other) | (other, DType::U8) => other,
        _ if a.bits() >= b.bits() => a,
        _ => b,
    }
}

/// An operand of a function: its element type, and how much that counts. Numbers count less than tensors without dimensions, and these
/// less than others.
struct Rank {
    dtype: DType,
    weight: usize,
}

impl Import<'_> {
    fn rank_of(&self, value: &Value) -> Option<Rank> {
        let (dtype, weight) = match value {
            Value::Bool(_) => (DType::Bool, 0),
            Value::Int(_) => (DType::I64, 0),
            Value::Float(_) => (DType::F32, 0),
            Value::Tensor(v) => {
                let shape = self.known_shape(*v)?;
                (self.dtype(*v)?, if shape.rank() == 0 { 1 } else { 2 })
            }
            _ => return None,
        };
        Some(Rank { dtype, weight })
    }

    /// The element type that PyTorch computes in; `None` where those of tensors are not known.
    pub fn common(&self, values: &[&Value]) -> Option<DType> {
        let ranks: Option<Vec<Rank>> = values.iter().map(|v| self.rank_of(v)).collect();
        let mut ranks = ranks?;
        ranks.sort_by_key(|rank| std::cmp::Reverse(rank.weight));
        let mut ranks = ranks.into_iter();
        let mut common = ranks.next()?;
        for rank in ranks {
            let (held, new) = (category(common.dtype), category(rank.dtype));
            if new > held {
                common.dtype = rank.dtype;
            } else if new == held && rank.weight == common.weight {
                common.dtype = wider(common.dtype, rank.dtype);
            }
        }
        Some(common.dtype)
    }

    /// A value as a tensor of an element type.
    ///
    /// # Errors
    /// `InvalidModel` where it is no number.
    pub fn in_type(&mut self, value: &Value, dtype: DType) -> Result<ValueId> {
        match value {
            Value::Tensor(v) => self.cast(*v, dtype),
            Value::Int(n) if dtype == DType::I64 => self.i64(*n),
            number => {
                let tensor = crate::build::number(number.float()?, dtype)?;
                Ok(self.tensor_value(tensor))
            }
        }
    }

    /// A tensor, or a number as one without dimensions. A list of integers is a vector.
    ///
    /// # Errors
    /// `InvalidModel` where it is something else.
    pub fn number_or_tensor(&mut self, value: &Value) -> Result<ValueId> {
        match value {
            Value::Tensor(v) => Ok(*v),
            Value::Bool(_) => self.in_type(value, DType::Bool),
            Value::Int(n) => self.i64(*n),
            Value::Float(_) => self.in_type(value, DType::F32),
            Value::List(_) => self.sizes(value),
            other => Err(other.no("a tensor")),
        }
    }

    /// A list of sizes as an `int64` vector, a constant where all are known.
    ///
    /// # Errors
    /// `InvalidModel` where it is no list of integers.
    pub fn sizes(&mut self, value: &Value) -> Result<ValueId> {
        let list = match value {
            Value::List(list) => list,
            one => std::slice::from_ref(one),
        };
        let mut parts = Vec::new();
        for size in list {
            parts.push(match size {
                Value::Tensor(v) => {
                    let v = self.cast(*v, DType::I64)?;
                    match self.rank(v)? {
                        1 => v,
                        _ => self.reshape(v, &[-1])?,
                    }
                }
                number => self.i64s(&[number.int()?])?,
            });
        }
        self.vector(&parts)
    }

    /// Operands in their common element type.
    pub fn alike(&mut self, values: &[&Value]) -> Result<Vec<ValueId>> {
        match self.common(values) {
            Some(dtype) => values.iter().map(|v| self.in_type(v, dtype)).collect(),
            None => {
                let like = values.iter().find_map(|value| match value {
                    Value::Tensor(v) => Some(*v),
                    _ => None,
                });
                let like = like.ok_or_else(|| invalid("an operand is no number"))?;
                let convert = |value: &&Value| match value {
                    Value::Tensor(v) => Ok(*v),
                    other => self.number(other.float()?, like),
                };
                values.iter().map(convert).collect()
            }
        }
    }

    /// Operands in their common element type; integers as `float32`.
    pub fn alike_floats(&mut self, values: &[&Value]) -> Result<Vec<ValueId>> {
        match self.common(values) {
            Some(dtype) if category(dtype) != Category::Float => {
                values.iter().map(|v| self.in_type(v, DType::F32)).collect()
            }
            _ => self.alike(values),
        }
    }

    /// Whether the elements are known to be no floating-point numbers.
    pub fn counts(&self, x: ValueId) -> bool {
        self.dtype(x)
            .is_some_and(|dtype| category(dtype) != Category::Float)
    }

    /// `x` as `float32` where its elements are known to be integers.
    pub fn as_floats(&mut self, x: ValueId) -> Result<ValueId> {
        match self.counts(x) {
            true => self.cast(x, DType::F32),
            false => Ok(x),
        }
    }
}
