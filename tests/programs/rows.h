/* SPDX-License-Identifier: Apache-2.0
 * What each known sequence of CUDA calls must count: DESIGN.md's table of sequences and its words, one row each. The
 * programs make the calls inside an NVTX range named after the row; the checker compares the trace's count of that
 * range with the row. */
#ifndef SC_TEST_ROWS_H
#define SC_TEST_ROWS_H

#define SC_ROW_DOMAIN "synccount.test" /* the NVTX domain of the rows' ranges */
#define SC_ROW_ANY (-1)                /* this count is not what the row is about */

/* Everything not named in a row must be 0. */
struct sc_row_counts {
  int explicit_, copy, pageable, implicit; /* syncs by class */
  int read_backs, uploads;                 /* of these syncs: read-backs, blocking uploads */
  int poll_waits, uncertain, failed, captured, lifecycle;
  int launches; /* kernel and graph launches */
  int idle;     /* of the syncs: nothing was outstanding. Compared only where a row names it */
};

struct sc_row {
  const char *name, *sequence;
  struct sc_row_counts expect;
};

/* A few rows mean the same in both builds of the runtime program but count differently: in a build with per-thread
 * default streams, stream 0 is cudaStreamPerThread. */
#define SC_ROWS_LEGACY_DEFAULT(X)                                                                                     \
  X(default_then_legacy, "pageable D2H on stream 0, synchronise of cudaStreamLegacy", .pageable = 1, .read_backs = 1) \
  X(default_then_per_thread, "pageable D2H on stream 0, synchronise of cudaStreamPerThread", .pageable = 1,           \
    .explicit_ = 1, .read_backs = 1)
#define SC_ROWS_PER_THREAD_DEFAULT(X)                                                                             \
  X(default_then_legacy, "pageable D2H on stream 0 (per thread), synchronise of cudaStreamLegacy", .pageable = 1, \
    .explicit_ = 1, .read_backs = 1)                                                                              \
  X(default_then_per_thread, "pageable D2H on stream 0 (per thread), synchronise of cudaStreamPerThread",         \
    .pageable = 1, .read_backs = 1)

