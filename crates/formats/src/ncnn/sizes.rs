//! Sizes of blobs: known, or computed when the network runs. Files write them as numbers or as expressions of the sizes of a layer's
//! inputs (`src/expression.cpp`).

use kilim_core::Dim;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::BinaryKind;

use super::import::Import;
use super::invalid;

/// A size: a number, or an `int64` vector of one element with what is known of it.
#[derive(Clone)]
pub enum Size {
    Known(i64),
    Value(ValueId, Dim),
}

/// What is known of a size.
pub fn dim_of(size: &Size) -> Dim {
    match size {
        Size::Known(n) => usize::try_from(*n).map_or(Dim::Unknown, Dim::Known),
        Size::Value(_, open) => open.clone(),
    }
}

/// The axis of a blob that a letter stands for; nothing where it has none.
pub fn axis_of(letter: u8, rank: usize) -> Option<i64> {
    match (letter, rank) {
        (b'w', 1..) => Some(-1),
        (b'h', 2..) => Some(-2),
        (b'c', 3..) => Some(1),
        (b'd', 4..) => Some(2),
        _ => None,
    }
}

impl Import<'_> {
    /// The size of `x` along `axis` of the graph.
    pub fn size(&mut self, x: ValueId, axis: i64) -> Result<Size> {
        match self.length(x, axis) {
            Dim::Known(n) => Ok(Size::Known(n as i64)),
            open => Ok(Size::Value(self.dim(x, axis)?, open)),
        }
    }

    /// The size that a letter stands for: 1 where the blob has no such axis.
    pub fn size_of(&mut self, x: ValueId, letter: u8) -> Result<Size> {
        match axis_of(letter, self.blob_rank(x)?) {
            Some(axis) => self.size(x, axis),
            None => Ok(Size::Known(1)),
        }
    }

    /// A size as an `int64` vector of one element.
    fn value_of(&mut self, size: &Size) -> Result<ValueId> {
        match size {
            Size::Known(n) => self.i64s(&[*n]),
            Size::Value(value, _) => Ok(*value),
        }
    }

    /// Sizes as an `int64` vector.
    pub fn vector_of(&mut self, sizes: &[Size]) -> Result<ValueId> {
        let parts = sizes
            .iter()
            .map(|s| self.value_of(s))
            .collect::<Result<Vec<_>>>()?;
        self.vector(&parts)
    }

    /// A function of two sizes by its name.
    pub fn combined(&mut self, operator: &str, a: Size, b: Size) -> Result<Size> {
        use Size::{Known, Value};
        let kind = match operator {
            "+" => BinaryKind::Add,
            "-" => BinaryKind::Sub,
            "*" => BinaryKind::Mul,
            "//" => BinaryKind::Div,
            "max" => BinaryKind::Max,
            "min" => BinaryKind::Min,
            _ => {
                return Err(unsupported(format!(
                    "`{operator}` in an expression of sizes"
                )));
            }
        };
        let (&Known(x), &Known(y)) = (&a, &b) else {
            let open = match kind {
                BinaryKind::Add => dim_of(&a).plus(&dim_of(&b)),
                _ => Dim::Unknown,
            };
            let (a, b) = (self.value_of(&a)?, self.value_of(&b)?);
            return Ok(Value(self.binary(kind, a, b)?, open));
        };
        let number = match kind {
            BinaryKind::Add => x.checked_add(y),
            BinaryKind::Sub => x.checked_sub(y),
            BinaryKind::Mul => x.checked_mul(y),
            BinaryKind::Div => x.checked_div(y),
            BinaryKind::Max => Some(x.max(y)),
            _ => Some(x.min(y)),
        };
        number
            .map(Known)
            .ok_or_else(|| invalid("an expression of sizes has no value"))
    }

    /// The sizes of a list of expressions, `0w,//(1h,2),-1`: numbers of inputs with letters of their axes, numbers, and functions.
    ///
    /// # Errors
    /// `InvalidModel` where it is garbled, `Unsupported` for functions of other numbers than integers.
    pub fn sizes(&mut self, list: &str, inputs: &[ValueId]) -> Result<Vec<Size>> {
        let mut stack = Vec::new();
        let words = list
            .split(['(', ')', ','])
            .map(str::trim)
            .filter(|w| !w.is_empty());
        for word in words.rev() {
            let size = match *word.as_bytes() {
                [input @ b'0'..=b'9', letter @ (b'w' | b'h' | b'd' | b'c')] => {
                    let input = inputs.get(usize::from(input - b'0'));
                    let input = *input
                        .ok_or_else(|| invalid("an expression of sizes reads a missing input"))?;
                    self.size_of(input, letter)?
                }
                _ => match word.parse() {
                    Ok(number) => Size::Known(number),
                    Err(_) => {
                        let (a, b) = (stack.pop(), stack.pop());
                        let (Some(a), Some(b)) = (a, b) else {
                            return Err(unsupported(format!("`{word}` in an expression of sizes")));
                        };
                        self.combined(word, a, b)?
                    }
                },
            };
            stack.push(size);
        }
        stack.reverse();
        Ok(stack)
    }
}
