//! Contexts and devices.
use std::ffi::CStr;
use std::ptr::NonNull;

use crate::error::{check, Error, Result, Status};
use crate::sys::{self, c_char, c_void};
use crate::text::{self, Texts};
use crate::{Kernel, Program};

/// How a message of the library is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum LogLevel {
    Info,
    Warning,
    Error,
}

/// Where compiled kernels are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheMode {
    /// On disk.
    Default,
    /// In this process only.
    Memory,
    /// On disk, and nothing is written.
    ReadOnly,
}

/// How a context is made.
#[derive(Clone)]
pub struct ContextOptions {
    cache_dir: Option<String>,
    cache_mode: CacheMode,
    cpu_threads: i32,
    cache_max_bytes: u64,
    packs: Vec<String>,
    log: Option<fn(LogLevel, &str)>,
}

impl Default for ContextOptions {
    fn default() -> ContextOptions {
        ContextOptions {
            cache_dir: None,
            cache_mode: CacheMode::Default,
            cpu_threads: 0,
            cache_max_bytes: 0,
            packs: Vec::new(),
            log: None,
        }
    }
}

impl ContextOptions {
    /// The defaults of `tl_context_options`.
    pub fn new() -> ContextOptions {
        ContextOptions::default()
    }
    /// The directory of the kernel cache.
    pub fn cache_dir(mut self, dir: impl Into<String>) -> Self {
        self.cache_dir = Some(dir.into());
        self
    }
    /// Where compiled kernels are kept.
    pub fn cache_mode(mut self, mode: CacheMode) -> Self {
        self.cache_mode = mode;
        self
    }
    /// Threads of the CPU backend; 0: all cores.
    pub fn cpu_threads(mut self, threads: i32) -> Self {
        self.cpu_threads = threads;
        self
    }
    /// Above this the least recently used kernels go; 0: no limit.
    pub fn cache_max_bytes(mut self, bytes: u64) -> Self {
        self.cache_max_bytes = bytes;
        self
    }
    /// A file of `tl cache export`, to be read below the cache.
    pub fn pack(mut self, path: impl Into<String>) -> Self {
        self.packs.push(path.into());
        self
    }
    /// Called from any thread that uses the context; must not call back into the library. A plain function,
    /// because the last kernel may outlive the context. A panic in it ends the process.
    pub fn log(mut self, log: fn(LogLevel, &str)) -> Self {
        self.log = Some(log);
        self
    }

    /// Makes the context.
    pub fn create(&self) -> Result<Context> {
        let cache_dir = self.cache_dir.as_deref().map(text::to_c).transpose()?;
        let packs = Texts::new(&self.packs)?;
        let mut raw: sys::tl_context_options = unsafe { std::mem::zeroed() };
        raw.struct_size = std::mem::size_of_val(&raw) as u32;
        raw.cache_dir = cache_dir.as_ref().map_or(std::ptr::null(), |d| d.as_ptr());
        raw.cache_mode = match self.cache_mode {
            CacheMode::Default => sys::TL_CACHE_DEFAULT,
            CacheMode::Memory => sys::TL_CACHE_MEMORY,
            CacheMode::ReadOnly => sys::TL_CACHE_READ_ONLY,
        };
        raw.cpu_threads = self.cpu_threads;
        raw.cache_max_bytes = self.cache_max_bytes;
        raw.packs = packs.pointers.as_ptr();
        raw.num_packs = packs.pointers.len();
        if let Some(log) = self.log {
            raw.log = Some(call_log);
            // A function pointer is as wide as a data pointer on every target that the library has.
            raw.log_user = log as usize as *mut c_void;
        }
        let mut context = std::ptr::null_mut();
        check(unsafe { sys::tl_context_create(&raw, &mut context) })?;
        Ok(Context(
            NonNull::new(context).expect("a context that was made"),
        ))
    }
}

