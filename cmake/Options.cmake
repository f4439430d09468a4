# Flags that every target of the project gets through tl_options, and the choice of Abseil archives
# that goes with a sanitizer.
add_library(tl_options INTERFACE)
target_compile_features(tl_options INTERFACE cxx_std_20)
target_compile_options(tl_options INTERFACE
  -Wall -Wextra -Wno-missing-field-initializers
  # GCC 12 sees an overlap in std::string's operator+ that is not there.
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<BOOL:${TL_WERROR}>:-Werror>
  -ffunction-sections -fdata-sections)

set(TL_ABSL_VARIANT plain)
set(tl_san "")
if(TL_SANITIZE STREQUAL "address")
  set(TL_ABSL_VARIANT asan)
  # Undefined behaviour ends the test: a report that scrolls by is no failure.
  set(tl_san -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(TL_SANITIZE STREQUAL "thread")
  set(TL_ABSL_VARIANT tsan)
  set(tl_san -fsanitize=thread -fno-omit-frame-pointer)
elseif(TL_SANITIZE STREQUAL "fuzzer")
  set(tl_san -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
elseif(TL_SANITIZE)
  message(FATAL_ERROR "TL_SANITIZE is address, thread or fuzzer, not '${TL_SANITIZE}'")
endif()
# For every target, C clients too: a sanitizer's runtime has to be in the executable.
add_compile_options(${tl_san})
add_link_options(${tl_san})
