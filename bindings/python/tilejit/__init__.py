"""TileJIT for Python: tile kernels compiled, cached and launched at run time.

    import numpy as np, tilejit
    context = tilejit.Context()
    gemm = context.compile(family="gemm", params={"t": "f32"}, device="cpu")
    c = np.empty((2, 2), np.float32)
    gemm(a, b, c)              # NumPy arrays, or anything with __dlpack__, in the signature's order

Nothing is compiled to install it: the library is found at run time (see tilejit._library). Failures are
tilejit.Error, which carries the place in the tile program. tilejit.language and tilejit.jit take kernels written
in the style of TileLang.
"""

from ._library import Error, Span, version
from .context import Context, Device, TuneEvent, Tuned, default_context, families
from .jit import JitKernel, compile, jit
from .kernel import Kernel, ScalarInfo, TensorInfo
from .tensors import Tensor

__all__ = [
    "Context", "Device", "Error", "JitKernel", "Kernel", "ScalarInfo", "Span", "Tensor", "TensorInfo",
    "TuneEvent", "Tuned", "compile", "default_context", "families", "jit", "version",
]
