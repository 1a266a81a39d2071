# SPDX-License-Identifier: Apache-2.0
expect 2 "$synccount" report nowhere
has err "nowhere"
echo hello >note.sctrace
expect 2 "$synccount" report note.sctrace
has err "note.sctrace"
mkdir empty
expect 2 "$synccount" report empty
has err "holds no trace"

# One trace of many that cannot be read costs only itself, and is a loss; if none can, there is no report.
mkdir many
expect 0 env LD_LIBRARY_PATH="$simcuda" LD_PRELOAD="$build/lib/libsynccount.so" SYNCCOUNT_OUTPUT=many "$programs/stepping" 2
: >many/a.sctrace
ln -s nowhere many/z.sctrace
expect 0 "$synccount" report --format json many
json out '[.processes[].syncs.total]' '[16]'
json out '.losses.chunks' 2
json out '[.warnings[] | select(contains("a.sctrace") or contains("z.sctrace"))] | length' 2
rm many/synccount-*.sctrace
expect 2 "$synccount" report many
has err "z.sctrace"

expect 0 "$synccount" $small --experts 4 --keep-traces kept
damaged() { # EDIT MESSAGE: a jq filter over one document, and what is said
  rm -rf bad && cp -r kept bad
  jq "$2" "kept/$1" >"bad/$1" || fail "jq"
  expect 2 "$synccount" report bad
  has err "$3"
}
damaged counts.json '.schema = "synccount/probe/9"' "synccount/probe/9"
damaged counts.json '.runs[0].hit = [1]' "not one number for each layer"
damaged counts.json '.runs[0].hit[0] = 99' "not one number for each layer"
damaged counts.json '.runs[0].experts = -1' "lacks its variant or shape"
damaged counts.json '.runs[0].layers = 1e300' "lacks its variant or shape"
damaged counts.json 'del(.runs[0].verified)' "verification"
damaged counts.json '.runs = 3' "'runs' is no list"
damaged session.json '.traces = ["../kept/x.sctrace"]' "no file name"
damaged session.json '.fields = 1' "not as described"
damaged session.json '.assumed_us = [-1]' "not as described"
damaged session.json '.schema = 1' "its schema is"
rm -rf bad && cp -r kept bad && head -c 300 kept/counts.json >bad/counts.json
expect 2 "$synccount" report bad
has err "not valid JSON"
rm -rf bad && cp -r kept bad && rm bad/counts.json
expect 2 "$synccount" report bad
has err "counts.json"

# A FIFO in a file's place must not be waited for.
for file in session.json counts.json; do
  rm -rf bad && cp -r kept bad && rm bad/$file && mkfifo bad/$file
  expect 2 timeout 10 "$synccount" report bad
  has err "$file"
done

# A trace cut short, in the middle of its records, is read as far as it goes; what is missing is a failure to measure.
rm -rf bad && cp -r kept bad
trace=$(ls bad/*.sctrace)
head -c 10000 "$trace" >cut && mv cut "$trace"
expect 3 "$synccount" report bad --format json # whose lines are not wrapped
has out "the trace is damaged"
has out "cut off"

# A report of the layers holds no program: an empty file would look like a program without syncs.
for format in chrome folded folded-count csv csv-syncs; do
  expect 2 "$synccount" report --format $format -o none "$source/reports/h200.json"
  has err "holds none"
  [ ! -e none ] || fail "$format wrote a file"
done
