"""Kernels of tilejit.language as things to call: compile() of a T.prim_func, and the decorator jit for both styles."""

import functools
import inspect

from . import tensors as _tensors
from ._library import Error
from .context import default_context
from .language.eager import Eager
from .language.expr import integer_value, is_known, text_of
from .language.prim_func import PrimFunc
from .language.types import Buffer

_BACKENDS = ("cuda", "hip", "cpu", "reference")


class JitKernel:
    """A compiled kernel with the operands of a Python function. Operands at `outputs` are made by the call and returned."""

    def __init__(self, program, outputs, target, context=None):
        self.program = program
        self.outputs = sorted(i % len(program.operands) for i in outputs)
        for i in self.outputs:
            if not isinstance(program.operands[i], Buffer):
                raise Error(f"operand {i} of {program.name} is a scalar and cannot be a result")
        context = context or default_context()
        named = {"target": target} if target not in (None, "auto", *_BACKENDS) else {
            "device": target if target in _BACKENDS else None}
        try:
            self.kernel = context.compile(source=program.text, **named)
        except Error as error:
            explained = program.explain(error)
            raise explained from (error if explained is not error else None)

    @property
    def source(self):
        """The tile program."""
        return self.program.text

    def get_kernel_source(self):
        """What was generated: CUDA C++, LLVM IR."""
        return self.kernel.text("source")

    def __call__(self, *arguments, stream=None):
        operands = self.program.operands
        wanted = len(operands) - len(self.outputs)
        if len(arguments) not in (wanted, len(operands)):
            raise TypeError(f"{self.program.name} takes {wanted} arguments"
                            + (f", or {len(operands)} with the results" if self.outputs else "")
                            + f"; {len(arguments)} are given")
        values = list(arguments)
        make = len(arguments) == wanted and self.outputs
        if make:
            dims = self._dims([o for i, o in enumerate(operands) if i not in self.outputs], arguments)
            for i in self.outputs:
                values.insert(i, _empty_like(arguments, operands[i], dims))
        tensors = [v for v, o in zip(values, operands) if isinstance(o, Buffer)]
        scalars = [v for v, o in zip(values, operands) if not isinstance(o, Buffer)]
        self.kernel(*tensors, scalars=scalars, stream=stream)
        results = [values[i] for i in self.outputs] if make else []
        return results[0] if len(results) == 1 else tuple(results) or None

    @staticmethod
    def _dims(operands, arguments):
        """The dims that the inputs' shapes give; whether they fit the launch checks."""
        dims = {}
        for operand, argument in zip(operands, arguments):
            for extent, actual in zip(operand.shape if isinstance(operand, Buffer) else (), getattr(argument, "shape", ())):
                if not is_known(extent):
                    dims.setdefault(text_of(extent), int(actual))
        return dims


def _empty_like(arguments, operand, dims):
    """Room for a result, in the manner of the arguments: PyTorch's or NumPy's."""
    try:
        shape = [e if is_known(e) else integer_value(text_of(e), dims) for e in operand.shape]
    except NameError as error:
        raise Error(f"how large {operand.name!r} is no argument's shape says ({error}): pass it") from error
    like = next((a for a in arguments if type(a).__module__.startswith("torch")), None)
    if like is not None:
        import torch
        names = {ir: numpy[0] for ir, (_, numpy) in _tensors.DTYPES.items()}
        return torch.empty(shape, dtype=getattr(torch, names[operand.dtype.ir]), device=like.device)
    import numpy
    (_, bits), names = _tensors.DTYPES[operand.dtype.ir]
    if operand.dtype.ir in ("bf16", "e4m3", "e5m2"):  # NumPy has none of these
        return _tensors.Tensor(numpy.empty(shape, f"uint{bits}"), operand.dtype.ir)
    return numpy.empty(shape, names[0])


