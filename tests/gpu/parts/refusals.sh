# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "no CUPTI, a taken subscriber slot, no visible device: status 3 with the cause"; }

# refused NAME WORDS COMMAND...: status 3, and stderr or the report says why: words (an extended regular expression)
# that no report has for another reason: every one has the keys "device" and "cupti".
refused() {
  local name=$1 words=$2 report=$work/refused.json
  shift 2
  : >"$report"
  timed "$name" 60 "$@"
  if [ "$rc" != 3 ]; then
    fail "$name" "expected status 3: $(why "$name")"
  elif ! grep -qiE "$words" "$work/$name.err" "$report"; then
    fail "$name" "status 3, but neither stderr nor the report says \"$words\": $(why "$name")"
  else
    pass "$name" "status 3: $(grep -hiE "$words" "$work/$name.err" "$report" | head -n 1 | cut -c1-200)"
  fi
  cp "$report" "$work/$name-report.json"
}

# Every libcupti of this machine, for hiding them.
cupti_libraries() {
  local folder
  for folder in /usr/local /usr/lib /opt $wheel_folders; do
    find "$folder" -name 'libcupti.so*' -print 2>/dev/null
  done | xargs -r -n 1 readlink -f | sort -u
}

run_part() {
  needs refusals "$synccount" "$probe" "$tracer" || return
  local small list
  small=(--experts 4 --layers 1 --tokens 64 --hidden 64 --intermediate 64 --forwards 1 --device cuda --quiet --format json
    -o "$work/refused.json")

  refused refusals-no-device 'no CUDA-capable device' env CUDA_VISIBLE_DEVICES= "$synccount" "${small[@]}"

  # Hidden for one command by mounting nothing over each copy, in a mount namespace of its own.
  cupti_libraries >"$work/cupti-libraries.txt"
  list=$work/cupti-libraries.txt
  # shellcheck disable=SC2016
  if [ -s "$list" ] && unshare --mount true 2>>"$work/log.txt"; then
    refused refusals-no-cupti 'no libcupti was found' unshare --mount bash -c '
      while IFS= read -r library; do mount --bind /dev/null "$library" || exit 99; done <"$1"
      shift
      exec "$@"' bash "$list" "$synccount" "${small[@]}"
  else
    skip refusals-no-cupti "libcupti cannot be hidden here (no right to a mount namespace, or no copy found)"
  fi

  if needs refusals-slot-taken "$tests/libtest_holder.so"; then
    timed holder 20 env LD_PRELOAD="$tests/libtest_holder.so" true
    if grep -q '^holder:' "$work/holder.err"; then
      skip refusals-slot-taken "the slot cannot be taken before CUDA starts: $(head -n 1 "$work/holder.err")"
    else
      refused refusals-slot-taken 'taken by .*slot-holder' env LD_PRELOAD="$tests/libtest_holder.so" "$synccount" "${small[@]}"
    fi
  fi
}
