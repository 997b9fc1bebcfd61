//! Ranks and axes.

use crate::error::{Error, ErrorCode, Result, shape_error};

/// Ranks above this come from broken models only.
pub(crate) const MAX_RANK: usize = 64;

/// `Limit` where a value has more dimensions than the 64 of a sound model.
pub fn check_rank(rank: usize) -> Result<()> {
    if rank <= MAX_RANK {
        return Ok(());
    }
    Err(
        Error::new(ErrorCode::Limit, "a value has too many dimensions")
            .with_expected(format!("at most {MAX_RANK}"))
            .with_got(rank),
    )
}

/// Brings an axis from `-rank..rank` into `0..rank`.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize> {
    let r = rank as i64;
    let a = if axis < 0 { axis + r } else { axis };
    if (0..r).contains(&a) {
        Ok(a as usize)
    } else {
        Err(shape_error(format!(
            "axis {axis} is out of range for rank {rank}"
        )))
    }
}

/// Like [`normalize_axis`] for several; `Shape` where one is named twice.
pub fn normalize_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    if axes.len() > rank {
        let message = format!("{} axes of a value of rank {rank}", axes.len());
        return Err(shape_error(message));
    }
    let mut out = Vec::with_capacity(axes.len());
    for &a in axes {
        let a = normalize_axis(a, rank)?;
        if out.contains(&a) {
            return Err(shape_error(format!("axis {a} is given twice")));
        }
        out.push(a);
    }
    Ok(out)
}
