//! The C interface of TileJIT as `tl/tl.h` declares it, where every function and struct is described.
//! `tests/header.rs` compares each declaration here with the header: names, types, offsets, values.
//! The crate `tilejit` is the safe way to use it.
#![allow(non_camel_case_types)]

pub use std::os::raw::{c_char, c_int, c_void};

pub type tl_status = i32;
pub type tl_domain = i32;
pub type tl_reason = i32;
pub type tl_dtype = i32;
pub type tl_log_level = i32;
pub type tl_cache_mode = i32;
pub type tl_access = i32;
pub type tl_text = i32;

/// A declaration in words, for the comparison with the header.
#[doc(hidden)]
pub struct Function {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
    pub result: &'static str,
}
#[doc(hidden)]
pub struct Field {
    pub name: &'static str,
    pub kind: &'static str,
    pub offset: usize,
}
#[doc(hidden)]
pub struct Struct {
    pub name: &'static str,
    pub size: usize,
    pub fields: Vec<Field>,
}

macro_rules! constants {
    ($table:ident { $($name:ident: $type:ty = $value:expr;)* }) => {
        $(pub const $name: $type = $value;)*
        #[doc(hidden)]
        pub const $table: &[(&str, i64)] = &[$((stringify!($name), $name as i64),)*];
    };
}

// The offset of a field, without the unstable offset_of!: nothing is read.
macro_rules! offset {
    ($struct:ty, $field:ident) => {{
        let place = std::mem::MaybeUninit::<$struct>::uninit();
        let base = place.as_ptr();
        unsafe { std::ptr::addr_of!((*base).$field) as usize - base as usize }
    }};
}

macro_rules! structs {
    ($table:ident { $($name:ident { $($field:ident: $type:ty,)* })* }) => {
        $(
            #[repr(C)]
            #[derive(Clone, Copy)]
            pub struct $name { $(pub $field: $type,)* }
        )*
        #[doc(hidden)]
        pub fn $table() -> Vec<Struct> {
            vec![$(Struct {
                name: stringify!($name),
                size: std::mem::size_of::<$name>(),
                fields: vec![$(Field {
                    name: stringify!($field),
                    kind: stringify!($type),
                    offset: offset!($name, $field),
                },)*],
            },)*]
        }
    };
}

macro_rules! functions {
    ($table:ident { $(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)* }) => {
        extern "C" {
            $(pub fn $name($($argument: $type),*) $(-> $result)?;)*
        }
        #[doc(hidden)]
        pub static $table: &[Function] = &[$(Function {
            name: stringify!($name),
            arguments: &[$(stringify!($type),)*],
            result: concat!($(stringify!($result))?),
        },)*];
    };
}

macro_rules! callbacks {
    ($table:ident { $($name:ident = fn($($type:ty),*) $(-> $result:ty)?;)* }) => {
        $(pub type $name = Option<unsafe extern "C" fn($($type),*) $(-> $result)?>;)*
        #[doc(hidden)]
        pub static $table: &[Function] = &[$(Function {
            name: stringify!($name),
            arguments: &[$(stringify!($type),)*],
            result: concat!($(stringify!($result))?),
        },)*];
    };
}

#[repr(C)]
pub struct tl_context {
    _private: [u8; 0],
}
#[repr(C)]
pub struct tl_kernel {
    _private: [u8; 0],
}

/// `i` where the program declares an integer or bool, `f` where a float.
#[repr(C)]
#[derive(Clone, Copy)]
pub union tl_scalar {
    pub i: i64,
    pub f: f64,
}

pub const TL_ZERO_TERMINATED: usize = usize::MAX;

