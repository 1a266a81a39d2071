# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "no runtime call that is not watched contains a driver call that is counted; a runtime launch is one driver launch"; }

# nested NAME COMMAND...: the command with every callback of both domains enabled, without the tracer.
nested() {
  local name=nesting-$1 result counted followed calls
  shift
  result=$work/$name.txt
  timed "$name" 120 env LD_PRELOAD="$tests/libtest_nesting.so" NESTING_OUTPUT="$result" "$@"
  if [ ! -s "$result" ]; then
    fail "$name" "the subscriber wrote nothing: $(why "$name")"
    return
  fi
  counted=$(grep -c '^counted ' "$result")
  followed=$(grep '^followed ' "$result" | awk '{ print $2 " > " $3 }' | tr '\n' ';')
  if ! awk '$1 == "calls" { ok = $2 > 100 && $4 > 100 } END { exit !ok }' "$result"; then
    fail "$name" "too few calls were seen to tell: $(head -n 1 "$result")"
  elif [ "$counted" -gt 0 ]; then
    fail "$name" "$(grep '^counted ' "$result" | awk '{ print $2 " contains " $3 " (" $4 " times)" }' | tr '\n' ';')"
  elif grep -q '^uneven ' "$result"; then
    fail "$name" "$(grep '^uneven ' "$result" | awk '{ print $2 " made " $3 " driver launches (" $4 " times)" }' | tr '\n' ';')"
  elif ! grep -q '^launches [1-9]' "$result"; then
    fail "$name" "no runtime launch was seen"
  else
    calls=$(awk '$1 == "calls" { print $2 " runtime calls, " $4 " driver calls inside them" } $1 == "launches" { print ", " $2 " launches" }' "$result" | tr -d '\n')
    pass "$name" "$calls${followed:+; followed only: $followed}"
  fi
}

run_part() {
  needs nesting "$tests/libtest_nesting.so" "$tests/sequences" "$probe" || return
  nested sequences "$tests/sequences"
  nested per-thread "$tests/sequences_per_thread"
  nested static "$tests/sequences_static"
  nested probe "$probe" --pass counts --experts 4 --layers 2 --forwards 1 --output "$work/nesting-probe.json"
  if [ -n "$python" ] && LD_LIBRARY_PATH="$python_library_path" "$python" -c 'import torch' 2>>"$work/log.txt"; then
    nested torch env LD_LIBRARY_PATH="$python_library_path" "$python" "$root/probes/torch/count_warnings.py" --experts 4 \
      --output "$work/nesting-torch.json"
  else
    skip nesting-torch "python3 has no PyTorch here"
  fi
}
