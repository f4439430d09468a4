#include "ir/lexer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tl::syntax {
namespace {

enum class CharClass : uint8_t {
  kOther,
  kBlank,
  kNameStart,
  kDigit,
  kPunct,     // a token by itself whatever follows
  kOperator,  // may be the start of a longer one, or a mistake
};

constexpr std::array<CharClass, 256> MakeCharClasses() {
  std::array<CharClass, 256> classes{};
  const auto set = [&](std::string_view chars, CharClass c) {
    for (const char ch : chars) classes[static_cast<unsigned char>(ch)] = c;
  };
  set(" \t\r", CharClass::kBlank);
  set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_", CharClass::kNameStart);
  set("0123456789", CharClass::kDigit);
  set("()[]{},;:%^?", CharClass::kPunct);
  set("=<>+-*/&|!.", CharClass::kOperator);
  return classes;
}
constexpr std::array<CharClass, 256> kCharClasses = MakeCharClasses();

CharClass ClassOf(char c) { return kCharClasses[static_cast<unsigned char>(c)]; }
bool IsDigit(char c) { return ClassOf(c) == CharClass::kDigit; }
bool IsNameByte(char c) { return ClassOf(c) == CharClass::kNameStart || IsDigit(c); }

constexpr std::string_view kTwoBytePuncts[] = {
    "->", "..", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/="};

struct Mistake {
  std::string_view text;
  std::string_view hint;
};
// Habits from other languages.
constexpr Mistake kMistakes[] = {
    {"&&", "write 'and'"},
    {"||", "write 'or'"},
    {"//", "comments start with '#'"},
    {"/*", "comments start with '#'"},
    {"**", "write 'pow(x, y)'"},
    {"!", "write 'not'"},
    {".", "numbers start with a digit"},
};

// Bytes of the well-formed UTF-8 sequence at the start of `s`, 0 if there is none. Overlong forms,
// surrogates and values above U+10FFFF are not well-formed.
size_t SequenceLength(std::string_view s, uint32_t* code_point) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  *code_point = lead;
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || s.size() < length) return 0;
  *code_point = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    *code_point = *code_point << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = *code_point >= 0xD800 && *code_point < 0xE000;
  return *code_point < kSmallest[length] || surrogate || *code_point > 0x10FFFF ? 0 : length;
}

Span OneByte(int line, int column) { return {line, column, line, column + 1}; }

