//! Strings to and from C.
use std::ffi::{CStr, CString};

use crate::error::{Error, Result, Status};
use crate::sys::c_char;

/// A copy of a C string; "" for NULL.
///
/// # Safety
///
/// NULL, or NUL-terminated and alive during the call.
pub(crate) unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    CStr::from_ptr(text).to_string_lossy().into_owned()
}

/// A string that the library keeps for ever.
///
/// # Safety
///
/// NUL-terminated and never freed.
pub(crate) unsafe fn borrowed(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    CStr::from_ptr(text).to_str().unwrap_or("")
}

/// For C, which cannot have a NUL in a string.
pub(crate) fn to_c(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| {
        Error::new(
            Status::InvalidArgument,
            format!("{:?} holds a NUL character", text),
        )
    })
}

/// Strings for C with the array of pointers that it wants.
pub(crate) struct Texts {
    _texts: Vec<CString>,
    pub(crate) pointers: Vec<*const c_char>,
}

impl Texts {
    pub(crate) fn new(texts: &[String]) -> Result<Texts> {
        let texts = texts.iter().map(|t| to_c(t)).collect::<Result<Vec<_>>>()?;
        let pointers = texts.iter().map(|t| t.as_ptr()).collect();
        Ok(Texts {
            _texts: texts,
            pointers,
        })
    }
}
