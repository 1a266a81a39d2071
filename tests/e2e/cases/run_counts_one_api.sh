# SPDX-License-Identifier: Apache-2.0
expect 0 under --format json -o both.json -- "$programs/stepping" 2
expect 0 under --api runtime --format json -o runtime.json -- "$programs/stepping" 2
expect 0 under --api driver --format json -o driver.json -- "$programs/stepping" 2
for file in both runtime driver; do
  json $file.json '.processes[0].syncs.total' 16
  json $file.json '.processes[0].syncs.read_backs' 16
done
leaky="env ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0" # that program keeps its buffers
expect 0 under --api runtime --format json -o none.json -- $leaky "$programs/sequences_driver"
json none.json '.processes[0].syncs.total' 0
expect 0 under --api driver,runtime --format json -o all.json -- $leaky "$programs/sequences_driver"
json all.json '.processes[0].syncs.total > 10' true
expect 2 under --api vulkan -- true
expect 2 under --stacks none,python -- true
