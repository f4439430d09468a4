"""Element types: TileLang's names, and those of the tile IR."""

# Name in the tile IR -> TileLang's and NumPy's.
_NAMES = {
    "bool": ["bool"],
    "i8": ["int8"], "u8": ["uint8"], "i16": ["int16"], "u16": ["uint16"], "i32": ["int32", "int"], "u32": ["uint32"],
    "i64": ["int64"],
    "e4m3": ["float8_e4m3fn", "float8_e4m3"], "e5m2": ["float8_e5m2"],
    "f16": ["float16", "half"], "bf16": ["bfloat16"], "f32": ["float32", "float"], "f64": ["float64", "double"],
}
_BY_NAME = {name: ir for ir, names in _NAMES.items() for name in [ir, *names]}


class Dtype:
    """An element type. Calling it casts: T.float32(x)."""

    def __init__(self, ir):
        self.ir = ir

    @property
    def kind(self):
        return "bool" if self.ir == "bool" else "int" if self.ir[0] in "iu" else "float"

    def __eq__(self, other):
        return isinstance(other, Dtype) and self.ir == other.ir

    def __hash__(self):
        return hash(self.ir)

    def __repr__(self):
        return f"T.{_NAMES[self.ir][0]}"

    def __call__(self, value):
        from .expr import cast
        return cast(value, self)


def dtype_of(value):
    """Of a name ("float16", "f16"), a Dtype, or a dtype of NumPy or PyTorch."""
    if isinstance(value, Dtype):
        return value
    name = value if isinstance(value, str) else getattr(value, "name", None) or str(value).replace("torch.", "")
    if isinstance(value, type):
        name = value.__name__  # numpy.float32
    if name not in _BY_NAME:
        raise ValueError(f"{value!r} is no dtype; there are {', '.join(sorted(names[0] for names in _NAMES.values()))}")
    return Dtype(_BY_NAME[name])


# What the package offers as T.float16 and so on.
OBJECTS = {name: Dtype(ir) for ir, names in _NAMES.items() for name in names if name not in ("bool", "int", "float")}
