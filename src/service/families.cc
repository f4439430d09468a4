#include "service/families.h"

namespace tl {

const FamilySource* FindFamily(std::string_view name) {
  for (const FamilySource& family : BuiltinFamilies()) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

}  // namespace tl
