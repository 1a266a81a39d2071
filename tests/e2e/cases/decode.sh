# SPDX-License-Identifier: Apache-2.0
# One token, top-1: one expert is hit, 4 + 2 = 6.
expect 0 "$synccount" --device sim --layers 2 --hidden 32 --intermediate 64 --tokens 1,64 --experts 4 --routing router --format json -o report.json
json report.json '[.runs[] | select(.variant=="masked" and .tokens==1) | .syncs.per_layer | [.min, .max]]' '[[6,6]]'
json report.json '[.runs[] | .tokens] | unique' '[1,64]'
