// Global tensors while a program is interpreted.
#ifndef TILEJIT_BACKENDS_REFERENCE_TENSOR_H_
#define TILEJIT_BACKENDS_REFERENCE_TENSOR_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "backends/reference/tile.h"
#include "backends/reference/value.h"
#include "base/status.h"
#include "ir/host_eval.h"
#include "ir/module.h"

namespace tl::reference {

// Zeroes that cost memory only where they are touched: the shadow of an output of which a few
// blocks are computed stays small.
template <typename T>
class ZeroedArray {
 public:
  ZeroedArray() = default;
  // Empty when there is not enough address space.
  explicit ZeroedArray(int64_t n)
      : data_(static_cast<T*>(std::calloc(static_cast<size_t>(n) + 1, sizeof(T)))),
        size_(data_ ? n : 0) {}

  int64_t size() const { return size_; }
  bool allocated() const { return data_ != nullptr; }
  T& operator[](int64_t i) { return data_.get()[i]; }
  const T& operator[](int64_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> data_;
  int64_t size_ = 0;
};

// kExact: what the program has written to an out, inout or workspace tensor, per element of
// storage.
struct Shadow {
  enum State : uint8_t { kUntouched = 0, kWritten, kUndefined };
  ZeroedArray<Cell> cell;
  ZeroedArray<double> err;
  ZeroedArray<uint8_t> state;
};

class Tensor {
 public:
  Tensor() = default;

  // Shape, strides and size for these arguments. Fails on negative extents and strides and where
  // the size overflows, naming the tensor.
  static StatusOr<Tensor> Make(const Module& module, BufferId id, const HostArgs& args);

  // kRounded, and the given data in kExact: host memory in the declared dtype.
  void SetMemory(void* memory) { memory_ = static_cast<char*>(memory); }
  // kExact, tensors that may be written.
  Status AddShadow();

  BufferId id() const { return id_; }
  const Buffer& buffer() const { return *buffer_; }
  int rank() const { return rank_; }
  int64_t extent(int d) const { return shape_[d]; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(SizeOf(buffer_->dtype)); }
  Shadow* shadow() { return shadow_.get(); }
  std::unique_ptr<Shadow> TakeShadow() { return std::move(shadow_); }

  bool Contains(const Index& index) const {
    for (int d = 0; d < rank_; ++d) {
      if (index[d] < 0 || index[d] >= shape_[d]) return false;
    }
    return true;
  }
  int64_t Offset(const Index& index) const;
  // Whether no two elements share memory, as far as the strides tell.
  bool PlacesDiffer() const;

  Value Get(int64_t offset) const;
  void Set(int64_t offset, const Value& v);

  // n elements from `index` along dim d (all inside) to or from the first n of a row.
  void ReadRun(Index index, int d, int64_t n, const TileView& row) const;
  void WriteRun(Index index, int d, int64_t n, const TileView& row);

  // "[5, 64]"
  std::string ShapeString() const;

 private:
  void ReadMemory(int64_t offset, int64_t step, int64_t n, Cell* out) const;
  void WriteMemory(int64_t offset, int64_t step, int64_t n, const Cell* in, int64_t in_step);
  // Whether elements along dim d lie a fixed step apart.
  bool Affine(int d) const { return !packed_ || d < rank_ - 2; }

  BufferId id_ = kNoId;
  const Buffer* buffer_ = nullptr;
  int rank_ = 0;
  Index shape_{};
  Index stride_{};
  bool packed_ = false;
  int64_t tile_rows_ = 1, tile_cols_ = 1, tiles_per_row_ = 0;
  int64_t size_ = 0;
  char* memory_ = nullptr;
  std::unique_ptr<Shadow> shadow_;
};

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_TENSOR_H_
