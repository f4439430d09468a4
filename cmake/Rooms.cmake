# One CMake target per room. A room lists its sources by glob, so a new file is picked up by the next
# build; what it may include from other rooms is what it links, and tests/check_includes.py checks it.

# tl_room(NAME [PUBLIC target...] [PRIVATE target...]): a static library of the current directory's
# *.cc. A room without sources is an interface target, so that those who link it still configure.
function(tl_room name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC tl_options ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE tl_options ${ARG_PUBLIC} ${ARG_PRIVATE})
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
  endif()
endfunction()
