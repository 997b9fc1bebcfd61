//! One call of an ACL function: its structure and its tensors.

use kilim_core::backend::{Refusal, TensorSpec};
use kilim_core::memory::vec_with_room;
use kilim_core::{DType, Result, Tensor};

use crate::ffi::{self, ElementType, Family, Layout, MAX_RANK};

/// Bytes of a NEON register.
const VECTOR_BYTES: usize = 16;

/// What ACL is told of a tensor.
#[derive(Clone, Debug)]
pub struct Form {
    dtype: ElementType,
    layout: Layout,
    /// Outermost first.
    shape: Vec<usize>,
    scales: Vec<f32>,
    zero_point: i32,
}

impl Form {
    /// A tensor of `spec`'s elements under a shape of as many.
    ///
    /// # Errors
    /// Where it has no elements, or ACL cannot count or name them.
    pub fn new(spec: &TensorSpec, shape: &[usize]) -> Result<Form, Refusal> {
        let dtype = match spec.dtype {
            DType::F32 => ElementType::F32,
            DType::F16 => ElementType::F16,
            other => return Err(Refusal::new(format!("a tensor of {other}"))),
        };
        Form::of_type(dtype, shape)
    }

    /// A tensor for functions that move and compare elements but do not compute with them: integers are told
    /// to ACL as they are.
    ///
    /// # Errors
    /// Where the tensor has no elements, or ACL cannot count or name them.
    pub fn of_elements(spec: &TensorSpec, shape: &[usize]) -> Result<Form, Refusal> {
        let whole = |dtype| Ok(Form::of_type(dtype, shape)?.with_scales(vec![1.0], 0));
        match spec.dtype {
            DType::I8 => whole(ElementType::Qasymm8Signed),
            DType::U8 => whole(ElementType::Qasymm8),
            DType::I32 => Form::of_type(ElementType::S32, shape),
            _ => Form::new(spec, shape),
        }
    }

    /// A tensor of `shape`, with the element type in ACL's words.
    ///
    /// # Errors
    /// Where the tensor has no elements, or ACL cannot count them.
    pub fn of_type(dtype: ElementType, shape: &[usize]) -> Result<Form, Refusal> {
        if shape.contains(&0) {
            return Err(Refusal::new("a tensor without elements"));
        }
        if shape.len() > MAX_RANK {
            return Err(Refusal::new(format!("more than {MAX_RANK} dimensions")));
        }
        // ACL counts bytes in 32 bits here and there; no element is wider than 4.
        let elements = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        if elements.is_none_or(|n| n > (i32::MAX / 4) as usize) {
            return Err(Refusal::new("a tensor of more than 2 GiB"));
        }
        Ok(Form {
            dtype,
            layout: Layout::None,
            shape: shape.to_vec(),
            scales: Vec::new(),
            zero_point: 0,
        })
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub fn is_half(&self) -> bool {
        self.dtype == ElementType::F16
    }

    /// This tensor in rows of whole NEON registers; `None` where its elements do not fill whole registers.
    pub fn in_vectors(&self) -> Option<Form> {
        let lanes = match self.dtype {
            ElementType::F16 => VECTOR_BYTES / 2,
            _ => VECTOR_BYTES / 4,
        };
        let elements: usize = self.shape.iter().product();
        match self.shape.last() {
            Some(row) if row.is_multiple_of(lanes) => Some(self.clone()),
            _ if elements.is_multiple_of(lanes) => Some(Form {
                layout: Layout::None,
                shape: vec![elements],
                ..self.clone()
            }),
            _ => None,
        }
    }

    pub fn with_layout(self, layout: Layout) -> Form {
        Form { layout, ..self }
    }

    pub fn with_scales(self, scales: Vec<f32>, zero_point: i32) -> Form {
        Form {
            scales,
            zero_point,
            ..self
        }
    }
}

/// Where the elements of a tensor come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Input of the node.
    Input(usize),
    /// What the calls before this one left in the node's output.
    Output,
    /// A constant input of the node, its dimensions in this order.
    Constant { input: usize, order: Vec<usize> },
}

