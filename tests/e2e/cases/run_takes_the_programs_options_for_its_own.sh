# SPDX-License-Identifier: Apache-2.0
# Options end at the program, with -- or without.
printf -- '--help\n-q\n-o\nx\n' >wanted
expect 3 under -q -o report -- printf '%s\n' --help -q -o x
equal wanted out
expect 3 under -q -o report printf '%s\n' --help -q -o x
equal wanted out
expect 2 under
has err "name a program"
expect 2 under --nonsense -- true
expect 0 "$synccount" run --help
has out "Usage: synccount run"
