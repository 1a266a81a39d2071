# SPDX-License-Identifier: Apache-2.0
# Run by cmake -P: writes the table of callback names from the toolkit's header, so that ids and names are those of the
# real CUPTI.
#   -DHEADER=<cupti_*_cbid.h> -DPREFIX=<enumerator prefix> -DOUTPUT=<file>
file(STRINGS "${HEADER}" lines REGEX "${PREFIX}[A-Za-z0-9_]+ *= *[0-9]+")
set(rows "")
foreach(line IN LISTS lines)
  if(line MATCHES "${PREFIX}([A-Za-z0-9_]+) *= *([0-9]+)")
    set(name "${CMAKE_MATCH_1}")
    set(number "${CMAKE_MATCH_2}")
    if(NOT name MATCHES "^(SIZE|FORCE_INT)$")
      string(APPEND rows "[${number}] = \"${name}\",\n")
    endif()
  endif()
endforeach()
if(rows STREQUAL "")
  message(FATAL_ERROR "${HEADER} has no callback ids that begin with ${PREFIX}: is it of a CUDA toolkit?")
endif()
file(WRITE "${OUTPUT}" "${rows}")