unsafe extern "C" fn call_log(user: *mut c_void, level: sys::tl_log_level, message: *const c_char) {
    // Made of this very type in create().
    let log: fn(LogLevel, &str) = std::mem::transmute(user);
    let level = match level {
        sys::TL_LOG_INFO => LogLevel::Info,
        sys::TL_LOG_WARNING => LogLevel::Warning,
        _ => LogLevel::Error,
    };
    let text = CStr::from_ptr(message).to_string_lossy();
    // A panic must not run through C.
    if std::panic::catch_unwind(|| log(level, &text)).is_err() {
        std::process::abort();
    }
}

/// A device, as its context numbers them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// What launches name.
    pub index: i32,
    /// "NVIDIA H200".
    pub name: String,
    /// "cuda", "cpu", "reference".
    pub backend: String,
    /// "sm_90a".
    pub target: String,
    /// Within its backend, as the driver numbers them.
    pub ordinal: i32,
    /// Multiprocessors, cores.
    pub units: i32,
    /// Of the device.
    pub memory_bytes: u64,
    /// Shared memory of a thread block.
    pub max_shared_bytes: i64,
}

impl Device {
    /// Whether its kernels work on the memory of the process, and launches are over when they return.
    pub fn uses_host_memory(&self) -> bool {
        self.backend == "cpu" || self.backend == "reference"
    }
}

/// Counters of a context.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Compilations asked for and answered from this context's kernels.
    pub memory_hits: u64,
    /// Answered from the cache or a pack.
    pub hits: u64,
    /// Answered by neither.
    pub misses: u64,
    /// Kernels that were compiled.
    pub compiles: u64,
    /// Damaged entries set aside.
    pub quarantined: u64,
    /// Calls that waited for another thread's or process' compile.
    pub waits: u64,
    /// Entries of the cache now.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The file of the cache, or "memory".
    pub location: String,
}

/// Owns devices, the cache and its kernels. Copies share it.
pub struct Context(NonNull<sys::tl_context>);

// The library may be called from any thread, and its handles are counted atomically.
unsafe impl Send for Context {}
unsafe impl Sync for Context {}

impl Clone for Context {
    fn clone(&self) -> Context {
        let status = unsafe { sys::tl_context_retain(self.raw()) };
        assert_eq!(
            status,
            sys::TL_OK,
            "a context cannot be shared: {}",
            Error::last()
        );
        Context(self.0)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        unsafe { sys::tl_context_release(self.raw()) }
    }
}

impl Context {
    /// With the default options.
    pub fn new() -> Result<Context> {
        ContextOptions::new().create()
    }

    /// The handle, for calls of [`sys`](crate::sys); owned by this object.
    pub fn raw(&self) -> *mut sys::tl_context {
        self.0.as_ptr()
    }

