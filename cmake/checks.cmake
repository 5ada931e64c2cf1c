# Checks of the source tree and of object files, as tests with the label "check".
find_package(Python3 COMPONENTS Interpreter REQUIRED)

function(cachalot_check name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS check SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

foreach(check layers sizes forbidden contracts docs)
  cachalot_check(check_${check} ${Python3_EXECUTABLE} tools/check_${check}.py)
endforeach()
cachalot_check(checks_find_bad_samples ${Python3_EXECUTABLE} tools/checks_test.py)
cachalot_check(check_aarch64 tools/check_aarch64.sh ${CMAKE_BINARY_DIR})
# Sanitizers add weak symbols of their own to every object.
if(NOT CACHALOT_SANITIZE)
  cachalot_check(check_kernel_symbols tools/check_kernel_symbols.sh ${CMAKE_BINARY_DIR})
endif()
