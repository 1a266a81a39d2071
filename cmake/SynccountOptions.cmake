# SPDX-License-Identifier: Apache-2.0
# Compiler options, sanitizers, third-party packages. Every target of ours links synccount_options.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # GNU C: 64-bit Linux only
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

option(SYNCCOUNT_WERROR "Treat warnings as errors" OFF)
option(SYNCCOUNT_STATIC_DEPS "Link libyaml and jansson statically, for a build that is carried to another host" OFF)
set(SYNCCOUNT_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined or thread)")

add_library(synccount_options INTERFACE)
target_compile_options(synccount_options INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef -Wwrite-strings>
  $<$<AND:$<COMPILE_LANGUAGE:C>,$<BOOL:${SYNCCOUNT_WERROR}>>:-Werror>)
target_compile_definitions(synccount_options INTERFACE _GNU_SOURCE SC_VERSION="${PROJECT_VERSION}")
target_include_directories(synccount_options INTERFACE "${PROJECT_SOURCE_DIR}/src")
if(SYNCCOUNT_SANITIZE)
  add_compile_options(-fsanitize=${SYNCCOUNT_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SYNCCOUNT_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(CUDAToolkit 12.8 REQUIRED)

# sc_find_package(<target> <header> <library> <debian package>): an imported target or an error that says what to do.
function(sc_find_package target header library package)
  find_path(${target}_INCLUDE ${header})
  if(SYNCCOUNT_STATIC_DEPS)
    find_library(${target}_LIBRARY NAMES lib${library}.a ${library})
  else()
    find_library(${target}_LIBRARY NAMES ${library})
  endif()
  if(NOT ${target}_INCLUDE OR NOT ${target}_LIBRARY)
    message(FATAL_ERROR "${header} or lib${library} was not found. Install it: apt-get install ${package}")
  endif()
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${${target}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${${target}_INCLUDE}")
endfunction()
sc_find_package(sc_yaml yaml.h yaml libyaml-dev)
sc_find_package(sc_jansson jansson.h jansson libjansson-dev)
find_path(SC_XXHASH_INCLUDE xxhash.h)
if(NOT SC_XXHASH_INCLUDE)
  message(FATAL_ERROR "xxhash.h was not found. Install it: apt-get install libxxhash-dev")
endif()
add_library(sc_xxhash INTERFACE)
target_include_directories(sc_xxhash SYSTEM INTERFACE "${SC_XXHASH_INCLUDE}")
