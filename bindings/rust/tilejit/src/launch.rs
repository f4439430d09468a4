//! Launches.
use std::marker::PhantomData;
use std::os::raw::c_void;

use crate::dlpack::DlTensor;
use crate::error::{check, Error, Result, Status};
use crate::kernel::Access;
use crate::{sys, Device, Dtype, Element, Kernel};

/// A tensor at an address on the device.
#[derive(Clone, Debug)]
pub struct RawTensor {
    /// On the launch's device.
    pub data: *mut c_void,
    /// Of its elements.
    pub dtype: Dtype,
    /// Extents.
    pub shape: Vec<i64>,
    /// In elements; `None`: contiguous, row-major.
    pub strides: Option<Vec<i64>>,
}

/// A runtime scalar: an integer does for a float, a float not for an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ScalarValue {
    Int(i64),
    Float(f64),
}

macro_rules! scalars {
    ($($type:ty => $variant:ident,)*) => {
        $(impl From<$type> for ScalarValue {
            fn from(value: $type) -> ScalarValue {
                ScalarValue::$variant(value.into())
            }
        })*
    };
}
scalars! {
    bool => Int, i8 => Int, u8 => Int, i16 => Int, u16 => Int, i32 => Int, u32 => Int, i64 => Int,
    f32 => Float, f64 => Float,
}

impl ScalarValue {
    fn to_raw(self, dtype: Dtype) -> Result<sys::tl_scalar> {
        match (self, dtype.is_float()) {
            (ScalarValue::Int(i), false) => Ok(sys::tl_scalar { i }),
            (ScalarValue::Int(i), true) => Ok(sys::tl_scalar { f: i as f64 }),
            (ScalarValue::Float(f), true) => Ok(sys::tl_scalar { f }),
            (ScalarValue::Float(f), false) => Err(Error::new(
                Status::InvalidArgument,
                format!(
                    "a float, {}, was given for a scalar of type {}",
                    f,
                    dtype.name()
                ),
            )),
        }
    }
}

struct Argument {
    tensor: RawTensor,
    writable: bool,
    /// Of the slice; `None` for an address.
    bytes: Option<usize>,
}

/// A launch in the making. Slices are borrowed until it has run.
pub struct Launch<'a> {
    kernel: &'a Kernel,
    device: &'a Device,
    arguments: Vec<Argument>,
    scalars: Vec<ScalarValue>,
    workspace: (*mut c_void, usize),
    slices: PhantomData<&'a mut [u8]>,
}