constants!(CONSTANTS {
    TL_ABI_VERSION: u32 = 1;

    TL_OK: tl_status = 0;
    TL_CANCELLED: tl_status = 1;
    TL_UNKNOWN: tl_status = 2;
    TL_INVALID_ARGUMENT: tl_status = 3;
    TL_DEADLINE_EXCEEDED: tl_status = 4;
    TL_NOT_FOUND: tl_status = 5;
    TL_ALREADY_EXISTS: tl_status = 6;
    TL_PERMISSION_DENIED: tl_status = 7;
    TL_RESOURCE_EXHAUSTED: tl_status = 8;
    TL_FAILED_PRECONDITION: tl_status = 9;
    TL_ABORTED: tl_status = 10;
    TL_OUT_OF_RANGE: tl_status = 11;
    TL_UNIMPLEMENTED: tl_status = 12;
    TL_INTERNAL: tl_status = 13;
    TL_UNAVAILABLE: tl_status = 14;
    TL_DATA_LOSS: tl_status = 15;
    TL_UNAUTHENTICATED: tl_status = 16;

    TL_DOMAIN_TL: tl_domain = 0;
    TL_DOMAIN_NVRTC: tl_domain = 1;
    TL_DOMAIN_CUDA: tl_domain = 2;
    TL_DOMAIN_HIP: tl_domain = 3;
    TL_DOMAIN_LLVM: tl_domain = 4;
    TL_DOMAIN_SQLITE: tl_domain = 5;
    TL_DOMAIN_OS: tl_domain = 6;

    TL_REASON_NONE: tl_reason = 0;
    TL_REASON_NOT_READY: tl_reason = 1;
    TL_REASON_SYNTAX: tl_reason = 2;
    TL_REASON_SEMANTICS: tl_reason = 3;
    TL_REASON_LIMIT: tl_reason = 4;
    TL_REASON_UNSUPPORTED: tl_reason = 5;
    TL_REASON_MISSING_LIBRARY: tl_reason = 6;
    TL_REASON_NO_DEVICE: tl_reason = 7;
    TL_REASON_BINARY_REJECTED: tl_reason = 8;
    TL_REASON_MISMATCH: tl_reason = 9;

    TL_BOOL: tl_dtype = 0;
    TL_I8: tl_dtype = 1;
    TL_U8: tl_dtype = 2;
    TL_I16: tl_dtype = 3;
    TL_U16: tl_dtype = 4;
    TL_I32: tl_dtype = 5;
    TL_U32: tl_dtype = 6;
    TL_I64: tl_dtype = 7;
    TL_E4M3: tl_dtype = 8;
    TL_E5M2: tl_dtype = 9;
    TL_F16: tl_dtype = 10;
    TL_BF16: tl_dtype = 11;
    TL_F32: tl_dtype = 12;
    TL_F64: tl_dtype = 13;

    TL_LOG_INFO: tl_log_level = 0;
    TL_LOG_WARNING: tl_log_level = 1;
    TL_LOG_ERROR: tl_log_level = 2;

    TL_CACHE_DEFAULT: tl_cache_mode = 0;
    TL_CACHE_MEMORY: tl_cache_mode = 1;
    TL_CACHE_READ_ONLY: tl_cache_mode = 2;

    TL_ACCESS_IN: tl_access = 0;
    TL_ACCESS_OUT: tl_access = 1;
    TL_ACCESS_INOUT: tl_access = 2;

    TL_TEXT_IR: tl_text = 0;
    TL_TEXT_SOURCE: tl_text = 1;
    TL_TEXT_ASSEMBLY: tl_text = 2;
    TL_TEXT_SASS: tl_text = 3;
    TL_TEXT_REPORT: tl_text = 4;
    TL_TEXT_LOG: tl_text = 5;
    TL_TEXT_BINARY: tl_text = 6;
    TL_TEXT_MAPPED: tl_text = 7;
    TL_TEXT_THREAD: tl_text = 8;
});

callbacks!(CALLBACKS {
    tl_log_callback = fn(*mut c_void, tl_log_level, *const c_char);
    tl_oracle = fn(*mut c_void, *const tl_oracle_tensor, u32, *const i64, *const tl_scalar) -> c_int;
    tl_cache_entry_callback = fn(*mut c_void, *const tl_cache_entry) -> c_int;
});

