# SPDX-License-Identifier: Apache-2.0
expect 0 "$synccount" ruler --device sim
has out SIMULATED
expect 0 "$synccount" ruler --device sim --format json --keep-traces kept -o ruler.json
json ruler.json '[.device.simulated, .round_trip, .runs]' '[true,null,[]]'
expect 0 "$synccount" report kept --format json
equal ruler.json out
