# SPDX-License-Identifier: Apache-2.0
# Libraries from Debian's packages. Targets are named here once; folders link them by these names.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sqlite3 REQUIRED IMPORTED_TARGET sqlite3)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# Not by pkg-config: Ubuntu's file asks for protobuf's, which nothing here needs and its package does not bring.
find_path(SENTENCEPIECE_INCLUDE_DIR sentencepiece_processor.h REQUIRED)
find_library(SENTENCEPIECE_LIBRARY sentencepiece REQUIRED)
find_library(SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train REQUIRED)
add_library(sentencepiece::sentencepiece UNKNOWN IMPORTED)
set_target_properties(sentencepiece::sentencepiece PROPERTIES
  IMPORTED_LOCATION ${SENTENCEPIECE_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${SENTENCEPIECE_INCLUDE_DIR})
add_library(sentencepiece::train UNKNOWN IMPORTED)
set_target_properties(sentencepiece::train PROPERTIES
  IMPORTED_LOCATION ${SENTENCEPIECE_TRAIN_LIBRARY} INTERFACE_LINK_LIBRARIES sentencepiece::sentencepiece)
pkg_check_modules(uring IMPORTED_TARGET liburing)
find_package(Qt6 6.4 REQUIRED COMPONENTS Core Network Test)
# The folders of each test in each compilation, which no test reads, would keep clones from sharing ccache's answers.
get_target_property(definitions Qt6::Test INTERFACE_COMPILE_DEFINITIONS)
list(FILTER definitions EXCLUDE REGEX QT_TESTCASE_)
set_target_properties(Qt6::Test PROPERTIES INTERFACE_COMPILE_DEFINITIONS "${definitions}")
if(SHARDSCOPE_GUI)
  find_package(Qt6 6.4 REQUIRED COMPONENTS Widgets Svg PrintSupport DBus)
  find_package(QCustomPlotQt6 REQUIRED)
endif()
