# SPDX-License-Identifier: Apache-2.0
expect 0 under --format json -o follow.json -- "$programs/forking" exec
json follow.json '[.processes[].syncs.total] | sort' '[7,40]'
expect 0 under --format json -o follow.json --follow -- "$programs/forking" early
json follow.json '[.processes[].syncs.total] | sort' '[7,40]'
for mode in exec early; do
  expect 0 under --format json -o alone.json --no-follow -- "$programs/forking" $mode
  json alone.json '[.processes[].syncs.total]' '[40]'
done
# one process, whatever it executes
expect 0 under --format json -o alone.json --no-follow -- sh -c "exec '$programs/forking' exec"
json alone.json '[.processes[].syncs.total]' '[40]'
# a script's children are left out, and that is said
expect 3 under -q --no-follow -- sh -c "'$programs/stepping' 2; true"
has err "--no-follow leaves out"
# a child without LD_PRELOAD is still found by CUDA
expect 0 under --format json -o bare.json -- env -u LD_PRELOAD "$programs/stepping" 2
json bare.json '[.processes[].syncs.total]' '[16]'
# what was preloaded stays, before us
expect 0 env LD_PRELOAD="$simcuda/libcuda.so.1" LD_LIBRARY_PATH="$simcuda" "$synccount" run --format json -o kept.json -- \
  sh -c 'echo "$LD_PRELOAD"'" && '$programs/stepping' 2"
grep -q "^$simcuda/libcuda.so.1:.*libsynccount.so\$" out || fail "LD_PRELOAD is $(cat out)"
# fork without exec: the child is silent, the parent whole
expect 0 under --format json -o fork.json -- "$programs/forking" fork
json fork.json '[.processes[].syncs.total]' '[40]'
