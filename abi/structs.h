// Structs that cross the border: their size is the caller's.
#ifndef TILEJIT_ABI_STRUCTS_H_
#define TILEJIT_ABI_STRUCTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tl::abi {

// Every struct begins with struct_size, 4 bytes and `next`; less than that is no struct of ours.
inline constexpr size_t kMinStructSize = 16;
// Far above any struct, far below what an uninitialised size would be.
inline constexpr size_t kMaxStructSize = 4096;

inline Status CheckSize(size_t size, std::string_view name) {
  if (size >= kMinStructSize && size <= kMaxStructSize) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ".struct_size is ", size,
                                                 "; set it to sizeof(", name, "), as TL_INIT(",
                                                 name, ") does"));
}

// What is reserved may mean something one day, so nobody may set it today.
inline Status CheckZero(uint32_t value, std::string_view name, std::string_view member) {
  if (value == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ".", member, " is ", value, "; it must be 0"));
}
template <typename T>
Status CheckReserved([[maybe_unused]] const T& s, [[maybe_unused]] std::string_view name) {
  if constexpr (requires { s.reserved; }) {
    TL_RETURN_IF_ERROR(CheckZero(s.reserved, name, "reserved"));
  }
  if constexpr (requires { s.reserved2; }) {
    TL_RETURN_IF_ERROR(CheckZero(s.reserved2, name, "reserved2"));
  }
  return absl::OkStatus();
}

// The caller's struct as ours: what an older caller does not know is 0, what we do not know must be
// 0. NULL gives all zeros where `optional`.
template <typename T>
StatusOr<T> ReadStruct(const T* from, std::string_view name, bool optional = false) {
  T out{};
  if (!from) {
    if (optional) return out;
    return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
  }
  const size_t size = from->struct_size;
  TL_RETURN_IF_ERROR(CheckSize(size, name));
  // Structs are whole words, since `next` is a pointer: half a pointer is none.
  constexpr size_t kWord = sizeof(void*);
  std::memcpy(static_cast<void*>(&out), from, std::min(size, sizeof(T)) / kWord * kWord);
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is from a newer header (", size, " bytes, ", sizeof(T),
                     " known here) and sets byte ", i, ", which this library does not know"));
  }
  if (out.next) return absl::InvalidArgumentError(absl::StrCat(name, ".next must be NULL"));
  TL_RETURN_IF_ERROR(CheckReserved(out, name));
  out.struct_size = sizeof(T);
  return out;
}

// INVALID_ARGUMENT for a NULL pointer that must not be.
inline Status CheckGiven(const void* pointer, std::string_view name) {
  if (pointer) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
}

// A list of texts, none of them NULL or empty.
inline Status CheckTexts(std::string_view name, const char* const* texts, size_t count) {
  if (count > 0 && !texts)
    return absl::InvalidArgumentError(absl::StrCat(name, " is NULL but num_", name, " is ", count));
  for (size_t i = 0; i < count; ++i) {
    if (!texts[i] || !*texts[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "[", i, "] is ", texts[i] ? "empty" : "NULL"));
    }
  }
  return absl::OkStatus();
}

// Fills as much of the caller's struct as it has room for.
template <typename T>
Status WriteStruct(T* to, T value, std::string_view name) {
  if (!to) return absl::InvalidArgumentError(absl::StrCat(name, " is NULL"));
  const auto size = to->struct_size;
  TL_RETURN_IF_ERROR(CheckSize(size, name));
  if (to->next) return absl::InvalidArgumentError(absl::StrCat(name, ".next must be NULL"));
  value.struct_size = size;
  std::memcpy(static_cast<void*>(to), &value, std::min<size_t>(size, sizeof(T)));
  return absl::OkStatus();
}

}  // namespace tl::abi

#endif  // TILEJIT_ABI_STRUCTS_H_