structs!(all_structs {
    tl_error_info {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        status: tl_status,
        domain: tl_domain,
        reason: tl_reason,
        line: i32,
        column: i32,
        end_line: i32,
        end_column: i32,
        reserved2: i32,
        native_code: i64,
        message: *const c_char,
        log: *const c_char,
    }
    tl_context_options {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        cache_dir: *const c_char,
        cache_mode: tl_cache_mode,
        cpu_threads: i32,
        cache_max_bytes: u64,
        log: tl_log_callback,
        log_user: *mut c_void,
        own_builds_only: u32,
        reserved2: u32,
        packs: *const *const c_char,
        num_packs: usize,
    }
    tl_device_info {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        name: *const c_char,
        backend: *const c_char,
        target: *const c_char,
        ordinal: i32,
        units: i32,
        memory_bytes: u64,
        l2_bytes: u64,
        max_shared_bytes: i64,
        clock_khz: i32,
        memory_clock_khz: i32,
        driver_version: i32,
        reserved2: i32,
    }
    tl_param {
        name: *const c_char,
        value: *const c_char,
    }
    tl_compile_options {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        source: *const c_char,
        source_size: usize,
        family: *const c_char,
        params: *const tl_param,
        num_params: usize,
        target: *const c_char,
        device: i32,
        reserved2: u32,
        shared_budget: i64,
    }
    tl_tensor_info {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        name: *const c_char,
        dtype: tl_dtype,
        access: tl_access,
        rank: i32,
        alignment: i32,
        shape: *const c_char,
    }
    tl_signature {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        name: *const c_char,
        target: *const c_char,
        num_tensors: u32,
        num_dims: u32,
        num_strides: u32,
        num_scalars: u32,
    }
    tl_launch_args {
        struct_size: u32,
        device: i32,
        next: *const c_void,
        stream: *mut c_void,
        tensors: *const *mut c_void,
        dims: *const i64,
        strides: *const i64,
        scalars: *const tl_scalar,
        num_tensors: u32,
        num_dims: u32,
        num_strides: u32,
        num_scalars: u32,
        workspace: *mut c_void,
        workspace_size: usize,
    }
    tl_oracle_tensor {
        name: *const c_char,
        access: tl_access,
        rank: i32,
        shape: *const i64,
        input: *const f64,
        expected: *mut f64,
        bound: *mut f64,
    }
    tl_check_options {
        struct_size: u32,
        device: i32,
        next: *const c_void,
        dims: *const i64,
        strides: *const i64,
        scalars: *const tl_scalar,
        num_dims: u32,
        num_strides: u32,
        num_scalars: u32,
        reserved: u32,
        seed: u64,
        oracle: tl_oracle,
        oracle_user: *mut c_void,
        reference_work: u64,
    }
    tl_check_result {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        worst_ratio: f64,
        worst_error: f64,
        worst_bound: f64,
        worst_expected: f64,
        worst_actual: f64,
        compared: u64,
        mismatches: u64,
        worst_tensor: *const c_char,
        worst_index: i64,
    }
    tl_bench_options {
        struct_size: u32,
        device: i32,
        next: *const c_void,
        dims: *const i64,
        strides: *const i64,
        scalars: *const tl_scalar,
        num_dims: u32,
        num_strides: u32,
        num_scalars: u32,
        rounds: u32,
        seed: u64,
        min_round_ns: f64,
        rotate_bytes: u64,
    }
    tl_bench_result {
        struct_size: u32,
        rounds: u32,
        next: *const c_void,
        median_ns: f64,
        min_ns: f64,
        max_ns: f64,
        bytes: f64,
        launches_per_round: u64,
        input_sets: u64,
    }
    tl_cache_stats {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        memory_hits: u64,
        hits: u64,
        misses: u64,
        compiles: u64,
        compile_ns: f64,
        evictions: u64,
        quarantined: u64,
        waits: u64,
        entries: u64,
        bytes: u64,
        location: *const c_char,
    }
    tl_cache_entry {
        struct_size: u32,
        current: u32,
        next: *const c_void,
        kernel: *const c_char,
        target: *const c_char,
        parameters: *const c_char,
        compiler: *const c_char,
        key: *const c_char,
        bytes: u64,
        created: i64,
    }
    tl_cache_report {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        checked: u64,
        damaged: u64,
        notes: *const c_char,
    }
    tl_cache_transfer {
        struct_size: u32,
        reserved: u32,
        next: *const c_void,
        entries: u64,
        present: u64,
        records: u64,
        bytes: u64,
    }
});