// Refuses what is not text before anything else looks at it.
Status CheckText(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return LimitError(
        {}, absl::StrCat("the program has ", text.size(), " bytes; the limit is ", max_bytes));
  }
  int line = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (static_cast<signed char>(c) > 0) {  // ASCII other than NUL
      ++i;
      if (c == '\n') {
        ++line;
        line_start = i;
      }
      continue;
    }
    uint32_t code_point;
    const int column = static_cast<int>(i - line_start) + 1;
    if (c == '\0') return SyntaxError(OneByte(line, column), "the program contains a NUL byte");
    const size_t length = SequenceLength(text.substr(i), &code_point);
    if (length == 0) {
      return SyntaxError(
          OneByte(line, column),
          absl::StrFormat("the program is not UTF-8: byte 0x%02X", static_cast<unsigned char>(c)));
    }
    i += length;
  }
  return absl::OkStatus();
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { tokens_.list.reserve(text.size() / 3 + 1); }

  Tokens Run() {
    while (tokens_.error.ok() && SkipBlanks()) LexToken();
    Add(TokenKind::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  char At(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  // False at the end of the text.
  bool SkipBlanks() {
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == '#') {
        pos_ = std::min(text_.find('\n', pos_), text_.size());
      } else if (c == '\n') {
        line_start_ = ++pos_;
        ++line_;
      } else if (ClassOf(c) == CharClass::kBlank) {
        ++pos_;
      } else {
        return true;
      }
    }
    return false;
  }

  void LexToken() {
    switch (ClassOf(text_[pos_])) {
      case CharClass::kNameStart:
        return LexName();
      case CharClass::kDigit:
        return LexNumber();
      case CharClass::kPunct:
        return Add(TokenKind::kPunct, 1);
      case CharClass::kOperator:
        return LexOperator();
      default:
        return UnexpectedCharacter(text_.substr(pos_));
    }
  }

  void LexName() {
    size_t end = pos_ + 1;
    while (IsNameByte(At(end))) ++end;
    Add(TokenKind::kName, end - pos_);
  }

  size_t SkipDigits(size_t i) const {
    while (IsDigit(At(i))) ++i;
    return i;
  }

  void LexNumber() {
    size_t end = pos_;
    bool is_float = false;
    if (text_[pos_] == '0' && (At(pos_ + 1) == 'x' || At(pos_ + 1) == 'X')) {
      end += 2;
      while (absl::ascii_isxdigit(static_cast<unsigned char>(At(end)))) ++end;
      if (end == pos_ + 2) return BadNumber(end);
    } else {
      end = SkipDigits(pos_);
      // The first of two points belongs to a range: 0..n.
      if (At(end) == '.' && At(end + 1) != '.') {
        is_float = true;
        end = SkipDigits(end + 1);
      }
      if (At(end) == 'e' || At(end) == 'E') {
        is_float = true;
        ++end;
        if (At(end) == '+' || At(end) == '-') ++end;
        if (!IsDigit(At(end))) return BadNumber(end);
        end = SkipDigits(end);
      }
    }
    if (IsNameByte(At(end))) return BadNumber(end);
    Add(is_float ? TokenKind::kFloat : TokenKind::kInt, end - pos_);
  }

  void BadNumber(size_t end) {
    while (IsNameByte(At(end))) ++end;
    Fail(end - pos_, absl::StrCat("'", Excerpt(text_.substr(pos_, end - pos_)), "' is no number"));
  }

  bool AtTwoBytePunct() const {
    const char second = At(pos_ + 1);
    if (second != '=' && second != '>' && second != '.' && second != '<') return false;
    return std::any_of(
        std::begin(kTwoBytePuncts), std::end(kTwoBytePuncts),
        [&](std::string_view punct) { return punct[0] == text_[pos_] && punct[1] == second; });
  }

  void LexOperator() {
    if (AtTwoBytePunct()) return Add(TokenKind::kPunct, 2);
    const std::string_view rest = text_.substr(pos_);
    for (const Mistake& mistake : kMistakes) {
      if (SameWord(rest.substr(0, mistake.text.size()), mistake.text)) {
        return Fail(mistake.text.size(),
                    absl::StrCat("unexpected '", mistake.text, "'; ", mistake.hint));
      }
    }
    Add(TokenKind::kPunct, 1);
  }

  void UnexpectedCharacter(std::string_view rest) {
    uint32_t code_point;
    const size_t length = SequenceLength(rest, &code_point);
    const bool printable = code_point > 0x20 && code_point < 0x7F;
    Fail(length, printable ? absl::StrCat("unexpected character '", rest.substr(0, 1), "'")
                           : absl::StrFormat("unexpected character U+%04X", code_point));
  }

  // A number of a million digits is not worth repeating.
  static std::string Excerpt(std::string_view s) {
    return s.size() <= 40 ? std::string(s) : absl::StrCat(s.substr(0, 37), "...");
  }

  int Column() const { return static_cast<int>(pos_ - line_start_) + 1; }

  void Add(TokenKind kind, size_t length) {
    tokens_.list.push_back({kind, text_.substr(pos_, length), line_, Column()});
    pos_ += length;
  }

  void Fail(size_t length, std::string_view message) {
    tokens_.error =
        SyntaxError({line_, Column(), line_, Column() + static_cast<int>(length)}, message);
  }

  std::string_view text_;
  size_t pos_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
  Tokens tokens_;
};

}  // namespace

StatusOr<Tokens> Tokenize(std::string_view text, size_t max_bytes) {
  TL_RETURN_IF_ERROR(CheckText(text, max_bytes));
  return Lexer(text).Run();
}

}  // namespace tl::syntax