impl<'a> Launch<'a> {
    pub(crate) fn new(kernel: &'a Kernel, device: &'a Device) -> Launch<'a> {
        Launch {
            kernel,
            device,
            arguments: Vec::new(),
            scalars: Vec::new(),
            workspace: (std::ptr::null_mut(), 0),
            slices: PhantomData,
        }
    }

    /// The next tensor, which the kernel only reads: contiguous, row-major.
    pub fn input<T: Element>(self, data: &'a [T], shape: &[i64]) -> Self {
        let bytes = std::mem::size_of_val(data);
        self.slice(data.as_ptr() as *mut c_void, T::DTYPE, shape, bytes, false)
    }

    /// The next tensor, which the kernel writes, or reads and writes.
    pub fn output<T: Element>(self, data: &'a mut [T], shape: &[i64]) -> Self {
        let bytes = std::mem::size_of_val(data);
        self.slice(
            data.as_mut_ptr() as *mut c_void,
            T::DTYPE,
            shape,
            bytes,
            true,
        )
    }

    /// The next input as bytes, for dtypes that Rust has no type for: f16, bf16, fp8, bool. They must be
    /// aligned to an element.
    pub fn input_bytes(self, data: &'a [u8], dtype: Dtype, shape: &[i64]) -> Self {
        self.slice(
            data.as_ptr() as *mut c_void,
            dtype,
            shape,
            data.len(),
            false,
        )
    }

    /// The next output as bytes.
    pub fn output_bytes(self, data: &'a mut [u8], dtype: Dtype, shape: &[i64]) -> Self {
        let bytes = data.len();
        self.slice(data.as_mut_ptr() as *mut c_void, dtype, shape, bytes, true)
    }

    fn slice(
        mut self,
        data: *mut c_void,
        dtype: Dtype,
        shape: &[i64],
        bytes: usize,
        writable: bool,
    ) -> Self {
        let tensor = RawTensor {
            data,
            dtype,
            shape: shape.to_vec(),
            strides: None,
        };
        self.arguments.push(Argument {
            tensor,
            writable,
            bytes: Some(bytes),
        });
        self
    }

    /// The next tensor by its address on the device.
    ///
    /// # Safety
    ///
    /// It must be there, and nobody may touch it, from now until the launch is over, which on a GPU is when its
    /// stream comes to it.
    pub unsafe fn tensor(mut self, tensor: RawTensor) -> Self {
        self.arguments.push(Argument {
            tensor,
            writable: true,
            bytes: None,
        });
        self
    }

    /// The next runtime scalar.
    pub fn scalar(mut self, value: impl Into<ScalarValue>) -> Self {
        self.scalars.push(value.into());
        self
    }

    /// Workspace on the device, 256-byte aligned; the error of a launch without it says how much is needed.
    ///
    /// # Safety
    ///
    /// As for [`tensor`](Launch::tensor).
    pub unsafe fn workspace(mut self, data: *mut c_void, size: usize) -> Self {
        self.workspace = (data, size);
        self
    }

    /// Launches on the default stream. With slices the device must be one that uses the host's memory, and
    /// the launch is over when this returns.
    pub fn run(self) -> Result<()> {
        self.run_raw(std::ptr::null_mut())
    }

    /// Launches on a stream: a `CUstream`, `cudaStream_t` or `hipStream_t`.
    ///
    /// # Safety
    ///
    /// The stream must be one of the device.
    pub unsafe fn run_on(self, stream: *mut c_void) -> Result<()> {
        self.run_raw(stream)
    }

    fn run_raw(self, stream: *mut c_void) -> Result<()> {
        for (i, argument) in self.arguments.iter().enumerate() {
            self.check(i, argument)?;
        }
        let tensors: Vec<DlTensor> = self
            .arguments
            .iter()
            .map(|a| {
                let t = &a.tensor;
                DlTensor::new(t.data, self.device, t.dtype, &t.shape, t.strides.as_deref())
            })
            .collect();
        let pointers: Vec<*const c_void> = tensors
            .iter()
            .map(|t| t as *const _ as *const c_void)
            .collect();
        let scalars = self.raw_scalars()?;
        let mut args: sys::tl_launch_args = unsafe { std::mem::zeroed() };
        args.struct_size = std::mem::size_of_val(&args) as u32;
        args.device = self.device.index;
        args.stream = stream;
        args.scalars = scalars.as_ptr();
        args.num_scalars = scalars.len() as u32;
        args.workspace = self.workspace.0;
        args.workspace_size = self.workspace.1;
        let count = pointers.len() as u32;
        check(unsafe { sys::tl_launch_dlpack(self.kernel.raw(), pointers.as_ptr(), count, &args) })
    }

    /// What the library cannot know: how long a slice is, and whether it may be written.
    fn check(&self, index: usize, argument: &Argument) -> Result<()> {
        let invalid = |message: String| Err(Error::new(Status::InvalidArgument, message));
        let t = &argument.tensor;
        if let Some(strides) = &t.strides {
            if strides.len() != t.shape.len() {
                return invalid(format!(
                    "tensor {}: {} strides for {} dims",
                    index,
                    strides.len(),
                    t.shape.len()
                ));
            }
        }
        let bytes = match argument.bytes {
            Some(bytes) => bytes,
            None => return Ok(()),
        };
        let wanted = t
            .shape
            .iter()
            .try_fold(t.dtype.size() as i64, |n, &extent| {
                if extent < 0 {
                    None
                } else {
                    n.checked_mul(extent)
                }
            });
        if wanted != i64::try_from(bytes).ok() {
            return invalid(format!(
                "tensor {}: a slice of {} bytes was given for the shape {:?} of {}",
                index,
                bytes,
                t.shape,
                t.dtype.name()
            ));
        }
        if t.data as usize % t.dtype.size() != 0 {
            return invalid(format!(
                "tensor {}: the slice is not aligned to {}",
                index,
                t.dtype.name()
            ));
        }
        if !self.device.uses_host_memory() {
            return invalid(format!(
                "tensor {}: a slice lies in host memory, the launch is on {}; give addresses with tensor()",
                index, self.device.name
            ));
        }
        // Past the end: the library refuses the count.
        match self.kernel.tensor(index as u32) {
            Ok(info) if info.access != Access::In && !argument.writable => invalid(format!(
                "tensor '{}' is written: give it with output()",
                info.name
            )),
            _ => Ok(()),
        }
    }

    fn raw_scalars(&self) -> Result<Vec<sys::tl_scalar>> {
        let convert = |(i, value): (usize, &ScalarValue)| {
            // Past the end any type will do: the library refuses the count.
            let dtype = self.kernel.scalar_dtype(i as u32).ok().flatten();
            value.to_raw(dtype.unwrap_or(Dtype::F64))
        };
        self.scalars.iter().enumerate().map(convert).collect()
    }
}
