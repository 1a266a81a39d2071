# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# What the parts of tests/gpu/run share: verdict lines, timed commands, where the CUDA libraries are.

passed=0 failed=0 skipped=0
work=    # scratch folder: logs and traces of every check
results= # every verdict line, in order

# say TEXT: to the screen and into the results.
say() {
  printf '%s\n' "$*" | tee -a "$results"
}
# verdict "PASS|FAIL|SKIP NAME: TEXT": counted and kept; on the screen what passed is shown only when asked for.
verdict() {
  case $1 in
  PASS*) passed=$((passed + 1)) ;;
  FAIL*) failed=$((failed + 1)) ;;
  SKIP*) skipped=$((skipped + 1)) ;;
  esac
  case $verbose$1 in
  PASS*) printf '%s\n' "$1" >>"$results" ;;
  *) printf '%s\n' "$1" | cut -c1-400 | tee -a "$results" ;;
  esac
}
pass() { # NAME TEXT
  verdict "PASS $1: $2"
}
fail() {
  verdict "FAIL $1: $2"
}
skip() {
  verdict "SKIP $1: $2"
}

# Prints to the log alone.
note() {
  printf '%s\n' "$*" >>"$work/log.txt"
}

# seconds_left: of the whole budget.
seconds_left() {
  echo $((budget - SECONDS))
}

# timed NAME SECONDS COMMAND...: runs it with its output in $work/NAME.out and .err. Status in $rc (124: it ran out of time),
# seconds in $took. Never ends the script. The limit is cut to what the budget leaves.
timed() {
  local name=$1 limit=$2 start left
  shift 2
  left=$(seconds_left)
  [ "$left" -lt "$limit" ] && limit=$left
  if [ "$limit" -lt 2 ]; then
    rc=124 took=0
    echo "the time budget was used up" >"$work/$name.err"
    return 0
  fi
  note "== $name: $* (limit $limit s)"
  start=$(date +%s.%N)
  timeout --kill-after=5 "$limit" "$@" >"$work/$name.out" 2>"$work/$name.err"
  rc=$?
  took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
  note "== $name: status $rc, $took s"
  head -q -c 200000 "$work/$name.out" "$work/$name.err" >>"$work/log.txt"
  return 0
}

# why NAME: in one line, why the command behind it failed.
why() {
  local text
  [ "$rc" = 124 ] || [ "$rc" = 137 ] && printf 'ran out of time; '
  text=$(grep -v '^[[:space:]]*$' "$work/$1.err" | tail -n 3 | tr '\n' '|')
  [ -n "$text" ] || text=$(grep -v '^[[:space:]]*$' "$work/$1.out" | tail -n 3 | tr '\n' '|')
  printf 'status %s: %s' "$rc" "${text:-no output}"
}

# succeeds NAME SECONDS COMMAND...: PASS with the last line of its output when it ends with 0, else FAIL. False on failure.
succeeds() {
  local name=$1
  timed "$@"
  if [ "$rc" = 0 ]; then
    pass "$name" "$(tail -n 1 "$work/$name.out" | cut -c1-200) ($took s)"
  else
    fail "$name" "$(why "$name")"
    return 1
  fi
}

# verdicts NAME SECONDS COMMAND...: the command prints PASS, FAIL and SKIP lines of its own; they become ours. NOTE lines are kept
# for people and counted as nothing.
verdicts() {
  local name=$1 lines
  timed "$@"
  lines=$(grep -cE '^(PASS|FAIL|SKIP) ' "$work/$name.out")
  while IFS= read -r line; do
    case $line in
    'PASS '* | 'FAIL '* | 'SKIP '*) verdict "$line" ;;
    'NOTE '*) printf '%s\n' "$line" >>"$results" ;;
    esac
  done <"$work/$name.out"
  # 77: every line was a SKIP. Any other end with no FAIL line to show for it is a failure of its own.
  if [ "$rc" != 0 ] && [ "$rc" != 77 ] && ! grep -q '^FAIL ' "$work/$name.out"; then
    fail "$name" "$(why "$name")"
  elif [ "$lines" = 0 ]; then
    fail "$name" "it printed no verdict"
  fi
}

# needs NAME FILE...: all are there, else one SKIP line.
needs() {
  local name=$1 file
  shift
  for file in "$@"; do
    if [ ! -e "$file" ]; then
      skip "$name" "$file was not built or not carried here"
      return 1
    fi
  done
}

# library_folder SONAME: the folder that holds it, looked for where toolkits and Python wheels put it.
library_folder() {
  local folder
  for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" "${CUDA_HOME:-/usr/local/cuda}/targets/x86_64-linux/lib" \
    "${CUDA_HOME:-/usr/local/cuda}/extras/CUPTI/lib64" /usr/local/cuda-13*/lib64 $wheel_folders; do
    if [ -e "$folder/$1" ]; then
      echo "$folder"
      return 0
    fi
  done
  return 1
}

# find_libraries: sets LD_LIBRARY_PATH for our programs (Python keeps its own), and says what it found.
find_libraries() {
  local soname folder path=
  python=$(command -v python3 || true)
  wheel_folders=
  if [ -n "$python" ]; then
    wheel_folders=$("$python" -c 'import glob, site, sysconfig
roots = set(site.getsitepackages() + [sysconfig.get_paths()["purelib"]])
print(" ".join(f for r in sorted(roots) for f in sorted(glob.glob(r + "/nvidia/*/lib"))))' 2>/dev/null)
  fi
  python_library_path=${LD_LIBRARY_PATH:-}
  for soname in libcudart.so.13 libcublas.so.13 libcublasLt.so.13 libcupti.so.13; do
    if folder=$(library_folder "$soname"); then
      note "$soname: $folder"
      case ":$path:" in *":$folder:"*) ;; *) path=$path${path:+:}$folder ;; esac
    else
      note "$soname: not found in the usual folders; left to the loader"
    fi
  done
  export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  note "LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
}
