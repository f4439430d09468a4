#include "layout/svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tl {
namespace {

constexpr int64_t kRowHeight = 16, kLetterWidth = 5, kLeft = 34, kTop = 50;
// More boxes than this stay without a label: nobody reads them, and the file stays small.
constexpr size_t kMaxLabels = 1100;

// Elements [col, col + cols) of a row.
struct Box {
  int64_t row, col, cols;
  std::string fill, label;
};

struct Picture {
  int64_t rows = 0, cols = 0;
  std::string title, subtitle;
  std::vector<Box> boxes;
};

// Hue in turns; saturation and lightness from 0 to 1. "#rrggbb", which every viewer understands.
std::string Colour(double hue, double saturation, double lightness) {
  const double reach = saturation * std::min(lightness, 1 - lightness);
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue * 12, 12);
    return static_cast<int>(
        std::lround(255 * (lightness - reach * std::clamp(std::min(k - 3, 9 - k), -1.0, 1.0))));
  };
  return absl::StrFormat("#%02x%02x%02x", channel(0), channel(8), channel(4));
}

std::string Escaped(std::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// Labelled boxes are as wide as their labels need.
int64_t CellWidth(const Picture& p, bool labelled) {
  if (!labelled) return std::clamp<int64_t>(1024 / p.cols, 4, 14);
  int64_t width = 10;
  for (const Box& b : p.boxes) {
    const int64_t label = kLetterWidth * static_cast<int64_t>(b.label.size()) + 4;
    width = std::max(width, (label + b.cols - 1) / b.cols);
  }
  return width;
}

// One path for all boxes of a colour.
std::string Paths(const Picture& p, int64_t width, int64_t height) {
  std::map<std::string, std::string> by_fill;
  for (const Box& b : p.boxes) {
    absl::StrAppend(&by_fill[b.fill], "M", kLeft + b.col * width, " ", kTop + b.row * height, "h",
                    b.cols * width, "v", height, "h", -b.cols * width, "z");
  }
  std::string text;
  for (const auto& [fill, path] : by_fill) {
    absl::StrAppend(&text, "<path fill=\"", fill, "\" d=\"", path, "\"/>\n");
  }
  return text;
}

std::string Label(int64_t x, int64_t y, std::string_view text) {
  return absl::StrCat("<text x=\"", x, "\" y=\"", y, "\">", text, "</text>\n");
}

std::string Labels(const Picture& p, int64_t width, int64_t height) {
  std::string text;
  for (const Box& b : p.boxes) {
    const int64_t x = kLeft + b.col * width + b.cols * width / 2;
    absl::StrAppend(&text, Label(x, kTop + b.row * height + height - 5, b.label));
  }
  return text;
}

// Numbers along the upper and the left edge, far enough apart to be read.
std::string Rulers(const Picture& p, int64_t width, int64_t height) {
  std::string text;
  int64_t every_col = 1, every_row = 1;
  while (every_col * width < 20) every_col *= 2;
  while (every_row * height < 10) every_row *= 2;
  for (int64_t c = 0; c < p.cols; c += every_col) {
    absl::StrAppend(&text, Label(kLeft + c * width + width / 2, kTop - 5, absl::StrCat(c)));
  }
  for (int64_t r = 0; r < p.rows; r += every_row) {
    absl::StrAppend(&text, Label(kLeft / 2, kTop + r * height + (height + 7) / 2, absl::StrCat(r)));
  }
  return text;
}

std::string Draw(const Picture& p) {
  const bool labelled = p.boxes.size() <= kMaxLabels;
  const int64_t width = CellWidth(p, labelled);
  const int64_t height = labelled ? kRowHeight : std::min<int64_t>(width, 8);
  const int64_t letters = static_cast<int64_t>(std::max(p.title.size(), p.subtitle.size()));
  const int64_t right = std::max(kLeft + p.cols * width, 7 * letters) + 8;
  const int64_t bottom = kTop + p.rows * height + 8;
  std::string text = absl::StrCat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", right, "\" height=\"", bottom,
      "\" viewBox=\"0 0 ", right, " ", bottom, "\" font-family=\"monospace\" font-size=\"8\">\n",
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", "<text x=\"8\" y=\"16\" ",
      "font-size=\"11\">", Escaped(p.title), "</text>\n<text x=\"8\" y=\"31\" font-size=\"10\">",
      Escaped(p.subtitle), "</text>\n");
  absl::StrAppend(&text, "<g stroke=\"#555\" stroke-width=\"", labelled ? "0.5" : "0.2", "\">\n",
                  Paths(p, width, height), "</g>\n<g text-anchor=\"middle\">\n",
                  Rulers(p, width, height), labelled ? Labels(p, width, height) : "", "</g>\n");
  return text + "</svg>\n";
}

// -- Fragments

struct Holder {
  int64_t warp, lane, slot;  // warp counts on through the groups
  bool Continues(const Holder& before) const {
    return warp == before.warp && lane == before.lane && slot == before.slot + 1;
  }
};

std::string HolderColour(const FragmentLayout& layout, const Holder& h) {
  const double warps = static_cast<double>(layout.size(LayoutAxis::kWarp)) *
                       static_cast<double>(layout.size(LayoutAxis::kGroup));
  const double lane = static_cast<double>(h.lane) / layout.size(LayoutAxis::kLane);
  if (warps == 1) return Colour(lane, 0.65, 0.8);
  return Colour(h.warp / warps, 0.6, 0.68 + 0.24 * lane);
}

