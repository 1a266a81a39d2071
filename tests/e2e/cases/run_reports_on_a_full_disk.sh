# SPDX-License-Identifier: Apache-2.0
# The traces, what the program writes and the report's own files share a disk: that it is full by the end must not cost
# the report. The small disk goes with its mount namespace.
unshare -rm true 2>/dev/null || exit 0
mkdir disk
cat >small-disk <<'END'
mount -t tmpfs -o size=256k tmpfs disk || exit 77
TMPDIR=$PWD/disk LD_LIBRARY_PATH=$1 "$2" run --no-ruler --format json -o report.json -- \
  sh -c '"$1" 4 150; status=$?; cat /dev/zero >disk/zeros; exit $status' - "$3"
status=$?
rm disk/zeros
[ -z "$(ls -A disk)" ] || echo "left on the disk: $(ls -A disk)" >&2
exit $status
END
unshare -rm sh small-disk "$simcuda" "$synccount" "$programs/mixture" >out 2>err
status=$?
[ $status -ne 77 ] || exit 0 # no mounts here
[ $status -eq 0 ] || fail "exit status $status instead of 0"
json report.json '.processes[0].syncs | [.total, .without_detail > 1000]' '[4880,true]'
lacks err "left on the disk"