#define SC_ROWS_RUNTIME(X)                                                                                            \
  /* The table. */                                                                                                    \
  X(pinned_d2h, "async D2H to pinned, no synchronise", 0)                                                             \
  X(pinned_d2h_launches_sync, "pinned D2H, launches, stream synchronise", .explicit_ = 1, .read_backs = 1,            \
    .launches = 2)                                                                                                    \
  X(item, "pinned D2H, stream synchronise (.item())", .explicit_ = 1, .read_backs = 1)                                \
  X(two_pinned_d2h_sync, "two pinned D2H, one stream synchronise", .explicit_ = 1, .read_backs = 1)                   \
  X(tolist, "pageable D2H, stream synchronise (.tolist())", .pageable = 1, .read_backs = 1)                           \
  X(two_pageable_d2h_sync, "two pageable D2H, one stream synchronise", .pageable = 2, .read_backs = 2)                \
  X(pageable_d2h_launch_sync, "pageable D2H, launch, stream synchronise", .pageable = 1, .explicit_ = 1,              \
    .read_backs = 1, .launches = 1)                                                                                   \
  X(memcpy_d2h_sync_own, "cudaMemcpy D2H, synchronise of its own stream", .copy = 1, .read_backs = 1)                 \
  X(memcpy_d2h_device_sync, "cudaMemcpy D2H, device synchronise", .copy = 1, .explicit_ = 1, .read_backs = 1)         \
  X(memcpy_d2h_event_sync, "cudaMemcpy D2H, event synchronise", .copy = 1, .explicit_ = 1, .read_backs = 1)           \
  X(memcpy_d2h_other_sync, "cudaMemcpy D2H, synchronise of another stream", .copy = 1, .explicit_ = 1,                \
    .read_backs = 1)                                                                                                  \
  X(upload_pinned_sync, "async H2D from pinned, stream synchronise", .explicit_ = 1, .uploads = 1)                    \
  X(upload_pageable_sync, "async H2D from pageable, stream synchronise (.to(device))", .explicit_ = 1, .uploads = 1)  \
  X(memcpy_h2d_pageable, "cudaMemcpy H2D from pageable", .copy = 1, .uploads = 1)                                     \
  X(memcpy_h2d_pinned, "cudaMemcpy H2D from pinned", .copy = 1, .uploads = 1)                                         \
  X(memcpy_h2h, "cudaMemcpy H2H", .copy = 1)                                                                          \
  X(to_symbol, "cudaMemcpyToSymbol", .copy = 1, .uploads = 1)                                                         \
  X(from_symbol, "cudaMemcpyFromSymbol", .copy = 1, .read_backs = 1)                                                  \
  X(idle_sync, "stream synchronise with nothing outstanding", .explicit_ = 1, .idle = 1)                              \
  X(copy_on_thread_a, "copy on thread A, synchronise on thread B: A's part", 0)                                       \
  X(sync_on_thread_b, "copy on thread A, synchronise on thread B: B's part", .explicit_ = 1)                          \
  X(graph_launch_sync, "graph launch, stream synchronise", .explicit_ = 1, .launches = 1)                             \
  X(captured_pageable_d2h, "pageable D2H while its stream is captured", .captured = SC_ROW_ANY, .failed = SC_ROW_ANY) \
  X(free_null, "cudaFree(NULL)", 0)                                                                                   \
  X(free_of_async_pointer, "cudaFree of a cudaMallocAsync pointer", 0)                                                \
  /* explicit */                                                                                                      \
  X(device_sync, "device synchronise", .explicit_ = 1)                                                                \
  X(event_sync, "event record, event synchronise", .explicit_ = 1)                                                    \
  X(event_sync_sleeping, "the same, event made with cudaEventBlockingSync", .explicit_ = 1)                           \
  X(device_sync_after_d2h, "pinned D2H, device synchronise", .explicit_ = 1, .read_backs = 1)                         \
  X(event_sync_after_d2h, "pinned D2H, event record, event synchronise", .explicit_ = 1, .read_backs = 1)             \
  /* copy */                                                                                                          \
  X(memcpy_d2h_pageable, "cudaMemcpy D2H to pageable", .copy = 1, .read_backs = 1)                                    \
  X(memcpy_d2h_pinned, "cudaMemcpy D2H to pinned", .copy = 1, .read_backs = 1)                                        \
  X(memcpy_d2d, "cudaMemcpy D2D", 0)                                                                                  \
  X(memcpy_default_d2h, "cudaMemcpyDefault, device to pinned", .copy = 1, .read_backs = 1)                            \
  X(memcpy_default_h2d, "cudaMemcpyDefault, pageable to device", .copy = 1, .uploads = 1)                             \
  X(memcpy_default_d2d, "cudaMemcpyDefault, device to device", 0)                                                     \
  X(memcpy_2d_d2h, "cudaMemcpy2D D2H", .copy = 1, .read_backs = 1)                                                    \
  X(memcpy_3d_d2h, "cudaMemcpy3D D2H", .copy = 1, .read_backs = 1)                                                    \
  X(memcpy_to_array, "cudaMemcpy2DToArray from pageable", .copy = 1, .uploads = 1)                                    \
  X(memcpy_from_array, "cudaMemcpy2DFromArray to pageable", .copy = 1, .read_backs = 1)                               \
  X(memcpy_peer, "cudaMemcpyPeer", 0)                                                                                 \
  X(memcpy_d2h_launch_sync, "cudaMemcpy D2H, launch on stream 0, synchronise of stream 0", .copy = 1, .explicit_ = 1, \
    .read_backs = 1, .launches = 1)                                                                                   \
  X(memset_pinned, "cudaMemset of pinned host memory", .copy = 1)                                                     \
  X(memset_managed, "cudaMemset of managed memory", .copy = 1)                                                        \
  X(memset_2d_pinned, "cudaMemset2D of pinned host memory", .copy = 1)                                                \
  X(memset_device, "cudaMemset of device memory", 0)                                                                  \
  X(memset_async_pinned, "cudaMemsetAsync of pinned host memory", 0)                                                  \
  X(memset_async_device, "cudaMemsetAsync of device memory", 0)                                                       \
  /* pageable */                                                                                                      \
  X(pageable_d2h, "async D2H to pageable, no synchronise", .pageable = 1, .read_backs = 1)                            \
  X(pageable_d2h_other_sync, "pageable D2H, synchronise of another stream", .pageable = 1, .explicit_ = 1,            \
    .read_backs = 1)                                                                                                  \
  X(pageable_d2h_event_sync, "pageable D2H, event synchronise", .pageable = 1, .explicit_ = 1, .read_backs = 1)       \
  X(async_h2h_pageable, "cudaMemcpyAsync pinned to pageable", .pageable = 1)                                          \
  X(async_managed_pageable, "cudaMemcpyAsync managed to pageable", .pageable = 1, .read_backs = 1)                    \
  X(async_default_pageable, "cudaMemcpyAsync cudaMemcpyDefault, device to pageable", .pageable = 1, .read_backs = 1)  \
  X(async_to_managed, "cudaMemcpyAsync device to managed", 0)                                                         \
  X(async_2d_pageable, "cudaMemcpy2DAsync to pageable", .pageable = 1, .read_backs = 1)                               \
  X(async_3d_pageable, "cudaMemcpy3DAsync to pageable", .pageable = 1, .read_backs = 1)                               \
  X(async_3d_pinned, "cudaMemcpy3DAsync to pinned", 0)                                                                \
  X(async_from_array_pageable, "cudaMemcpy2DFromArrayAsync to pageable", .pageable = 1, .read_backs = 1)              \
  X(async_from_symbol_pageable, "cudaMemcpyFromSymbolAsync to pageable", .pageable = 1, .read_backs = 1)              \
  X(batch_pageable, "cudaMemcpyBatchAsync, one copy, device to pageable", .pageable = 1, .read_backs = 1)             \
  X(batch_pinned, "cudaMemcpyBatchAsync, one copy, device to pinned", 0)                                              \
  /* memory kinds */                                                                                                  \
  X(pinned_interior, "async D2H into the middle of pinned memory", 0)                                                 \
  X(host_alloc_mapped, "async D2H to cudaHostAlloc(mapped) memory", 0)                                                \
  X(registered, "async D2H to registered memory", 0)                                                                  \
  X(unregistered, "async D2H to memory whose registration has ended", .pageable = 1, .read_backs = 1)                 \
  X(beside_registered, "async D2H to pageable memory beside a registered block", .pageable = 1, .read_backs = 1)      \
  /* implicit */                                                                                                      \
  X(free_device, "cudaFree", .implicit = 1)                                                                           \
  X(free_managed, "cudaFree of managed memory", .implicit = 1)                                                        \
  X(free_array, "cudaFreeArray", .implicit = 1)                                                                       \
  X(free_mipmapped, "cudaFreeMipmappedArray", .implicit = 1)                                                          \
  X(free_host, "cudaFreeHost", .implicit = 1)                                                                         \
  X(unregister, "cudaHostUnregister", .implicit = 1)                                                                  \
  /* not blocking */                                                                                                  \
  X(free_async, "cudaFreeAsync", 0)                                                                                   \
  X(allocate, "cudaMalloc, cudaMallocHost, cudaHostAlloc, cudaMallocManaged, cudaMallocAsync, cudaHostRegister", 0)   \
  X(destroy, "stream and event destroy", 0)                                                                           \
  X(async_upload, "async H2D, pinned and pageable, no synchronise", 0)                                                \
  X(memcpy_size_0, "cudaMemcpy of 0 bytes", 0)                                                                        \
  X(pageable_d2h_size_0, "async D2H to pageable of 0 bytes", 0)                                                       \
  X(memset_size_0, "cudaMemset of 0 bytes of pinned memory", 0)                                                       \
  X(launch, "launch alone", .launches = 1)                                                                            \
  X(host_function, "cudaLaunchHostFunc", 0)                                                                           \
  X(prefetch, "cudaMemPrefetchAsync", 0)                                                                              \
  X(captured_pinned_d2h, "pinned D2H while its stream is captured", 0)                                                \
  X(captured_on_other_stream, "pageable D2H while another stream is captured", .pageable = 1, .read_backs = 1)        \
  X(graph_destroy, "cudaGraphExecDestroy, cudaGraphDestroy", .lifecycle = 2)                                          \
  X(pool_trim, "cudaMemPoolTrimTo", .lifecycle = 1)                                                                   \
  /* polls */                                                                                                         \
  X(poll_stream, "cudaStreamQuery: not ready, ..., ready", .poll_waits = 1)                                           \
  X(poll_event, "cudaEventQuery: not ready, ..., ready", .poll_waits = 1)                                             \
  X(poll_twice, "the same, twice", .poll_waits = 2)                                                                   \
  X(poll_ready, "a first query that is ready", 0)                                                                     \
  X(poll_given_up, "not-ready queries alone", 0)                                                                      \
  X(poll_interrupted, "not ready, another watched call, ready", 0)                                                    \
  X(poll_two_objects, "not ready on a stream, ready on another", 0)                                                   \
  /* refused */                                                                                                       \
  X(failed_memcpy, "cudaMemcpy to a null pointer", .failed = 1)                                                       \
  X(failed_free, "cudaFree of a pointer that was never allocated", .failed = 1)                                       \
  X(failed_capture_sync, "stream synchronise of a stream being captured", .failed = 1)                                \
  X(failed_capture_event, "event synchronise of an event recorded in a capture", .failed = 1)                         \
  X(failed_then_item, "a refused cudaMemcpy, then .item()", .failed = 1, .explicit_ = 1, .read_backs = 1)

