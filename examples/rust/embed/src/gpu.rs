//! Memory of an NVIDIA GPU, through the few functions of its driver that this needs: the crate builds without a
//! toolkit. A server has its own way to allocate; the library never does it for a launch.
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint, c_void};

use tilejit::{Dtype, RawTensor};

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}
const RTLD_NOW: c_int = 2;

type Status = c_int;
type Address = u64;

/// The GPU's primary context, the one that the library launches in.
pub struct Gpu {
    context: *mut c_void,
    push: unsafe extern "C" fn(*mut c_void) -> Status,
    pop: unsafe extern "C" fn(*mut *mut c_void) -> Status,
    alloc: unsafe extern "C" fn(*mut Address, usize) -> Status,
    free: unsafe extern "C" fn(Address) -> Status,
    upload: unsafe extern "C" fn(Address, *const c_void, usize) -> Status,
    download: unsafe extern "C" fn(*mut c_void, Address, usize) -> Status,
}

// The driver's functions and contexts are every thread's.
unsafe impl Send for Gpu {}
unsafe impl Sync for Gpu {}

fn check(status: Status, what: &str) -> Result<(), String> {
    match status {
        0 => Ok(()),
        _ => Err(format!("{} failed: the driver says {}", what, status)),
    }
}

/// `F` must be the function's type.
unsafe fn function<F: Copy>(driver: *mut c_void, name: &'static [u8]) -> Result<F, String> {
    let name = CStr::from_bytes_with_nul(name).expect("a name that ends with 0");
    let symbol = dlsym(driver, name.as_ptr());
    if symbol.is_null() {
        return Err(format!("the driver has no {:?}", name));
    }
    Ok(std::mem::transmute_copy(&symbol))
}

impl Gpu {
    /// `ordinal` as the driver numbers GPUs.
    pub fn open(ordinal: i32) -> Result<Gpu, String> {
        unsafe {
            let driver = dlopen(b"libcuda.so.1\0".as_ptr().cast(), RTLD_NOW);
            if driver.is_null() {
                return Err("no libcuda.so.1".into());
            }
            let init: unsafe extern "C" fn(c_uint) -> Status = function(driver, b"cuInit\0")?;
            let device_get: unsafe extern "C" fn(*mut c_int, c_int) -> Status =
                function(driver, b"cuDeviceGet\0")?;
            let retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> Status =
                function(driver, b"cuDevicePrimaryCtxRetain\0")?;
            let (mut device, mut context) = (0, std::ptr::null_mut());
            check(init(0), "cuInit")?;
            check(device_get(&mut device, ordinal), "cuDeviceGet")?;
            check(retain(&mut context, device), "cuDevicePrimaryCtxRetain")?;
            Ok(Gpu {
                context,
                push: function(driver, b"cuCtxPushCurrent_v2\0")?,
                pop: function(driver, b"cuCtxPopCurrent_v2\0")?,
                alloc: function(driver, b"cuMemAlloc_v2\0")?,
                free: function(driver, b"cuMemFree_v2\0")?,
                upload: function(driver, b"cuMemcpyHtoD_v2\0")?,
                download: function(driver, b"cuMemcpyDtoH_v2\0")?,
            })
        }
    }

    /// Runs `f` with the GPU's context current in this thread.
    fn with<R>(&self, f: impl FnOnce(&Gpu) -> R) -> R {
        let mut old = std::ptr::null_mut();
        unsafe { (self.push)(self.context) };
        let result = f(self);
        unsafe { (self.pop)(&mut old) };
        result
    }

    /// A copy of `data` on the GPU.
    pub fn upload(&self, data: &[f32]) -> Result<Buffer<'_>, String> {
        let bytes = std::mem::size_of_val(data);
        let mut address = 0;
        self.with(|gpu| unsafe {
            check((gpu.alloc)(&mut address, bytes), "cuMemAlloc")?;
            let buffer = Buffer { gpu: self, address };
            check(
                (gpu.upload)(address, data.as_ptr().cast(), bytes),
                "cuMemcpyHtoD",
            )?;
            Ok(buffer)
        })
    }
}

/// Memory on a GPU, freed when dropped.
pub struct Buffer<'a> {
    gpu: &'a Gpu,
    address: Address,
}

impl Buffer<'_> {
    /// Contiguous f32 of this shape.
    pub fn tensor(&self, shape: &[i64]) -> RawTensor {
        RawTensor {
            data: self.address as *mut c_void,
            dtype: Dtype::F32,
            shape: shape.to_vec(),
            strides: None,
        }
    }

    /// Waits for what was launched on the default stream and brings the elements back.
    pub fn download(&self, data: &mut [f32]) -> Result<(), String> {
        let bytes = std::mem::size_of_val(data);
        self.gpu.with(|gpu| unsafe {
            check(
                (gpu.download)(data.as_mut_ptr().cast(), self.address, bytes),
                "cuMemcpyDtoH",
            )
        })
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.gpu.with(|gpu| unsafe { (gpu.free)(self.address) });
    }
}
