"""The shared library: where it is, its structs, its functions, its errors. include/tl/tl.h says what they mean."""

import ctypes
import os
import pathlib
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import NamedTuple, Optional

_NAME = "libtilejit.so.1"


def _places():
    """Where the library may be, the first one first."""
    named = os.environ.get("TILEJIT_LIBRARY")
    if named:
        path = pathlib.Path(named)
        return [path / _NAME if path.is_dir() else path]
    here = pathlib.Path(__file__).resolve().parent
    # Beside the package, in the build directory of this tree, in an install prefix that the package lies in.
    return [here / _NAME, here.parents[2] / "build" / "lib" / _NAME, here.parents[2] / "lib" / _NAME]


def _open():
    tried = []
    for place in _places():
        if place.exists():
            return ctypes.CDLL(str(place))
        tried.append(str(place))
    if "TILEJIT_LIBRARY" not in os.environ:
        try:
            return ctypes.CDLL(_NAME)
        except OSError as error:
            tried.append(f"the loader's path ({error})")
    raise ImportError(f"{_NAME} was not found; tried: {', '.join(tried)}. Set TILEJIT_LIBRARY to the file or its directory.")


class Struct(ctypes.Structure):
    """A struct of tl.h, with its size filled in where it has one."""

    def __init__(self, **values):
        super().__init__(**values)
        if self._fields_[0][0] == "struct_size":
            self.struct_size = ctypes.sizeof(self)


class tl_error_info(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("status", c_int32),
        ("domain", c_int32), ("reason", c_int32), ("line", c_int32), ("column", c_int32), ("end_line", c_int32),
        ("end_column", c_int32), ("reserved2", c_int32), ("native_code", c_int64), ("message", c_char_p),
        ("log", c_char_p),
    ]


tl_log_callback = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class tl_context_options(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("cache_dir", c_char_p),
        ("cache_mode", c_int32), ("cpu_threads", c_int32), ("cache_max_bytes", c_uint64), ("log", tl_log_callback),
        ("log_user", c_void_p), ("own_builds_only", c_uint32), ("reserved2", c_uint32), ("packs", POINTER(c_char_p)),
        ("num_packs", c_size_t),
    ]


class tl_device_info(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("name", c_char_p),
        ("backend", c_char_p), ("target", c_char_p), ("ordinal", c_int32), ("units", c_int32),
        ("memory_bytes", c_uint64), ("l2_bytes", c_uint64), ("max_shared_bytes", c_int64), ("clock_khz", c_int32),
        ("memory_clock_khz", c_int32), ("driver_version", c_int32), ("reserved2", c_int32),
    ]


class tl_param(Struct):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class tl_compile_options(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("source", c_char_p),
        ("source_size", c_size_t), ("family", c_char_p), ("params", POINTER(tl_param)), ("num_params", c_size_t),
        ("target", c_char_p), ("device", c_int32), ("reserved2", c_uint32), ("shared_budget", c_int64),
    ]


class tl_tensor_info(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("name", c_char_p), ("dtype", c_int32),
        ("access", c_int32), ("rank", c_int32), ("alignment", c_int32), ("shape", c_char_p),
    ]


class tl_signature(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("name", c_char_p),
        ("target", c_char_p), ("num_tensors", c_uint32), ("num_dims", c_uint32), ("num_strides", c_uint32),
        ("num_scalars", c_uint32),
    ]


class tl_scalar(ctypes.Union):
    _fields_ = [("i", c_int64), ("f", c_double)]


