//! Tuning, which the library calls experimental.
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use crate::error::{check, Result};
use crate::sys::experimental::{
    self as raw, tl_tune, tl_tune_event, tl_tune_options, tl_tune_result,
};
use crate::sys::{c_int, c_void};
use crate::{text, Context, Device, Kernel, Program};

/// What has become of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fate {
    /// The target cannot have it: never compiled.
    Refused,
    /// The compiler failed.
    Unbuilt,
    /// Timed; may still win.
    Measured,
    /// Too slow to win.
    Stopped,
    /// It faulted, ran past its time, or gave wrong results.
    Disqualified,
}

/// Something is known of a candidate, or more than before.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TuneEvent {
    /// "bk=64 bm=128 bn=128 stages=2".
    pub configuration: String,
    /// What has become of it.
    pub fate: Fate,
    /// Why it was refused, unbuilt or disqualified.
    pub reason: String,
    /// Of its launch so far; 0: not timed.
    pub median_ns: f64,
    /// Of the best so far.
    pub best_ns: f64,
    /// Candidates of which something is known.
    pub done: u64,
    /// Of these.
    pub total: u64,
}

/// How to tune. Candidates run in a process of their own, `tl-worker`: one that faults costs only itself.
pub struct TuneOptions<'a> {
    dims: Vec<i64>,
    max_seconds: f64,
    max_candidates: u32,
    jobs: i32,
    seed: u64,
    worker: Option<String>,
    progress: Option<&'a mut dyn FnMut(&TuneEvent) -> bool>,
}

impl<'a> TuneOptions<'a> {
    /// For launches with these dynamic dims, in the order of the signature; tensors are contiguous.
    pub fn new(dims: &[i64], max_seconds: f64) -> TuneOptions<'a> {
        TuneOptions {
            dims: dims.to_vec(),
            max_seconds,
            max_candidates: 0,
            jobs: 0,
            seed: 0,
            worker: None,
            progress: None,
        }
    }
    /// How many are compiled at most; 0: no limit.
    pub fn max_candidates(mut self, count: u32) -> Self {
        self.max_candidates = count;
        self
    }
    /// How many compile at a time; 0: one per processor.
    pub fn jobs(mut self, count: i32) -> Self {
        self.jobs = count;
        self
    }
    /// Of the data.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// The helper program, where it is not beside the library.
    pub fn worker(mut self, path: impl Into<String>) -> Self {
        self.worker = Some(path.into());
        self
    }
    /// Called by the thread that tunes; `false` cancels. It must not call the library.
    pub fn progress(mut self, progress: &'a mut dyn FnMut(&TuneEvent) -> bool) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// The winner.
#[non_exhaustive]
pub struct Tuned {
    /// Ready to launch.
    pub kernel: Kernel,
    /// "bk=64 bm=128 bn=128 stages=2".
    pub configuration: String,
    /// JSON: all of this, and every candidate that was tried.
    pub report: String,
    /// Of one launch.
    pub median_ns: f64,
    /// Of the untuned default in the same rounds; 0: it does not run.
    pub default_ns: f64,
    /// Combinations that the program's conditions allow.
    pub space: u64,
    /// Of these, timed.
    pub measured: u64,
    /// Of these, faulting, endless or wrong.
    pub disqualified: u64,
    /// [`Context::compile`] takes the winner from now on.
    pub recorded: bool,
}

/// The caller's closure on its way through C.
struct Progress<'a> {
    call: &'a mut dyn FnMut(&TuneEvent) -> bool,
    panic: Option<Box<dyn Any + Send>>,
}

unsafe extern "C" fn on_event(user: *mut c_void, event: *const tl_tune_event) -> c_int {
    let progress = &mut *(user as *mut Progress);
    let event = &*event;
    let event = TuneEvent {
        configuration: text::owned(event.configuration),
        fate: match event.fate {
            raw::TL_TUNE_REFUSED => Fate::Refused,
            raw::TL_TUNE_UNBUILT => Fate::Unbuilt,
            raw::TL_TUNE_STOPPED => Fate::Stopped,
            raw::TL_TUNE_DISQUALIFIED => Fate::Disqualified,
            _ => Fate::Measured,
        },
        reason: text::owned(event.reason),
        median_ns: event.median_ns,
        best_ns: event.best_ns,
        done: event.done,
        total: event.total,
    };
    // A panic must not run through C: it cancels, and goes on behind the call.
    match catch_unwind(AssertUnwindSafe(|| (progress.call)(&event))) {
        Ok(go_on) => c_int::from(!go_on),
        Err(panic) => {
            progress.panic = Some(panic);
            1
        }
    }
}

impl Context {
    /// Looks for the tune parameters that make a program fastest on a device (docs/tuning.md). A value given
    /// for one, or several as `"64,128"`, narrows what is tried.
    pub fn tune(
        &self,
        program: &Program,
        device: &Device,
        options: TuneOptions<'_>,
    ) -> Result<Tuned> {
        let worker = options.worker.as_deref().map(text::to_c).transpose()?;
        let mut progress = options.progress.map(|call| Progress { call, panic: None });
        let mut kernel = std::ptr::null_mut();
        let mut result: tl_tune_result = unsafe { std::mem::zeroed() };
        result.struct_size = std::mem::size_of_val(&result) as u32;
        let status = program.with_raw(None, device.index, |compile| {
            let mut raw: tl_tune_options = unsafe { std::mem::zeroed() };
            raw.struct_size = std::mem::size_of_val(&raw) as u32;
            raw.compile = compile;
            raw.dims = options.dims.as_ptr();
            raw.num_dims = options.dims.len() as u32;
            raw.max_seconds = options.max_seconds;
            raw.max_candidates = options.max_candidates;
            raw.jobs = options.jobs;
            raw.seed = options.seed;
            raw.worker = worker.as_ref().map_or(std::ptr::null(), |w| w.as_ptr());
            if let Some(progress) = &mut progress {
                raw.progress = Some(on_event);
                raw.user = progress as *mut Progress as *mut c_void;
            }
            check(unsafe { tl_tune(self.raw(), &raw, &mut kernel, &mut result) })
        });
        if let Some(panic) = progress.and_then(|p| p.panic) {
            resume_unwind(panic);
        }
        status?;
        Ok(unsafe {
            Tuned {
                kernel: Kernel::from_raw(kernel),
                configuration: text::owned(result.configuration),
                report: text::owned(result.report),
                median_ns: result.median_ns,
                default_ns: result.default_ns,
                space: result.space,
                measured: result.measured,
                disqualified: result.disqualified,
                recorded: result.recorded != 0,
            }
        })
    }
}
