// Text -> tokens.
#ifndef TILEJIT_IR_LEXER_H_
#define TILEJIT_IR_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/syntax.h"

namespace tl::syntax {

enum class TokenKind : uint8_t {
  kEnd,    // the last token; after an error too
  kName,   // identifiers and words
  kInt,    // 12, 0x1f; its value is not checked here
  kFloat,  // 1.5, 2., 1e-3
  kPunct,  // operators and brackets
};

// a == b, quick where they differ: most comparisons of a parser fail.
inline bool SameWord(std::string_view a, std::string_view b) {
  return a.size() == b.size() && !a.empty() && a[0] == b[0] && a.substr(1) == b.substr(1);
}

// No token spans lines.
struct Token {
  TokenKind kind;
  std::string_view text;  // into the program's text
  int line;
  int column;

  int end_column() const { return column + static_cast<int>(text.size()); }
  Span span() const { return {line, column, line, end_column()}; }
};

struct Tokens {
  std::vector<Token> list;
  // OK, or why no token could be made at the last token's place. It is kept instead of returned so
  // that an earlier mistake in the grammar is reported first.
  Status error;
};

// Fails if the text is too long, holds a NUL byte or is not UTF-8.
StatusOr<Tokens> Tokenize(std::string_view text, size_t max_bytes = Limits{}.bytes);

}  // namespace tl::syntax

#endif  // TILEJIT_IR_LEXER_H_
