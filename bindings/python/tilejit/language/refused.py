"""Errors that point into Python source."""

import ast
import contextlib
import functools
import inspect


class Refused(SyntaxError):
    """Something that the translator does not take: where it stands, what it is, and what would work."""

    __module__ = "tilejit.language"


def at_its_place(function):
    """A refusal leaves the function without the way that the translator took to it: the place in the user's source is
    what counts."""

    @functools.wraps(function)
    def wrapped(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Refused as error:
            refused = error
        raise refused.with_traceback(None) from None

    return wrapped


class Source:
    """A function's source and where it stands in its file."""

    def __init__(self, function):
        self.function = function
        try:
            self.file = inspect.getsourcefile(function) or "<unknown>"
            lines, self.first_line = inspect.getsourcelines(function)
        except (OSError, TypeError) as error:
            raise TypeError(f"the source of {function!r} is not to be had, and a kernel is read from its source") from error
        self.lines = lines
        # In a block of its own, so that neither columns nor strings over several lines are shifted.
        block = ast.parse("if True:\n" + "".join(lines)) if lines[0][:1].isspace() else ast.parse("\n" + "".join(lines))
        ast.increment_lineno(block, -1)
        self.tree = block.body[0].body[0] if isinstance(block.body[0], ast.If) else block.body[0]

    def line_of(self, node):
        return self.first_line + node.lineno - 1

    @contextlib.contextmanager
    def at(self, node):
        """What Python, or a function of T, objects to in here is refused at the node."""
        try:
            yield
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            self.refuse(node, str(error))

    def refuse(self, node, message):
        """Raises."""
        row = node.lineno - 1
        text = self.lines[row] if row < len(self.lines) else ""
        end = node.end_col_offset + 1 if node.end_lineno == node.lineno else len(text)
        raise Refused(message, (self.file, self.line_of(node), node.col_offset + 1, text, self.line_of(node),
                                end))

    def refuse_line(self, line, message):
        """The same for a line of the file."""
        row = line - self.first_line
        raise Refused(message, (self.file, line, 1, self.lines[row] if 0 <= row < len(self.lines) else ""))
