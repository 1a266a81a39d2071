# SPDX-License-Identifier: Apache-2.0
# The judge of tests/gpu's part "company", on the simulation: each program says itself what it did.
command -v python3 >/dev/null || exit 77
judge=$source/tests/gpu/expect_company.py
knows() { # NAME PROGRAM...
  name=$1
  shift
  expect 0 under --format json -o "$name.json" -- "$@"
  cp out "$name.said"
  python3 "$judge" --simulated "$name" "$name.json" "$name.said" >verdicts || fail "$(cat verdicts)"
}
for mode in calls threads exec graphs hidden sleeping; do
  knows $mode "$programs/company" $mode
done
knows driver "$programs/company_driver"
knows driver-sleeping "$programs/company_driver" sleeping
# the judge sees a count that is off
sed 's/"total": 37/"total": 36/' calls.said >wrong.said
python3 "$judge" --simulated wrong calls.json wrong.said >verdicts && fail "a wrong count passed"
# launchers, however they start it
printf '#!/bin/sh\n"$@"\nexit $?\n' >launcher && chmod +x launcher
knows script ./launcher "$programs/company" calls
knows bare env -u LD_PRELOAD "$programs/company" calls
knows uninjected env -u CUDA_INJECTION64_PATH -u NVTX_INJECTION64_PATH "$programs/company" calls
knows by-exec python3 -c 'import os, sys; os.execvp(sys.argv[1], sys.argv[1:])' "$programs/company" calls
knows by-child python3 -c 'import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))' "$programs/company" calls
knows by-shells sh -c 'exec sh -c "exec \"\$0\" calls" "$0"' "$programs/company"
# what cannot work says why
says() { # TEXT PROGRAM...
  text=$1
  shift
  expect 3 under --format json -o report.json -- "$@"
  json report.json "[.warnings[] | select(contains(\"$text\"))] | length" 1
}
says "was not traced, because CUDA_INJECTION64_PATH=/nowhere/tool.so" "$programs/company" taken-away
says "was not traced, because it removed CUDA_INJECTION64_PATH from its environment" "$programs/company" dropped
says "clear LD_PRELOAD and CUDA_INJECTION64_PATH" env -i LD_LIBRARY_PATH="$simcuda" "$programs/company" calls
