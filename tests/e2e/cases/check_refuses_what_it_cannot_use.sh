# SPDX-License-Identifier: Apache-2.0
refused() { # TEXT ARGUMENTS...
  text=$1
  shift
  expect 2 "$synccount" check "$@"
  has err "$text"
  [ ! -s out ] || fail "something was printed"
}
refused "nothing is expected"
refused "nothing is expected" -- true
refused "name a program behind '--'" --max-syncs 1 --
refused "--range belongs to --max-syncs" --range x -- true
refused "is asked of a program" --range x --max-syncs 1
refused "no variant has this name" --expect 'sort.syncs == 1'
refused "a comparison was expected" --expect 'sorted.syncs = 1'
refused "is none of: text, json, markdown" --format html --max-syncs 1 -- true
refused "do not go with a program" --experts 4 --max-syncs 1 -- true
refused "the classes are explicit" --class hard --max-syncs 1 -- true
refused "is not a whole number" --max-syncs 1.5 -- true
refused "cannot open 'none.yaml'" none.yaml
refused "are two gates" one-sync-per-layer three-layers

printf 'version: 1\nexpect:\n  - measure: syncs\n    atmost: 1\n' >a.yaml
refused "a.yaml:4:5: 'atmost' is not known in section expect" a.yaml
printf 'version: 1\nexpect:\n  - variant: sorted\n    measure: wait\n    at_most: 1us\n' >b.yaml
refused "b.yaml:3:5: wait is of programs" b.yaml
printf 'version: 1\nexpect:\n  - measure: syncs\n    at_most: few\n' >c.yaml
refused "c.yaml:3:5: 'syncs <= few'" c.yaml
printf 'version: 1\nsource:\n  ranges: [x]\nexpect:\n  - expect: syncs <= 1\n' >d.yaml
refused "d.yaml: 'ranges': 'x' is not PATTERN=LEVEL" d.yaml -- true
refused "d.yaml: 'ranges': 'x' is not PATTERN=LEVEL" "$source/reports/h200.json" d.yaml

# A misspelt gate is no gate, and options of the layers do not go with a program, whatever the gate says.
expect 2 "$synccount" check one-sync-per-layr
has err "no shipped gate of this name in $(realpath "$build/share/synccount/configs")"
expect 2 "$synccount" check one-sync-per-layer --device sim -- true
has err "do not go with a program"
for option in '--api runtime' '--stacks none' --no-follow --follow --torch-modules '--keep-traces kept'; do
  # shellcheck disable=SC2086
  expect 2 "$synccount" check $option --max-syncs 9 "$source/tests/import/data/mfu_2gpu.sqlite"
  has err "a trace is as it was taken"
done
