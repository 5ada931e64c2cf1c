# The one executable: main.cc over the cli library.
add_executable(cachalot ${CMAKE_SOURCE_DIR}/src/cli/main.cc)
target_include_directories(cachalot PRIVATE ${CMAKE_BINARY_DIR}/visible/cli)
target_link_libraries(cachalot PRIVATE cachalot_cli)
