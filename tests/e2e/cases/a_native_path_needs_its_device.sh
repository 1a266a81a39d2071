# SPDX-License-Identifier: Apache-2.0
expect 3 "$synccount" $small --experts 4 --nvfp4-path native
has err "compute capability 10.0 and 12.0 alone; device 0"
has err "has 9.0"
has err "leave the option out"
# On a device that has them the conversions' kernels are loaded. (Simulated ones: the native kernels themselves have not run yet.)
SIMCUDA_CAPABILITY=10.0 expect 0 "$synccount" $small --experts 4 --nvfp4-path native --format json
json out '[.runs[] | .nvfp4_path]' '[null,null,"native"]'
expect 2 "$synccount" $small --experts 4 --variants masked --nvfp4-path native
has err "--nvfp4-path is an option of fused-nvfp4"
expect 2 "$synccount" $small --experts 4 --variants masked --act-quant w4a16
has err "--act-quant is an option of fused-nvfp4"
