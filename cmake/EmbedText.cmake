# Texts that are part of the program: a file becomes a function that returns its content.

# tl_embed_text(TARGET HEADER FUNCTION FILE): defines `std::string_view tl::FUNCTION()`, which HEADER
# declares, as the content of FILE.
function(tl_embed_text target header function file)
  set(path ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  set(content "// Generated from ${file}.\n#include \"${header}\"\n\nnamespace tl {\n\n")
  string(APPEND content "std::string_view ${function}() {\n  return R\"__TL__(${text})__TL__\";\n}\n")
  string(APPEND content "\n}  // namespace tl\n")
  file(CONFIGURE OUTPUT ${output} CONTENT "${content}" @ONLY)
  target_sources(${target} PRIVATE ${output})
endfunction()

# tl_hash_sources(TARGET HEADER FUNCTION FILE...): defines `std::string_view tl::FUNCTION()` as a hash of
# the files' contents, renewed whenever one of them changes.
function(tl_hash_sources target header function)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  string(REPLACE ";" "," files "${ARGN}")
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DFUNCTION=${function}
      "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/HashSources.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/HashSources.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
