# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "programs of all kinds under synccount run: driver API, static runtime, JAX, Triton, CuPy, launchers"; }

# knows NAME SECONDS OPTIONS... -- COMMAND...: a run whose program says itself what its report must show.
knows() {
  local name=company-$1 limit=$2
  shift 2
  timed "$name" "$limit" "$synccount" run --format json -o "$work/$name.json" "$@"
  if [ "$rc" != 0 ]; then
    fail "$name" "$(why "$name")"
    return
  fi
  verdicts "$name-report" 20 "$python" "$here/expect_company.py" "$name" "$work/$name.json" "$work/$name.out"
}

# says NAME TEXT COMMAND...: a program that cannot be traced ends with 3, and the report says TEXT.
says() {
  local name=company-$1 text=$2
  shift 2
  timed "$name" 60 "$synccount" run --format json -o "$work/$name.json" -- "$@"
  if [ "$rc" != 3 ]; then
    fail "$name" "status $rc instead of 3: $(why "$name")"
  elif grep -qF -- "$text" "$work/$name.json"; then
    pass "$name" "the report says: $text"
  else
    fail "$name" "the report does not say '$text'"
  fi
}

# Python keeps the libraries of its wheels: ours are for our programs.
python_knows() { # MODULE... : the first is the program's name
  local name=$1 module
  for module; do
    if ! LD_LIBRARY_PATH="$python_library_path" timeout 120 "$python" -c "import $module" 2>>"$work/log.txt"; then
      skip "company-$name" "python3 has no $module here"
      return
    fi
  done
  timed "company-$name" 150 env LD_LIBRARY_PATH="$python_library_path" XLA_PYTHON_CLIENT_PREALLOCATE=false \
    "$synccount" run --format json -o "$work/company-$name.json" --capture-range cudaProfilerApi -- \
    "$python" "$root/tests/gpu/company_programs.py" "$name"
  if [ "$rc" != 0 ]; then
    fail "company-$name" "$(why "company-$name")"
    return
  fi
  verdicts "company-$name-report" 20 "$python" "$here/expect_company.py" "company-$name" "$work/company-$name.json" \
    "$work/company-$name.out"
}

launchers() {
  local program=$tests/company uv
  printf '#!/bin/sh\n"$@"\nexit $?\n' >"$work/launcher"
  chmod +x "$work/launcher"
  knows script 30 -- "$work/launcher" "$program" calls
  # shellcheck disable=SC2016
  knows shells 30 -- sh -c 'exec sh -c "exec \"\$0\" calls" "$0"' "$program"
  knows by-exec 30 -- "$python" -c 'import os, sys; os.execvp(sys.argv[1], sys.argv[1:])' "$program" calls
  knows by-child 30 -- "$python" -c 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))' "$program" calls
  knows no-preload 30 -- env -u LD_PRELOAD "$program" calls
  knows no-injection 30 -- env -u CUDA_INJECTION64_PATH -u NVTX_INJECTION64_PATH "$program" calls
  if uv=$(command -v uv); then
    knows uv 60 -- "$uv" run --no-project --offline --python "$python" -- "$program" calls
  else
    skip company-uv "uv is not here; by-exec and by-child stand for it"
  fi
  says taken-away 'was not traced, because CUDA_INJECTION64_PATH=/nowhere/tool.so' "$program" taken-away
  says own-injection 'was not traced, because CUDA_INJECTION64_PATH=/nowhere/other.so' \
    env CUDA_INJECTION64_PATH=/nowhere/other.so "$program" calls
  says dropped 'was not traced, because it removed CUDA_INJECTION64_PATH from its environment' "$program" dropped
  says clean 'clear LD_PRELOAD and CUDA_INJECTION64_PATH' env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" "$program" calls
}

run_part() {
  local mode
  needs company "$synccount" "$tracer" "$tests/company" "$tests/company_static" "$tests/company_driver" || return
  if [ -z "$python" ]; then
    skip company "no python3 here to read reports with"
    return
  fi
  knows driver 30 -- "$tests/company_driver"
  knows driver-sleeping 30 -- "$tests/company_driver" sleeping
  for mode in calls threads exec graphs hidden sleeping; do
    knows "$mode" 30 -- "$tests/company" "$mode"
    knows "static-$mode" 30 -- "$tests/company_static" "$mode"
  done
  launchers
  python_knows jax
  python_knows triton torch
  python_knows torch
  python_knows cupy cupyx
}