#define SC_ROWS_DRIVER(X)                                                                                             \
  X(pinned_d2h, "cuMemcpyDtoHAsync to pinned, no synchronise", 0)                                                     \
  X(pinned_d2h_launches_sync, "pinned D2H, launches, stream synchronise", .explicit_ = 1, .read_backs = 1,            \
    .launches = 2)                                                                                                    \
  X(item, "pinned D2H, stream synchronise", .explicit_ = 1, .read_backs = 1)                                          \
  X(two_pinned_d2h_sync, "two pinned D2H, one stream synchronise", .explicit_ = 1, .read_backs = 1)                   \
  X(tolist, "pageable D2H, stream synchronise", .pageable = 1, .read_backs = 1)                                       \
  X(two_pageable_d2h_sync, "two pageable D2H, one stream synchronise", .pageable = 2, .read_backs = 2)                \
  X(pageable_d2h_launch_sync, "pageable D2H, launch, stream synchronise", .pageable = 1, .explicit_ = 1,              \
    .read_backs = 1, .launches = 1)                                                                                   \
  X(memcpy_d2h_sync_own, "cuMemcpyDtoH, synchronise of its own stream", .copy = 1, .read_backs = 1)                   \
  X(memcpy_d2h_ctx_sync, "cuMemcpyDtoH, context synchronise", .copy = 1, .explicit_ = 1, .read_backs = 1)             \
  X(memcpy_d2h_event_sync, "cuMemcpyDtoH, event synchronise", .copy = 1, .explicit_ = 1, .read_backs = 1)             \
  X(memcpy_d2h_other_sync, "cuMemcpyDtoH, synchronise of another stream", .copy = 1, .explicit_ = 1, .read_backs = 1) \
  X(upload_pinned_sync, "cuMemcpyHtoDAsync from pinned, stream synchronise", .explicit_ = 1, .uploads = 1)            \
  X(upload_pageable_sync, "cuMemcpyHtoDAsync from pageable, stream synchronise", .explicit_ = 1, .uploads = 1)        \
  X(memcpy_h2d, "cuMemcpyHtoD", .copy = 1, .uploads = 1)                                                              \
  X(memcpy_d2d, "cuMemcpyDtoD", 0)                                                                                    \
  X(memcpy_unified_d2h, "cuMemcpy, device to pinned", .copy = 1, .read_backs = 1)                                     \
  X(memcpy_unified_h2d, "cuMemcpy, pageable to device", .copy = 1, .uploads = 1)                                      \
  X(memcpy_unified_d2d, "cuMemcpy, device to device", 0)                                                              \
  X(memcpy_unified_h2h, "cuMemcpy, pinned to pinned", .copy = 1)                                                      \
  X(memcpy_2d_d2h, "cuMemcpy2D, device to host", .copy = 1, .read_backs = 1)                                          \
  X(memcpy_from_array, "cuMemcpyAtoH", .copy = 1, .read_backs = 1)                                                    \
  X(async_unified_pageable, "cuMemcpyAsync, device to pageable", .pageable = 1, .read_backs = 1)                      \
  X(async_unified_pinned, "cuMemcpyAsync, device to pinned", 0)                                                       \
  X(async_2d_pageable, "cuMemcpy2DAsync, device to pageable", .pageable = 1, .read_backs = 1)                         \
  X(default_then_legacy, "pageable D2H on stream 0, synchronise of CU_STREAM_LEGACY", .pageable = 1, .read_backs = 1) \
  X(default_then_per_thread, "pageable D2H on stream 0, synchronise of CU_STREAM_PER_THREAD", .pageable = 1,          \
    .explicit_ = 1, .read_backs = 1)                                                                                  \
  X(idle_sync, "stream synchronise with nothing outstanding", .explicit_ = 1, .idle = 1)                              \
  X(ctx_sync, "cuCtxSynchronize", .explicit_ = 1)                                                                     \
  X(event_sync, "event record, event synchronise", .explicit_ = 1)                                                    \
  X(sync_on_thread_b, "copy on thread A, synchronise on thread B: B's part", .explicit_ = 1)                          \
  X(graph_launch_sync, "cuGraphLaunch, stream synchronise", .explicit_ = 1, .launches = 1)                            \
  X(captured_pageable_d2h, "pageable D2H while its stream is captured", .captured = SC_ROW_ANY, .failed = SC_ROW_ANY) \
  X(memset_pinned, "cuMemsetD8 of pinned host memory", .copy = 1)                                                     \
  X(memset_managed, "cuMemsetD32 of managed memory", .copy = 1)                                                       \
  X(memset_device, "cuMemsetD8 of device memory", 0)                                                                  \
  X(memset_async_pinned, "cuMemsetD8Async of pinned host memory", 0)                                                  \
  X(registered, "async D2H to registered memory", 0)                                                                  \
  X(unregistered, "async D2H to memory whose registration has ended", .pageable = 1, .read_backs = 1)                 \
  X(free_device, "cuMemFree", .implicit = 1)                                                                          \
  X(free_managed, "cuMemFree of managed memory", .implicit = 1)                                                       \
  X(free_array, "cuArrayDestroy", .implicit = 1)                                                                      \
  X(free_host, "cuMemFreeHost", .implicit = 1)                                                                        \
  X(unregister, "cuMemHostUnregister", .implicit = 1)                                                                 \
  X(free_null, "cuMemFree(0)", .failed = SC_ROW_ANY)                                                                  \
  X(free_of_async_pointer, "cuMemFree of a cuMemAllocAsync pointer", 0)                                               \
  X(free_async, "cuMemFreeAsync", 0)                                                                                  \
  X(allocate, "cuMemAlloc, cuMemAllocHost, cuMemHostAlloc, cuMemAllocManaged, cuMemAllocAsync, cuMemHostRegister", 0) \
  X(destroy, "stream and event destroy", 0)                                                                           \
  X(memcpy_size_0, "cuMemcpyDtoH of 0 bytes", 0)                                                                      \
  X(launch, "cuLaunchKernel alone", .launches = 1)                                                                    \
  X(poll_stream, "cuStreamQuery: not ready, ..., ready", .poll_waits = 1)                                             \
  X(poll_event, "cuEventQuery: not ready, ..., ready", .poll_waits = 1)                                               \
  X(poll_ready, "a first query that is ready", 0)                                                                     \
  X(failed_memcpy, "cuMemcpyDtoH to a null pointer", .failed = 1)                                                     \
  X(failed_free, "cuMemFree of a pointer that was never allocated", .failed = 1)                                      \
  X(failed_capture_sync, "stream synchronise of a stream being captured", .failed = 1)

#endif
