# SPDX-License-Identifier: Apache-2.0
# What a message quotes of files and names is printable and on the message's own line: a terminal is not steered, and a
# CI system takes no line of it for a command.
clean() { # LINES: so many lines, all printable
  [ "$(wc -l <err)" -eq "$1" ] || fail "$(wc -l <err) lines instead of $1"
  ! LC_ALL=C tr -d '\n' <err | LC_ALL=C grep -q '[^ -~]' || fail "raw bytes in err"
}

# What jansson quotes, and what the file says of itself: ESC, a newline, U+009B, U+202E.
printf '{"schema":"synccount/report/1","a":\033}' >token.json
printf '{"schema":"synccount/report/1","a":"x"\302\233\342\200\256}' >wide.json
printf '%s' '{"schema":"synccount/report/\u001b[2J\u009b31mX\n::error::hi"}' >schema.json
printf '%s' '{"schema":"synccount/report/1","host":{"\u001b[2J\n::error::hi":[]}}' >key.json
said() { # FILE TEXT
  expect 2 "$synccount" report "$1"
  clean 1
  has err "$2"
  expect 2 "$synccount" diff "$1" "$1"
  clean 1
  has err "$2"
  expect 2 "$synccount" check --max-syncs 1 "$1"
  clean 1
  has err "$2"
}
said token.json '\x1b'
said wide.json '\xc2\x9b'
said schema.json '\x1b[2J\xc2\x9b31mX\x0a::error::hi'
said key.json '\x1b[2J\x0a::error::hi'

# Names of files: some that are not there, and one that is no report; in usage errors, whose second line is ours.
name=$(printf 'a\033[2J\n::error::hi\342\200\256\377')
said "$name" 'a\x1b[2J\x0a::error::hi\xe2\x80\xae\xff'
cp token.json "$name"
said "$name" 'a\x1b[2J\x0a::error::hi\xe2\x80\xae\xff'
mkdir "dir$name"
expect 2 "$synccount" report "dir$name"
clean 1
expect 2 "$synccount" --config "$name"
clean 1
expect 2 "$synccount" run "--$name"
clean 2
expect 2 "$synccount" report --format "$name" token.json
clean 2
expect 127 "$synccount" run -- "./no$name"
clean 1
expect 2 "$synccount" "$name"
clean 2

# The probe's document of a kept run.
expect 0 "$synccount" $small --experts 4 --keep-traces kept
jq '.schema = "\u001b[2J\n::error::hi"' kept/counts.json >bad.json && mv bad.json kept/counts.json
expect 2 "$synccount" report kept
clean 1
has err '\x1b[2J\x0a::error::hi'

# Letters that are no ASCII stay what they are.
expect 2 "$synccount" report größe.json
has err "größe.json"
