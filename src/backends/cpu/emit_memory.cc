#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/cpu/kernel_emitter.h"

namespace tl::cpu {
namespace {

bool IsUnsigned(DType type) {
  return type == DType::kBool || type == DType::kU8 || type == DType::kU16 || type == DType::kU32;
}

bool IsNarrowFloat(DType type) { return IsFloat(type) && SizeOf(type) < 4; }

// The stored form of a literal, as a constant of the storage type.
std::string ConstantText(DType type, const void* bytes, std::string_view storage) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, SizeOf(type));
  if (storage == "half") return absl::StrFormat("0xH%04X", bits);
  if (type == DType::kF32 || type == DType::kF64) return FloatText(LoadElement(type, bytes));
  return absl::StrCat(bits);
}

}  // namespace

std::string_view StorageType(DType type, const CpuFacts& facts) {
  if (type == DType::kF16 && facts.f16c) return "half";
  if (type == DType::kF32) return "float";
  if (type == DType::kF64) return "double";
  switch (SizeOf(type)) {
    case 1:
      return "i8";
    case 2:
      return "i16";
    case 4:
      return "i32";
    default:
      return "i64";
  }
}

KernelEmitter::Text KernelEmitter::Address(BufferId id, const std::vector<ExprRef>& index) {
  const Place& place = places_[id];
  if (index.size() != 1 || place.base.empty()) {
    Fail(absl::StrCat("buffer ", id, " is not addressed by one flat offset"));
    return "poison";
  }
  const Text offset = Emit(index[0]);
  const std::string_view type = StorageType(module_.buffer(id).dtype, facts_);
  return f_.Value(
      absl::StrCat("getelementptr inbounds ", type, ", ptr ", place.base, ", i64 ", offset));
}

KernelEmitter::Text KernelEmitter::AccessTail(BufferId id) const {
  const Place& place = places_[id];
  const size_t align = place.global ? 1 : SizeOf(module_.buffer(id).dtype);
  Text tail = absl::StrCat(", align ", align, place.metadata);
  if (!place.local && !access_group_.empty()) {
    absl::StrAppend(&tail, ", !llvm.access.group ", access_group_);
  }
  return tail;
}

KernelEmitter::Text KernelEmitter::LoadRaw(BufferId id, const Text& address) {
  const std::string_view type = StorageType(module_.buffer(id).dtype, facts_);
  return f_.Value(absl::StrCat("load ", type, ", ptr ", address, AccessTail(id)));
}

void KernelEmitter::StoreRaw(BufferId id, const Text& address, const Text& raw) {
  const std::string_view type = StorageType(module_.buffer(id).dtype, facts_);
  f_.Line(absl::StrCat("store ", type, " ", raw, ", ptr ", address, AccessTail(id)));
}

KernelEmitter::Text KernelEmitter::Widen(DType type, const Text& raw) {
  const std::string_view storage = StorageType(type, facts_);
  if (type == DType::kBool) return f_.Binary("icmp ne", storage, raw, "0");
  if (type == DType::kF32 || type == DType::kF64 || type == DType::kI64) return raw;
  if (storage == "half") return f_.Convert("fpext", "half", raw, "float");
  if (IsFloat(type)) {
    return f_.Value(
        absl::StrCat("call float @", WidenHelper(text_, type), "(", storage, " ", raw, ")"));
  }
  return f_.Convert(IsUnsigned(type) ? "zext" : "sext", storage, raw, "i64");
}

// Float to a float type of at most 16 bits.
KernelEmitter::Text KernelEmitter::NarrowFloat(DType type, ScalarType from, const Text& value) {
  const std::string_view storage = StorageType(type, facts_);
  Text x = value;
  if (from == ScalarType::kF64) {
    x = f_.Value(absl::StrCat("call float @", OddHelper(text_), "(double ", x, ")"));
  }
  if (storage == "half") return f_.Convert("fptrunc", "float", x, "half");
  return f_.Value(
      absl::StrCat("call ", storage, " @", NarrowHelper(text_, type), "(float ", x, ")"));
}

