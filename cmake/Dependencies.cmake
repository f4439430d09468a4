# Third-party code. All but Abseil comes from distribution packages; tools/deps.sh installs them.

find_package(absl CONFIG QUIET NO_DEFAULT_PATH PATHS ${TL_DEPS_DIR}/absl-${TL_ABSL_VARIANT})
if(NOT absl_FOUND)
  message(FATAL_ERROR "no position-independent Abseil in ${TL_DEPS_DIR}: run "
    "tools/deps.sh build absl:${TL_ABSL_VARIANT}")
endif()

# Static archives, so that the shared library depends on nothing but the C and C++ runtimes.
function(tl_static_archive target archive header)
  find_library(${target}_ARCHIVE NAMES lib${archive}.a REQUIRED)
  find_path(${target}_INCLUDE NAMES ${header} REQUIRED)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${${target}_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES ${${target}_INCLUDE})
endfunction()
tl_static_archive(tl_sqlite3 sqlite3 sqlite3.h)
tl_static_archive(tl_xxhash xxhash xxhash.h)
target_link_libraries(tl_sqlite3 INTERFACE m ${CMAKE_DL_LIBS})

find_package(Threads REQUIRED)

if(TL_CPU_MODULE)
  find_package(LLVM 19.1 CONFIG REQUIRED HINTS /usr/lib/llvm-19/lib/cmake/llvm)
  # LLVM's own compression libraries statically too: the module then needs only the C++ runtime.
  get_target_property(links LLVMSupport INTERFACE_LINK_LIBRARIES)
  list(TRANSFORM links REPLACE "ZLIB::ZLIB" "-l:libz.a")
  list(TRANSFORM links REPLACE "zstd::libzstd_(shared|static)" "-l:libzstd.a")
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
endif()
