# SPDX-License-Identifier: Apache-2.0
DESTDIR= "$SC_CMAKE" --install "$build" --prefix "$work/prefix" >install.log 2>&1 || fail "install: $(tail -3 install.log)"
for part in bin/synccount libexec/synccount/synccount-probe share/synccount/configs/minimind-seed.yaml share/man/man1/synccount.1 \
  share/synccount/python/sitecustomize.py share/synccount/python/synccount_torch.py; do
  [ -e "prefix/$part" ] || fail "prefix/$part was not installed"
done
mv prefix moved # nothing in it may know where it was
mkdir elsewhere && cd elsewhere || exit 1
PATH=$work/moved/bin:/usr/bin:/bin
expect 0 synccount $small --experts 4 --config minimind-seed --format json
json out '.runs[0].variant' '"masked"'
ln -s "$work/moved/bin/synccount" link
expect 0 ./link $small --experts 4
cd "$work" || exit 1

# A part that is missing is named, with what to do.
rm moved/libexec/synccount/synccount-probe
expect 3 moved/bin/synccount $small --experts 4
has err "libexec/synccount/synccount-probe"
