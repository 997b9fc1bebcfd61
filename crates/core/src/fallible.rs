//! Memory whose size comes from a model or its data: where it is short, that is an error, never the end of the program.

use std::sync::Arc;

use crate::error::{Error, ErrorCode, Result};

/// The error `Limit`: the machine has no memory of `bytes` bytes.
#[cold]
pub fn out_of_memory(bytes: usize) -> Error {
    let message = format!("cannot allocate {bytes} bytes of memory");
    Error::new(ErrorCode::Limit, message)
}

/// Room for `more` elements behind those of a vector.
///
/// # Errors
/// `Limit` where memory is short.
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<()> {
    let elements = vec.len().saturating_add(more);
    let reserved = vec.try_reserve(more);
    reserved.map_err(|_| out_of_memory(elements.saturating_mul(size_of::<T>())))
}

/// An empty vector with room for exactly `len` elements.
///
/// # Errors
/// `Limit` where memory is short.
pub fn vec_with_room<T>(len: usize) -> Result<Vec<T>> {
    let mut vec = Vec::new();
    let reserved = vec.try_reserve_exact(len);
    reserved.map_err(|_| out_of_memory(len.saturating_mul(size_of::<T>())))?;
    Ok(vec)
}

/// `len` times the same element.
///
/// # Errors
/// `Limit` where memory is short.
pub fn vec_of<T: Clone>(value: T, len: usize) -> Result<Vec<T>> {
    let mut vec = vec_with_room(len)?;
    vec.resize(len, value);
    Ok(vec)
}

/// Puts an element behind the others.
///
/// # Errors
/// `Limit` where memory is short.
pub fn push<T>(vec: &mut Vec<T>, value: T) -> Result<()> {
    if vec.len() == vec.capacity() {
        reserve(vec, 1)?;
    }
    vec.push(value);
    Ok(())
}

/// All elements of an iterator.
///
/// # Errors
/// `Limit` where memory is short.
pub fn collect<T>(elements: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let elements = elements.into_iter();
    let mut vec = vec_with_room(elements.size_hint().0)?;
    for element in elements {
        push(&mut vec, element)?;
    }
    Ok(vec)
}

/// Elements of an iterator that may fail.
///
/// # Errors
/// The first of the iterator, `Limit` where memory is short.
pub fn try_collect<T>(elements: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let elements = elements.into_iter();
    let mut vec = vec_with_room(elements.size_hint().0)?;
    for element in elements {
        push(&mut vec, element?)?;
    }
    Ok(vec)
}

/// A copy of a vector.
///
/// # Errors
/// `Limit` where memory is short.
pub fn copied<T: Clone>(elements: &[T]) -> Result<Vec<T>> {
    let mut vec = vec_with_room(elements.len())?;
    vec.extend_from_slice(elements);
    Ok(vec)
}

/// A shared copy of a text. Its memory is asked for twice: such copies cannot be made fallibly, so that a vector of
/// their size, which can, is made first and let go.
///
/// # Errors
/// `Limit` where memory is short.
pub fn shared_text(text: &str) -> Result<Arc<str>> {
    drop(vec_with_room::<u8>(text.len() + COUNTERS)?);
    Ok(Arc::from(text))
}

/// Bytes that an `Arc` puts before what it shares.
const COUNTERS: usize = 2 * size_of::<usize>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error_and_the_rest_is_as_it_was() {
        let most = isize::MAX as usize;
        for result in [
            vec_with_room::<u64>(most).map(drop),
            vec_of(1u8, usize::MAX).map(drop),
            reserve(&mut vec![1u32], usize::MAX),
        ] {
            assert_eq!(result.unwrap_err().code(), ErrorCode::Limit);
        }
        assert_eq!(vec_of(7, 3).unwrap(), [7; 3]);
        assert_eq!(
            collect((0..9).filter(|i| i % 2 == 0)).unwrap(),
            [0, 2, 4, 6, 8]
        );
        assert_eq!(try_collect([Ok(1), Ok(2)]).unwrap(), [1, 2]);
        let failed = try_collect([Ok(1), Err(out_of_memory(2))]).unwrap_err();
        assert_eq!(failed.message(), "cannot allocate 2 bytes of memory");
        assert_eq!(copied(&["a", "b"]).unwrap(), ["a", "b"]);
        assert_eq!(&*shared_text("text").unwrap(), "text");
    }
}
