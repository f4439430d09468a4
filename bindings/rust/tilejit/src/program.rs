//! What to compile.
use std::ffi::CString;

use crate::error::Result;
use crate::{sys, text};

/// A builtin family or a tile program's text, with its compile-time values.
#[derive(Clone, Debug)]
pub struct Program {
    family: Option<String>,
    source: Option<String>,
    params: Vec<(String, String)>,
    shared_budget: i64,
}

impl Program {
    /// A builtin family, see [`families`](crate::families).
    pub fn family(name: impl Into<String>) -> Program {
        Program {
            family: Some(name.into()),
            source: None,
            params: Vec::new(),
            shared_budget: 0,
        }
    }

    /// A text in the tile IR.
    pub fn source(text: impl Into<String>) -> Program {
        Program {
            family: None,
            source: Some(text.into()),
            params: Vec::new(),
            shared_budget: 0,
        }
    }

    /// Fixes a dim, a parameter or a tune parameter: `"bf16"`, `4096`, `true`. Dims that are not fixed are
    /// read off the tensors of each launch.
    pub fn param(mut self, name: impl Into<String>, value: impl ToString) -> Program {
        self.params.push((name.into(), value.to_string()));
        self
    }

    /// Bytes of shared memory per block to stay within; 0: the target's limit.
    pub fn shared_budget(mut self, bytes: i64) -> Program {
        self.shared_budget = bytes;
        self
    }

    /// Calls `use_it` with the options as C has them.
    pub(crate) fn with_raw<T>(
        &self,
        target: Option<&str>,
        device: i32,
        use_it: impl FnOnce(&sys::tl_compile_options) -> Result<T>,
    ) -> Result<T> {
        let family = self.family.as_deref().map(text::to_c).transpose()?;
        let target = target.map(text::to_c).transpose()?;
        let params = self
            .params
            .iter()
            .map(|(name, value)| Ok((text::to_c(name)?, text::to_c(value)?)))
            .collect::<Result<Vec<(CString, CString)>>>()?;
        let raw_params: Vec<sys::tl_param> = params
            .iter()
            .map(|(name, value)| sys::tl_param {
                name: name.as_ptr(),
                value: value.as_ptr(),
            })
            .collect();
        let mut options: sys::tl_compile_options = unsafe { std::mem::zeroed() };
        options.struct_size = std::mem::size_of_val(&options) as u32;
        if let Some(source) = &self.source {
            // A size of 0 would mean a terminated string.
            options.source = if source.is_empty() {
                "\0".as_ptr()
            } else {
                source.as_ptr()
            } as *const _;
            options.source_size = source.len();
        }
        options.family = family.as_ref().map_or(std::ptr::null(), |f| f.as_ptr());
        options.target = target.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
        options.params = raw_params.as_ptr();
        options.num_params = raw_params.len();
        options.device = device;
        options.shared_budget = self.shared_budget;
        use_it(&options)
    }
}
