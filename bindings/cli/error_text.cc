#include "error_text.h"

#include <algorithm>

namespace cli {
namespace {

std::string_view Line(std::string_view text, int number) {
  for (; number > 1; --number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// Bytes of the UTF-8 character at the start of `text`; 0: there is none.
size_t CharacterSize(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t size = first < 0x80    ? 1
                      : first < 0xc2  ? 0  // a later byte, or more bytes than it takes
                      : first < 0xe0  ? 2
                      : first < 0xf0  ? 3
                      : first <= 0xf4 ? 4
                                      : 0;
  if (size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (StartsCharacter(text[i])) return 0;
  }
  return size;
}

// As a terminal can show it: bytes that are no UTF-8, and control characters but tabs, as \xNN.
std::string Escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t size = CharacterSize(text);
    if (size == 0 || (first < 0x20 && first != '\t') || first == 0x7f) {
      constexpr char kDigits[] = "0123456789ABCDEF";
      out += {'\\', 'x', kDigits[first >> 4], kDigits[first & 15]};
      text.remove_prefix(1);
    } else {
      out += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return out;
}

// Blanks as wide as `text` is on a terminal: tabs stay, the later bytes of a character add nothing.
std::string Blanks(std::string_view text) {
  std::string blanks;
  for (char c : text) {
    if (StartsCharacter(c)) blanks += c == '\t' ? '\t' : ' ';
  }
  return blanks;
}

// The marked line. Columns count bytes from 1; the end is exclusive.
std::string Excerpt(const Failure& f, std::string_view source) {
  const std::string_view line = Line(source, f.line);
  const size_t begin = std::min<size_t>(std::max(f.column, 1) - 1, line.size());
  size_t end = f.end_line == f.line ? std::max(f.end_column, f.column + 1) - 1 : line.size();
  end = std::min(std::max(end, begin + 1), std::max(line.size(), begin + 1));
  const std::string number = std::to_string(f.line);
  const std::string before = Escaped(line.substr(0, begin));
  const std::string marked =
      begin < line.size() ? Escaped(line.substr(begin, end - begin)) : std::string();
  const std::string after = end < line.size() ? Escaped(line.substr(end)) : std::string();
  return "  " + number + " | " + before + marked + after + "\n  " +
         std::string(number.size(), ' ') + " | " + Blanks(before) + "^" +
         std::string(std::max<size_t>(Blanks(marked).size(), 1) - 1, '~') + "\n";
}

}  // namespace

std::string ErrorText(const Failure& f, std::string_view file, std::string_view source) {
  std::string text = std::string("error: ") + tl_status_name(f.status) + ": " + f.message + "\n";
  if (f.line > 0) {
    text += std::string(file) + ":" + std::to_string(f.line) + ":" + std::to_string(f.column) +
            "\n" + Excerpt(f, source);
  }
  if (!f.log.empty()) text += f.log + (f.log.back() == '\n' ? "" : "\n");
  return text;
}

}  // namespace cli
