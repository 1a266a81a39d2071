# SPDX-License-Identifier: Apache-2.0
step=--ranges=step:*=step
expect 0 under "$step" --warmup 1 --format json -o short.json -- "$programs/stepping" 4
expect 0 under "$step" --warmup 1 --keep-traces long -- "$programs/stepping" 7
expect 0 "$synccount" diff --fail-on-increase short.json long
has out "No more syncs than before."
has out "SIMULATED: both were"
expect 0 "$synccount" diff --format json short.json long
json out '[.schema, .increase, .counts_equal]' '["synccount/diff/1",false,null]'
json out '.totals[0] | [.measure, .before, .after, .change]' '["a step, median",5,5,"same"]'
# Steps have one name, so nothing appeared.
json out '[.ranges[] | select(.change == "appeared" or .change == "gone")]' '[]'
json out '.ranges[] | select(.what == "step:*/layer:0") | [.before, .after, .occurrences_before, .occurrences_after]' '[5,5,4,7]'

# Without steps the longer run has more, and a rank that syncs more shows where.
expect 0 under --format json -o a.json -- "$programs/stepping" 4
expect 0 under --format json -o b.json -- env RANK=1 "$programs/stepping" 4
expect 1 "$synccount" diff --fail-on-increase a.json b.json
has out "MORE SYNCS than before."
has out "26 -> 29 (+3)"
expect 0 "$synccount" diff --fail-on-increase b.json a.json
expect 0 "$synccount" diff --format markdown -o diff.md a.json b.json
has diff.md "### synccount diff"
expect 3 "$synccount" diff --fail-on-increase short.json b.json
has err "only the first has steps"

# Two hosts: the counts are equal, whatever the times.
sed 's/"p50_us": 1[0-9]\.[0-9]*/"p50_us": 26.5/; s/"driver": "[^"]*"/"driver": "999.1"/' "$source/reports/h200.json" >other.json
expect 0 "$synccount" diff --fail-on-increase "$source/reports/h200.json" other.json
has out "Counts are equal"
has out "host.driver"
has out "999.1"
expect 3 "$synccount" diff "$source/reports/h200.json" short.json
has err "nothing to compare"
expect 2 "$synccount" diff short.json
expect 2 "$synccount" diff short.json nowhere.json
has err "cannot read 'nowhere.json'"
