/* SPDX-License-Identifier: Apache-2.0
 * The compiled kernels, embedded as they are. SC_FATBIN is the file's name, given by the build. */
  .section .rodata
  .balign 16
  .global sc_probe_fatbin
  .hidden sc_probe_fatbin
  .type sc_probe_fatbin, @object
sc_probe_fatbin:
  .incbin SC_FATBIN
  .size sc_probe_fatbin, . - sc_probe_fatbin
  .section .note.GNU-stack, "", @progbits
