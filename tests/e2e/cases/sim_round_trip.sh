# SPDX-License-Identifier: Apache-2.0
# The floor of a simulated run is for the round trip that it plays, and for the assumed ones.
expect 0 "$synccount" $small --experts 4 --routing uniform --sim-round-trip 120us --assume-round-trip 26us,0.5ms
has out "floor 2.88 ms if a round trip costs 120 us"
json_of() { "$synccount" $small --experts 4 --routing uniform --sim-round-trip 120us --assume-round-trip 26us,0.5ms --format json >out 2>err; }
json_of || fail "json"
json out '.conditions.sim_round_trip_us' '120'
