# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "synccount run: C programs with known counts, children, threads, statuses, a PyTorch layer"; }

# ran NAME STATUS OPTIONS... -- COMMAND... ++ EXPECTATIONS...: one run, its exit status and its report.
ran() {
  local name=$1 status=$2 command=()
  shift 2
  while [ "$1" != ++ ]; do
    command+=("$1")
    shift
  done
  shift
  timed "$name" 60 "$synccount" run --format json -o "$work/$name.json" "${command[@]}"
  if [ "$rc" != "$status" ]; then
    fail "$name" "status $rc instead of $status: $(why "$name")"
    return
  fi
  pass "$name" "ended with $status after $took s"
  [ $# -eq 0 ] || verdicts "$name-report" 20 "$python" "$here/expect_run.py" "$name" "$work/$name.json" "$@"
}

torch_layer() { # VARIANT SYNCS
  local name=run-torch-$1
  # Python keeps the libraries of its wheels: ours are for our programs.
  timed "$name" 90 env LD_LIBRARY_PATH="$python_library_path" "$synccount" run --format json -o "$work/$name.json" \
    --ranges 'torch:*=layer' -- "$python" "$root/probes/torch/count_warnings.py" --output "$work/$name-warnings.json" \
    --experts 4 --tokens 4096
  if [ "$rc" != 0 ]; then
    fail "$name" "$(why "$name")"
    return
  fi
  verdicts "$name-report" 20 "$python" "$here/expect_run.py" "$name" "$work/$name.json" "range=torch:$1:E=4:T=4096:$2"
}

run_part() {
  needs run "$synccount" "$tracer" "$tests/stepping" "$tests/forking" "$tests/threads" || return
  if [ -z "$python" ]; then
    skip run "no python3 here to read reports with"
    return
  fi
  ran run-steps 0 --ranges 'step:*=step' --ranges 'layer:*=layer' --warmup 1 -- "$tests/stepping" 6 ++ \
    totals=36 steps=6:1:5:5 range=step:3:5 range=synccount.allow:logging:1
  ran run-capture 0 --capture-range cudaProfilerApi --ranges 'step:*=step' -- "$tests/stepping" 6 capture 2 3 ++ \
    totals=10 steps=2:0:5:5
  ran run-sleep 0 -- "$tests/stepping" 6 sleep ++ totals=36 'warning=slept instead of spinning'
  ran run-killed 137 -- "$tests/stepping" 6 die ++ totals=36 'warning=did not end cleanly'
  ran run-exec 0 -- "$tests/forking" exec ++ totals=7,40
  ran run-early 0 -- "$tests/forking" early ++ totals=7,40
  ran run-alone 0 --no-follow -- "$tests/forking" exec ++ totals=40
  ran run-bare 0 -- env -u LD_PRELOAD "$tests/stepping" 2 ++ totals=16
  ran run-threads 0 --threads -- "$tests/threads" 4 500 ++ totals=2000
  ran run-runtime 0 --api runtime -- "$tests/stepping" 2 ++ totals=16
  ran run-driver 0 --api driver -- "$tests/stepping" 2 ++ totals=16
  # shellcheck disable=SC2016
  ran run-ranks 0 -- sh -c 'for rank in 0 1 2; do RANK=$rank "$0" 2 & done; wait' "$tests/stepping" ++ totals=16,16,19
  ran run-status 7 -- sh -c "'$tests/stepping' 2; exit 7" ++ totals=16
  ran run-nothing 3 -- true ++
  ran run-other-tool 3 -- env CUDA_INJECTION64_PATH=/nowhere/tool.so "$tests/stepping" 2 ++
  if grep -q 'was not traced, because CUDA_INJECTION64_PATH=/nowhere/tool.so' "$work/run-other-tool.json"; then
    pass run-other-tool-named "another tool's library is named"
  else
    fail run-other-tool-named "the report does not name the other tool's library"
  fi
  if ! LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    skip run-torch "python3 has no PyTorch here"
    return
  fi
  torch_layer masked 12
  torch_layer sorted 1
}
