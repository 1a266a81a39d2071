# SPDX-License-Identifier: Apache-2.0
# What a GPU adds to a session: the untraced pass. Its document is made on the simulation here, and the session made to look as if it
# were a GPU's; the figures are checked against the document, not believed.
grid="--layers 2 --hidden 32 --intermediate 64 --tokens 64 --experts 4,8"
expect 0 "$synccount" --device sim $grid --keep-traces kept
LD_LIBRARY_PATH=$build/lib/simcuda expect 0 "$build/bin/synccount-probe" --pass times --output kept/times.json $grid --samples 240 --repeats 5
jq '.simulated = false | .documents = ["times.json", "counts.json"] | .traces = [] | .assumed_us = [26]' kept/session.json >s && mv s kept/session.json
expect 3 "$synccount" report kept --format json # without a trace nothing is counted
median() { jq -c "$1 | sort | if length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end | . * 10 | round" kept/times.json; }
for run in 0 1 2 3; do
  json out ".runs[$run].forward.p50_us * 10 | round" "$(median ".runs[$run].forward_us")"
done
json out '[.runs[].syncs] | unique' '[null]'
json out '.round_trip | [.method, .samples, .blocks]' '["launch+readback",240,12]'
json out '.round_trip.p50_us * 10 | round' "$(median '.ruler[] | select(.method == "launch+readback") | .samples_us')"
json out '[.ruler[].method] | length' '9'
json out '[.marginal_sync[] | [.experts, .tokens]]' '[[4,64],[8,64]]'
json out '.device.simulated' 'false'
