"""What kernels are made of: tensors, tiles, dims, and the words of T that only mean something in a kernel."""

from .dtypes import dtype_of
from .expr import Expr, kind_of, names_in, text_of


class Word:
    """A word of T that the translator knows, T.copy or T.Parallel. Calling it in plain Python is a mistake."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"T.{self.name}"

    def __call__(self, *_, **__):
        raise TypeError(f"T.{self.name} has a meaning only in the body of a kernel")


class GemmWarpPolicy:
    """How the warps share the result of a product."""

    Square = "square"
    FullRow = "full_row"
    FullCol = "full_col"


class TensorType:
    """T.Tensor(shape, dtype) and T.Tensor[shape, dtype]: an operand of a kernel."""

    def __init__(self, shape, dtype="float32"):
        shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        for extent in shape:
            if kind_of(extent) != "int" or (not isinstance(extent, Expr) and extent < 0) or (
                    isinstance(extent, Expr) and names_in(extent.text) is None):
                raise TypeError(f"the extent {extent!r} of a tensor is no int from 0 on, nor made of dims by + - * // %")
        self.shape, self.dtype = shape, dtype_of(dtype)

    def __class_getitem__(cls, item):
        if not (isinstance(item, tuple) and len(item) == 2):
            raise TypeError("T.Tensor[shape, dtype] takes two things")
        return cls(*item)


class Dim(Expr):
    """A dim that is known at launch only; T.dynamic makes it."""

    def __init__(self, name):
        super().__init__(name, "int", atom=True)


class Const(Dim):
    """A dim that is fixed when the kernel is compiled, from the tensors or by name; T.const makes it."""


def dynamic(name, dtype="int32"):
    """A dim that is known at launch only. `dtype` is accepted; dims have 64 bits."""
    if not name.isidentifier():
        raise TypeError(f"a dim's name is an identifier, not {name!r}")
    return Dim(name)


class Buffer:
    """A tensor or tile in a kernel."""

    def __init__(self, name, shape, dtype, scope):
        self.name, self.shape, self.dtype = name, shape, dtype
        self.scope = scope  # "tensor", "shared" or "fragment"
        self.read = self.written = False

    @property
    def rank(self):
        return len(self.shape)

    def __repr__(self):
        return self.name

    def element(self, indices):
        return Expr(f"{self.name}[{', '.join(text_of(i) for i in indices)}]", self.dtype.kind, atom=True)