functions!(FUNCTIONS {
    fn tl_last_error(info: *mut tl_error_info) -> tl_status;
    fn tl_status_name(status: tl_status) -> *const c_char;
    fn tl_version() -> u32;
    fn tl_abi_version() -> u32;
    fn tl_dtype_name(dtype: tl_dtype) -> *const c_char;
    fn tl_dtype_size(dtype: tl_dtype) -> usize;

    fn tl_context_create(options: *const tl_context_options, out: *mut *mut tl_context) -> tl_status;
    fn tl_context_retain(context: *mut tl_context) -> tl_status;
    fn tl_context_release(context: *mut tl_context);
    fn tl_device_count(context: *mut tl_context, count: *mut i32) -> tl_status;
    fn tl_device_get(context: *mut tl_context, device: i32, info: *mut tl_device_info) -> tl_status;

    fn tl_compile(context: *mut tl_context, options: *const tl_compile_options, out: *mut *mut tl_kernel) -> tl_status;
    fn tl_seal(context: *mut tl_context) -> tl_status;
    fn tl_kernel_retain(kernel: *mut tl_kernel) -> tl_status;
    fn tl_kernel_release(kernel: *mut tl_kernel);
    fn tl_kernel_signature(kernel: *const tl_kernel, out: *mut tl_signature) -> tl_status;
    fn tl_kernel_tensor(kernel: *const tl_kernel, index: u32, out: *mut tl_tensor_info) -> tl_status;
    fn tl_kernel_dim_name(kernel: *const tl_kernel, index: u32) -> *const c_char;
    fn tl_kernel_stride_name(kernel: *const tl_kernel, index: u32) -> *const c_char;
    fn tl_kernel_scalar_name(kernel: *const tl_kernel, index: u32) -> *const c_char;
    fn tl_kernel_scalar_dtype(kernel: *const tl_kernel, index: u32, dtype: *mut tl_dtype) -> tl_status;
    fn tl_kernel_text(kernel: *mut tl_kernel, what: tl_text, data: *mut *const c_char, size: *mut usize) -> tl_status;

    fn tl_workspace_size(kernel: *const tl_kernel, args: *const tl_launch_args, bytes: *mut usize) -> tl_status;
    fn tl_launch(kernel: *mut tl_kernel, args: *const tl_launch_args) -> tl_status;
    fn tl_prepare(kernel: *mut tl_kernel, device: i32) -> tl_status;
    fn tl_launch_dlpack(kernel: *mut tl_kernel, tensors: *const *const c_void, num_tensors: u32, args: *const tl_launch_args) -> tl_status;

    fn tl_check(kernel: *mut tl_kernel, options: *const tl_check_options, result: *mut tl_check_result) -> tl_status;
    fn tl_bench(kernel: *mut tl_kernel, options: *const tl_bench_options, result: *mut tl_bench_result) -> tl_status;

    fn tl_cache_get_stats(context: *mut tl_context, out: *mut tl_cache_stats) -> tl_status;
    fn tl_cache_list(context: *mut tl_context, pack: *const c_char, callback: tl_cache_entry_callback, user: *mut c_void) -> tl_status;
    fn tl_cache_verify(context: *mut tl_context, pack: *const c_char, report: *mut tl_cache_report) -> tl_status;
    fn tl_cache_export(context: *mut tl_context, path: *const c_char, targets: *const *const c_char, num_targets: usize, result: *mut tl_cache_transfer) -> tl_status;
    fn tl_cache_import(context: *mut tl_context, path: *const c_char, result: *mut tl_cache_transfer) -> tl_status;

    fn tl_family_count() -> u32;
    fn tl_family_name(index: u32) -> *const c_char;
    fn tl_family_source(name: *const c_char) -> *const c_char;
});

/// What `tl.h` declares under `TL_EXPERIMENTAL`.
#[cfg(feature = "experimental")]
pub mod experimental {
    use super::*;

    pub type tl_tune_fate = i32;

