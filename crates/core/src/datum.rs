//! What inputs take and outputs give: tensors, and what is made of them.

use std::fmt;

use crate::Reflect;
use crate::device_tensor::DeviceTensor;
use crate::error::{Error, ErrorCode, Result};
use crate::tensor::Tensor;

/// What a value is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
pub enum Form {
    #[default]
    Tensor,
    /// A list of tensors of one element type.
    Sequence,
    /// Keys, each with a number or string.
    Map,
    /// A list of maps.
    MapSequence,
}

/// The form of a value, and whether it may be absent at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Reflect)]
pub struct Kind {
    pub form: Form,
    pub optional: bool,
}

impl Kind {
    /// True for what kernels take: a tensor that is there.
    pub fn is_tensor(self) -> bool {
        self == Kind::default()
    }
}

impl From<Form> for Kind {
    fn from(form: Form) -> Kind {
        Kind {
            form,
            optional: false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Tensor => "tensor",
            Form::Sequence => "sequence",
            Form::Map => "map",
            Form::MapSequence => "sequence of maps",
        };
        let optional = if self.optional { "optional " } else { "" };
        write!(f, "{optional}{form}")
    }
}

/// Keys and what each of them stands for: two vectors of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// `int64` or strings.
    pub keys: Tensor,
    pub values: Tensor,
}

/// What an input of a model is given, or an output gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    Tensor(Tensor),
    /// A tensor that is where a run has left it; outputs are such where the run was told to keep them.
    Device(DeviceTensor),
    Sequence(Vec<Tensor>),
    Map(Map),
    MapSequence(Vec<Map>),
    /// An optional value that is not there.
    Absent,
}

impl Datum {
    /// The form; `None` where nothing is there.
    pub fn form(&self) -> Option<Form> {
        match self {
            Datum::Tensor(_) | Datum::Device(_) => Some(Form::Tensor),
            Datum::Sequence(_) => Some(Form::Sequence),
            Datum::Map(_) => Some(Form::Map),
            Datum::MapSequence(_) => Some(Form::MapSequence),
            Datum::Absent => None,
        }
    }

    /// The tensor that this is.
    ///
    /// # Errors
    /// `DType` where it is something else, `State` for a [`Datum::Device`].
    pub fn tensor(&self) -> Result<&Tensor> {
        match self {
            Datum::Tensor(tensor) => Ok(tensor),
            Datum::Device(_) => Err(not_read()),
            other => Err(not_a_tensor(other.form())),
        }
    }

    /// The tensor that this is, by value.
    ///
    /// # Errors
    /// `DType` where it is something else, `State` for a [`Datum::Device`].
    pub fn into_tensor(self) -> Result<Tensor> {
        match self {
            Datum::Tensor(tensor) => Ok(tensor),
            Datum::Device(_) => Err(not_read()),
            other => Err(not_a_tensor(other.form())),
        }
    }
}

impl From<Tensor> for Datum {
    fn from(tensor: Tensor) -> Datum {
        Datum::Tensor(tensor)
    }
}

impl From<DeviceTensor> for Datum {
    fn from(tensor: DeviceTensor) -> Datum {
        Datum::Device(tensor)
    }
}

fn not_read() -> Error {
    Error::new(ErrorCode::State, "a tensor was kept where it was computed")
        .with_hint("bring its elements to the host by `DeviceTensor::read`")
}

pub(crate) fn not_a_tensor(form: Option<Form>) -> Error {
    let got = form.map_or_else(|| "nothing".to_string(), |f| Kind::from(f).to_string());
    Error::new(ErrorCode::DType, "a value is not a tensor")
        .with_expected("a tensor")
        .with_got(got)
}
