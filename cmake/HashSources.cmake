# Run as a script by tl_hash_sources. Variables: OUTPUT, HEADER, FUNCTION, FILES (with commas).
string(REPLACE "," ";" files "${FILES}")
list(SORT files)
set(all "")
foreach(file IN LISTS files)
  file(SHA256 ${file} hash)
  string(APPEND all "${hash}")
endforeach()
string(SHA256 hash "${all}")
string(SUBSTRING ${hash} 0 32 hash)
file(WRITE ${OUTPUT} "// Generated: hash of the sources that decide which code comes out.
#include \"${HEADER}\"

namespace tl {

std::string_view ${FUNCTION}() { return \"${hash}\"; }

}  // namespace tl
")
