# SPDX-License-Identifier: Apache-2.0
# Each pattern that a site can have, with its remedy, from a program on the simulated device.
expect 0 under --stacks native --format json -o report.json -- "$programs/patterns"
jq -r '.processes[0].sites[] | [([.native[].function | select(startswith("place_"))][0] // "?"), .kind, .pattern, .count] | @tsv' \
  report.json | sort >sites
tr '|' '\t' >wanted <<'LIST'
place_capture|refused|sync while a stream captures|3
place_device|sync|device-wide synchronise|3
place_event|sync|event wait|3
place_free|sync|cudaFree, allocator|3
place_item|sync|scalar read-back|3
place_nonzero|sync|nonzero, boolean-mask index|3
place_nothing|sync|nothing outstanding|3
place_pageable|sync|pageable async copy|3
place_poll|poll|poll loop|3
place_stream|sync|stream synchronise|3
place_tolist|sync|.tolist(), .cpu()|3
place_upload|sync|blocking upload|3
LIST
equal wanted sites
json report.json '[.processes[0].sites[] | select(.remedy == null or (.remedy | length) < 20)] | length' 0
json report.json '.processes[0].syncs | [.total, .poll_waits, .failed, .captured]' '[30,3,3,0]'
# In text each remedy stands once, below the sites.
expect 0 under --stacks native -- "$programs/patterns"
for pattern in 'poll loop' 'event wait' 'cudaFree, allocator' 'nothing outstanding'; do
  [ "$(grep -cF "  $pattern: " err)" = 1 ] || fail "the remedy of '$pattern' is not there once"
done
