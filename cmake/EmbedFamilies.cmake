# Writes the families' texts as a C++ table. Variables: OUTPUT, FAMILIES (list of .tl files).
set(entries "")
foreach(file IN LISTS FAMILIES)
  get_filename_component(name ${file} NAME_WLE)
  file(READ ${file} text)
  string(APPEND entries "    {\"${name}\", R\"__TL__(${text})__TL__\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from kernels/*.tl.
#include \"service/families.h\"

#include <vector>

namespace tl {

absl::Span<const FamilySource> BuiltinFamilies() {
  // Never destroyed: may be asked for while the process ends.
  static const auto& families = *new std::vector<FamilySource>{
${entries}  };
  return families;
}

}  // namespace tl
")
