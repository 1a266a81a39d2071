# SPDX-License-Identifier: Apache-2.0
for format in text markdown; do
  expect 0 "$synccount" $small --experts 4 --format $format
  head -5 out >top
  has top SIMULATED
done
expect 0 "$synccount" $small --experts 4 --format json
json out '.device.simulated' 'true'
# Counts and the floor for the assumed round trip, never a speed.
json out '[.runs[] | .forward, .floor]' '[null,null,null,null,null,null]'
json out '.round_trip' 'null'
