# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
describe() { echo "which calls wait for a running kernel, against their classes"; }

run_part() {
  needs blocking "$tests/blocking" || return
  verdicts blocking 60 "$tests/blocking"
}
