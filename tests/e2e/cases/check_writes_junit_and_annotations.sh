# SPDX-License-Identifier: Apache-2.0
command -v xmllint >/dev/null || { echo "SKIPPED: no xmllint here to hold JUnit files against their schema"; exit 77; }
xsd() {
  xmllint --noout --schema "$source/tests/gate/junit.xsd" "$1" 2>xmllint.err || fail "$1: $(cat xmllint.err)"
}
# shellcheck disable=SC2086
expect 1 "$synccount" check $small --experts 4 --routing uniform --junit junit.xml --expect 'masked.syncs_per_layer == 1' --expect 'sorted.syncs_per_layer == 1' -q
xsd junit.xml
has junit.xml 'tests="2" failures="1" errors="0"'
has junit.xml 'name="sorted.syncs_per_layer == 1"/>'
has junit.xml '<failure type="failed" message="found 12 in 1 run'
has junit.xml 'op any: 4 a layer'
lacks err '::error'

: >summary.md
GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=$work/summary.md
export GITHUB_ACTIONS GITHUB_STEP_SUMMARY
# shellcheck disable=SC2086
expect 1 "$synccount" check $small --experts 4 --expect 'masked.syncs_per_layer == 1' --format json
json out '.verdict' '"failed"'
has err '::error title=synccount (SIMULATED)::masked.syncs_per_layer == 1 failed: found 12 in 1 run'
has err '%0Aop any: 4 a layer'
has summary.md '**FAILED: 1 of 1 expectation failed'
has summary.md '| op any |'
unset GITHUB_ACTIONS
expect 3 "$synccount" check --github --range 'none*' --max-syncs 1 --junit junit.xml -- true
has err '::error title=synccount::range(none*).syncs_per_occurrence <= 1 could not be measured'
xsd junit.xml
has junit.xml '<error type="not measured"'
has summary.md '### synccount check'
# A program that failed is an error of its own.
expect 3 "$synccount" check --max-syncs 1 --junit junit.xml -- false
xsd junit.xml
has junit.xml '<testcase classname="synccount check" name="measurement">'
has junit.xml 'program failed with 1'
expect 3 "$synccount" check --max-syncs 1 --junit /nowhere/junit.xml -- true
has err "cannot write"
