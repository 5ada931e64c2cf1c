# Tests of the whole: real models (obtained through pip into the cache folder) and the server over its sockets.
file(GLOB end_to_end CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*_test.cc)
add_executable(model_end_to_end ${end_to_end})
target_include_directories(model_end_to_end PRIVATE ${CMAKE_BINARY_DIR}/visible/cli)
target_compile_definitions(model_end_to_end PRIVATE CACHALOT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(model_end_to_end PRIVATE cachalot_cli GTest::gtest GTest::gtest_main nlohmann_json::nlohmann_json)

function(cachalot_end_to_end name labels)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT 3600 RUN_SERIAL ON)
endfunction()

# "model": needs the default model, or is too slow under sanitizers. "slow": Gemma too, or minutes of computing.
cachalot_end_to_end(end_to_end_smollm2 model
                    model_end_to_end --gtest_brief=1 --gtest_filter=*SmolLm2*-*Slow*)
cachalot_end_to_end(end_to_end_slow slow
                    model_end_to_end --gtest_brief=1 --gtest_filter=*Gemma*:*Slow*)
cachalot_end_to_end(end_to_end_server model
                    ${Python3_EXECUTABLE} tests/server/api_test.py --cachalot $<TARGET_FILE:cachalot>)
cachalot_end_to_end(end_to_end_tenants model
                    ${Python3_EXECUTABLE} tests/server/tenants_test.py --cachalot $<TARGET_FILE:cachalot>)
cachalot_end_to_end(end_to_end_disk model
                    ${Python3_EXECUTABLE} tests/server/disk_test.py --cachalot $<TARGET_FILE:cachalot>)
cachalot_end_to_end(end_to_end_identity model
                    ${Python3_EXECUTABLE} tests/server/identity_test.py --cachalot $<TARGET_FILE:cachalot>)
cachalot_end_to_end(end_to_end_sessions model
                    ${Python3_EXECUTABLE} tests/server/sessions_test.py --cachalot $<TARGET_FILE:cachalot>)
cachalot_end_to_end(end_to_end_record model
                    ${Python3_EXECUTABLE} tests/server/record_test.py --cachalot $<TARGET_FILE:cachalot>)
cachalot_end_to_end(end_to_end_kill slow
                    ${Python3_EXECUTABLE} tests/server/kill_test.py --cachalot $<TARGET_FILE:cachalot>)
cachalot_end_to_end(end_to_end_bench_serve model
                    ${Python3_EXECUTABLE} tests/server/bench_serve_test.py --cachalot $<TARGET_FILE:cachalot>)

# "oracle": needs packages of PyPI; skipped (77) where the Python does not have them.
set(CACHALOT_ORACLE_PYTHON ${Python3_EXECUTABLE} CACHE FILEPATH "A Python that has the PyPI package openai")
cachalot_end_to_end(end_to_end_openai "slow;oracle"
                    ${CACHALOT_ORACLE_PYTHON} tests/server/openai_test.py --cachalot $<TARGET_FILE:cachalot>)
set_tests_properties(end_to_end_openai PROPERTIES SKIP_RETURN_CODE 77)

# "trace": needs a file that others published; skipped (77) where it is not given.
set(CACHALOT_MOONCAKE_TRACE "" CACHE FILEPATH "FAST25-release/traces/conversation_trace.jsonl of kvcache-ai/Mooncake")
cachalot_end_to_end(paper_mooncake "slow;trace"
                    sh -c "test -f \"$1\" || exit 77 && exec \"$0\" replay paper mooncake --trace \"$1\""
                    $<TARGET_FILE:cachalot> "${CACHALOT_MOONCAKE_TRACE}")
set_tests_properties(paper_mooncake PROPERTIES SKIP_RETURN_CODE 77)
