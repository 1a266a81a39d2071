# SPDX-License-Identifier: Apache-2.0
SIMCUDA_SUBSCRIBER=some-profiler expect 3 "$synccount" $small --experts 4
cat out err >all
has all some-profiler
