"""The functions of T that give values: of Python numbers a Python number, else an expression."""

import math

from .dtypes import dtype_of
from .expr import call, cast as _cast, ceildiv as _ceildiv, is_known, kind_of, select


def _unary(name, known, float_result=True):
    def function(x):
        if is_known(x):
            return known(x)
        return call(name, x, kind="float" if float_result else kind_of(x))

    function.__name__ = name
    return function


exp = _unary("exp", math.exp)
exp2 = _unary("exp2", lambda x: 2.0 ** x)
log = _unary("log", math.log)
log2 = _unary("log2", math.log2)
sqrt = _unary("sqrt", math.sqrt)
rsqrt = _unary("rsqrt", lambda x: 1 / math.sqrt(x))
tanh = _unary("tanh", math.tanh)
erf = _unary("erf", math.erf)
sigmoid = _unary("sigmoid", lambda x: 1 / (1 + math.exp(-x)))
sin = _unary("sin", math.sin)
cos = _unary("cos", math.cos)
floor = _unary("floor", math.floor)
ceil = _unary("ceil", math.ceil)
abs = _unary("abs", abs, float_result=False)


def _pair(name, known):
    def function(a, b):
        return known(a, b) if is_known(a, b) else call(name, a, b)

    function.__name__ = name
    return function


max = _pair("max", max)
min = _pair("min", min)


def pow(a, b):
    return a ** b  # Python's, or an expression's


def clamp(x, low, high):
    return min(max(x, low), high) if is_known(x, low, high) else call("clamp", x, low, high)


def ceildiv(a, b):
    return _ceildiv(a, b)


def infinity(dtype):
    dtype = dtype_of(dtype)
    if dtype.kind != "float" or dtype.ir == "e4m3":
        raise TypeError(f"{dtype} has no infinity")
    return math.inf


def cast(value, dtype):
    return _cast(value, dtype)


def Cast(dtype, value):
    return _cast(value, dtype)


def if_then_else(condition, yes, no):
    return select(condition, yes, no)


# By the names under which T offers them.
FUNCTIONS = {
    f.__name__: f
    for f in [exp, exp2, log, log2, sqrt, rsqrt, tanh, erf, sigmoid, sin, cos, floor, ceil, abs, max, min, pow, clamp,
              ceildiv, infinity, cast, Cast, if_then_else]
}
