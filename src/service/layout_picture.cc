#include "service/layout_picture.h"

#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/edit_distance.h"
#include "layout/matrix_fragments.h"
#include "layout/svg.h"

namespace tl {
namespace {

constexpr int kMaxWarps = 32, kMaxGroups = 8;

using Fields = std::vector<std::string_view>;

// The fields behind the first, one after another. The first mistake is kept.
class Reader {
 public:
  explicit Reader(Fields fields) : fields_(std::move(fields)) {}

  bool more() const { return next_ < fields_.size(); }
  const Status& status() const { return status_; }

  DType Type(DType otherwise) {
    if (!more()) return otherwise;
    const std::string_view field = Next("dtype");
    const std::optional<DType> type = ParseDType(field);
    if (!type) Fail(absl::StrCat("'", field, "' is no dtype: expected bf16, f32, i8, e4m3 ..."));
    return type.value_or(otherwise);
  }

  int64_t Number(std::string_view what, int64_t most) {
    return Numbers(Next(what), what, 1, most).front();
  }

  // "128x64"
  std::vector<int64_t> Extents(std::string_view what, size_t rank) {
    return Numbers(Next(what), what, rank, kMaxPictureElements);
  }

  Status End() {
    if (more()) Fail(absl::StrCat("'", fields_[next_], "' is one field too many"));
    return status_;
  }

  void Fail(std::string message) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(message);
  }

 private:
  std::string_view Next(std::string_view what) {
    if (more()) return fields_[next_++];
    Fail(absl::StrCat("the ", what, " is missing"));
    return "";
  }

  std::vector<int64_t> Numbers(std::string_view field, std::string_view what, size_t count,
                               int64_t most) {
    std::vector<int64_t> numbers;
    for (std::string_view part : absl::StrSplit(field, 'x')) {
      int64_t n = 0;
      if (!absl::SimpleAtoi(part, &n) || n < 1 || n > most) break;
      numbers.push_back(n);
    }
    if (absl::StrJoin(numbers, "x") == field && numbers.size() == count) return numbers;
    Fail(absl::StrCat("'", field, "' is no ", what, ": expected ",
                      count == 1 ? "a number" : "ROWSxCOLS", " from 1 to ", most));
    return std::vector<int64_t>(count, 1);
  }

