//! struct DLTensor of dlpack.h, whose layout is fixed.
use std::os::raw::c_void;

use crate::{Device, Dtype};

#[repr(C)]
pub(crate) struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

fn code(dtype: Dtype) -> u8 {
    match dtype {
        Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => 0,
        Dtype::U8 | Dtype::U16 | Dtype::U32 => 1,
        Dtype::F16 | Dtype::F32 | Dtype::F64 => 2,
        Dtype::Bf16 => 4,
        Dtype::Bool => 6,
        Dtype::E4m3 => 10,
        Dtype::E5m2 => 12,
    }
}

impl DlTensor {
    /// Points into `shape` and `strides`; without strides: contiguous, row-major.
    pub(crate) fn new(
        data: *mut c_void,
        device: &Device,
        dtype: Dtype,
        shape: &[i64],
        strides: Option<&[i64]>,
    ) -> DlTensor {
        let device_type = match device.backend.as_str() {
            "cuda" => 2,
            "hip" => 10,
            _ => 1,
        };
        DlTensor {
            data,
            device_type,
            device_id: if device_type == 1 { 0 } else { device.ordinal },
            ndim: shape.len() as i32,
            code: code(dtype),
            bits: 8 * dtype.size() as u8,
            lanes: 1,
            shape: shape.as_ptr(),
            strides: strides.map_or(std::ptr::null(), |s| s.as_ptr()),
            byte_offset: 0,
        }
    }
}