def compile(func, out_idx=None, target="auto", context=None):
    """A JitKernel of a T.prim_func.

    out_idx  number, or numbers, of the operands that a call makes and returns; from the end if negative
    target   "auto" (the best device), a backend ("cuda", "cpu"), or a target to compile for ("sm_90a")
    """
    if not isinstance(func, PrimFunc):
        raise Error(f"compile takes a T.prim_func, not a {type(func).__name__}")
    outputs = [] if out_idx is None else [out_idx] if isinstance(out_idx, int) else list(out_idx)
    count = len(func.program.operands)
    if not all(isinstance(i, int) and -count <= i < count for i in outputs):
        raise Error(f"out_idx={out_idx}: {func.program.name} has {count} operands")
    return JitKernel(func.program, outputs, target, context)


class _Factory:
    """A function that returns a T.prim_func: calling it gives a JitKernel, the same for the same arguments. `target`
    may be set."""

    def __init__(self, function, out_idx, target, context):
        functools.update_wrapper(self, function)
        self._function, self._out_idx = function, out_idx
        self.target, self._context, self._kernels = target, context, {}

    def __call__(self, *arguments, **named):
        bound = inspect.signature(self._function).bind(*arguments, **named)
        bound.apply_defaults()
        return _cached(self._kernels, {**bound.arguments, "": self.target}, lambda: compile(
            self._function(*arguments, **named), self._out_idx, self.target, self._context))


class _Kernel:
    """A function that is itself a kernel: calling it with tensors compiles on first use and launches. `target` may be
    set."""

    def __init__(self, function, target, context):
        functools.update_wrapper(self, function)
        self._eager, self.target, self._context, self._kernels = Eager(function), target, context, {}

    def compile(self, **values):
        """The JitKernel for values of the T.consts and of the parameters that are no tensors."""
        parameters = self._parameters(values)
        _, consts = self._eager.consts_of(parameters, {})
        unknown = [name for name in values if name not in consts and name not in parameters]
        if unknown:
            raise TypeError(f"{self.__name__} has no {', '.join(unknown)}; it has {', '.join([*consts, *parameters])}")
        return self._kernel(parameters, {name: values[name] for name in consts if name in values})

    def __call__(self, *arguments, **named):
        bound = self._eager.signature.bind(*arguments, **named)
        bound.apply_defaults()
        tensors = {name: bound.arguments.pop(name) for name in self._eager.tensor_names()}
        shapes = {name: tuple(map(int, value.shape)) for name, value in tensors.items() if hasattr(value, "shape")}
        consts, _ = self._eager.consts_of(bound.arguments, shapes)
        return self._kernel(dict(bound.arguments), consts)(*tensors.values())

    def _parameters(self, values):
        """The parameters that are no tensors, given or by default."""
        out, tensors = {}, self._eager.tensor_names()
        for name, parameter in self._eager.signature.parameters.items():
            if name in tensors:
                continue
            if name not in values and parameter.default is parameter.empty:
                raise TypeError(f"{self.__name__}: {name} must be given")
            out[name] = values.get(name, parameter.default)
        return out

    def _kernel(self, parameters, consts):
        def make():
            program, inputs = self._eager.program(parameters, consts)
            return JitKernel(program, range(inputs, len(program.operands)), self.target, self._context)

        return _cached(self._kernels, {**parameters, **consts, "": self.target}, make)


def _cached(kernels, values, make):
    try:
        # With the types: 1, 1.0 and True are equal, and their programs are not.
        key = tuple((name, type(value), value) for name, value in sorted(values.items(), key=lambda item: item[0]))
        hash(key)
    except TypeError:
        return make()  # something that cannot be compared: the library's own cache will do
    if key not in kernels:
        kernels[key] = make()
    return kernels[key]


def jit(function=None, *, out_idx=None, target="auto", context=None):
    """Decorates a factory of a T.prim_func, or a function that is itself a kernel.

    A factory's call gives a JitKernel. A kernel's call launches and returns what it makes; f.compile(M=...) gives its
    JitKernel without tensors. out_idx, target: as compile() takes them; a kernel returns what it makes, so out_idx is
    for factories.
    """
    if function is None:
        return lambda f: jit(f, out_idx=out_idx, target=target, context=context)
    if not Eager.is_one(function):
        return _Factory(function, out_idx, target, context)
    if out_idx is not None:
        raise Error(f"{function.__name__} returns what T.empty makes; out_idx is for functions that return a T.prim_func")
    return _Kernel(function, target, context)
