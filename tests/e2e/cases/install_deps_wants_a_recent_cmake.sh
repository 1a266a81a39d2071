# SPDX-License-Identifier: Apache-2.0
# An old cmake is named before the build fails at it; what else is missing is not what is looked at here.
mkdir bin
printf '#!/bin/sh\necho "cmake version 3.22.1"\n' >bin/cmake
chmod +x bin/cmake
# Nothing may be installed: a machine that lacks something else says so instead.
printf '#!/bin/sh\nexit 1\n' >bin/apt-get
chmod +x bin/apt-get
PATH=$work/bin:$PATH sh "$source/scripts/install-deps" >out 2>err && fail "an old cmake was accepted"
grep -q 'missing\|could not install' err || has err "cmake is 3.22.1, and the build needs 3.25 or newer"
printf '#!/bin/sh\necho "cmake version 4.1.0-rc2"\n' >bin/cmake
PATH=$work/bin:$PATH sh "$source/scripts/install-deps" >out 2>err
lacks err "cmake is"
