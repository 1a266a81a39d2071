# SPDX-License-Identifier: Apache-2.0
says() { # TEXT COMMAND...
  text=$1
  shift
  expect 3 under --format json -o report.json "$@"
  json report.json "[.warnings[] | select(contains(\"$text\"))] | length" 1
}
says "used CUDA where the tracer could see it" -- true
printf '#!/bin/sh\ntrue\n' >script && chmod +x script
says "a script" -- ./script
# another tool asked for the injection
expect 3 env CUDA_INJECTION64_PATH=/opt/other/tool.so LD_LIBRARY_PATH="$simcuda" "$synccount" run --format json -o report.json -- \
  "$programs/stepping" 2
json report.json '[.warnings[] | select(contains("was not traced, because CUDA_INJECTION64_PATH=/opt/other/tool.so"))] | length' 1
# no trace can be made: its folder cannot be written by then
expect 3 under --format json -o report.json -- sh -c 'SYNCCOUNT_OUTPUT=/nonexistent exec "$1" 2' - "$programs/stepping"
json report.json '[.warnings[] | select(contains("can it make its trace in"))] | length' 1
# and sits in CUPTI's one slot
expect 3 env SIMCUDA_SUBSCRIBER="Nosy Profiler" LD_LIBRARY_PATH="$simcuda" "$synccount" run --format json -o report.json -- \
  "$programs/stepping" 2
json report.json '[.warnings[] | select(contains("Nosy Profiler"))] | length' 1
json report.json '.processes[0].measured' false
# without the command line the program says it itself
CUDA_INJECTION64_PATH=/opt/other/tool.so LD_LIBRARY_PATH=$simcuda LD_PRELOAD=$build/lib/libsynccount.so "$programs/stepping" 2 2>err ||
  fail "status $?"
has err "was not traced, because CUDA_INJECTION64_PATH"
ls -- *.untraced 2>/dev/null && fail "a file was left without a folder for it"
# HIP is not CUDA
if printf 'int nothing;\n' | cc -shared -fPIC -x c -Wl,-soname,libamdhip64.so.6 -o libamdhip64.so.6 - 2>/dev/null && [ -z "${SC_SANITIZE:-}" ]; then
  expect 3 under --format json -o report.json -- env LD_PRELOAD="$work/libamdhip64.so.6:$build/lib/libsynccount.so" true
  json report.json '[.warnings[] | select(contains("it uses HIP"))] | length' 1
fi
# a program with no loader
if printf 'int main(void) { return 0; }\n' | cc -static -x c -o static - 2>/dev/null; then
  says "statically linked" -- ./static
fi
# waits that are not what they seem
expect 0 under --format json -o report.json -- env CUDA_LAUNCH_BLOCKING=1 "$programs/stepping" 2
json report.json '[.warnings[] | select(contains("CUDA_LAUNCH_BLOCKING=1"))] | length' 1
expect 0 under --format json -o report.json -- "$programs/stepping" 2 sleep
json report.json '[.warnings[] | select(contains("slept instead of spinning"))] | length' 1
# a bad setting is named and ignored
expect 0 under --format json -o report.json -- env SYNCCOUNT_API=vulkan "$programs/stepping" 2
json report.json '[.warnings[] | select(contains("SYNCCOUNT_API=vulkan"))] | length' 1
json report.json '.processes[0].syncs.total' 16