class tl_launch_args(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("device", c_int32), ("next", c_void_p), ("stream", c_void_p),
        ("tensors", POINTER(c_void_p)), ("dims", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("scalars", POINTER(tl_scalar)), ("num_tensors", c_uint32), ("num_dims", c_uint32),
        ("num_strides", c_uint32), ("num_scalars", c_uint32), ("workspace", c_void_p), ("workspace_size", c_size_t),
    ]


class tl_cache_stats(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("memory_hits", c_uint64),
        ("hits", c_uint64), ("misses", c_uint64), ("compiles", c_uint64), ("compile_ns", c_double),
        ("evictions", c_uint64), ("quarantined", c_uint64), ("waits", c_uint64), ("entries", c_uint64),
        ("bytes", c_uint64), ("location", c_char_p),
    ]


class tl_tune_event(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("fate", c_int32), ("next", c_void_p), ("configuration", c_char_p),
        ("reason", c_char_p), ("median_ns", c_double), ("best_ns", c_double), ("default_ns", c_double),
        ("seconds", c_double), ("max_seconds", c_double), ("done", c_uint64), ("total", c_uint64),
    ]


tl_tune_callback = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, POINTER(tl_tune_event))


class tl_tune_options(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("in_process", c_uint32), ("next", c_void_p),
        ("compile", POINTER(tl_compile_options)), ("dims", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("scalars", POINTER(tl_scalar)), ("num_dims", c_uint32), ("num_strides", c_uint32), ("num_scalars", c_uint32),
        ("max_candidates", c_uint32), ("max_seconds", c_double), ("candidate_seconds", c_double), ("jobs", c_int32),
        ("reserved", c_uint32), ("seed", c_uint64), ("worker", c_char_p), ("cancel", POINTER(c_int32)),
        ("progress", tl_tune_callback), ("user", c_void_p),
    ]


class tl_tune_result(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("recorded", c_uint32), ("next", c_void_p), ("median_ns", c_double),
        ("min_ns", c_double), ("max_ns", c_double), ("default_ns", c_double), ("runner_up_ns", c_double),
        ("seconds", c_double), ("space", c_uint64), ("refused", c_uint64), ("built", c_uint64), ("measured", c_uint64),
        ("stopped", c_uint64), ("disqualified", c_uint64), ("configuration", c_char_p), ("report", c_char_p),
    ]


tl_warm_callback = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_void_p)


class tl_warm_options(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("jobs", c_int32), ("next", c_void_p), ("plan", c_char_p), ("plan_size", c_size_t),
        ("directory", c_char_p), ("targets", POINTER(c_char_p)), ("num_targets", c_size_t),
        ("progress", tl_warm_callback), ("user", c_void_p),
    ]


class tl_warm_result(Struct):
    _fields_ = [
        ("struct_size", c_uint32), ("reserved", c_uint32), ("next", c_void_p), ("total", c_uint64),
        ("compiled", c_uint64), ("present", c_uint64), ("failed", c_uint64),
    ]


STRUCTS = [
    tl_error_info, tl_context_options, tl_device_info, tl_param, tl_compile_options, tl_tensor_info, tl_signature,
    tl_launch_args, tl_cache_stats, tl_tune_event, tl_tune_options, tl_tune_result, tl_warm_options, tl_warm_result,
]

