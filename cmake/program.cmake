# The one executable, main.cc over the cli library, and the end-to-end tests of tests/, which may see every folder and
# run the executable (CACHALOT_PROGRAM is its path).
if(NOT EXISTS ${CMAKE_SOURCE_DIR}/src/cli/main.cc)
  return()
endif()
add_executable(cachalot ${CMAKE_SOURCE_DIR}/src/cli/main.cc)
target_include_directories(cachalot PRIVATE ${CMAKE_BINARY_DIR}/visible/cli)
target_link_libraries(cachalot PRIVATE cachalot_cli)

file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*.cc)
cachalot_tests(end_to_end ${CMAKE_BINARY_DIR}/visible/cli cachalot_cli FILES ${files})
foreach(target end_to_end_test end_to_end_slow_test)
  if(TARGET ${target})
    target_compile_definitions(${target} PRIVATE CACHALOT_PROGRAM="$<TARGET_FILE:cachalot>")
    add_dependencies(${target} cachalot)
  endif()
endforeach()
