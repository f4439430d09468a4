// The functions that generated kernels call, cut to those that they do call: a runtime compiler
// reads the whole text, and reading all of it takes longer than compiling a small kernel.
//
// A prelude's text consists of parts. A line
//
//     //@ name name ... with name
//
// begins one and says which names it defines; it is taken when the kernels, or a part that is
// taken, mention one of the names and (where there is a `with`) that name too. What stands before
// the first such line is always taken.
#ifndef TILEJIT_BACKENDS_C_FAMILY_PRELUDE_H_
#define TILEJIT_BACKENDS_C_FAMILY_PRELUDE_H_

#include <string>
#include <string_view>
#include <vector>

namespace tl {

struct PreludePart {
  std::vector<std::string_view> names;  // empty: always taken
  std::string_view with;
  std::string_view text;
};
std::vector<PreludePart> PartsOf(std::string_view prelude);

// The parts of `prelude` that `text` needs, in their order.
std::string SelectParts(std::string_view prelude, std::string_view text);

// A source file: what `kernels` need of the language's primitives and of NumericsPrelude(), then
// `functions` that the language has for these kernels alone, kProgramMark, then `kernels`.
std::string WithPrelude(std::string_view primitives, std::string_view kernels,
                        std::string_view functions = "");

inline constexpr std::string_view kProgramMark = "// ---- The program. ----\n";
// What comes after the mark; all of `source` if there is none.
std::string_view WithoutPrelude(std::string_view source);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_C_FAMILY_PRELUDE_H_
