#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sonames, version nodes and exports of the stand-ins against the toolkit's libraries, and two programs that were linked
# against the toolkit's run on the stand-ins with nothing to complain of for the loader.
#   check_versions.sh STAND-INS PROGRAM-BLAS PROGRAM-CUPTI LIBCUDART LIBCUBLAS LIBCUPTI LIBCUDA-STUB
set -u
stand_ins=$1 blas=$2 callbacks=$3
shift 3
failures=0
fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}
soname() { readelf -dW "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\].*/\1/p'; }
nodes() { readelf -VW "$1" | sed -n '/Version definition/,/Version needs/s/.*Rev: 1 .*Name: \(.*\)/\1/p' | sort -u; }
exports() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }

for real in "$@"; do
  name=$(soname "$real")
  ours=$stand_ins/$name
  if [ ! -e "$ours" ]; then
    fail "$ours is missing"
    continue
  fi
  [ "$(soname "$ours")" = "$name" ] || fail "$ours has soname $(soname "$ours"), not $name"
  [ "$(nodes "$ours")" = "$(nodes "$real")" ] ||
    fail "$ours has version nodes $(nodes "$ours"), the real one $(nodes "$real")"
  exports "$real" >"${TMPDIR:-/tmp}/simcuda-real.$$"
  strange=$(exports "$ours" | grep -v '^simcuda_' | comm -23 - "${TMPDIR:-/tmp}/simcuda-real.$$")
  rm -f "${TMPDIR:-/tmp}/simcuda-real.$$"
  [ -z "$strange" ] || fail "$ours exports what the real one does not: $strange"
  case $name in
  libcuda.*) exports "$ours" | grep -qx simcuda_version || fail "$ours does not export simcuda_version" ;;
  *) exports "$ours" | grep '^simcuda_' && fail "$ours exports what belongs to libcuda" ;;
  esac
done

for program in "$blas" "$callbacks"; do
  log=$(LD_LIBRARY_PATH=$stand_ins LD_BIND_NOW=1 LD_DEBUG=versions "$program" 2>&1) ||
    fail "$program failed under LD_DEBUG=versions"
  echo "$log" | grep -E 'no version information|version .* not found|weak version|symbol lookup error' &&
    fail "the loader complained of $program"
  echo "$log" | grep -q "checking for version .libcudart.so.*$stand_ins/libcudart" ||
    fail "$program did not take libcudart from $stand_ins"
done
[ "$failures" -eq 0 ]
