/* SPDX-License-Identifier: Apache-2.0
 * The compiled kernels, embedded as they are. SC_FATBIN and SC_NATIVE_FATBIN are files' names, given by the build. */
  .macro embed name, file
  .balign 16
  .global \name
  .hidden \name
  .type \name, @object
\name:
  .incbin "\file"
  .size \name, . - \name
  .endm

  .section .rodata
  embed sc_probe_fatbin, SC_FATBIN
  embed sc_probe_native_fatbin, SC_NATIVE_FATBIN
  .section .note.GNU-stack, "", @progbits