std::string HolderLabel(const Holder& first, int64_t count) {
  const std::string label = absl::StrCat(first.lane, ".", first.slot);
  return count == 1 ? label : absl::StrCat(label, "-", first.slot + count - 1);
}

constexpr std::string_view kPaddingColour = "#eeeeee", kNobodyColour = "#ffffff";

// The run of boxes of one row.
void AddRow(const FragmentLayout& layout, int64_t row, Picture& picture) {
  for (int64_t col = 0; col < picture.cols;) {
    const auto holder = [&](int64_t c) -> std::optional<Holder> {
      const auto owner = layout.Owner(row * picture.cols + c);
      if (!owner) return std::nullopt;
      const int64_t warp = owner->group * layout.size(LayoutAxis::kWarp) + owner->warp;
      return Holder{warp, owner->lane, owner->slot};
    };
    const auto real = [&](int64_t c) { return layout.IsReal(row * picture.cols + c); };
    const std::optional<Holder> first = holder(col);
    int64_t end = col + 1;
    for (std::optional<Holder> last = first; end < picture.cols && last; ++end) {
      const std::optional<Holder> next = holder(end);
      if (!next || !next->Continues(*last) || real(end) != real(col)) break;
      last = next;
    }
    std::string fill(!first ? kNobodyColour : kPaddingColour);
    if (first && real(col)) fill = HolderColour(layout, *first);
    picture.boxes.push_back(
        {row, col, end - col, std::move(fill), first ? HolderLabel(*first, end - col) : ""});
    col = end;
  }
}

std::string FragmentSubtitle(const FragmentLayout& layout) {
  std::string text = "lane.slot";
  const int64_t warps = layout.size(LayoutAxis::kWarp), groups = layout.size(LayoutAxis::kGroup);
  if (warps * groups > 1)
    absl::StrAppend(&text, ", one colour for each of ", warps * groups, " warps");
  if (layout.IsPadded()) absl::StrAppend(&text, "; grey is padding");
  if (layout.IsReplicated()) absl::StrAppend(&text, "; of several holders the lowest");
  return text;
}

// -- Banks

constexpr int64_t kWord = 4, kBanks = 32, kChunk = 16;

// Extra passes of eight lanes that read 16 bytes below each other, in the worst place.
int MatrixConflicts(int64_t rows, int64_t row_bytes, Swizzle swizzle) {
  int worst = 0;
  for (int64_t column = 0; column < row_bytes; column += kChunk) {
    std::vector<int64_t> offsets;
    for (int64_t row = 0; row < std::min<int64_t>(rows, 8); ++row) {
      offsets.push_back(SwizzledOffset(swizzle, row_bytes, row, column));
    }
    worst = std::max(worst, BankConflicts(offsets, kChunk));
  }
  return worst;
}

std::string SharedSubtitle(int64_t rows, int64_t row_bytes, Swizzle swizzle) {
  std::string text = absl::StrCat("banks of 4 bytes; rows of ", row_bytes, " bytes");
  if (swizzle.bits > 0) {
    absl::StrAppend(&text, ", chunk ^= row / ", 1 << swizzle.row_shift, " mod ", 1 << swizzle.bits);
  }
  if (row_bytes % kChunk != 0) return text;
  absl::StrAppend(&text, "; ldmatrix takes ", MatrixConflicts(rows, row_bytes, swizzle),
                  " extra passes");
  if (swizzle.bits > 0)
    absl::StrAppend(&text, ", plain rows ", MatrixConflicts(rows, row_bytes, {}));
  return text;
}

Box BankBox(int64_t row, int64_t col, int64_t cols, int64_t offset, int64_t bytes) {
  const int64_t first = offset / kWord % kBanks, last = (offset + bytes - 1) / kWord % kBanks;
  std::string label = absl::StrCat(first);
  if (last != first) absl::StrAppend(&label, "-", last);
  return {row, col, cols, Colour(static_cast<double>(first) / kBanks, 0.65, 0.78), label};
}

}  // namespace

std::string FragmentSvg(const FragmentLayout& layout, std::string_view title) {
  Picture picture;
  picture.cols = layout.padded().back();
  picture.rows = layout.padded_elements() / picture.cols;
  picture.title = absl::StrCat(title, ": ", layout.ToString());
  picture.subtitle = FragmentSubtitle(layout);
  for (int64_t row = 0; row < picture.rows; ++row) AddRow(layout, row, picture);
  return Draw(picture);
}

std::string SharedSvg(int64_t rows, int64_t cols, int64_t element_bytes, Swizzle swizzle,
                      std::string_view title) {
  const int64_t row_bytes = cols * element_bytes;
  const int64_t step =
      row_bytes % kChunk == 0 && element_bytes <= kChunk ? kChunk / element_bytes : 1;
  Picture picture;
  picture.rows = rows;
  picture.cols = cols;
  picture.title = std::string(title);
  picture.subtitle = SharedSubtitle(rows, row_bytes, swizzle);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; col += step) {
      const int64_t offset = SwizzledOffset(swizzle, row_bytes, row, col * element_bytes);
      picture.boxes.push_back(BankBox(row, col, step, offset, step * element_bytes));
    }
  }
  return Draw(picture);
}

}  // namespace tl
