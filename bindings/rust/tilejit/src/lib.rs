//! TileJIT: tile kernels compiled, cached and launched at run time.
//!
//! ```
//! # fn main() -> Result<(), tilejit::Error> {
//! use tilejit::{Context, Program};
//!
//! let context = Context::new()?;
//! let cpu = context.find_device("cpu")?;
//! // C = A · Bᵀ; one kernel serves all sizes.
//! let gemm = context.compile(&Program::family("gemm").param("t", "f32"), &cpu)?;
//!
//! let (a, b) = ([1f32, 2., 3., 4., 5., 6.], [1f32, 0., 1., 0., 2., 0.]);
//! let mut c = [0f32; 4];
//! gemm.launch(&cpu)
//!     .input(&a, &[2, 3])
//!     .input(&b, &[2, 3])
//!     .output(&mut c, &[2, 2])
//!     .run()?;
//! assert_eq!(c, [4., 4., 10., 10.]);
//! # Ok(())
//! # }
//! ```
//!
//! # What is safe
//!
//! Launches on host slices are safe functions: element types, shapes, what is written, and the slices' lengths
//! are checked before anything runs, and the launch is over when the call returns. As with any code that is
//! compiled, the *program* is trusted: one that reads `X[i]` with an `i` outside of X, as a page table with
//! wrong entries can make it, reads there (`tl check` reports it), and a `prepacked` operand is padded to whole
//! tiles, which its shape does not show: give that one by address.
//!
//! Device pointers and streams take `unsafe`: the caller knows how long they live.
//!
//! # Linking
//!
//! `tilejit-sys` links `libtilejit` from `TILEJIT_LIB_DIR`, else from where the linker looks. The loader has
//! to find it too: an rpath, the system's library path, or `LD_LIBRARY_PATH`.
#![warn(missing_docs)]

mod context;
mod dlpack;
mod error;
mod kernel;
mod launch;
mod program;
mod text;
#[cfg(feature = "experimental")]
mod tune;

pub use context::{CacheMode, Context, ContextOptions, Device, LogLevel, Stats};
#[cfg(feature = "experimental")]
pub use context::{WarmOptions, Warmed};
pub use error::{Domain, Error, Reason, Result, Span, Status};
pub use kernel::{Access, Kernel, Scalar, Signature, Tensor, Text};
pub use launch::{Launch, RawTensor, ScalarValue};
pub use program::Program;
#[cfg(feature = "experimental")]
pub use tune::{Fate, TuneEvent, TuneOptions, Tuned};

/// The C interface underneath.
pub use tilejit_sys as sys;

/// An element type of tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum Dtype {
    Bool = sys::TL_BOOL,
    I8 = sys::TL_I8,
    U8 = sys::TL_U8,
    I16 = sys::TL_I16,
    U16 = sys::TL_U16,
    I32 = sys::TL_I32,
    U32 = sys::TL_U32,
    I64 = sys::TL_I64,
    /// fp8 with four bits of exponent.
    E4m3 = sys::TL_E4M3,
    /// fp8 with five bits of exponent.
    E5m2 = sys::TL_E5M2,
    F16 = sys::TL_F16,
    Bf16 = sys::TL_BF16,
    F32 = sys::TL_F32,
    F64 = sys::TL_F64,
}

impl Dtype {
    const ALL: [Dtype; 14] = [
        Dtype::Bool,
        Dtype::I8,
        Dtype::U8,
        Dtype::I16,
        Dtype::U16,
        Dtype::I32,
        Dtype::U32,
        Dtype::I64,
        Dtype::E4m3,
        Dtype::E5m2,
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
    ];

    /// `None` for a dtype of a newer library.
    pub fn from_raw(raw: sys::tl_dtype) -> Option<Dtype> {
        Dtype::ALL.get(usize::try_from(raw).ok()?).copied()
    }

    /// "bf16".
    pub fn name(self) -> &'static str {
        // Static strings of the library.
        unsafe { text::borrowed(sys::tl_dtype_name(self as i32)) }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        unsafe { sys::tl_dtype_size(self as i32) }
    }

    fn is_float(self) -> bool {
        self as i32 >= Dtype::E4m3 as i32
    }
}

/// A Rust type that is a dtype.
///
/// # Safety
///
/// Every bit pattern that a kernel may write for `DTYPE` must be a value of the type.
pub unsafe trait Element: Copy {
    /// Its dtype.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($type:ty = $dtype:ident,)*) => {
        $(unsafe impl Element for $type {
            const DTYPE: Dtype = Dtype::$dtype;
        })*
    };
}
// bool is none of them: a kernel writes bytes.
elements! {
    i8 = I8, u8 = U8, i16 = I16, u16 = U16, i32 = I32, u32 = U32, i64 = I64, f32 = F32, f64 = F64,
}

/// The library's version: 10203 for 1.2.3.
pub fn version() -> u32 {
    unsafe { sys::tl_version() }
}

/// Names of the builtin families.
pub fn families() -> Vec<&'static str> {
    (0..unsafe { sys::tl_family_count() })
        .map(|i| unsafe { text::borrowed(sys::tl_family_name(i)) })
        .collect()
}
