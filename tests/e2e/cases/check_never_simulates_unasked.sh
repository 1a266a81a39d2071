# SPDX-License-Identifier: Apache-2.0
# A machine without a GPU does not pass a gate that asked for one, whatever the machine of this test has.
mkdir -p root/proc root/sys root/dev
SYNCCOUNT_SYSROOT=$work/root CUDA_VISIBLE_DEVICES=
export SYNCCOUNT_SYSROOT CUDA_VISIBLE_DEVICES
expect 3 "$synccount" check --experts 4 --expect 'sorted.syncs_per_layer == 1' --junit junit.xml
has out "NOT MEASURED"
has out "--device sim"
lacks out "passed"
has junit.xml 'name="measurement"'
# shellcheck disable=SC2086
expect 0 "$synccount" check $small --experts 4 --expect 'sorted.syncs_per_layer == 1'
has out SIMULATED
# Its times are none.
# shellcheck disable=SC2086
expect 3 "$synccount" check $small --experts 4 --expect 'sorted.floor <= 1s'
has out "has no times"
