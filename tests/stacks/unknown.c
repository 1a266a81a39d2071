/* SPDX-License-Identifier: Apache-2.0
 * unknown VERSION FREE-THREADED: a program that looks like a Python interpreter of that version, whose frames cannot be
 * read, and makes 3 syncs. What its offsets lead to would crash whoever followed them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#define EXPORT __attribute__((visibility("default")))

/* As _Py_DebugOffsets begins: cookie, version, whether free-threaded, offsets. */
EXPORT uint64_t _PyRuntime[128];
EXPORT uint64_t PyCode_Type[64];
static uint64_t thread[1024];
static const char *version;

EXPORT void *PyGILState_GetThisThreadState(void);
EXPORT void *PyThreadState_GetUnchecked(void);
EXPORT int Py_IsFinalizing(void);
EXPORT int Py_IsInitialized(void);
EXPORT int Py_AddPendingCall(int (*function)(void *), void *argument);
EXPORT const char *Py_GetVersion(void);

void *PyGILState_GetThisThreadState(void) { return thread; }
void *PyThreadState_GetUnchecked(void) { return thread; }
int Py_IsFinalizing(void) { return 0; }
int Py_IsInitialized(void) { return 1; }
int Py_AddPendingCall(int (*function)(void *), void *argument) { return function(argument); }
const char *Py_GetVersion(void) { return version; }

/* None of these is there for the tracer to call before it knows that it understands the frames. */
#define UNUSED(name)                                   \
  EXPORT void *name(void);                             \
  void *name(void) {                                   \
    fprintf(stderr, "unknown: %s was called\n", #name); \
    abort();                                           \
  }
UNUSED(PyFrame_GetBack)
UNUSED(PyFrame_GetCode)
UNUSED(PyFrame_GetLineNumber)
UNUSED(PyObject_GetAttrString)
UNUSED(PyUnicode_AsUTF8AndSize)
UNUSED(Py_DecRef)

/* The check may call these: an interpreter whose frames are not where its offsets say. */
EXPORT void *PyEval_GetFrame(void);
EXPORT void PyErr_Fetch(void **type, void **value, void **traceback);
EXPORT void PyErr_Restore(void *type, void *value, void *traceback);
EXPORT int PyGC_Disable(void);
EXPORT int PyGC_Enable(void);
void *PyEval_GetFrame(void) { return thread; }
void PyErr_Fetch(void **type, void **value, void **traceback) { *type = *value = *traceback = NULL; }
void PyErr_Restore(void *type, void *value, void *traceback) { (void)type, (void)value, (void)traceback; }
int PyGC_Disable(void) { return 1; }
int PyGC_Enable(void) { return 1; }

int main(int argc, char **argv) {
  unsigned minor = 0;
  if (argc != 3 || sscanf(argv[1], "3.%u", &minor) != 1) {
    fprintf(stderr, "usage: unknown VERSION FREE-THREADED\n");
    return 2;
  }
  version = argv[1];
  memcpy(&_PyRuntime[0], "xdebugpy", 8);
  _PyRuntime[1] = (uint64_t)(0x300u | minor) << 16;
  _PyRuntime[2] = strtoull(argv[2], NULL, 10);
  for (size_t i = 3; i < sizeof _PyRuntime / sizeof _PyRuntime[0]; i++)
    _PyRuntime[i] = i * 8 % 2048;
  for (size_t i = 0; i < sizeof thread / sizeof thread[0]; i++)
    thread[i] = 0x7000deadbeef0000u + i * 8; /* looks like an address, and is none */
  for (int i = 0; i < 3; i++)
    if (cudaDeviceSynchronize() != cudaSuccess)
      return 1;
  return 0;
}
