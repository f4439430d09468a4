"""Compiled kernels and their launches."""

import ctypes
from dataclasses import dataclass
from functools import cached_property

from . import tensors as _tensors
from ._library import (Error, check, lib, text, tl_launch_args, tl_scalar, tl_signature, tl_tensor_info)

_TEXTS = {"ir": 0, "source": 1, "assembly": 2, "sass": 3, "report": 4, "log": 5, "binary": 6, "thread": 8}
_ACCESS = ["in", "out", "inout"]


@dataclass(frozen=True)
class TensorInfo:
    name: str
    dtype: str  # "bf16"
    access: str  # "in", "out", "inout"
    rank: int
    shape: str  # "[M, K]", as declared


@dataclass(frozen=True)
class ScalarInfo:
    name: str
    dtype: str


class Kernel:
    """A compiled kernel; it keeps its context."""

    def __init__(self, handle, device):
        self._handle = handle
        self.device = device  # where it is launched unless the launch says otherwise; None: it has no device

    def __del__(self):
        if getattr(self, "_handle", None):
            lib.tl_kernel_release(self._handle)

    @cached_property
    def _signature(self):
        raw = tl_signature()
        check(lib.tl_kernel_signature(self._handle, ctypes.byref(raw)))
        return raw

    @property
    def name(self):
        return text(self._signature.name)

    @property
    def target(self):
        return text(self._signature.target)

    @cached_property
    def tensors(self):
        """The tensors of a launch, in order."""
        out = []
        for i in range(self._signature.num_tensors):
            raw = tl_tensor_info()
            check(lib.tl_kernel_tensor(self._handle, i, ctypes.byref(raw)))
            out.append(TensorInfo(text(raw.name), text(lib.tl_dtype_name(raw.dtype)), _ACCESS[raw.access], raw.rank,
                                  text(raw.shape)))
        return out

    @cached_property
    def dims(self):
        """The dynamic dims, which are read off the tensors."""
        return [text(lib.tl_kernel_dim_name(self._handle, i)) for i in range(self._signature.num_dims)]

    @cached_property
    def scalars(self):
        """The runtime scalars, in order."""
        out = []
        for i in range(self._signature.num_scalars):
            dtype = ctypes.c_int32()
            check(lib.tl_kernel_scalar_dtype(self._handle, i, ctypes.byref(dtype)))
            out.append(ScalarInfo(text(lib.tl_kernel_scalar_name(self._handle, i)), text(lib.tl_dtype_name(dtype.value))))
        return out

    def text(self, what):
        """The bound program ("ir"), "source", "assembly", "sass", "report" (JSON), "log", "thread"; "binary" as bytes."""
        if what not in _TEXTS:
            raise Error(f"a kernel has the texts {', '.join(_TEXTS)}, not {what!r}")
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        check(lib.tl_kernel_text(self._handle, _TEXTS[what], ctypes.byref(data), ctypes.byref(size)))
        value = ctypes.string_at(data.value, size.value) if size.value else b""
        return value if what == "binary" else text(value)

    def prepare(self, device=None):
        """Loads the kernel on its device now, so that a stream may be captured."""
        check(lib.tl_prepare(self._handle, self._where(device).index))

    def _where(self, device):
        device = device or self.device
        if device is None:
            raise Error(f"the kernel was compiled for the target {self.target!r}; name the device to launch it on")
        return device

    def __call__(self, *tensors, scalars=(), device=None, stream=None, workspace=None):
        """Launches. Tensors in the order of the signature: NumPy arrays, tilejit.Tensor, or objects with __dlpack__,
        in the device's memory. On a GPU it returns at once; `stream` is the number of a CUstream. `workspace` is a
        pair of address and bytes; the error of a launch without one says how much is needed."""
        where = self._where(device)
        borrowed = [_tensors.borrow(tensor, where, f"tensor {i}") for i, tensor in enumerate(tensors)]
        for info, tensor in zip(self.tensors, borrowed):
            if tensor.read_only and info.access != "in":
                raise Error(f"tensor {info.name!r} is written; the array given is read-only")
        pointers = (ctypes.c_void_p * len(borrowed))(*[b.address for b in borrowed])
        values = self._scalar_values(scalars)
        args = tl_launch_args(device=where.index, stream=stream, scalars=values, num_scalars=len(values))
        if workspace:
            args.workspace, args.workspace_size = workspace
        check(lib.tl_launch_dlpack(self._handle, pointers, len(borrowed), ctypes.byref(args)))

    def _scalar_values(self, scalars):
        out = (tl_scalar * len(scalars))()
        # The library refuses another count.
        for value, info, slot in zip(scalars, self.scalars, range(len(scalars))):
            if info.dtype[0] in "iub":
                if int(value) != value:
                    raise Error(f"{value} was given for the scalar {info.name!r}, which is of type {info.dtype}")
                out[slot].i = int(value)
            else:
                out[slot].f = float(value)
        return out
