# SPDX-License-Identifier: Apache-2.0
expect 2 "$synccount" $small --config no-such-shape
has err "no-such-shape"
expect 2 "$synccount" $small --config ./missing.yaml
has err "missing.yaml"
printf 'model:\n  name: x\n  hiden: 3\n' >typo.yaml
expect 2 "$synccount" $small --config typo.yaml
has err "typo.yaml:3:3: 'hiden' is not known in section model"
printf 'run:\n  variants: [fused]\n' >later.yaml
expect 2 "$synccount" $small --config later.yaml
has err "later.yaml:2:14:"
