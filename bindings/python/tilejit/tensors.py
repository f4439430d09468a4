"""Tensors of others, as the library takes them: struct DLTensor of dlpack.h, whose layout is fixed."""

import ctypes

from ._library import Error


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# Name in the tile IR -> DLPack's code and bits, names in NumPy and its extensions.
DTYPES = {
    "bool": ((6, 8), ["bool"]),
    "i8": ((0, 8), ["int8"]), "u8": ((1, 8), ["uint8"]),
    "i16": ((0, 16), ["int16"]), "u16": ((1, 16), ["uint16"]),
    "i32": ((0, 32), ["int32"]), "u32": ((1, 32), ["uint32"]),
    "i64": ((0, 64), ["int64"]),
    "e4m3": ((10, 8), ["float8_e4m3fn"]), "e5m2": ((12, 8), ["float8_e5m2"]),
    "f16": ((2, 16), ["float16"]), "bf16": ((4, 16), ["bfloat16"]),
    "f32": ((2, 32), ["float32"]), "f64": ((2, 64), ["float64"]),
}
_BY_NUMPY = {name: ir for ir, (_, names) in DTYPES.items() for name in names}


class Tensor:
    """An array whose elements are of another type than NumPy knows: Tensor(bits, "bf16") of uint16."""

    def __init__(self, data, dtype):
        if dtype not in DTYPES:
            raise Error(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
        if data.dtype.itemsize * 8 != DTYPES[dtype][0][1]:
            raise Error(f"an array of {data.dtype} cannot be taken for {dtype}: their sizes differ")
        self.data, self.dtype = data, dtype

    @property
    def shape(self):
        return self.data.shape


class Borrowed:
    """A DLTensor with what keeps it alive."""

    def __init__(self, address, owner, read_only=False):
        self.address, self.read_only, self._owner = address, read_only, owner


def borrow(obj, device, what):
    """Of a NumPy array, a Tensor, or an object with __dlpack__."""
    if isinstance(obj, Tensor):
        return _of_array(obj.data, obj.dtype, what)
    if hasattr(obj, "__array_interface__") and hasattr(obj, "dtype") and not hasattr(obj, "is_cuda"):
        name = _BY_NUMPY.get(obj.dtype.name)
        if name is None or not obj.dtype.isnative:
            raise Error(f"{what} is an array of {obj.dtype.str}, which no dtype of the library is; there are "
                        f"{', '.join(_BY_NUMPY)}, in the machine's byte order")
        return _of_array(obj, name, what)
    if hasattr(obj, "__dlpack__"):
        return _of_dlpack(obj)
    raise Error(f"{what} is a {type(obj).__name__}; give a NumPy array or an object with __dlpack__")


def _of_array(array, dtype, what):
    size = array.dtype.itemsize
    # NumPy counts bytes. Strides of dims that are not walked mean nothing.
    walked = [stride if extent > 1 else size for stride, extent in zip(array.strides, array.shape)]
    if any(stride % size for stride in walked) or array.ctypes.data % size:
        raise Error(f"{what} has elements that are not aligned: copy it first")
    (code, bits), rank = DTYPES[dtype][0], array.ndim
    shape = (ctypes.c_int64 * rank)(*array.shape)
    strides = (ctypes.c_int64 * rank)(*[stride // size for stride in walked])
    raw = DLTensor(data=array.ctypes.data, device_type=1, device_id=0, ndim=rank, code=code, bits=bits, lanes=1,
                   shape=shape, strides=strides, byte_offset=0)
    return Borrowed(ctypes.addressof(raw), (raw, array), not array.flags.writeable)


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _of_dlpack(obj):
    # -1: no synchronisation, since the caller names the stream of the launch. The CPU has none.
    on_gpu = obj.__dlpack_device__()[0] not in (1, 3, 11)
    capsule = obj.__dlpack__(stream=-1) if on_gpu else obj.__dlpack__()
    # A DLManagedTensor begins with the DLTensor. The capsule, which nobody takes, frees it.
    return Borrowed(_capsule_pointer(capsule, b"dltensor"), (capsule, obj))