    constants!(CONSTANTS {
        TL_TUNE_REFUSED: tl_tune_fate = 1;
        TL_TUNE_UNBUILT: tl_tune_fate = 2;
        TL_TUNE_MEASURED: tl_tune_fate = 3;
        TL_TUNE_STOPPED: tl_tune_fate = 4;
        TL_TUNE_DISQUALIFIED: tl_tune_fate = 5;
    });

    callbacks!(CALLBACKS {
        tl_tune_callback = fn(*mut c_void, *const tl_tune_event) -> c_int;
        tl_warm_callback = fn(*mut c_void, *const tl_warm_event) -> c_int;
        tl_plan_callback = fn(*mut c_void, *const tl_plan_stop) -> c_int;
    });

    structs!(all_structs {
        tl_tune_event {
            struct_size: u32,
            fate: tl_tune_fate,
            next: *const c_void,
            configuration: *const c_char,
            reason: *const c_char,
            median_ns: f64,
            best_ns: f64,
            default_ns: f64,
            seconds: f64,
            max_seconds: f64,
            done: u64,
            total: u64,
        }
        tl_tune_options {
            struct_size: u32,
            in_process: u32,
            next: *const c_void,
            compile: *const tl_compile_options,
            dims: *const i64,
            strides: *const i64,
            scalars: *const tl_scalar,
            num_dims: u32,
            num_strides: u32,
            num_scalars: u32,
            max_candidates: u32,
            max_seconds: f64,
            candidate_seconds: f64,
            jobs: i32,
            reserved: u32,
            seed: u64,
            worker: *const c_char,
            cancel: *const i32,
            progress: tl_tune_callback,
            user: *mut c_void,
        }
        tl_tune_result {
            struct_size: u32,
            recorded: u32,
            next: *const c_void,
            median_ns: f64,
            min_ns: f64,
            max_ns: f64,
            default_ns: f64,
            runner_up_ns: f64,
            seconds: f64,
            space: u64,
            refused: u64,
            built: u64,
            measured: u64,
            stopped: u64,
            disqualified: u64,
            configuration: *const c_char,
            report: *const c_char,
        }
        tl_warm_event {
            struct_size: u32,
            line: i32,
            next: *const c_void,
            program: *const c_char,
            params: *const c_char,
            target: *const c_char,
            done: u64,
            total: u64,
            status: tl_status,
            compiled: u32,
            message: *const c_char,
            program_line: i32,
            program_column: i32,
        }
        tl_warm_options {
            struct_size: u32,
            jobs: i32,
            next: *const c_void,
            plan: *const c_char,
            plan_size: usize,
            directory: *const c_char,
            targets: *const *const c_char,
            num_targets: usize,
            progress: tl_warm_callback,
            user: *mut c_void,
        }
        tl_warm_result {
            struct_size: u32,
            reserved: u32,
            next: *const c_void,
            total: u64,
            compiled: u64,
            present: u64,
            failed: u64,
        }
        tl_plan_stop {
            struct_size: u32,
            line: i32,
            next: *const c_void,
            program: *const c_char,
            compile: *const tl_compile_options,
            dims: *const tl_param,
            num_dims: usize,
        }
        tl_plan_options {
            struct_size: u32,
            device: i32,
            next: *const c_void,
            plan: *const c_char,
            plan_size: usize,
            directory: *const c_char,
            visit: tl_plan_callback,
            user: *mut c_void,
        }
    });

    functions!(FUNCTIONS {
        fn tl_tune(context: *mut tl_context, options: *const tl_tune_options, out: *mut *mut tl_kernel, result: *mut tl_tune_result) -> tl_status;
        fn tl_warm(context: *mut tl_context, options: *const tl_warm_options, result: *mut tl_warm_result) -> tl_status;
        fn tl_plan_each(context: *mut tl_context, options: *const tl_plan_options) -> tl_status;
        fn tl_query(context: *mut tl_context, options: *const tl_compile_options, data: *mut *const c_char, size: *mut usize) -> tl_status;
        fn tl_layout_svg(name: *const c_char, data: *mut *const c_char, size: *mut usize) -> tl_status;
    });
}
