# SPDX-License-Identifier: Apache-2.0
# Where the programs go; src/cli/place.c looks for them there. The tracer is a plain library, since users name it in
# LD_PRELOAD; the probe is a helper of ours. src/simcuda, configs and docs install their own.
install(TARGETS synccount RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
install(TARGETS synccount-probe RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/synccount")
install(TARGETS synccount_tracer LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