  const Fields fields_;
  size_t next_ = 1;
  Status status_;
};

// The instruction that multiplies elements of a type.
std::optional<MatrixAtom> AtomOf(DType type) {
  const auto mma = [&](DType c, int k) {
    return MatrixAtom{"mma", AtomForm::kMma, type, type, c, 16, 8, k, type == DType::kF32};
  };
  switch (type) {
    case DType::kF64:
      return MatrixAtom{"dmma", AtomForm::kDmma, type, type, type, 8, 8, 4};
    case DType::kF32:
      return mma(DType::kF32, 8);
    case DType::kF16:
    case DType::kBF16:
      return mma(DType::kF32, 16);
    case DType::kE4M3:
    case DType::kE5M2:
      return mma(DType::kF32, 32);
    case DType::kI8:
    case DType::kU8:
      return mma(DType::kI32, 32);
    default:
      return std::nullopt;
  }
}

MatrixAtom Atom(Reader& in) {
  const DType type = in.Type(DType::kBF16);
  const std::optional<MatrixAtom> atom = AtomOf(type);
  if (!atom) in.Fail(absl::StrCat("no matrix instruction takes ", Name(type)));
  return atom.value_or(*AtomOf(DType::kBF16));
}

StatusOr<std::string> Fragment(Reader& in, std::string_view title, const FragmentLayout& layout) {
  TL_RETURN_IF_ERROR(in.End());
  if (layout.padded_elements() > kMaxPictureElements) {
    return absl::InvalidArgumentError(absl::StrCat("a tile of ", layout.padded_elements(),
                                                   " elements is too large to draw: at most ",
                                                   kMaxPictureElements));
  }
  return FragmentSvg(layout, title);
}

template <FragmentLayout (*layout)(const MatrixAtom&)>
StatusOr<std::string> DrawAtom(Reader& in, std::string_view title) {
  return Fragment(in, title, layout(Atom(in)));
}

template <FragmentLayout (*layout)(const MatrixAtom&, int64_t, int64_t, int, int)>
StatusOr<std::string> DrawTiled(Reader& in, std::string_view title) {
  const std::vector<int64_t> tile = in.Extents("tile", 2);
  const std::vector<int64_t> warps = in.Extents("grid of warps", 2);
  if (warps[0] * warps[1] > kMaxWarps) in.Fail(absl::StrCat("more than ", kMaxWarps, " warps"));
  TL_RETURN_IF_ERROR(in.status());
  const MatrixAtom atom = Atom(in);
  return Fragment(
      in, title,
      layout(atom, tile[0], tile[1], static_cast<int>(warps[0]), static_cast<int>(warps[1])));
}

StatusOr<std::string> DrawWgmmaC(Reader& in, std::string_view title) {
  const int64_t n = in.Number("number of columns", 256);
  if (n % 8 != 0) in.Fail(absl::StrCat(n, " columns: wgmma takes multiples of 8 up to 256"));
  TL_RETURN_IF_ERROR(in.status());
  return Fragment(in, title, WgmmaC(static_cast<int>(n)));
}

StatusOr<std::string> DrawWgmmaA(Reader& in, std::string_view title) {
  const DType type = in.Type(DType::kBF16);
  if (!AtomOf(type) || type == DType::kF64) {
    in.Fail(absl::StrCat("wgmma does not take ", Name(type)));
  }
  TL_RETURN_IF_ERROR(in.status());
  return Fragment(in, title, WgmmaA(type));
}

StatusOr<std::string> DrawMfmaC(Reader& in, std::string_view title) {
  const int64_t m = in.Number("number of rows", 32);
  if (m != 16 && m != 32) in.Fail("mfma_c is drawn for 16 and 32 rows");
  TL_RETURN_IF_ERROR(in.status());
  return Fragment(in, title, MfmaC(static_cast<int>(m)));
}

StatusOr<std::string> DrawRdnaC(Reader& in, std::string_view title) {
  return Fragment(in, title, RdnaWmmaC());
}

StatusOr<std::string> DrawBlocked(Reader& in, std::string_view title) {
  const std::vector<int64_t> tile = in.Extents("tile", 2);
  const DType type = in.Type(DType::kF32);
  const int64_t warps = in.more() ? in.Number("number of warps", kMaxWarps) : 4;
  const int64_t groups = in.more() ? in.Number("number of groups", kMaxGroups) : 1;
  TL_RETURN_IF_ERROR(in.status());
  return Fragment(in, title,
                  BlockedLayout(tile, static_cast<int64_t>(SizeOf(type)), static_cast<int>(warps),
                                32, static_cast<int>(groups)));
}

template <bool swizzled>
StatusOr<std::string> DrawShared(Reader& in, std::string_view title) {
  const std::vector<int64_t> tile = in.Extents("tile", 2);
  const auto bytes = static_cast<int64_t>(SizeOf(in.Type(DType::kBF16)));
  if (tile[0] * tile[1] > kMaxPictureElements) {
    in.Fail(absl::StrCat("too large to draw: at most ", kMaxPictureElements, " elements"));
  }
  TL_RETURN_IF_ERROR(in.End());
  const Swizzle swizzle = swizzled ? SwizzleFor(tile[1] * bytes) : Swizzle{};
  return SharedSvg(tile[0], tile[1], bytes, swizzle, title);
}

struct Kind {
  std::string_view name, form;
  StatusOr<std::string> (*draw)(Reader& in, std::string_view title);
};

constexpr Kind kKinds[] = {
    {"mma_a", "mma_a[:DTYPE]", DrawAtom<AtomA>},
    {"mma_b", "mma_b[:DTYPE]", DrawAtom<AtomB>},
    {"mma_c", "mma_c[:DTYPE]", DrawAtom<AtomC>},
    {"ldmatrix_a", "ldmatrix_a[:DTYPE]", DrawAtom<LdmatrixA>},
    {"ldmatrix_b", "ldmatrix_b[:DTYPE]", DrawAtom<LdmatrixB>},
    {"tiled_a", "tiled_a:ROWSxDEPTH:WARPSxWARPS[:DTYPE]", DrawTiled<TiledA>},
    {"tiled_c", "tiled_c:ROWSxCOLS:WARPSxWARPS[:DTYPE]", DrawTiled<TiledC>},
    {"wgmma_a", "wgmma_a[:DTYPE]", DrawWgmmaA},
    {"wgmma_c", "wgmma_c:COLS", DrawWgmmaC},
    {"mfma_c", "mfma_c:ROWS", DrawMfmaC},
    {"rdna_c", "rdna_c", DrawRdnaC},
    {"blocked", "blocked:ROWSxCOLS[:DTYPE[:WARPS[:GROUPS]]]", DrawBlocked},
    {"shared", "shared:ROWSxCOLS[:DTYPE]", DrawShared<true>},
    {"plain", "plain:ROWSxCOLS[:DTYPE]", DrawShared<false>},
};

Status UnknownKind(std::string_view kind) {
  std::vector<std::string_view> names, forms;
  for (const Kind& k : kKinds) {
    names.push_back(k.name);
    forms.push_back(k.form);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no layout '", kind.substr(0, 40), "'", DidYouMean(kind, names), "; expected ",
      absl::StrJoin(forms, ", "), "; for example mma_c, blocked:128x64:bf16:8, shared:64x32:bf16"));
}

}  // namespace

StatusOr<std::string> LayoutSvg(std::string_view name) {
  Fields fields = absl::StrSplit(name, ':');
  const std::string_view kind = fields.front();
  for (const Kind& k : kKinds) {
    if (k.name != kind) continue;
    Reader in(std::move(fields));
    StatusOr<std::string> svg = k.draw(in, name);
    if (svg.ok()) return svg;
    return absl::InvalidArgumentError(
        absl::StrCat(svg.status().message(), "; the form is ", k.form));
  }
  return UnknownKind(kind);
}

}  // namespace tl
