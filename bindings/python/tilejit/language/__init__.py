"""Kernels in the style of TileLang, translated to the tile IR: `import tilejit.language as T`.

A kernel is read from its source, not executed. docs/from-tilelang.md lists what is taken; everything else is refused
with its place and with what would work (Refused, a SyntaxError)."""

from types import SimpleNamespace

from . import dtypes as _dtypes, functions as _functions, words as _words
from .prim_func import PrimFunc, prim_func
from .refused import Refused
from .types import Dim, GemmWarpPolicy, TensorType, dynamic

Tensor = Buffer = TensorType
symbolic = dynamic
layout = SimpleNamespace(make_swizzled_layout=_words.make_swizzled_layout)

globals().update(_dtypes.OBJECTS)
globals().update(_functions.FUNCTIONS)
globals().update(_words.WORDS)


def __getattr__(name):
    instead = _words.INSTEAD.get(name)
    raise AttributeError(f"T.{name} is not supported" + (f"; instead: {instead}" if instead else ""))
