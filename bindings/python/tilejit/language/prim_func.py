"""@T.prim_func: a function inside of a factory, whose parameters are the operands."""

import ast

from .dtypes import Dtype
from .evaluate import Evaluator
from .expr import Expr
from .program import is_kernel, translate
from .refused import Source, at_its_place
from .statements import Scope
from .types import Buffer, TensorType


class Surroundings(dict):
    """What a function sees around it: its closure, its module, Python's own names."""

    def __init__(self, function):
        import builtins
        super().__init__(vars(builtins))
        self.update(function.__globals__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                self[name] = cell.cell_contents
            except ValueError:
                self.pop(name, None)  # defined after the kernel


class PrimFunc:
    """A translated kernel. `source` is the tile program; tilejit.compile makes something to call of it."""

    def __init__(self, program):
        self.program = program

    @property
    def source(self):
        return self.program.text

    def __call__(self, *_, **__):
        raise TypeError(f"{self.program.name} is compiled first: tilejit.compile({self.program.name}), or @tilejit.jit on the "
                        "function around it")


@at_its_place
def prim_func(function):
    """Translates a kernel whose operands are the parameters."""
    source = Source(function)
    tree = source.tree
    arguments = tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        source.refuse(tree, "the parameters of a kernel are its operands: no defaults, * or **")
    around = Surroundings(function)
    scope = Scope(names=around)
    operands = []
    names = {}
    for argument in [*arguments.posonlyargs, *arguments.args]:
        operands.append(_operand(source, function, argument, around))
        names[argument.arg] = (operands[-1] if isinstance(operands[-1], Buffer) else
                               Expr(operands[-1][0], operands[-1][1].kind, atom=True))
    scope = Scope(scope, names)
    evaluator = Evaluator(source, lambda name: scope.find(name).names[name], lambda: False)
    kernels = []
    for statement in tree.body:
        if is_kernel(statement, evaluator):
            kernels.append(statement)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            pass  # a docstring
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
            scope.names[statement.targets[0].id] = evaluator.value(statement.value)
        else:
            source.refuse(statement, "a T.prim_func holds values and one `with T.Kernel(...)`")
    if len(kernels) != 1:
        source.refuse(tree, f"a T.prim_func holds one `with T.Kernel(...)`, this one {len(kernels)}; make a function of each")
    return PrimFunc(translate(source, kernels[0], scope, operands, function.__name__))


def _operand(source, function, argument, around):
    kind = function.__annotations__.get(argument.arg)
    if isinstance(kind, str):  # from __future__ import annotations
        try:
            kind = eval(kind, dict(around))  # as Python itself would have
        except Exception as error:  # whatever it raises belongs to the annotation
            source.refuse(argument, f"the annotation of {argument.arg!r}: {error}; without `from __future__ import annotations` "
                          "Python evaluates it where the names are known")
    if isinstance(kind, TensorType):
        return Buffer(argument.arg, list(kind.shape), kind.dtype, "tensor")
    if isinstance(kind, Dtype):
        return argument.arg, kind
    source.refuse(argument, f"{argument.arg!r} is an operand: annotate it with T.Tensor(shape, dtype), or with a dtype such as "
                  "T.float32 for a scalar")
