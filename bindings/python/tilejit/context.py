"""Contexts and devices."""

import ctypes
import functools
from dataclasses import dataclass

from ._library import (Error, c_strings, check, encode, lib, text, tl_cache_stats, tl_compile_options,
                       tl_context_options, tl_device_info, tl_log_callback, tl_param, tl_tune_callback, tl_tune_options,
                       tl_tune_result, tl_warm_options, tl_warm_result)
from .kernel import Kernel

_CACHE_MODES = {"default": 0, "memory": 1, "read_only": 2}
_FATES = [None, "refused", "unbuilt", "measured", "stopped", "disqualified"]
_LOG_LEVELS = ["info", "warning", "error"]
# Kernels may outlive the context that they came from, and log then too.
_LOGGERS = []


@dataclass(frozen=True)
class Device:
    """A device, as its context numbers them."""

    index: int
    name: str
    backend: str  # "cuda", "cpu", "reference"
    target: str  # "sm_90a"
    ordinal: int  # within its backend, as the driver numbers them
    units: int  # multiprocessors, cores
    memory_bytes: int
    max_shared_bytes: int

    @property
    def uses_host_memory(self):
        return self.backend in ("cpu", "reference")


@dataclass(frozen=True)
class TuneEvent:
    """Something is known of a candidate, or more than before."""

    configuration: str  # "bk=64 bm=128 bn=128 stages=2"
    fate: str  # "refused", "unbuilt", "measured", "stopped", "disqualified"
    reason: str
    median_ns: float  # of its launch so far; 0: not timed
    best_ns: float
    done: int  # candidates of which something is known, of
    total: int


@dataclass(frozen=True)
class Tuned:
    """The winner."""

    kernel: Kernel
    configuration: str
    report: str  # JSON: every candidate that was tried
    median_ns: float
    default_ns: float  # of the untuned default in the same rounds; 0: it does not run
    space: int
    measured: int
    disqualified: int
    recorded: bool  # compile() takes the winner from now on


class _Progress:
    """The caller's function on its way through C: what it raises cancels, and is raised behind the call."""

    def __init__(self, function):
        self.function, self.error = function, None
        self.callback = tl_tune_callback(self._call) if function else tl_tune_callback()

    def _call(self, _, event):
        e = event.contents
        try:
            return bool(self.function(TuneEvent(text(e.configuration), _FATES[e.fate], text(e.reason), e.median_ns,
                                                e.best_ns, e.done, e.total)))
        except BaseException as error:
            self.error = error
            return True


