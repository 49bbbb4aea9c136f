# SPDX-License-Identifier: Apache-2.0
# The three ways to add something: a library (one a folder), a program, a test.

find_program(CCACHE ccache)
if(CCACHE)
  foreach(language CXX CUDA)
    # The sloppiness is what ccache's manual asks for with precompiled headers; the base folder lets clones share the cache.
    set(CMAKE_${language}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  endforeach()
endif()

set(SHARDSCOPE_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
add_library(shardscope_options INTERFACE)
target_compile_options(shardscope_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wno-missing-field-initializers;-fno-semantic-interposition;-fpch-preprocess>
  # Places in the source as the repository has them: texts say no builder's folder, and clones share compiled tests.
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>
  $<$<AND:$<BOOL:${SHARDSCOPE_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
target_compile_definitions(shardscope_options INTERFACE QT_NO_KEYWORDS SPDLOG_FMT_EXTERNAL)
target_include_directories(shardscope_options INTERFACE ${PROJECT_SOURCE_DIR})
if(SHARDSCOPE_SANITIZE)
  target_compile_options(shardscope_options INTERFACE -fsanitize=${SHARDSCOPE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(shardscope_options INTERFACE -fsanitize=${SHARDSCOPE_SANITIZE})
endif()

# Several sources in one compilation: most of a source's time goes into the headers it includes. A release build from nothing
# takes a third of the time; the other presets keep single sources, which rebuild faster after a change.
option(SHARDSCOPE_UNITY "Compile the sources of a target together" OFF)
function(shardscope_compile_together target)
  if(SHARDSCOPE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
    # Types of an anonymous namespace are seen as in a header, where they would be a fault.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# shardscope_library(core_base SOURCES … PUBLIC … PRIVATE … [QT])
function(shardscope_library name)
  cmake_parse_arguments(A "QT" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(shardscope_${name} STATIC ${A_SOURCES})
  add_library(shardscope::${name} ALIAS shardscope_${name})
  target_link_libraries(shardscope_${name} PUBLIC shardscope_options ${A_PUBLIC} PRIVATE ${A_PRIVATE})
  shardscope_compile_together(shardscope_${name})
  if(A_QT)
    set_target_properties(shardscope_${name} PROPERTIES AUTOMOC ON AUTORCC ON)
  endif()
endfunction()

# shardscope_program(shardscope-cli SOURCES … LIBS … [QT])
function(shardscope_program name)
  cmake_parse_arguments(A "QT" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE shardscope_options ${A_LIBS})
  shardscope_compile_together(${name})
  if(A_QT)
    set_target_properties(${name} PROPERTIES AUTOMOC ON AUTORCC ON)
  endif()
endfunction()

set(SHARDSCOPE_TEST_ENVIRONMENT
  "QT_QPA_PLATFORM=offscreen;SHARDSCOPE_BIN=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};SHARDSCOPE_SOURCE=${PROJECT_SOURCE_DIR}")

# shardscope_test(name SOURCES … LIBS … [LABELS …] [COST seconds] [TIMEOUT seconds] [QT]): one GoogleTest (or QtTest, with QT)
# program, one CTest. COST: about what a long one takes on two cores. Long ones start first, lest the end be one of them alone.
function(shardscope_test name)
  cmake_parse_arguments(A "QT" "COST;TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(test_${name} ${A_SOURCES})
  target_link_libraries(test_${name} PRIVATE shardscope_options ${A_LIBS})
  shardscope_compile_together(test_${name})
  if(A_QT)
    set_target_properties(test_${name} PROPERTIES AUTOMOC ON)
    target_link_libraries(test_${name} PRIVATE Qt6::Test)
  else()
    target_link_libraries(test_${name} PRIVATE GTest::gtest GTest::gmock GTest::gtest_main)
  endif()
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300) # for a machine that is busy with something else; seconds where all is well
  endif()
  if(NOT A_COST)
    set(A_COST 0)
  endif()
  set_tests_properties(${name} PROPERTIES COST ${A_COST} TIMEOUT ${A_TIMEOUT} LABELS "${A_LABELS}"
    ENVIRONMENT "${SHARDSCOPE_TEST_ENVIRONMENT}")
endfunction()

# shardscope_cuda_test(name program filter seconds): those tests of test_<program>, as a CTest of its own with the label gpu,
# which skips where there is no CUDA device.
function(shardscope_cuda_test name program filter seconds)
  add_test(NAME ${name} COMMAND test_${program} --gtest_filter=${filter})
  set_tests_properties(${name} PROPERTIES LABELS gpu TIMEOUT ${seconds} SKIP_REGULAR_EXPRESSION "no CUDA device;is not installed"
    ENVIRONMENT "${SHARDSCOPE_TEST_ENVIRONMENT}")
endfunction()

# shardscope_runs_worker(test): it starts the command line with the real worker, and skips where that is not built.
function(shardscope_runs_worker test)
  add_dependencies(test_${test} shardscope-cli)
  if(TARGET shardscope-worker)
    add_dependencies(test_${test} shardscope-worker)
  endif()
endfunction()
