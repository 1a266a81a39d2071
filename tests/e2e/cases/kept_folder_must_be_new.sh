# SPDX-License-Identifier: Apache-2.0
expect 0 "$synccount" $small --experts 4 --keep-traces kept
expect 2 "$synccount" $small --experts 4 --keep-traces kept
has err "already holds traces"
expect 2 "$synccount" $small --experts 4 --keep-traces no/such/parent
has err "no/such/parent"
mkdir full
: >full/letter
expect 2 "$synccount" $small --experts 4 --keep-traces full
has err "full' holds other files (letter): give a new folder"
expect 2 under --keep-traces full -- true
[ "$(ls full)" = letter ] || fail "something was left in somebody's folder"
mkdir empty
expect 0 "$synccount" $small --experts 4 --keep-traces empty
[ -s empty/session.json ] || fail "an empty folder was not used"