    /// All devices, the best first.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let mut count = 0;
        check(unsafe { sys::tl_device_count(self.raw(), &mut count) })?;
        (0..count).map(|i| self.device(i)).collect()
    }

    /// One device.
    pub fn device(&self, index: i32) -> Result<Device> {
        let mut info: sys::tl_device_info = unsafe { std::mem::zeroed() };
        info.struct_size = std::mem::size_of_val(&info) as u32;
        check(unsafe { sys::tl_device_get(self.raw(), index, &mut info) })?;
        unsafe {
            Ok(Device {
                index,
                name: text::owned(info.name),
                backend: text::owned(info.backend),
                target: text::owned(info.target),
                ordinal: info.ordinal,
                units: info.units,
                memory_bytes: info.memory_bytes,
                max_shared_bytes: info.max_shared_bytes,
            })
        }
    }

    /// The best device of a backend.
    pub fn find_device(&self, backend: &str) -> Result<Device> {
        let devices = self.devices()?;
        let present: Vec<&str> = devices.iter().map(|d| d.backend.as_str()).collect();
        let message = format!(
            "no device of backend {:?}; there are {}",
            backend,
            present.join(", ")
        );
        devices
            .into_iter()
            .find(|d| d.backend == backend)
            .ok_or_else(|| Error::new(Status::NotFound, message))
    }

    /// From memory, from the cache, or compiled.
    pub fn compile(&self, program: &Program, device: &Device) -> Result<Kernel> {
        program.with_raw(None, device.index, |options| self.compile_raw(options))
    }

    /// For a target ("sm_90a") or a GPU's name ("H100"), which need not be present.
    pub fn compile_for(&self, program: &Program, target: &str) -> Result<Kernel> {
        program.with_raw(Some(target), 0, |options| self.compile_raw(options))
    }

    fn compile_raw(&self, options: &sys::tl_compile_options) -> Result<Kernel> {
        let mut kernel = std::ptr::null_mut();
        check(unsafe { sys::tl_compile(self.raw(), options, &mut kernel) })?;
        // The caller's only reference.
        Ok(unsafe { Kernel::from_raw(kernel) })
    }

    /// From now on nothing compiles here: what is in memory, in the cache and in packs is served, and what
    /// is nowhere is an error of reason [`NotReady`](crate::Reason::NotReady).
    pub fn seal(&self) -> Result<()> {
        check(unsafe { sys::tl_seal(self.raw()) })
    }

    /// The counters.
    pub fn stats(&self) -> Result<Stats> {
        let mut raw: sys::tl_cache_stats = unsafe { std::mem::zeroed() };
        raw.struct_size = std::mem::size_of_val(&raw) as u32;
        check(unsafe { sys::tl_cache_get_stats(self.raw(), &mut raw) })?;
        Ok(Stats {
            memory_hits: raw.memory_hits,
            hits: raw.hits,
            misses: raw.misses,
            compiles: raw.compiles,
            quarantined: raw.quarantined,
            waits: raw.waits,
            entries: raw.entries,
            bytes: raw.bytes,
            location: unsafe { text::owned(raw.location) },
        })
    }
}

/// How a plan is compiled.
#[cfg(feature = "experimental")]
#[derive(Clone, Debug, Default)]
pub struct WarmOptions {
    /// Where files lie that the plan names by relative paths.
    pub directory: Option<String>,
    /// Not empty: instead of the plan's targets.
    pub targets: Vec<String>,
    /// How many compile at a time; 0: one per processor.
    pub jobs: i32,
}

/// What a plan came to.
#[cfg(feature = "experimental")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Warmed {
    pub total: u64,
    pub compiled: u64,
    pub present: u64,
    pub failed: u64,
}

#[cfg(feature = "experimental")]
impl Context {
    /// Compiles everything in a plan (TOML, docs/cache.md) into the cache; the error is that of the first
    /// kernel that failed.
    pub fn warm(&self, plan: &str, options: &WarmOptions) -> Result<Warmed> {
        use sys::experimental::{tl_warm, tl_warm_options, tl_warm_result};
        let plan = text::to_c(plan)?;
        let directory = options.directory.as_deref().map(text::to_c).transpose()?;
        let targets = Texts::new(&options.targets)?;
        let mut raw: tl_warm_options = unsafe { std::mem::zeroed() };
        raw.struct_size = std::mem::size_of_val(&raw) as u32;
        raw.plan = plan.as_ptr();
        raw.plan_size = sys::TL_ZERO_TERMINATED;
        raw.directory = directory.as_ref().map_or(std::ptr::null(), |d| d.as_ptr());
        raw.targets = targets.pointers.as_ptr();
        raw.num_targets = targets.pointers.len();
        raw.jobs = options.jobs;
        let mut result: tl_warm_result = unsafe { std::mem::zeroed() };
        result.struct_size = std::mem::size_of_val(&result) as u32;
        check(unsafe { tl_warm(self.raw(), &raw, &mut result) })?;
        Ok(Warmed {
            total: result.total,
            compiled: result.compiled,
            present: result.present,
            failed: result.failed,
        })
    }

    /// What compiling would give, as JSON, without doing it.
    pub fn query(&self, program: &Program, target: &str) -> Result<String> {
        program.with_raw(Some(target), 0, |options| {
            let mut data = std::ptr::null();
            let mut size = 0;
            check(unsafe {
                sys::experimental::tl_query(self.raw(), options, &mut data, &mut size)
            })?;
            Ok(unsafe { text::owned(data) })
        })
    }
}
