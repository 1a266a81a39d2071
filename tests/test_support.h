/* SPDX-License-Identifier: Apache-2.0
 * The include block that every CMocka version wants, in one place. */
#ifndef SC_TEST_SUPPORT_H
#define SC_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
