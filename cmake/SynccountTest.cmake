# SPDX-License-Identifier: Apache-2.0
# sc_add_test(NAME <name> SOURCES <files> [LIBS <targets>] [LABELS <labels>] [TIMEOUT <s>] [ARGS ...]): a CMocka program that is a ctest.
if(BUILD_TESTING)
  sc_find_package(sc_cmocka cmocka.h cmocka libcmocka-dev)
endif()
function(sc_add_test)
  cmake_parse_arguments(T "" "NAME;TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300) # one that hangs; a machine with ten times as much to do is slow
  endif()
  add_executable(test_${T_NAME} ${T_SOURCES})
  target_include_directories(test_${T_NAME} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(test_${T_NAME} PRIVATE synccount_options ${T_LIBS} sc_cmocka Threads::Threads)
  set_target_properties(test_${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  add_test(NAME ${T_NAME} COMMAND test_${T_NAME} ${T_ARGS})
  set_tests_properties(${T_NAME} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}"
    ENVIRONMENT "SC_BUILD=${PROJECT_BINARY_DIR};SC_SOURCE=${PROJECT_SOURCE_DIR}")
endfunction()
