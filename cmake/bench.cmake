# The program whose instructions bench/check_instructions.py counts.
add_executable(kernel_cases EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/kernel_cases.cc)
target_include_directories(kernel_cases PRIVATE ${CMAKE_BINARY_DIR}/visible/kernels)
target_link_libraries(kernel_cases PRIVATE cachalot_kernels_fakes cachalot_kernels)