# Name -> (result, arguments).
_FUNCTIONS = {
    "tl_last_error": (c_int32, [POINTER(tl_error_info)]),
    "tl_status_name": (c_char_p, [c_int32]),
    "tl_version": (c_uint32, []),
    "tl_abi_version": (c_uint32, []),
    "tl_dtype_name": (c_char_p, [c_int32]),
    "tl_dtype_size": (c_size_t, [c_int32]),
    "tl_context_create": (c_int32, [POINTER(tl_context_options), POINTER(c_void_p)]),
    "tl_context_release": (None, [c_void_p]),
    "tl_device_count": (c_int32, [c_void_p, POINTER(c_int32)]),
    "tl_device_get": (c_int32, [c_void_p, c_int32, POINTER(tl_device_info)]),
    "tl_compile": (c_int32, [c_void_p, POINTER(tl_compile_options), POINTER(c_void_p)]),
    "tl_seal": (c_int32, [c_void_p]),
    "tl_kernel_release": (None, [c_void_p]),
    "tl_kernel_signature": (c_int32, [c_void_p, POINTER(tl_signature)]),
    "tl_kernel_tensor": (c_int32, [c_void_p, c_uint32, POINTER(tl_tensor_info)]),
    "tl_kernel_dim_name": (c_char_p, [c_void_p, c_uint32]),
    "tl_kernel_stride_name": (c_char_p, [c_void_p, c_uint32]),
    "tl_kernel_scalar_name": (c_char_p, [c_void_p, c_uint32]),
    "tl_kernel_scalar_dtype": (c_int32, [c_void_p, c_uint32, POINTER(c_int32)]),
    "tl_kernel_text": (c_int32, [c_void_p, c_int32, POINTER(c_void_p), POINTER(c_size_t)]),
    "tl_prepare": (c_int32, [c_void_p, c_int32]),
    "tl_launch_dlpack": (c_int32, [c_void_p, POINTER(c_void_p), c_uint32, POINTER(tl_launch_args)]),
    "tl_cache_get_stats": (c_int32, [c_void_p, POINTER(tl_cache_stats)]),
    "tl_family_count": (c_uint32, []),
    "tl_family_name": (c_char_p, [c_uint32]),
    "tl_tune": (c_int32, [c_void_p, POINTER(tl_tune_options), POINTER(c_void_p), POINTER(tl_tune_result)]),
    "tl_warm": (c_int32, [c_void_p, POINTER(tl_warm_options), POINTER(tl_warm_result)]),
    "tl_query": (c_int32, [c_void_p, POINTER(tl_compile_options), POINTER(c_void_p), POINTER(c_size_t)]),
}


def _load():
    library = _open()
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()


class Span(NamedTuple):
    """A place in the tile program: lines and columns (bytes) from 1, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


_REASONS = [
    "NONE", "NOT_READY", "SYNTAX", "SEMANTICS", "LIMIT", "UNSUPPORTED", "MISSING_LIBRARY", "NO_DEVICE",
    "BINARY_REJECTED", "MISMATCH",
]
_DOMAINS = ["TL", "NVRTC", "CUDA", "HIP", "LLVM", "SQLITE", "OS"]


class Error(Exception):
    """A failed call. `status`, `reason` and `domain` are names of tl.h ("INVALID_ARGUMENT", "SYNTAX", "TL"), `span` is
    the place in the tile program or None, `log` the compiler's log; a sealed context's miss has a plan there."""

    def __init__(self, message, status="INVALID_ARGUMENT", reason="NONE", domain="TL", native_code=0,
                 span: Optional[Span] = None, log=""):
        place = f"{span.line}:{span.column}: " if span else ""
        super().__init__(f"{status}: {place}{message}")
        self.message, self.status, self.reason, self.domain = message, status, reason, domain
        self.native_code, self.span, self.log = native_code, span, log


def _name_of(names, value):
    return names[value] if 0 <= value < len(names) else str(value)


def check(status):
    """Raises the last failure of this thread unless `status` is TL_OK."""
    if status == 0:
        return
    info = tl_error_info()
    if lib.tl_last_error(ctypes.byref(info)) != 0:
        raise Error("no failure was recorded", lib.tl_status_name(status).decode())
    span = Span(info.line, info.column, info.end_line, info.end_column) if info.line > 0 else None
    raise Error(text(info.message), lib.tl_status_name(info.status).decode(), _name_of(_REASONS, info.reason),
                _name_of(_DOMAINS, info.domain), info.native_code, span, text(info.log))


def text(data):
    """Bytes of the library as a str; "" for NULL."""
    return data.decode("utf-8", "replace") if data else ""


def c_strings(values):
    """An array of C strings, which keeps its bytes."""
    return (c_char_p * len(values))(*[encode(v) for v in values])


def encode(value):
    """A C string; None is NULL."""
    if value is None:
        return None
    data = os.fspath(value)
    data = data.encode() if isinstance(data, str) else data
    if b"\0" in data:
        raise Error(f"{value!r} holds a NUL character")
    return data


def version():
    """The library's version: 10203 for 1.2.3."""
    return lib.tl_version()
