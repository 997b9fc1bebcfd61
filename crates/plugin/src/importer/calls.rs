//! The functions that a library calls while it loads a file.

use std::ffi::{c_char, c_void};

use kilim_core::{Error, ErrorCode};
use kilim_plugin_abi::importer as abi;
use kilim_plugin_abi::{self as plain, Status};

use super::taking::Taking;
use crate::decode::list;
use crate::encode;

/// An error as a status and, in a message, in words; what does not fit is cut off.
pub fn tell(message: *mut plain::Message, error: &Error) -> Status {
    let text = encode::c_text(&error.sentence());
    // SAFETY: the library gives NULL, or a message with room for `capacity` bytes or without any.
    unsafe {
        if let Some(message) = message.as_mut()
            && let Some(room) = message.capacity.checked_sub(1)
            && !message.text.is_null()
        {
            let bytes = &text.as_bytes()[..text.as_bytes().len().min(room)];
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), message.text.cast(), bytes.len());
            message.text.add(bytes.len()).write(0);
        }
    }
    match error.code() {
        ErrorCode::Unsupported => plain::UNSUPPORTED,
        ErrorCode::Limit => plain::LIMIT,
        _ => plain::INVALID_VALUE,
    }
}

/// What `this` points to.
///
/// # Safety
/// `this` is what [`Taking::open`] put into a table, which nothing else uses during the call.
unsafe fn taking<'t, 'a>(this: *mut c_void) -> &'t mut Taking<'a> {
    // SAFETY: by the contract of this function.
    unsafe { &mut *this.cast::<Taking<'a>>() }
}

pub unsafe extern "C" fn input(
    this: *mut c_void,
    told: *const abi::Input,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the library gives an input as the interface describes it.
    let (taking, made) = unsafe {
        let taking = taking(this);
        let made = taking.input(told);
        (taking, made)
    };
    taking.said(made, error)
}

pub unsafe extern "C" fn constant(
    this: *mut c_void,
    told: *const plain::Tensor,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the library gives a tensor as the interface describes it.
    let (taking, made) = unsafe {
        let taking = taking(this);
        let made = taking.constant(told);
        (taking, made)
    };
    taking.said(made, error)
}

pub unsafe extern "C" fn node(
    this: *mut c_void,
    told: *const abi::Operation,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the library gives a node as the interface describes it.
    let (taking, made) = unsafe {
        let taking = taking(this);
        let made = taking.node(told);
        (taking, made)
    };
    taking.said(made, error)
}

pub unsafe extern "C" fn output(
    this: *mut c_void,
    name: *const c_char,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the name is NULL or ends with a zero.
    let (taking, name) = unsafe {
        let taking = taking(this);
        let name = taking.text(name);
        (taking, name)
    };
    let made = name.and_then(|name| taking.graphs.draft().output(&name));
    taking.said(made, error)
}

pub unsafe extern "C" fn metadata(
    this: *mut c_void,
    told: *const abi::Metadata,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the library gives metadata as the interface describes them.
    let (taking, made) = unsafe {
        let taking = taking(this);
        let made = taking.metadata(told);
        (taking, made)
    };
    taking.said(made, error)
}

pub unsafe extern "C" fn model(
    this: *mut c_void,
    bytes: *const c_void,
    count: usize,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the library gives as many bytes as it says.
    let (taking, bytes) = unsafe { (taking(this), list(bytes.cast(), count)) };
    let made = taking.take(bytes);
    taking.said(made, error)
}

pub unsafe extern "C" fn begin_body(
    this: *mut c_void,
    attribute: *const c_char,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the name is NULL or ends with a zero.
    let (taking, attribute) = unsafe {
        let taking = taking(this);
        let attribute = taking.text(attribute);
        (taking, attribute)
    };
    let made = attribute.and_then(|attribute| taking.begin_body(&attribute));
    taking.said(made, error)
}

pub unsafe extern "C" fn end_body(this: *mut c_void, error: *mut plain::Message) -> Status {
    // SAFETY: `this` is of the table, which one thread uses.
    let taking = unsafe { taking(this) };
    let made = taking.graphs.end();
    taking.said(made, error)
}

pub unsafe extern "C" fn beside(
    this: *mut c_void,
    path: *const c_char,
    bytes: *mut *const c_void,
    count: *mut usize,
    error: *mut plain::Message,
) -> Status {
    // SAFETY: `this` is of the table, which one thread uses; the path is NULL or ends with a zero.
    let (taking, path) = unsafe {
        let taking = taking(this);
        let path = taking.text(path);
        (taking, path)
    };
    let found = path.and_then(|path| {
        let found = taking.beside(&path)?;
        Ok((found.as_ptr(), found.len()))
    });
    match found {
        Ok((start, length)) => {
            // SAFETY: the library gives room for both, or NULL.
            unsafe {
                if let (Some(bytes), Some(count)) = (bytes.as_mut(), count.as_mut()) {
                    *bytes = start.cast();
                    *count = length;
                }
            }
            plain::OK
        }
        // Whether the file has to be there, the library knows.
        Err(missing) => {
            let status = tell(error, &missing);
            taking.missing = Some(missing);
            status
        }
    }
}
