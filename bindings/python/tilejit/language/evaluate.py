"""Expressions in the body of a kernel: Python's syntax to Python values, or to Exprs where only the kernel knows."""

import ast
import builtins
import math
import operator

from .dtypes import Dtype
from .expr import Expr, is_known, kind_of, logical, negated, select, text_of
from .functions import FUNCTIONS
from .types import Buffer, TensorType, Word

_BINARY = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}
_COMPARE = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
# Of Python's own functions those that give the same whenever they are called, of known values only.
_PYTHON = {
    builtins.max: "T.max", builtins.min: "T.min", builtins.abs: "T.abs", builtins.pow: "T.pow", builtins.int: "T.int32",
    builtins.float: "T.float32", builtins.bool: "a comparison", builtins.len: None, builtins.round: None,
    **{f: f"T.{name}" for name, f in vars(math).items() if callable(f)},
}


class Evaluator:
    """`lookup(name)` gives the value of a name or raises KeyError; `in_parallel()` says whether elements of
    fragments may be read."""

    def __init__(self, source, lookup, in_parallel):
        self.source, self.lookup, self.in_parallel = source, lookup, in_parallel

    def value(self, node):
        method = getattr(self, "_" + type(node).__name__, None)
        if method is None:
            self.source.refuse(node, f"a kernel has no {type(node).__name__} expression; compute it before the kernel")
        with self.source.at(node):
            return method(node)

    def number(self, node):
        """A value that may stand in the program."""
        value = self.value(node)
        try:
            kind_of(value)
        except TypeError as error:
            self.source.refuse(node, str(error) if not isinstance(value, Buffer) else
                               f"{value.name} is a whole tile; name an element of it, {value.name}[...]")
        return value

    def integer(self, node):
        value = self.number(node)
        if kind_of(value) != "int":
            self.source.refuse(node, f"{text_of(value)} is no int")
        return value

    def known(self, node, what):
        """A value that Python knows."""
        value = self.value(node)
        if not is_known(value):
            self.source.refuse(node, f"{what} must be known when the kernel is compiled; {value} is not")
        return value

    # One method for every kind of node.

    def _Constant(self, node):
        return node.value

    def _Name(self, node):
        try:
            return self.lookup(node.id)
        except KeyError:
            self.source.refuse(node, f"unknown name {node.id!r}: it is defined neither in the kernel, in a block that is "
                               "still open, nor around it")

    def _Tuple(self, node):
        return tuple(self.value(e) for e in node.elts)

    def _List(self, node):
        return [self.value(e) for e in node.elts]

    def _Attribute(self, node):
        base = self.value(node.value)
        if isinstance(base, Buffer) and node.attr not in ("shape", "dtype"):
            raise AttributeError(f"a tile or tensor has shape and dtype, not {node.attr}")
        if isinstance(base, Expr) and node.attr != "astype":
            raise AttributeError(f"a value of the kernel has astype, not {node.attr}")
        return getattr(base, node.attr)

    def _Subscript(self, node):
        base = self.value(node.value)
        if isinstance(base, Buffer):
            return self.element(base, node)
        index = self.value(node.slice)
        if not is_known(index):
            raise TypeError(f"{index} is known in the kernel only, and indexes a Python object")
        return base[index]

    def _Slice(self, node):
        self.source.refuse(node, "a range stands only in T.copy")

    def _UnaryOp(self, node):
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return negated(value)
        if isinstance(node.op, ast.Invert):
            raise TypeError("~ is not supported; `not` negates a condition")
        return -value if isinstance(node.op, ast.USub) else +value

    def _BinOp(self, node):
        function = _BINARY.get(type(node.op))
        if function is None:
            raise TypeError(f"the operator {type(node.op).__name__} is not supported; there are + - * / // % **")
        return function(self.number(node.left), self.number(node.right))

    def _BoolOp(self, node):
        op = "and" if isinstance(node.op, ast.And) else "or"
        values = []
        for part in node.values:
            values.append(self.value(part))
            # As Python does: what decides ends it.
            if is_known(values[-1]) and bool(values[-1]) != (op == "and"):
                break
        return logical(op, values)

    def _Compare(self, node):
        values = [self.value(n) for n in [node.left, *node.comparators]]
        parts = []
        for op, a, b in zip(node.ops, values, values[1:]):
            if type(op) in _COMPARE:
                parts.append(_COMPARE[type(op)](a, b))
            elif not is_known(a, b):
                raise TypeError(f"{type(op).__name__} compares what Python knows only")
            else:
                same = a is b if isinstance(op, (ast.Is, ast.IsNot)) else a in b
                parts.append(same == isinstance(op, (ast.Is, ast.In)))
        return logical("and", parts)

    def _IfExp(self, node):
        condition = self.value(node.test)
        if is_known(condition):
            return self.value(node.body if condition else node.orelse)
        return select(condition, self.number(node.body), self.number(node.orelse))

    def _Call(self, node):
        function = self.value(node.func)
        if isinstance(function, Word):
            self.source.refuse(node, f"{function} is no expression")
        if any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
            raise TypeError("a call in a kernel has no * or **")
        arguments = [self.value(a) for a in node.args]
        named = {k.arg: self.value(k.value) for k in node.keywords}
        if function in FUNCTIONS.values() or isinstance(function, Dtype) or function in (TensorType,) or (
                getattr(function, "__name__", "") == "astype"):
            return function(*arguments, **named)
        if function not in _PYTHON:
            raise TypeError(f"{ast.unparse(node.func)} cannot be called in a kernel: compute it before")
        if not is_known(*arguments):
            instead = _PYTHON[function]
            raise TypeError(f"{ast.unparse(node.func)} is Python's and of known values"
                            + (f"; in a kernel: {instead}" if instead else ""))
        return function(*arguments, **named)

    # Elements of tensors and tiles.

    def indices(self, buffer, node):
        """The indices of an element."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != buffer.rank:
            self.source.refuse(node, f"{buffer.name} has {buffer.rank} dims, and {len(parts)} indices are given")
        return [self.integer(part) for part in parts]

    def element(self, buffer, node):
        if buffer.scope == "fragment" and not self.in_parallel():
            self.source.refuse(node, f"an element of the fragment {buffer.name} is read only in T.Parallel: which thread has "
                               "it is known there")
        indices = self.indices(buffer, node)
        buffer.read = True
        inside = self.inside(buffer, indices)
        element = buffer.element(indices)
        return element if inside is True else select(inside, element, 0.0 if element.kind == "float" else 0)

    @staticmethod
    def inside(buffer, indices):
        """Whether the indices are in a tensor: reads outside are 0 and stores there are dropped, as in TileLang. Those of
        a tile are the author's to keep."""
        if buffer.scope != "tensor":
            return True
        conditions = []
        for index, extent in zip(indices, buffer.shape):
            if is_known(index, extent):
                if not 0 <= index < extent:
                    raise IndexError(f"{buffer.name} has {extent} elements in a dim that is indexed by {index}")
                continue
            if "-" in text_of(index):
                conditions.append(index >= 0)
            conditions.append(index < extent)
        return logical("and", conditions)
