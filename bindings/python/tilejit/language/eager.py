"""The newer style: the decorated function is itself the kernel. Its parameters are tensors, which annotations in the
body describe, and values that Python knows; T.const names dims that the tensors fix; T.empty is a result."""

import ast
import inspect

from .dtypes import Dtype
from .evaluate import Evaluator
from .expr import Expr
from .prim_func import Surroundings
from .program import is_kernel, translate
from .refused import Source, at_its_place
from .statements import Scope
from .types import Buffer, Const, TensorType, dynamic
from .words import WORDS


class Header:
    """What stands before and after `with T.Kernel`, read with some of the values known."""

    def __init__(self, function):
        self.scope = None
        self.function = function
        self.kernel, self.parameters, self.empties, self.results, self.consts = None, {}, {}, [], []


class Eager:
    """A kernel in this style."""

    def __init__(self, function):
        self.function, self.source = function, Source(function)
        self.signature = inspect.signature(function)
        self.around = Surroundings(function)

    @staticmethod
    def is_one(function):
        """Whether a decorated function is a kernel itself, and not a factory of one."""
        source = Source(function)
        around = Scope(names=Surroundings(function))
        evaluator = Evaluator(source, lambda name: around.find(name).names[name], lambda: False)
        for node in source.tree.body:
            context = node.items[0].context_expr if isinstance(node, ast.With) else None
            if isinstance(context, ast.Call) and isinstance(context.func, ast.Attribute) and is_kernel(node, evaluator):
                return True
        return False

    def read(self, values, consts):
        """The Header, with the parameters that are no tensors and the T.consts by name; consts that are not given stay
        symbols."""
        header = Header(self.function)
        header.scope = Scope(Scope(names=self.around), dict(values))
        evaluator = Evaluator(self.source, lambda name: header.scope.find(name).names[name], lambda: False)
        for node in self.source.tree.body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            if header.results:
                self.source.refuse(node, "nothing follows the return")
            if isinstance(node, ast.AnnAssign):
                self._annotate(header, evaluator, node)
            elif isinstance(node, ast.Return):
                self._return(header, node)
            elif header.kernel is None and isinstance(node, ast.Assign) and len(node.targets) == 1:
                with self.source.at(node):
                    self._assign(header, evaluator, node, consts)
            elif header.kernel is None and is_kernel(node, evaluator):
                header.kernel = node
            else:
                self.source.refuse(node, "a kernel function holds annotations, values, one `with T.Kernel(...)` and a return")
        self._complete(header)
        return header

    def _annotate(self, header, evaluator, node):
        name = node.target.id if isinstance(node.target, ast.Name) else None
        if name not in self.signature.parameters or node.value is not None:
            self.source.refuse(node, "annotations describe the parameters of the function")
        kind = evaluator.value(node.annotation)
        if isinstance(kind, TensorType):
            header.parameters[name] = Buffer(name, list(kind.shape), kind.dtype, "tensor")
            header.scope.names[name] = header.parameters[name]
        elif isinstance(kind, Dtype):
            header.parameters[name] = (name, kind)
            header.scope.names[name] = Expr(name, kind.kind, atom=True)
        else:
            self.source.refuse(node.annotation, "an operand is a T.Tensor(shape, dtype), or a dtype such as T.float32 for a scalar")

    def _assign(self, header, evaluator, node, consts):
        target = node.targets[0]
        targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        word = evaluator.value(node.value.func) if isinstance(node.value, ast.Call) else None
        if word is WORDS["const"]:
            values = self._consts(header, evaluator, node, consts)
        elif word is WORDS["empty"]:
            kind = TensorType(*[evaluator.value(a) for a in node.value.args],
                              **{k.arg: evaluator.value(k.value) for k in node.value.keywords})
            values = [Buffer(getattr(target, "id", ""), list(kind.shape), kind.dtype, "tensor")]
            header.empties[values[0].name] = values[0]
        elif word is dynamic:
            values = [dynamic(*[evaluator.value(a) for a in node.value.args])]
        else:
            value = evaluator.value(node.value)
            values = [value] if targets == [target] else list(value)
        if len(values) != len(targets) or not all(isinstance(t, ast.Name) for t in targets):
            self.source.refuse(node, f"{len(targets)} names are given {len(values)} values")
        header.scope.names.update((t.id, value) for t, value in zip(targets, values))

    def _consts(self, header, evaluator, node, consts):
        names = evaluator.value(node.value.args[0]) if len(node.value.args) == 1 else None
        if not isinstance(names, str):
            self.source.refuse(node, 'T.const takes the names of dims: M, N = T.const("M, N")')
        names = names.replace(",", " ").split()
        header.consts += names
        return [consts[name] if name in consts else Const(name) for name in names]

    def _return(self, header, node):
        names = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        for name in names:
            if not (isinstance(name, ast.Name) and name.id in header.empties):
                self.source.refuse(node, "a kernel returns what T.empty made")
            header.results.append(header.empties[name.id])

    def _complete(self, header):
        if header.kernel is None:
            self.source.refuse(self.source.tree, "a kernel function holds one `with T.Kernel(...)`")
        for empty in header.empties.values():
            if empty not in header.results:
                self.source.refuse(self.source.tree, f"{empty.name} is made by T.empty and not returned")

    def tensor_names(self):
        """Parameters that annotations make operands."""
        annotated = {node.target.id for node in self.source.tree.body
                     if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
        return [name for name in self.signature.parameters if name in annotated]

    @at_its_place
    def consts_of(self, values, shapes):
        """The T.consts that the shapes of the tensors fix, by name, and the names of all of them."""
        header, known = self.read(values, {}), {}
        for name, shape in shapes.items():
            declared = header.parameters[name]
            if not isinstance(declared, Buffer):
                continue
            if len(shape) != declared.rank:
                raise TypeError(f"{name} has {len(shape)} dims, declared are {declared.shape}")
            for extent, actual in zip(declared.shape, shape):
                if isinstance(extent, Const) and known.setdefault(extent.text, actual) != actual:
                    raise TypeError(f"{name} makes {extent.text} = {actual}, an earlier tensor {known[extent.text]}")
        return known, header.consts

    @at_its_place
    def program(self, values, consts):
        """The Program for these values."""
        header = self.read(values, consts)
        missing = [name for name in header.consts if name not in consts]
        if missing:
            raise TypeError(f"{self.function.__name__}: {', '.join(missing)} must be given: compile({missing[0]}=...)")
        order = [header.parameters[name] for name in self.signature.parameters if name in header.parameters]
        operands = [*order, *header.results]
        return translate(self.source, header.kernel, header.scope, operands, self.function.__name__), len(order)
