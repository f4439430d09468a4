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
  const std::string marked = Blanks(line.substr(begin, end - begin));
  return "  " + number + " | " + std::string(line) + "\n  " + std::string(number.size(), ' ') +
         " | " + Blanks(line.substr(0, begin)) + "^" +
         std::string(std::max<size_t>(marked.size(), 1) - 1, '~') + "\n";
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
