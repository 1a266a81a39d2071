# SPDX-License-Identifier: Apache-2.0
# In a copy of the scripts and the manifest, so that the build's own manifest stays as it is.
mkdir -p build scripts prefix/bin prefix/share/synccount/python/__pycache__
cp "$source/scripts/uninstall" scripts/
: >prefix/bin/synccount
: >prefix/bin/other
: >prefix/share/synccount/x.yaml
: >prefix/share/synccount/python/x.py
: >prefix/share/synccount/python/__pycache__/x.pyc # Python's doing
printf '%s\n%s\n%s' "$work/prefix/bin/synccount" "$work/prefix/share/synccount/x.yaml" \
  "$work/prefix/share/synccount/python/x.py" >build/install_manifest.txt
expect 1 sh scripts/uninstall "$work/elsewhere"
has err "not below"
has err "make uninstall PREFIX=$work/prefix"
[ -e prefix/bin/synccount ] || fail "removed in spite of the wrong prefix"
expect 0 sh scripts/uninstall "$work/prefix"
has out "removed 3 files"
[ ! -e prefix/bin/synccount ] || fail "prefix/bin/synccount is still there"
[ ! -e prefix/share/synccount ] || fail "our empty folder is still there"
[ -e prefix/bin/other ] || fail "somebody else's file is gone"
expect 1 sh scripts/uninstall "$work/prefix"
has err "nothing was installed"
