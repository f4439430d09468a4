"""Expressions of the tile IR as Python values: Python's own operators and the functions of T build them, and
where all operands are plain Python numbers the result is one too."""

import math
import re

from .dtypes import dtype_of


class Expr:
    """An expression whose value only the kernel knows: its text, and its kind, "int", "float" or "bool".

    Python's operators mean what they mean in Python, save that ints have 64 bits."""

    def __init__(self, text, kind, atom=False):
        self.text, self.kind = text, kind
        self.atom = atom  # needs no parentheses as an operand

    def __repr__(self):
        return self.text

    def __bool__(self):
        raise TypeError(f"whether {self.text} holds is known in the kernel only: use `if` there, or T.if_then_else")

    def __index__(self):
        raise TypeError(f"{self.text} is known in the kernel only, and a Python number is needed here")

    __hash__ = None

    def __add__(self, other):
        return _arithmetic("+", self, other)

    def __radd__(self, other):
        return _arithmetic("+", other, self)

    def __sub__(self, other):
        return _arithmetic("-", self, other)

    def __rsub__(self, other):
        return _arithmetic("-", other, self)

    def __mul__(self, other):
        return _arithmetic("*", self, other)

    def __rmul__(self, other):
        return _arithmetic("*", other, self)

    def __truediv__(self, other):
        return _divide(self, other)

    def __rtruediv__(self, other):
        return _divide(other, self)

    def __floordiv__(self, other):
        return _integer("/", "//", self, other)

    def __rfloordiv__(self, other):
        return _integer("/", "//", other, self)

    def __mod__(self, other):
        return _integer("%", "%", self, other)

    def __rmod__(self, other):
        return _integer("%", "%", other, self)

    def __pow__(self, other):
        return power(self, other)

    def __rpow__(self, other):
        return power(other, self)

    def __neg__(self):
        return Expr(f"-{operand(self)}", self.kind)

    def __pos__(self):
        return self

    def __lt__(self, other):
        return _compare("<", self, other)

    def __le__(self, other):
        return _compare("<=", self, other)

    def __gt__(self, other):
        return _compare(">", self, other)

    def __ge__(self, other):
        return _compare(">=", self, other)

    def __eq__(self, other):
        return _compare("==", self, other)

    def __ne__(self, other):
        return _compare("!=", self, other)

    def astype(self, dtype):
        return cast(self, dtype)


def is_known(*values):
    return not any(isinstance(value, Expr) for value in values)


def kind_of(value):
    if isinstance(value, Expr):
        return value.kind
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    raise TypeError(f"{value!r} is no number")


def text_of(value):
    """As it stands in a program."""
    if isinstance(value, Expr):
        return value.text
    kind_of(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
    elif not -(2 ** 63) < value < 2 ** 63:
        raise ValueError(f"{value} has more than 64 bits")
    return repr(value)


def operand(value):
    """As it stands beside an operator."""
    text = text_of(value)
    atom = value.atom if isinstance(value, Expr) else not text.startswith("-")
    return text if atom else f"({text})"


def _binary(op, a, b, kind):
    return Expr(f"{operand(a)} {op} {operand(b)}", kind)


def _number(*values):
    for value in values:
        if kind_of(value) == "bool":
            raise TypeError(f"{text_of(value)} is a condition, not a number")


def _arithmetic(op, a, b):
    _number(a, b)
    return _binary(op, a, b, "float" if "float" in (kind_of(a), kind_of(b)) else "int")


def _divide(a, b):
    _number(a, b)
    if kind_of(a) == kind_of(b) == "int":
        raise TypeError(f"{text_of(a)} / {text_of(b)} divides two ints: write // , or cast one with T.float32()")
    return _binary("/", a, b, "float")


def _integer(op, python, a, b):
    if kind_of(a) != "int" or kind_of(b) != "int":
        raise TypeError(f"{text_of(a)} {python} {text_of(b)}: {python} is of two ints")
    return _binary(op, a, b, "int")


def _compare(op, a, b):
    kind_of(a), kind_of(b)
    return _binary(op, a, b, "bool")


def logical(op, values):
    """`a and b and c`; known values are folded, as Python would."""
    rest = []
    for value in values:
        if not is_known(value):
            rest.append(value)
        elif bool(value) != (op == "and"):
            return bool(value)
    if not rest:
        return op == "and"
    for value in rest:
        if value.kind != "bool":
            raise TypeError(f"{value.text} is no condition")
    return rest[0] if len(rest) == 1 else Expr(f" {op} ".join(operand(v) for v in rest), "bool")


def negated(value):
    if is_known(value):
        return not value
    if value.kind != "bool":
        raise TypeError(f"{value.text} is no condition")
    return Expr(f"not {operand(value)}", "bool")


def call(name, *arguments, kind=None):
    """A function of the tile IR."""
    _number(*arguments)
    if kind is None:
        kind = "float" if "float" in [kind_of(a) for a in arguments] else "int"
    return Expr(f"{name}({', '.join(text_of(a) for a in arguments)})", kind, atom=True)


def power(a, b):
    if kind_of(a) != "float" and kind_of(b) != "float":
        raise TypeError(f"{text_of(a)} ** {text_of(b)} is of two ints: multiply, or cast one with T.float32()")
    return call("pow", a, b)


def stored(value, dtype):
    """As an element of a tile: what fits by itself, or cast as TileLang does."""
    kind = kind_of(value)
    fits = kind == dtype.kind or (kind, dtype.kind) == ("int", "float")
    return value if fits else cast(value, dtype)


def cast(value, dtype):
    """To an element type, rounding as a store would."""
    dtype = dtype_of(dtype)
    if is_known(value) and dtype.ir in ("f32", "f64", "i32", "i64"):
        # What no rounding changes stays a Python number.
        if dtype.kind == "float" and (not math.isfinite(value) or float(value) == int(value)):
            return float(value)
        if dtype.kind == "int" and isinstance(value, int):
            return int(value)
    return Expr(f"{dtype.ir}({text_of(value)})", dtype.kind, atom=True)


def select(condition, yes, no):
    """One of two values."""
    if is_known(condition):
        return yes if condition else no
    if condition.kind != "bool":
        raise TypeError(f"{condition.text} is no condition")
    kind = "float" if "float" in (kind_of(yes), kind_of(no)) else kind_of(yes)
    return Expr(f"if {condition.text} then {text_of(yes)} else {text_of(no)}", kind)


# What stands in the shape of a tensor, or says where a range begins, is made of these.
_INTEGER_FUNCTIONS = {"ceildiv": lambda a, b: -(-a // b), "min": min, "max": max}


def names_in(text):
    """The names that the text of an integer expression is made of; None if it is of another kind."""
    words = list(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text)))
    if "[" in text or set(words) & {"if", "then", "else", "and", "or", "not"}:
        return None
    return [word for word in words if word not in _INTEGER_FUNCTIONS]


def integer_value(text, values):
    """The number that the text of an integer expression is, where its names have the values given."""
    # The text is our own: names, numbers, operators and these functions.
    return eval(text.replace("/", "//"), {"__builtins__": {}, **_INTEGER_FUNCTIONS}, dict(values))


def ceildiv(a, b):
    if is_known(a, b):
        return -(-a // b)
    for value in (a, b):
        if kind_of(value) != "int":
            raise TypeError(f"T.ceildiv is of two ints, not {text_of(value)}")
    return call("ceildiv", a, b)
