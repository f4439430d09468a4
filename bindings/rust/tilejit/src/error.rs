//! Failures of the library as values.
use std::fmt;

use crate::{sys, text};

/// What went wrong, in the canonical codes of Abseil and gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Status {
    Cancelled,
    Unknown,
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    DataLoss,
    Unauthenticated,
}

impl Status {
    fn from_raw(raw: sys::tl_status) -> Status {
        match raw {
            sys::TL_CANCELLED => Status::Cancelled,
            sys::TL_INVALID_ARGUMENT => Status::InvalidArgument,
            sys::TL_DEADLINE_EXCEEDED => Status::DeadlineExceeded,
            sys::TL_NOT_FOUND => Status::NotFound,
            sys::TL_ALREADY_EXISTS => Status::AlreadyExists,
            sys::TL_PERMISSION_DENIED => Status::PermissionDenied,
            sys::TL_RESOURCE_EXHAUSTED => Status::ResourceExhausted,
            sys::TL_FAILED_PRECONDITION => Status::FailedPrecondition,
            sys::TL_ABORTED => Status::Aborted,
            sys::TL_OUT_OF_RANGE => Status::OutOfRange,
            sys::TL_UNIMPLEMENTED => Status::Unimplemented,
            sys::TL_INTERNAL => Status::Internal,
            sys::TL_UNAVAILABLE => Status::Unavailable,
            sys::TL_DATA_LOSS => Status::DataLoss,
            sys::TL_UNAUTHENTICATED => Status::Unauthenticated,
            _ => Status::Unknown,
        }
    }
}

/// Who reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Domain {
    Tilejit,
    Nvrtc,
    Cuda,
    Hip,
    Llvm,
    Sqlite,
    Os,
}

impl Domain {
    fn from_raw(raw: sys::tl_domain) -> Domain {
        match raw {
            sys::TL_DOMAIN_NVRTC => Domain::Nvrtc,
            sys::TL_DOMAIN_CUDA => Domain::Cuda,
            sys::TL_DOMAIN_HIP => Domain::Hip,
            sys::TL_DOMAIN_LLVM => Domain::Llvm,
            sys::TL_DOMAIN_SQLITE => Domain::Sqlite,
            sys::TL_DOMAIN_OS => Domain::Os,
            _ => Domain::Tilejit,
        }
    }
}

/// Finer than the status, where a caller may want to branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Reason {
    None,
    /// Would have to load or compile where that is not allowed.
    NotReady,
    /// The text is no tile program.
    Syntax,
    /// It is one, but breaks a rule of the language.
    Semantics,
    Limit,
    /// Correct, but this target cannot run it.
    Unsupported,
    MissingLibrary,
    NoDevice,
    BinaryRejected,
    Mismatch,
}

impl Reason {
    fn from_raw(raw: sys::tl_reason) -> Reason {
        match raw {
            sys::TL_REASON_NOT_READY => Reason::NotReady,
            sys::TL_REASON_SYNTAX => Reason::Syntax,
            sys::TL_REASON_SEMANTICS => Reason::Semantics,
            sys::TL_REASON_LIMIT => Reason::Limit,
            sys::TL_REASON_UNSUPPORTED => Reason::Unsupported,
            sys::TL_REASON_MISSING_LIBRARY => Reason::MissingLibrary,
            sys::TL_REASON_NO_DEVICE => Reason::NoDevice,
            sys::TL_REASON_BINARY_REJECTED => Reason::BinaryRejected,
            sys::TL_REASON_MISMATCH => Reason::Mismatch,
            _ => Reason::None,
        }
    }
}

/// A place in the tile program: lines and columns (bytes) from 1, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Span {
    pub line: u32,
    pub column: u32,
    pub end_line: u32,
    pub end_column: u32,
}

/// A failed call.
#[derive(Clone, Debug)]
pub struct Error(Box<Details>);

#[derive(Clone, Debug)]
struct Details {
    status: Status,
    domain: Domain,
    reason: Reason,
    native_code: i64,
    span: Option<Span>,
    message: String,
    log: String,
}

/// What fallible functions of the crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Error {
        Error(Box::new(Details {
            status,
            domain: Domain::Tilejit,
            reason: Reason::None,
            native_code: 0,
            span: None,
            message: message.into(),
            log: String::new(),
        }))
    }

    /// The last failure of this thread, for calls of [`sys`](crate::sys).
    pub fn last() -> Error {
        let mut info: sys::tl_error_info = unsafe { std::mem::zeroed() };
        info.struct_size = std::mem::size_of_val(&info) as u32;
        if unsafe { sys::tl_last_error(&mut info) } != sys::TL_OK {
            return Error::new(Status::Unknown, "no failure was recorded");
        }
        let place = |x: i32| u32::try_from(x).unwrap_or(0);
        Error(Box::new(Details {
            status: Status::from_raw(info.status),
            domain: Domain::from_raw(info.domain),
            reason: Reason::from_raw(info.reason),
            native_code: info.native_code,
            span: if info.line > 0 {
                Some(Span {
                    line: place(info.line),
                    column: place(info.column),
                    end_line: place(info.end_line),
                    end_column: place(info.end_column),
                })
            } else {
                None
            },
            message: unsafe { text::owned(info.message) },
            log: unsafe { text::owned(info.log) },
        }))
    }

    /// What went wrong.
    pub fn status(&self) -> Status {
        self.0.status
    }
    /// Who reported it.
    pub fn domain(&self) -> Domain {
        self.0.domain
    }
    /// Finer than the status.
    pub fn reason(&self) -> Reason {
        self.0.reason
    }
    /// CUresult, nvrtcResult, SQLite code, errno, as the domain has it.
    pub fn native_code(&self) -> i64 {
        self.0.native_code
    }
    /// Where in the tile program, if it is a place there.
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }
    /// One or more sentences: what was expected and what would work.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The compiler's log, "" if there is none; for a sealed context's miss a plan that warms it.
    pub fn log(&self) -> &str {
        &self.0.log
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(span) = self.span() {
            write!(f, "{}:{}: ", span.line, span.column)?;
        }
        f.write_str(self.message())
    }
}

impl std::error::Error for Error {}

/// The status of a call of [`sys`](crate::sys) as a result.
pub(crate) fn check(status: sys::tl_status) -> Result<()> {
    if status == sys::TL_OK {
        Ok(())
    } else {
        Err(Error::last())
    }
}
