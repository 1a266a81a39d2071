/* SPDX-License-Identifier: Apache-2.0
 * Where a CUDA call's arguments lie. CUPTI hands a callback a pointer to a struct that belongs to the exact name
 * of the call (cuMemcpyDtoH and cuMemcpyDtoH_v2 differ, batch copies changed in 13.0), so layouts are keyed by that. */
#ifndef SC_TRACER_LAYOUT_H
#define SC_TRACER_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SC_DOMAIN_DRIVER = 1, SC_DOMAIN_RUNTIME = 2, SC_DOMAIN_RESOURCE = 3 }; /* CUPTI's numbers */

struct sc_field { /* size 0: this call has no such argument */
  uint16_t offset;
  uint8_t size; /* 1, 2, 4 or 8 */
};

enum sc_form { /* how dst, src and bytes are found */
  SC_FORM_PLAIN = 0,       /* each is an argument */
  SC_FORM_RUNTIME_3D,      /* `block` points to struct cudaMemcpy3DParms */
  SC_FORM_RUNTIME_3D_PEER, /* struct cudaMemcpy3DPeerParms */
  SC_FORM_DRIVER_2D,       /* CUDA_MEMCPY2D */
  SC_FORM_DRIVER_3D,       /* CUDA_MEMCPY3D */
  SC_FORM_DRIVER_3D_PEER,  /* CUDA_MEMCPY3D_PEER */
  SC_FORM_BATCH,           /* dst, src and bytes are arrays of `rows` elements */
  SC_FORM_RUNTIME_3D_BATCH, /* `block`: array of `rows` struct cudaMemcpy3DBatchOp */
  SC_FORM_DRIVER_3D_BATCH,  /* the same of CUDA_MEMCPY3D_BATCH_OP */
  SC_FORM_PITCHED,         /* memset: struct cudaPitchedPtr at dst, struct cudaExtent at bytes */
  SC_FORM_BATCH_SIZES,     /* prefetch and discard: bytes is an array of `rows` elements */
  SC_FORM_DRIVER_CONFIG,   /* launch: `block` points to CUlaunchConfig */
};

enum sc_role { /* what the call changes in what we know, besides being recorded (or not) as its enum sc_op says */
  SC_ROLE_NONE = 0,
  SC_ROLE_FREE,           /* `object`: the pointer; forgotten at entry, before anybody can get the address again */
  SC_ROLE_ALLOC_DEVICE,   /* `out`: where the pointer is written; `bytes` (times `rows`) */
  SC_ROLE_ALLOC_PITCH,    /* `out`, and `block`: where the pitch is written; `rows` */
  SC_ROLE_ALLOC_3D,       /* `out`: struct cudaPitchedPtr *; `bytes`: struct cudaExtent */
  SC_ROLE_ALLOC_PINNED,
  SC_ROLE_ALLOC_MANAGED,
  SC_ROLE_ALLOC_ASYNC,    /* from the device's pool */
  SC_ROLE_ALLOC_POOL,     /* from the pool `object` */
  SC_ROLE_ALLOC_ARRAY,    /* `out`: array handle; `block`: channel description */
  SC_ROLE_FREE_ARRAY,
  SC_ROLE_REGISTER,       /* `object`, `bytes` */
  SC_ROLE_VMM_CREATE,     /* `out`: handle; `block`: CUmemAllocationProp */
  SC_ROLE_VMM_MAP,        /* `object`: address, `bytes`, `src`: handle */
  SC_ROLE_VMM_UNMAP,      /* `object`: address, `bytes` */
  SC_ROLE_POOL_CREATE,    /* `out`: pool; `block`: properties */
  SC_ROLE_POOL_DEVICE,    /* `out`: a device's own pool */
  SC_ROLE_POOL_LOCATION,  /* `out`: pool; `block`: location; `kind`: allocation type */
  SC_ROLE_MAPPED_BUFFER,  /* external memory, `out`: pointer; `block`: struct cudaExternalMemoryBufferDesc */
  SC_ROLE_IMPORT,         /* memory appears whose size or place is not told */
  SC_ROLE_CAPTURE_BEGIN,  /* `stream` */
  SC_ROLE_CAPTURE_END,
  SC_ROLE_EVENT_RECORD,   /* `object`: event, `stream` */
  SC_ROLE_STREAM_WAIT,    /* `stream` waits for `object` */
  SC_ROLE_STREAM_DESTROY, /* `object`: stream */
  SC_ROLE_EVENT_CREATE,   /* `out`: event; `kind`: flags, if any */
  SC_ROLE_EVENT_DESTROY,  /* `object` */
  SC_ROLE_DEVICE_FLAGS,   /* `kind`: scheduling flags of the device `object`, or of the current one */
  SC_ROLE_DEVICE_RESET,   /* the current context's memory is gone */
};

enum sc_layout_flag {
  SC_LAYOUT_DST_ARRAY = 1,
  SC_LAYOUT_SRC_ARRAY = 2,
  SC_LAYOUT_DST_DEVICE = 4, /* a symbol, or a device pointer by the API's type: device unless it is known better */
  SC_LAYOUT_SRC_DEVICE = 8,
};

struct sc_layout {
  const char *name; /* exact, as cuptiGetCallbackName gives it */
  uint8_t domain;
  uint8_t form;    /* enum sc_form */
  uint8_t role;    /* enum sc_role */
  uint8_t flags;   /* enum sc_layout_flag */
  uint8_t element; /* bytes per element when `bytes` counts elements; 0 is 1 */
  struct sc_field stream, object, dst, src, bytes, rows, kind, block, out;
};

/* The layout of exactly this name in this domain, or NULL. */
const struct sc_layout *sc_layout_find(uint8_t domain, const char *name);
/* All of them, for the tests. */
const struct sc_layout *sc_layout_all(size_t *count);

static inline uint64_t sc_field_read(const void *params, struct sc_field field) {
  const unsigned char *at = (const unsigned char *)params + field.offset;
  uint64_t value = 0;
  switch (field.size) {
  case 8: memcpy(&value, at, 8); break;
  case 4: { uint32_t v; memcpy(&v, at, 4); value = v; break; }
  case 2: { uint16_t v; memcpy(&v, at, 2); value = v; break; }
  case 1: value = *at; break;
  default: break;
  }
  return value;
}

static inline const void *sc_field_pointer(const void *params, struct sc_field field) {
  return (const void *)(uintptr_t)sc_field_read(params, field);
}

#endif