#[derive(Clone, Debug)]
pub struct Operand {
    pub source: Source,
    pub form: Form,
}

/// A function of ACL on the tensors of a node; it writes the node's first output.
pub struct Call {
    pub family: Box<dyn Family>,
    /// `None` for an optional input that is left out.
    pub inputs: Vec<Option<Operand>>,
    pub output: Form,
}

impl Call {
    pub fn new(family: impl Family + 'static, inputs: Vec<Option<Operand>>, output: Form) -> Call {
        Call {
            family: Box::new(family),
            inputs,
            output,
        }
    }

    /// A function of one tensor, element by element.
    pub fn pointwise(family: impl Family + 'static, source: Source, form: &Form) -> Call {
        let form = form.clone();
        let input = Operand {
            source,
            form: form.clone(),
        };
        Call::new(family, vec![Some(input)], form)
    }

    /// The inputs in ACL's words; `data` has the elements of constants, or is empty.
    pub fn input_tensors(&self, data: &[Option<&[u8]>]) -> Vec<ffi::Tensor> {
        let tensor = |(i, operand): (usize, &Option<Operand>)| match operand {
            None => ffi::Tensor {
                dtype: ElementType::Absent,
                ..self.output.tensor(None)
            },
            Some(operand) => {
                let data = data.get(i).copied().flatten();
                let constant = matches!(operand.source, Source::Constant { .. });
                ffi::Tensor {
                    constant: constant.into(),
                    ..operand.form.tensor(data)
                }
            }
        };
        self.inputs.iter().enumerate().map(tensor).collect()
    }
}

impl Form {
    /// The tensor in ACL's words. The scales are borrowed: the form must outlive the tensor.
    pub fn tensor(&self, data: Option<&[u8]>) -> ffi::Tensor {
        let mut dims = [1; MAX_RANK];
        for (to, &from) in dims.iter_mut().zip(self.shape.iter().rev()) {
            *to = from as u32;
        }
        ffi::Tensor {
            dtype: self.dtype,
            layout: self.layout,
            rank: self.shape.len() as u32,
            dims,
            scales: self.scales.as_ptr(),
            scale_count: self.scales.len() as u32,
            zero_point: self.zero_point,
            constant: 0,
            data: data.map_or(std::ptr::null(), |d| d.as_ptr().cast()),
        }
    }
}

/// The bytes of a tensor with its dimensions in another order.
///
/// # Errors
/// `Limit` where memory is short.
pub fn arrange(tensor: &Tensor, order: &[usize]) -> Result<Vec<u8>> {
    let source = tensor.read()?;
    let size = tensor.dtype().size();
    let shape = tensor.shape();
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    let mut bytes = vec_with_room(tensor.byte_len())?;
    let mut index = vec![0; order.len()];
    let mut at = 0;
    loop {
        bytes.extend_from_slice(&source[at * size..(at + 1) * size]);
        let mut axis = order.len();
        loop {
            if axis == 0 {
                return Ok(bytes);
            }
            axis -= 1;
            let from = order[axis];
            index[axis] += 1;
            at += strides[from];
            if index[axis] < shape[from] {
                break;
            }
            at -= index[axis] * strides[from];
            index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_change_places() {
        let tensor = Tensor::from_slice(&[2, 3], &[1u8, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(arrange(&tensor, &[1, 0]).unwrap(), [1, 4, 2, 5, 3, 6]);
        assert_eq!(arrange(&tensor, &[0, 1]).unwrap(), tensor.read().unwrap());
        assert_eq!(arrange(&Tensor::scalar(7u8).unwrap(), &[]).unwrap(), [7]);
    }

    #[test]
    fn dimensions_are_told_innermost_first() {
        let form = Form::of_type(ElementType::F32, &[2, 3, 4]).unwrap();
        let tensor = form.tensor(None);
        assert_eq!((tensor.rank, &tensor.dims[..4]), (3, &[4, 3, 2, 1][..]));
        assert!(Form::of_type(ElementType::F32, &[2, 0]).is_err());
        assert!(Form::of_type(ElementType::F32, &[usize::MAX, 2]).is_err());
    }
}
