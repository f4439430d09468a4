#include "backends/reference/tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/address.h"

namespace tl::reference {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 60;

StatusOr<int64_t> NonNegative(const Module& module, const Buffer& b, const ExprRef& e,
                              const HostArgs& args, std::string_view what) {
  StatusOr<int64_t> v = EvalHost(module, e, args);
  if (!v.ok()) {
    return SemanticError(b.span,
                         absl::StrCat("tensor '", b.name, "': ", what, ": ", v.status().message()));
  }
  if (*v < 0) {
    return SemanticError(b.span,
                         absl::StrCat("tensor '", b.name, "': ", what, " is negative (", *v, ")"));
  }
  return *v;
}

template <typename T, typename F>
void ReadAs(const char* p, int64_t step, int64_t n, Cell* out, F widen) {
  for (int64_t i = 0; i < n; ++i) {
    T raw;
    std::memcpy(&raw, p + i * step * static_cast<int64_t>(sizeof(T)), sizeof(T));
    out[i] = widen(raw);
  }
}

double BF16ToDouble(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float f;
  std::memcpy(&f, &wide, sizeof(f));
  return f;
}

// Rounds to nearest even where the result is a normal number for certain; StoreElement does the
// rest.
template <int kMantissa, int kBias>
bool EncodeNormal(double v, uint16_t* out) {
  const uint64_t bits = std::bit_cast<uint64_t>(v);
  const int e = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (e < 1 - kBias || e >= kBias) return false;
  constexpr int kShift = 52 - kMantissa;
  const uint64_t rounded = bits + ((uint64_t{1} << (kShift - 1)) - 1) + (bits >> kShift & 1);
  const uint64_t magnitude = (rounded & ~(uint64_t{1} << 63)) >> kShift;
  const uint64_t rebias = uint64_t{1023 - kBias} << kMantissa;
  *out = static_cast<uint16_t>((magnitude - rebias) | (bits >> 63) << 15);
  return true;
}

template <int kMantissa, int kBias>
void WriteHalves(DType t, char* p, int64_t step, int64_t n, const Cell* in, int64_t in_step) {
  for (int64_t i = 0; i < n; ++i) {
    char* to = p + i * step * 2;
    uint16_t bits;
    if (EncodeNormal<kMantissa, kBias>(in[i * in_step].f, &bits)) {
      std::memcpy(to, &bits, sizeof(bits));
    } else {
      StoreElement(t, to, in[i * in_step].f);
    }
  }
}

}  // namespace

StatusOr<Tensor> Tensor::Make(const Module& module, BufferId id, const HostArgs& args) {
  const Buffer& b = module.buffer(id);
  Tensor t;
  t.id_ = id;
  t.buffer_ = &b;
  t.rank_ = b.rank();
  if (t.rank_ > kMaxRank) return LimitError(b.span, "tensor of more than 8 dims");
  for (int d = 0; d < t.rank_; ++d) {
    TL_ASSIGN_OR_RETURN(t.shape_[d],
                        NonNegative(module, b, b.shape[d], args, absl::StrCat("extent ", d)));
    const ExprRef stride = TensorStride(module, id, d);
    if (stride == nullptr) continue;
    TL_ASSIGN_OR_RETURN(t.stride_[d],
                        NonNegative(module, b, stride, args, absl::StrCat("stride ", d)));
  }
  if (!b.packed.empty()) {
    t.packed_ = true;
    t.tile_rows_ = b.packed[0];
    t.tile_cols_ = b.packed[1];
    t.tiles_per_row_ = (t.shape_[t.rank_ - 1] + t.tile_cols_ - 1) / t.tile_cols_;
  }
  TL_ASSIGN_OR_RETURN(t.size_, NonNegative(module, b, StorageSize(module, id), args, "size"));
  if (t.size_ > kMaxBytes / 8) {
    return SemanticError(b.span, absl::StrCat("tensor '", b.name, "': ", t.size_, " elements"));
  }
  return t;
}

Status Tensor::AddShadow() {
  shadow_ = std::make_unique<Shadow>();
  shadow_->cell = ZeroedArray<Cell>(size_);
  shadow_->err = ZeroedArray<double>(size_);
  shadow_->state = ZeroedArray<uint8_t>(size_);
  if (shadow_->cell.allocated() && shadow_->err.allocated() && shadow_->state.allocated()) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("no memory for the exact values of '",
                                                   buffer_->name, "' (", size_, " elements)"));
}