KernelEmitter::Text KernelEmitter::Narrow(DType type, ScalarType from, const Text& value) {
  const std::string_view storage = StorageType(type, facts_);
  const std::string_view source = TypeOf(from);
  if (IsNarrowFloat(type)) {
    if (IsFloat(from)) return NarrowFloat(type, from, value);
    if (from == ScalarType::kBool) {
      return NarrowFloat(type, ScalarType::kF32, f_.Convert("uitofp", "i1", value, "float"));
    }
    // Through double, which holds the integer, so that it is rounded once.
    return NarrowFloat(type, ScalarType::kF64, f_.Convert("sitofp", "i64", value, "double"));
  }
  if (type == DType::kBool) {
    Text truth = value;
    if (from == ScalarType::kInt) truth = f_.Binary("icmp ne", "i64", value, "0");
    if (IsFloat(from)) truth = f_.Binary("fcmp une", source, value, FloatText(0));
    return f_.Convert("zext", "i1", truth, "i8");
  }
  if (source == storage) return value;
  if (!IsFloat(type)) {
    if (from == ScalarType::kBool) return f_.Convert("zext", "i1", value, storage);
    if (from == ScalarType::kInt) return f_.Convert("trunc", "i64", value, storage);
    return f_.Intrinsic(absl::StrCat(IsUnsigned(type) ? "fptoui" : "fptosi", ".sat.", storage,
                                     from == ScalarType::kF32 ? ".f32" : ".f64"),
                        storage, {{source, value}});
  }
  if (!IsFloat(from)) {
    return f_.Convert(from == ScalarType::kBool ? "uitofp" : "sitofp", source, value, storage);
  }
  return f_.Convert(type == DType::kF32 ? "fptrunc" : "fpext", source, value, storage);
}

// Is `e` an integer that float holds exactly? Then rounding it in float is enough.
bool KernelEmitter::FitsFloat(const ExprRef& e) const {
  if (e->type != ScalarType::kInt) return false;
  if (const Load* load = As<Load>(e)) return SizeOf(module_.buffer(load->buffer).dtype) <= 2;
  if (const Cast* cast = As<Cast>(e)) return SizeOf(cast->to) <= 2;
  return false;
}

KernelEmitter::Text KernelEmitter::EmitCast(const Cast& cast) {
  const Load* load = As<Load>(cast.arg);
  if (load && module_.buffer(load->buffer).dtype == cast.to) return Emit(cast.arg);
  const ScalarType from = cast.arg->type;
  if (cast.to == DType::kBool) {
    if (from == ScalarType::kBool) return Emit(cast.arg);
    const bool is_float = IsFloat(from);
    return f_.Binary(is_float ? "fcmp une" : "icmp ne", TypeOf(from), Emit(cast.arg),
                     is_float ? FloatText(0) : "0");
  }
  return Widen(cast.to, EmitRaw(MakeCast(cast.to, cast.arg), cast.to));
}

KernelEmitter::Text KernelEmitter::EmitRaw(const ExprRef& e, DType type) {
  const std::string_view storage = StorageType(type, facts_);
  unsigned char bytes[8] = {};
  if (const Load* load = As<Load>(e); load && module_.buffer(load->buffer).dtype == type) {
    return LoadRaw(load->buffer, Address(load->buffer, load->index));
  }
  if (const Select* select = As<Select>(e)) {
    return EmitLazy(select->cond, select->yes, select->no, storage,
                    [&](const ExprRef& side) { return EmitRaw(side, type); });
  }
  if (const int64_t* value = IntValue(e)) {
    StoreInt(type, bytes, *value);
    return ConstantText(type, bytes, storage);
  }
  if (const FloatLit* value = As<FloatLit>(e)) {
    StoreElement(type, bytes, value->value);
    return ConstantText(type, bytes, storage);
  }
  const Cast* cast = As<Cast>(e);
  const ExprRef& source = cast && cast->to == type ? cast->arg : e;
  Text value = Emit(source);
  ScalarType from = source->type;
  if (IsFloat(type) && FitsFloat(source)) {
    value = f_.Convert("sitofp", "i64", value, "float");
    from = ScalarType::kF32;
  }
  return Narrow(type, from, value);
}

}  // namespace tl::cpu
