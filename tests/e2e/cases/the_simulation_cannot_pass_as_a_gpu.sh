# SPDX-License-Identifier: Apache-2.0
# With the stand-in libraries on the path CUDA "initialises". The trace and the trial still know what it was.
LD_LIBRARY_PATH=$build/lib/simcuda expect 0 "$synccount" --device cuda --experts 4 --layers 2 --hidden 32 --intermediate 64 --tokens 64 --format json
json out '.device.simulated' 'true'
LD_LIBRARY_PATH=$build/lib/simcuda expect 0 "$synccount" ruler --format json
json out '.device.simulated' 'true'
