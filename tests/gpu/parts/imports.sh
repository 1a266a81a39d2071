# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "one PyTorch program seen by our tracer, PyTorch's profiler and Nsight Systems: the same counts"; }

import_python() { # NAME COMMAND...
  local name=$1
  shift
  timed "$name" 150 env LD_LIBRARY_PATH="$python_library_path" "$@"
  [ "$rc" = 0 ] && return
  fail "$name" "$(why "$name")"
  return 1
}

import_report() { # NAME FILE RUNS: what the file says, against what the program said
  timed "$1-report" 120 "$synccount" report --format json -o "$work/$1-report.json" "$2"
  if [ "$rc" != 0 ]; then
    fail "$1-report" "$(why "$1-report")"
    return
  fi
  verdicts "$1-compare" 20 "$python" "$here/expect_import.py" "$1" "$work/$1-report.json" "$work/$1.out" "$3"
}

run_part() {
  local program=$root/tests/gpu/import_program.py nsys candidate
  needs imports "$tracer" "$synccount" || return
  if [ -z "$python" ] || ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip imports "python3 has no PyTorch here"
    return
  fi
  mkdir -p "$work/imports-own-traces"
  import_python imports-own SYNCCOUNT_OUTPUT="$work/imports-own-traces" LD_PRELOAD="$tracer" "$python" "$program" &&
    import_report imports-own "$work/imports-own-traces" 2
  import_python imports-kineto "$python" "$program" --profile "$work/imports-kineto.json.gz" &&
    import_report imports-kineto "$work/imports-kineto.json.gz" 1
  for candidate in "$(command -v nsys || true)" /opt/nvidia/nsight-systems/*/bin/nsys \
    /opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys; do
    [ -x "$candidate" ] && nsys=$candidate && break
  done
  if [ -z "${nsys:-}" ]; then
    skip imports-nsys "nsys is not here"
    return
  fi
  import_python imports-nsys "$nsys" profile -t cuda,nvtx,osrt -s none --force-overwrite true -o "$work/imports-nsys" \
    "$python" "$program" || return
  timed imports-export 120 "$nsys" export --type sqlite --force-overwrite true -o "$work/imports-nsys.sqlite" \
    "$work/imports-nsys.nsys-rep"
  if [ "$rc" = 0 ]; then
    import_report imports-nsys "$work/imports-nsys.sqlite" 2
  else
    fail imports-export "$(why imports-export)"
  fi
}