def _value(value):
    """A compile-time value in the program's words."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


class Context:
    """Owns devices, the cache and its kernels.

    cache_dir   directory of the kernel cache; None: the library's default
    cache_mode  "default" (on disk), "memory", "read_only"
    packs       files of `tl cache export`, read below the cache
    log         called as log(level, message) from any thread; level is "info", "warning" or "error"
    """

    def __init__(self, *, cache_dir=None, cache_mode="default", cpu_threads=0, cache_max_bytes=0, packs=(), log=None):
        self._handle = None
        if cache_mode not in _CACHE_MODES:
            raise Error(f"cache_mode is one of {', '.join(_CACHE_MODES)}, not {cache_mode!r}")
        options = tl_context_options(cache_dir=encode(cache_dir), cache_mode=_CACHE_MODES[cache_mode],
                                     cpu_threads=cpu_threads, cache_max_bytes=cache_max_bytes,
                                     packs=c_strings(packs), num_packs=len(packs))
        if log:
            callback = tl_log_callback(lambda _, level, message: log(_LOG_LEVELS[level], text(message)))
            _LOGGERS.append(callback)
            options.log = callback
        handle = ctypes.c_void_p()
        check(lib.tl_context_create(ctypes.byref(options), ctypes.byref(handle)))
        self._handle = handle

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.tl_context_release(self._handle)

    def devices(self):
        """All devices, the best first: GPUs, the CPU, the reference interpreter."""
        count = ctypes.c_int32()
        check(lib.tl_device_count(self._handle, ctypes.byref(count)))
        return [self._device(i) for i in range(count.value)]

    def _device(self, index):
        info = tl_device_info()
        check(lib.tl_device_get(self._handle, index, ctypes.byref(info)))
        return Device(index, text(info.name), text(info.backend), text(info.target), info.ordinal, info.units,
                      info.memory_bytes, info.max_shared_bytes)

    def find_device(self, which=None):
        """A Device, its number, the name of a backend ("cpu") for its best one, or None for the best of all."""
        if isinstance(which, Device):
            return which
        if which is None or isinstance(which, int):
            return self._device(which or 0)
        devices = self.devices()
        for device in devices:
            if device.backend == which:
                return device
        raise Error(f"no device of backend {which!r}; there are {', '.join(d.backend for d in devices)}", "NOT_FOUND")

    def compile(self, *, source=None, family=None, params=None, device=None, target=None, shared_budget=0):
        """A kernel, from memory, from the cache, or compiled.

        source  text of a tile program; or family: the name of a builtin one
        params  dims, parameters, tune parameters by name; a dim that is not given is read off the tensors
        device  what find_device takes; or target: "sm_90a", "H100", which need not be present
        """
        where = None if target else self.find_device(device)
        options = self._options(source, family, params, target, where, shared_budget)
        handle = ctypes.c_void_p()
        check(lib.tl_compile(self._handle, ctypes.byref(options), ctypes.byref(handle)))
        return Kernel(handle, where)

    @staticmethod
    def _options(source, family, params, target, device, shared_budget):
        values = [tl_param(name=encode(name), value=encode(_value(value))) for name, value in (params or {}).items()]
        source = encode(source)
        return tl_compile_options(source=source, source_size=len(source or b""), family=encode(family),
                                  params=(tl_param * len(values))(*values), num_params=len(values),
                                  target=encode(target), device=device.index if device else 0,
                                  shared_budget=shared_budget)

    def seal(self):
        """From now on nothing compiles here; what is nowhere is an Error of reason NOT_READY, whose log is a plan."""
        check(lib.tl_seal(self._handle))

    def stats(self):
        """The counters, as a dict: memory_hits, hits, misses, compiles, ..."""
        raw = tl_cache_stats()
        check(lib.tl_cache_get_stats(self._handle, ctypes.byref(raw)))
        names = [name for name, _ in raw._fields_ if name not in ("struct_size", "reserved", "next", "location")]
        return {**{name: getattr(raw, name) for name in names}, "location": text(raw.location)}

    def warm(self, plan, *, directory=None, targets=(), jobs=0):
        """Compiles everything in a plan (TOML text, docs/cache.md) into the cache. Experimental."""
        plan = encode(plan)
        options = tl_warm_options(plan=plan, plan_size=len(plan), directory=encode(directory), jobs=jobs,
                                  targets=c_strings(targets), num_targets=len(targets))
        result = tl_warm_result()
        check(lib.tl_warm(self._handle, ctypes.byref(options), ctypes.byref(result)))
        return {name: getattr(result, name) for name in ("total", "compiled", "present", "failed")}

    def tune(self, *, source=None, family=None, params=None, device=None, dims=(), max_seconds, max_candidates=0, jobs=0,
             seed=0, in_process=False, worker=None, progress=None):
        """Looks for the tune parameters that make a program fastest on a device (docs/tuning.md). A value given for
        one, or several as "64,128", narrows what is tried. Experimental.

        dims      the dynamic dims of the launches that are timed, in the order of the signature
        progress  called with a TuneEvent by this thread; anything true cancels. It must not call the library.
        """
        where, raised = self.find_device(device), _Progress(progress)
        compile = self._options(source, family, params, None, where, 0)
        options = tl_tune_options(compile=ctypes.pointer(compile), dims=(ctypes.c_int64 * len(dims))(*dims),
                                  num_dims=len(dims), max_seconds=max_seconds, max_candidates=max_candidates, jobs=jobs,
                                  seed=seed, in_process=in_process, worker=encode(worker), progress=raised.callback)
        handle, result = ctypes.c_void_p(), tl_tune_result()
        status = lib.tl_tune(self._handle, ctypes.byref(options), ctypes.byref(handle), ctypes.byref(result))
        if raised.error is not None:
            raise raised.error
        check(status)
        return Tuned(Kernel(handle, where), text(result.configuration), text(result.report), result.median_ns,
                     result.default_ns, result.space, result.measured, result.disqualified, bool(result.recorded))

    def query(self, *, source=None, family=None, params=None, target):
        """What compile() would make of it, as JSON text, without compiling. Experimental."""
        options = self._options(source, family, params, target, None, 0)
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(lib.tl_query(self._handle, ctypes.byref(options), ctypes.byref(data), ctypes.byref(size)))
        return text(ctypes.string_at(data.value, size.value))


@functools.lru_cache(maxsize=None)
def default_context():
    """The context of tilejit.jit and tilejit.compile, made on first use."""
    return Context()


def families():
    """Names of the builtin families."""
    return [text(lib.tl_family_name(i)) for i in range(lib.tl_family_count())]