int64_t Tensor::Offset(const Index& index) const {
  const int plain = packed_ ? rank_ - 2 : rank_;
  int64_t offset = 0;
  for (int d = 0; d < plain; ++d) offset += index[d] * stride_[d];
  if (!packed_) return offset;
  const int64_t i = index[rank_ - 2], j = index[rank_ - 1];
  const int64_t tile = (i / tile_rows_) * tiles_per_row_ + j / tile_cols_;
  return offset + tile * tile_rows_ * tile_cols_ + (i % tile_rows_) * tile_cols_ + j % tile_cols_;
}

Value Tensor::Get(int64_t offset) const {
  Value v;
  if (shadow_ != nullptr) {
    const uint8_t state = shadow_->state[offset];
    if (state == Shadow::kWritten) {
      v.c = shadow_->cell[offset];
      v.err = shadow_->err[offset];
      return v;
    }
    if (state == Shadow::kUndefined || buffer_->role != BufferRole::kInOut) {
      v.undefined = id_;
      if (IsFloat(buffer_->dtype)) v.c.f = std::numeric_limits<double>::quiet_NaN();
      return v;
    }
  }
  ReadMemory(offset, 1, 1, &v.c);
  return v;
}

void Tensor::Set(int64_t offset, const Value& v) {
  if (shadow_ == nullptr) return WriteMemory(offset, 1, 1, &v.c, 1);
  shadow_->cell[offset] = v.c;
  shadow_->err[offset] = v.err;
  shadow_->state[offset] = v.undefined == kNoId ? Shadow::kWritten : Shadow::kUndefined;
}

void Tensor::ReadRun(Index index, int d, int64_t n, const TileView& row) const {
  if (n <= 0) return;
  if (shadow_ == nullptr && Affine(d) && row.stride[0] == 1) {
    ReadMemory(Offset(index), stride_[d], n, row.cell);
    if (row.def == nullptr) return;
    std::memset(row.def, 1, static_cast<size_t>(n));
    std::memset(row.err, 0, static_cast<size_t>(n) * sizeof(double));
    return;
  }
  for (int64_t i = 0; i < n; ++i, ++index[d]) row.Set(i * row.stride[0], Get(Offset(index)));
}

bool Tensor::PlacesDiffer() const {
  if (packed_) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, extent
  for (int d = 0; d < rank_; ++d) {
    if (shape_[d] > 1) dims.emplace_back(stride_[d], shape_[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;  // the last offset of the dims so far
  for (const auto& [stride, extent] : dims) {
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

void Tensor::WriteRun(Index index, int d, int64_t n, const TileView& row) {
  if (n <= 0) return;
  if (shadow_ == nullptr && Affine(d)) {
    return WriteMemory(Offset(index), stride_[d], n, row.cell, row.stride[0]);
  }
  for (int64_t i = 0; i < n; ++i, ++index[d]) Set(Offset(index), row.Get(i * row.stride[0]));
}

void Tensor::ReadMemory(int64_t offset, int64_t step, int64_t n, Cell* out) const {
  const DType t = buffer_->dtype;
  const int64_t size = static_cast<int64_t>(SizeOf(t));
  const char* p = memory_ + offset * size;
  switch (t) {
    case DType::kF32:
      return ReadAs<float>(p, step, n, out, [](float f) { return Cell{.f = f}; });
    case DType::kF64:
      return ReadAs<double>(p, step, n, out, [](double f) { return Cell{.f = f}; });
    case DType::kBF16:
      return ReadAs<uint16_t>(p, step, n, out,
                              [](uint16_t b) { return Cell{.f = BF16ToDouble(b)}; });
    default:
      break;
  }
  if (IsFloat(t)) {
    for (int64_t i = 0; i < n; ++i) out[i].f = LoadElement(t, p + i * step * size);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i].i = LoadInt(t, p + i * step * size);
  }
  if (t == DType::kBool) {  // whatever byte the caller left
    for (int64_t i = 0; i < n; ++i) out[i].i = out[i].i != 0;
  }
}

void Tensor::WriteMemory(int64_t offset, int64_t step, int64_t n, const Cell* in, int64_t in_step) {
  const DType t = buffer_->dtype;
  const int64_t size = static_cast<int64_t>(SizeOf(t));
  char* p = memory_ + offset * size;
  if (t == DType::kBF16) return WriteHalves<7, 127>(t, p, step, n, in, in_step);
  if (t == DType::kF16) return WriteHalves<10, 15>(t, p, step, n, in, in_step);
  if (IsFloat(t)) {
    for (int64_t i = 0; i < n; ++i) StoreElement(t, p + i * step * size, in[i * in_step].f);
  } else {
    for (int64_t i = 0; i < n; ++i) StoreInt(t, p + i * step * size, in[i * in_step].i);
  }
}

std::string Tensor::ShapeString() const {
  return absl::StrCat("[", absl::StrJoin(shape_.begin(), shape_.begin() + rank_, ", "), "]");
}

}  // namespace tl::reference
