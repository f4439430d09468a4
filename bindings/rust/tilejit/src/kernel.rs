//! Compiled kernels.
use std::ptr::NonNull;

use crate::error::{check, Error, Result};
use crate::{sys, text, Device, Dtype, Launch};

/// What a kernel does with a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Access {
    In,
    Out,
    InOut,
}

/// A tensor of a kernel's signature.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Tensor {
    pub name: String,
    /// `None`: a dtype of a newer library.
    pub dtype: Option<Dtype>,
    pub access: Access,
    pub rank: usize,
    /// Bytes that the pointer must be aligned to.
    pub alignment: usize,
    /// "[M, K]", as declared.
    pub shape: String,
}

/// A runtime scalar of a kernel's signature.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(missing_docs)]
pub struct Scalar {
    pub name: String,
    pub dtype: Option<Dtype>,
}

/// What a launch takes, in order.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Signature {
    /// Of the program.
    pub name: String,
    /// "sm_90a".
    pub target: String,
    /// Tensors.
    pub tensors: Vec<Tensor>,
    /// Dynamic dims.
    pub dims: Vec<String>,
    /// Dynamic strides, "X.stride0".
    pub strides: Vec<String>,
    /// Runtime scalars.
    pub scalars: Vec<Scalar>,
}

/// What a kernel can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Text {
    /// The bound tile program.
    Ir,
    /// Generated CUDA C++, LLVM IR ...
    Source,
    /// PTX, host assembly.
    Assembly,
    /// Disassembly of the GPU binary; needs nvdisasm.
    Sass,
    /// JSON: parameters, choices, resources, who built it, where it came from.
    Report,
    /// The compiler's log.
    Log,
    /// The bytes of the cubin, object ...
    Binary,
    /// Scalar statements of one thread.
    Thread,
}

/// A compiled kernel. Copies share it; it keeps its context.
pub struct Kernel(NonNull<sys::tl_kernel>);

// The library may be called from any thread, and its handles are counted atomically.
unsafe impl Send for Kernel {}
unsafe impl Sync for Kernel {}

impl Clone for Kernel {
    fn clone(&self) -> Kernel {
        let status = unsafe { sys::tl_kernel_retain(self.raw()) };
        assert_eq!(
            status,
            sys::TL_OK,
            "a kernel cannot be shared: {}",
            Error::last()
        );
        Kernel(self.0)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        unsafe { sys::tl_kernel_release(self.raw()) }
    }
}

impl Kernel {
    /// # Safety
    ///
    /// A kernel of `tl_compile`, whose reference is handed over.
    pub unsafe fn from_raw(raw: *mut sys::tl_kernel) -> Kernel {
        Kernel(NonNull::new(raw).expect("a kernel"))
    }

    /// The handle, for calls of [`sys`]; owned by this object. `tl_launch` with it is the
    /// shortest way to launch.
    pub fn raw(&self) -> *mut sys::tl_kernel {
        self.0.as_ptr()
    }

    /// Begins a launch: tensors and scalars follow in the order of the signature.
    pub fn launch<'a>(&'a self, device: &'a Device) -> Launch<'a> {
        Launch::new(self, device)
    }

    /// Loads the kernel on a device now, so that a stream may be captured.
    pub fn prepare(&self, device: &Device) -> Result<()> {
        check(unsafe { sys::tl_prepare(self.raw(), device.index) })
    }

    /// What a launch takes.
    pub fn signature(&self) -> Result<Signature> {
        let mut raw: sys::tl_signature = unsafe { std::mem::zeroed() };
        raw.struct_size = std::mem::size_of_val(&raw) as u32;
        check(unsafe { sys::tl_kernel_signature(self.raw(), &mut raw) })?;
        unsafe {
            let k = self.raw() as *const sys::tl_kernel;
            Ok(Signature {
                name: text::owned(raw.name),
                target: text::owned(raw.target),
                tensors: (0..raw.num_tensors)
                    .map(|i| self.tensor(i))
                    .collect::<Result<_>>()?,
                dims: (0..raw.num_dims)
                    .map(|i| text::owned(sys::tl_kernel_dim_name(k, i)))
                    .collect(),
                strides: (0..raw.num_strides)
                    .map(|i| text::owned(sys::tl_kernel_stride_name(k, i)))
                    .collect(),
                scalars: (0..raw.num_scalars)
                    .map(|i| {
                        Ok(Scalar {
                            name: text::owned(sys::tl_kernel_scalar_name(k, i)),
                            dtype: self.scalar_dtype(i)?,
                        })
                    })
                    .collect::<Result<_>>()?,
            })
        }
    }

    pub(crate) fn tensor(&self, index: u32) -> Result<Tensor> {
        let mut raw: sys::tl_tensor_info = unsafe { std::mem::zeroed() };
        raw.struct_size = std::mem::size_of_val(&raw) as u32;
        check(unsafe { sys::tl_kernel_tensor(self.raw(), index, &mut raw) })?;
        Ok(Tensor {
            name: unsafe { text::owned(raw.name) },
            dtype: Dtype::from_raw(raw.dtype),
            access: match raw.access {
                sys::TL_ACCESS_IN => Access::In,
                sys::TL_ACCESS_OUT => Access::Out,
                _ => Access::InOut,
            },
            rank: raw.rank as usize,
            alignment: raw.alignment as usize,
            shape: unsafe { text::owned(raw.shape) },
        })
    }

    pub(crate) fn scalar_dtype(&self, index: u32) -> Result<Option<Dtype>> {
        let mut dtype = 0;
        check(unsafe { sys::tl_kernel_scalar_dtype(self.raw(), index, &mut dtype) })?;
        Ok(Dtype::from_raw(dtype))
    }

    /// Source, report and the like.
    pub fn text(&self, what: Text) -> Result<&[u8]> {
        let what = match what {
            Text::Ir => sys::TL_TEXT_IR,
            Text::Source => sys::TL_TEXT_SOURCE,
            Text::Assembly => sys::TL_TEXT_ASSEMBLY,
            Text::Sass => sys::TL_TEXT_SASS,
            Text::Report => sys::TL_TEXT_REPORT,
            Text::Log => sys::TL_TEXT_LOG,
            Text::Binary => sys::TL_TEXT_BINARY,
            Text::Thread => sys::TL_TEXT_THREAD,
        };
        let (mut data, mut size) = (std::ptr::null(), 0);
        check(unsafe { sys::tl_kernel_text(self.raw(), what, &mut data, &mut size) })?;
        // Valid until the kernel is released, which this borrow forbids.
        Ok(unsafe { std::slice::from_raw_parts(data as *const u8, size) })
    }
}
