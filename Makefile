# SPDX-License-Identifier: Apache-2.0
# A thin front for CMake: every target below is one or two commands that also work by hand (CONTRIBUTING.md lists them).
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
# Continuous integration makes warnings errors.
WERROR = $(if $(filter true 1,$(CI)),ON,OFF)
CONFIGURE = cmake -DSYNCCOUNT_WERROR=$(WERROR) --preset

.DEFAULT_GOAL := build
.PHONY: build run check check-sanitizers deps deps-tests install uninstall clean

build:
	@$(CONFIGURE) release
	@cmake --build --preset release --parallel $(JOBS)

deps:
	@scripts/install-deps

deps-tests:
	@scripts/install-deps --tests

run: deps
	@$(CONFIGURE) release
	@cmake --build --preset release --target tool --parallel $(JOBS)
	@build/bin/synccount --experts 4,8,16

check: deps-tests
	@$(MAKE) --no-print-directory build
	@ctest --test-dir build --output-on-failure --parallel $(JOBS)

# The whole suite twice more: AddressSanitizer with UndefinedBehaviorSanitizer, then ThreadSanitizer.
check-sanitizers: deps-tests
	@for preset in asan tsan; do \
	  $(CONFIGURE) $$preset && cmake --build --preset $$preset --parallel $(JOBS) && \
	  ctest --test-dir build-$$preset --output-on-failure --parallel $(JOBS) || exit 1; \
	done

install:
	@test -f build/CMakeCache.txt || $(MAKE) --no-print-directory build
	@cmake --build --preset release --parallel $(JOBS)
	@cmake --install build --prefix "$(PREFIX)"

uninstall:
	@scripts/uninstall "$(PREFIX)" "$(DESTDIR)"

clean:
	@rm -rf build build-asan build-tsan build-debug build-portable
