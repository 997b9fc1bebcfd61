//! Operators on maps.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use super::{Inputs, OnValues};
use crate::datum::Map;
use crate::dtype::DType;
use crate::error::{Result, dtype_error, shape_error, value_error};
use crate::ops::rules::too_large;
use crate::ops::{DictVectorizer, MapValues, ZipMap};
use crate::order::sort_indices;
use crate::session::{Handle, Run};
use crate::tensor::Tensor;

impl OnValues for ZipMap {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let scores = inputs.tensor(0).await?;
        let columns = self.keys.len();
        let rows = match *scores.shape() {
            [n] if n == columns => 1,
            [rows, n] if n == columns => rows,
            _ => {
                return Err(shape_error("a map needs as many values as keys")
                    .with_expected(format!("[rows, {columns}]"))
                    .with_got(format!("{:?}", scores.shape())));
            }
        };
        let mut maps = Vec::with_capacity(rows);
        for row in 0..rows {
            maps.push(Map {
                keys: self.keys.clone(),
                values: part(&scores, row * columns, columns)?,
            });
        }
        Ok(Handle::MapSequence(Arc::new(maps)))
    }
}

/// `count` elements from `first` on, as a vector.
fn part(tensor: &Tensor, first: usize, count: usize) -> Result<Tensor> {
    let run = std::iter::once((tensor, first..first + count));
    Tensor::from_runs(tensor.dtype(), &[count], run)
}

impl Inputs {
    fn map(&mut self, i: usize) -> Result<Map> {
        match self.take(i)? {
            Handle::Map(map) => Ok(map),
            _ => Err(dtype_error("the input is not a map")),
        }
    }
}

impl OnValues for DictVectorizer {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let map = inputs.map(0)?;
        let places = places(&map.keys, &self.keys)?;
        let all = values_at(&map, &[places.len()], &places)?;
        Ok(Handle::Host(all))
    }
}

impl OnValues for MapValues {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let map = inputs.map(0)?;
        let keys = map.keys.as_slice::<i64>()?;
        let places = match self.length {
            Some(length) => {
                let mut places = Vec::new();
                places.try_reserve_exact(length).map_err(|_| too_large())?;
                places.resize(length, None);
                for (at, &key) in keys.iter().enumerate() {
                    let place = usize::try_from(key).ok().and_then(|k| places.get_mut(k));
                    *place.ok_or_else(|| {
                        value_error("a key is no place in the row")
                            .with_expected(format!("less than {length}"))
                            .with_got(key)
                    })? = Some(at);
                }
                places
            }
            None => {
                let mut order: Vec<usize> = (0..keys.len()).collect();
                sort_indices(&mut order, &mut |a, b| keys[a].cmp(&keys[b]));
                order.into_iter().map(Some).collect()
            }
        };
        let row = values_at(&map, &[1, places.len()], &places)?;
        Ok(Handle::Host(row))
    }
}

/// The values of a map at these places; zero, or an empty string, where there is none.
fn values_at(map: &Map, shape: &[usize], places: &[Option<usize>]) -> Result<Tensor> {
    let dtype = map.values.dtype();
    let zero = Tensor::zeros(dtype, &[1])?;
    let runs = places.iter().map(|place| match place {
        Some(at) => (&map.values, *at..at + 1),
        None => (&zero, 0..1),
    });
    Tensor::from_runs(dtype, shape, runs)
}

/// Where each of `wanted` stands among `keys`.
fn places(keys: &Tensor, wanted: &Tensor) -> Result<Vec<Option<usize>>> {
    fn find<T: Hash + Eq>(keys: &[T], wanted: &[T]) -> Vec<Option<usize>> {
        let places: HashMap<&T, usize> = keys.iter().zip(0..).collect();
        wanted.iter().map(|k| places.get(k).copied()).collect()
    }
    match wanted.dtype() {
        DType::String => Ok(find(keys.texts()?, wanted.texts()?)),
        _ => Ok(find(keys.as_slice::<i64>()?, wanted.as_slice::<i64>()?)),
    }
}
