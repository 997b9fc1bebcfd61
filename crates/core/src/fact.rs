//! What is known of values and of the work on them: facts, concrete tensors, costs.

use std::fmt;

use crate::datum::Kind;
use crate::dim::Shape;
use crate::dtype::DType;
use crate::tensor::Tensor;

/// What is known of a value before it is computed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    pub dtype: Option<DType>,
    /// `None` where not even the rank is known.
    pub shape: Option<Shape>,
    /// What kind of value this is. For sequences and optional values, `dtype` and `shape` are those of each
    /// tensor inside; for maps, `dtype` is that of the values.
    pub kind: Kind,
}

impl Fact {
    /// The fact about a tensor of this element type and shape.
    pub fn new(dtype: DType, shape: Shape) -> Fact {
        Fact {
            dtype: Some(dtype),
            shape: Some(shape),
            kind: Kind::default(),
        }
    }

    /// A fact of numbers only.
    pub fn fixed(dtype: DType, dims: &[usize]) -> Fact {
        Fact::new(dtype, Shape::fixed(dims))
    }

    /// Everything about a tensor but its elements.
    pub fn of(tensor: &Tensor) -> Fact {
        Fact::fixed(tensor.dtype(), tensor.shape())
    }

    /// The dimensions, if all are known.
    pub fn concrete(&self) -> Option<Vec<usize>> {
        self.shape.as_ref().and_then(Shape::concrete)
    }

    /// The number of dimensions, where that is known.
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Shape::rank)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kind.is_tensor() {
            write!(f, "{} of ", self.kind)?;
        }
        match self.dtype {
            Some(d) => write!(f, "{d}")?,
            None => f.write_str("?")?,
        }
        match &self.shape {
            Some(s) => write!(f, "{s}"),
            None => f.write_str("[…]"),
        }
    }
}

/// What shape inference sees of one input: its fact and, if it is known, its value.
#[derive(Clone, Debug, Default)]
pub struct InputFact {
    pub fact: Fact,
    pub value: Option<Tensor>,
}

impl From<&TensorSpec> for InputFact {
    fn from(spec: &TensorSpec) -> InputFact {
        InputFact {
            fact: Fact::fixed(spec.dtype, &spec.shape),
            value: spec.value.clone(),
        }
    }
}

/// A tensor with everything known about it when a kernel is chosen.
#[derive(Debug, PartialEq)]
pub struct TensorSpec {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// The data, if it is a constant or was computed while planning.
    pub value: Option<Tensor>,
    /// What the tensor is called, where a backend is asked about one of a graph; else empty.
    pub name: String,
}

impl Clone for TensorSpec {
    fn clone(&self) -> TensorSpec {
        TensorSpec {
            dtype: self.dtype,
            shape: self.shape.clone(),
            value: self.value.clone(),
            name: self.name.clone(),
        }
    }

    // Written out so that the shape's memory is kept.
    fn clone_from(&mut self, other: &TensorSpec) {
        self.dtype = other.dtype;
        self.shape.clone_from(&other.shape);
        self.value.clone_from(&other.value);
        self.name.clone_from(&other.name);
    }
}

impl TensorSpec {
    /// The spec of a tensor whose elements are not known.
    pub fn new(dtype: DType, shape: &[usize]) -> TensorSpec {
        TensorSpec {
            dtype,
            shape: shape.to_vec(),
            value: None,
            name: String::new(),
        }
    }

    /// The spec of a tensor whose value is known.
    pub fn of(value: &Tensor) -> TensorSpec {
        TensorSpec {
            dtype: value.dtype(),
            shape: value.shape().to_vec(),
            value: Some(value.clone()),
            name: String::new(),
        }
    }

    /// The spec of a tensor that is called `name`.
    #[must_use]
    pub fn named(self, name: &str) -> TensorSpec {
        TensorSpec {
            name: name.to_string(),
            ..self
        }
    }

    /// The product of the dimensions.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes on the host: types of less than 8 bits take a byte an element.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }
}

/// Work that a node does, for the partitioner and for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Floating-point or integer operations; a multiply-add counts two.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

impl Cost {
    /// One operation for each output element, and 4 bytes for each element that is read or written.
    pub(crate) fn elementwise(inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let count = |s: &&[usize]| s.iter().map(|&d| d as f64).product::<f64>();
        let written: f64 = outputs.iter().map(count).sum();
        let read: f64 = inputs.iter().flatten().map(count).sum();
        Cost {
            flops: written,
            bytes: 4.0 * (read + written),
        }
    }
}
