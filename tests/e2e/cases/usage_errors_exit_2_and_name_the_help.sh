# SPDX-License-Identifier: Apache-2.0
refused() { # MESSAGE ARGUMENT...
  message=$1
  shift
  expect 2 "$synccount" "$@"
  has err "$message"
  has err "synccount help"
  [ ! -s out ] || fail "something on standard output"
}
refused "unknown option '--expert-count'" --expert-count 4
refused "unknown option '-x'" -x
refused "there is no command 'rulers'" rulers
refused "there is no command 'x'" help x
refused "'--experts' needs a value" --experts
refused "'--output' needs a value" -o
refused "'--quiet' takes no value" --quiet=1
refused "'4,0'" --experts 4,0
refused "'4,,8'" --experts 4,,8
refused "4 stands twice" --experts 4,8,4
refused "'loop' is none of: masked, sorted" --variants masked,loop
refused "'w8a8' is none of: w4a4, w4a16" --act-quant w8a8
refused "'fast' is none of: portable, native" --nvfp4-path fast
refused "'masked' stands twice" --variants masked,masked
refused "'-3' is not a whole number" --layers -3
refused "whole number from 1 to 1024" --layers 99999999999999999999
refused "whole number from 1 to 1048576" --hidden 1048577
refused "'fp16' is none of: bf16, fp32" --dtype fp16
refused "'random' is none of: router" --routing random
refused "'gpu' is none of: auto, cuda, cuda:N, sim" --device gpu
refused "'cuda:x' is none of" --device cuda:x
refused "'120' is not a time" --sim-round-trip 120
refused "'0us' is not a time" --sim-round-trip 0us
refused "'26' is not a time" --assume-round-trip 26,116us
refused "'xml' is none of: text, json, markdown" --format xml
refused "is an empty name" --config ""
refused "'more' is too much" --experts 4 more
refused "top-k 5 is more than 4 experts" --experts 4 --top-k 5 --device sim
refused "unknown option '--experts'" ruler --experts 4
refused "give at least one trace" report
refused "'ruler' is too much" help report ruler
