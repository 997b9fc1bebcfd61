//! Values on their way between stages.

use std::sync::Arc;

use crate::datum::{Datum, Form, Kind, Map, not_a_tensor};
use crate::device_tensor::DeviceTensor;
use crate::error::Result;
use crate::fact::{Fact, TensorSpec};
use crate::ops::sequence::join;
use crate::tensor::Tensor;

/// A value between stages: a tensor on the host or still on a device, or what is made of tensors.
#[derive(Clone, Debug)]
pub(crate) enum Handle {
    Host(Tensor),
    Device(DeviceTensor),
    /// A sequence of tensors.
    Sequence(Arc<Vec<Handle>>),
    Map(Map),
    MapSequence(Arc<Vec<Map>>),
    /// An optional value that is not there.
    Absent,
}

impl Handle {
    /// The form; `None` where nothing is there.
    pub fn form(&self) -> Option<Form> {
        match self {
            Handle::Host(_) | Handle::Device(_) => Some(Form::Tensor),
            Handle::Sequence(_) => Some(Form::Sequence),
            Handle::Map(_) => Some(Form::Map),
            Handle::MapSequence(_) => Some(Form::MapSequence),
            Handle::Absent => None,
        }
    }

    /// The spec of a tensor; `DType` where this is none.
    pub fn spec(&self) -> Result<TensorSpec> {
        match self {
            Handle::Host(t) => Ok(TensorSpec::new(t.dtype(), t.shape())),
            Handle::Device(d) => Ok(TensorSpec::new(d.dtype, &d.shape)),
            other => Err(not_a_tensor(other.form())),
        }
    }

    /// What inference may know of the value.
    pub fn fact(&self) -> Fact {
        let of = |kind: Kind, each: Option<Fact>| Fact {
            kind,
            ..each.unwrap_or_default()
        };
        match self {
            Handle::Host(t) => Fact::of(t),
            Handle::Device(d) => Fact::fixed(d.dtype, &d.shape),
            Handle::Sequence(list) => {
                let each = list.iter().map(Handle::fact).reduce(|a, b| join(&a, &b));
                of(Form::Sequence.into(), each)
            }
            Handle::Map(map) => of(Form::Map.into(), Some(Fact::of(&map.values))),
            Handle::MapSequence(list) => {
                let each = list.iter().map(|map| Fact::of(&map.values));
                of(Form::MapSequence.into(), each.reduce(|a, b| join(&a, &b)))
            }
            Handle::Absent => Fact {
                kind: Kind {
                    optional: true,
                    ..Kind::default()
                },
                ..Fact::default()
            },
        }
    }

    /// The elements under another shape with as many.
    pub fn reshaped(self, shape: &[usize]) -> Result<Handle> {
        Ok(match self {
            Handle::Host(t) => Handle::Host(t.reshaped(shape)?),
            Handle::Device(d) => Handle::Device(DeviceTensor {
                shape: shape.to_vec(),
                ..d
            }),
            other => return Err(not_a_tensor(other.form())),
        })
    }

    /// The value with all its tensors on the host.
    pub async fn into_datum(self) -> Result<Datum> {
        Ok(match self {
            Handle::Sequence(list) => {
                let mut tensors = Vec::with_capacity(list.len());
                for handle in list.iter() {
                    tensors.push(handle.clone().into_host().await?);
                }
                Datum::Sequence(tensors)
            }
            Handle::Map(map) => Datum::Map(map),
            Handle::MapSequence(list) => Datum::MapSequence(Arc::unwrap_or_clone(list)),
            Handle::Absent => Datum::Absent,
            tensor => Datum::Tensor(tensor.into_host().await?),
        })
    }

    /// Brings the tensor to the host if it is not there.
    pub async fn into_host(self) -> Result<Tensor> {
        match self {
            Handle::Host(t) => Ok(t),
            Handle::Device(d) => d.read().await,
            other => Err(not_a_tensor(other.form())),
        }
    }

    /// The value with tensors where they are.
    ///
    /// # Errors
    /// `DType` where it is no tensor.
    pub fn into_kept(self) -> Result<DeviceTensor> {
        match self {
            Handle::Host(t) => Ok(DeviceTensor::on_host(t)),
            Handle::Device(d) => Ok(d),
            other => Err(not_a_tensor(other.form())),
        }
    }
}

impl From<Datum> for Handle {
    fn from(datum: Datum) -> Handle {
        match datum {
            Datum::Tensor(tensor) => Handle::Host(tensor),
            Datum::Device(tensor) => match tensor.as_host() {
                Some(tensor) => Handle::Host(tensor),
                None => Handle::Device(tensor),
            },
            Datum::Sequence(tensors) => {
                Handle::Sequence(Arc::new(tensors.into_iter().map(Handle::Host).collect()))
            }
            Datum::Map(map) => Handle::Map(map),
            Datum::MapSequence(maps) => Handle::MapSequence(Arc::new(maps)),
            Datum::Absent => Handle::Absent,
        }
    }
}
