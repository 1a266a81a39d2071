/* SPDX-License-Identifier: Apache-2.0
 * The runtime's streams, events, host functions and graphs: thin over the driver's. */
#include "rt.h"

/* ---- streams ---- */

RUNTIME(cudaStreamCreate, v3020, (cudaStream_t * pStream), (pStream), cuStreamCreate(pStream, CU_STREAM_DEFAULT))
RUNTIME(cudaStreamCreateWithFlags, v5000, (cudaStream_t * pStream, unsigned flags), (pStream, flags),
        cuStreamCreate(pStream, flags))
RUNTIME(cudaStreamCreateWithPriority, v5050, (cudaStream_t * pStream, unsigned flags, int priority),
        (pStream, flags, priority), cuStreamCreateWithPriority(pStream, flags, priority))
RUNTIME(cudaStreamDestroy, v5050, (cudaStream_t stream), (stream), cuStreamDestroy_v2(stream))
RUNTIME_PT(cudaStreamSynchronize, _ptsz, v3020, v7000, (cudaStream_t stream), (stream),
           TWIN(cuStreamSynchronize, _ptsz)(stream))
RUNTIME_PT(cudaStreamQuery, _ptsz, v3020, v7000, (cudaStream_t stream), (stream), TWIN(cuStreamQuery, _ptsz)(stream))
RUNTIME_PT(cudaStreamWaitEvent, _ptsz, v3020, v7000, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
           (stream, event, flags), TWIN(cuStreamWaitEvent, _ptsz)(stream, event, flags))
RUNTIME_PT(cudaStreamGetFlags, _ptsz, v5050, v7000, (cudaStream_t hStream, unsigned *flags), (hStream, flags),
           TWIN(cuStreamGetFlags, _ptsz)(hStream, flags))
RUNTIME_PT(cudaStreamGetPriority, _ptsz, v5050, v7000, (cudaStream_t hStream, int *priority), (hStream, priority),
           TWIN(cuStreamGetPriority, _ptsz)(hStream, priority))
RUNTIME_PT(cudaStreamGetId, _ptsz, v12000, v12000, (cudaStream_t hStream, unsigned long long *streamId),
           (hStream, streamId), TWIN(cuStreamGetId, _ptsz)(hStream, streamId))
RUNTIME_PT(cudaStreamGetDevice, _ptsz, v12080, v12080, (cudaStream_t hStream, int *device), (hStream, device),
           TWIN(cuStreamGetDevice, _ptsz)(hStream, device))

/* The runtime's callback takes a cudaError_t where the driver's takes a CUresult: one number, one calling convention.
 */
RUNTIME_PT(cudaStreamAddCallback, _ptsz, v5000, v7000,
           (cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned flags),
           (stream, callback, userData, flags),
           TWIN(cuStreamAddCallback, _ptsz)(stream, (CUstreamCallback)(void (*)(void))callback, userData, flags))
RUNTIME_PT(cudaLaunchHostFunc, _ptsz, v10000, v10000, (cudaStream_t stream, cudaHostFn_t fn, void *userData),
           (stream, fn, userData), TWIN(cuLaunchHostFunc, _ptsz)(stream, fn, userData))

/* ---- events ---- */

RUNTIME(cudaEventCreate, v3020, (cudaEvent_t * event), (event), cuEventCreate(event, CU_EVENT_DEFAULT))
RUNTIME(cudaEventCreateWithFlags, v3020, (cudaEvent_t * event, unsigned flags), (event, flags),
        cuEventCreate(event, flags))
RUNTIME_PT(cudaEventRecord, _ptsz, v3020, v7000, (cudaEvent_t event, cudaStream_t stream), (event, stream),
           TWIN(cuEventRecord, _ptsz)(event, stream))
RUNTIME_PT(cudaEventRecordWithFlags, _ptsz, v11010, v11010, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
           (event, stream, flags), TWIN(cuEventRecordWithFlags, _ptsz)(event, stream, flags))
RUNTIME(cudaEventQuery, v3020, (cudaEvent_t event), (event), cuEventQuery(event))
RUNTIME(cudaEventSynchronize, v3020, (cudaEvent_t event), (event), cuEventSynchronize(event))
RUNTIME(cudaEventDestroy, v3020, (cudaEvent_t event), (event), cuEventDestroy_v2(event))
#if CUDART_VERSION >= 13000
RUNTIME(cudaEventElapsedTime, v12080, (float *ms, cudaEvent_t start, cudaEvent_t end), (ms, start, end),
        cuEventElapsedTime_v2(ms, start, end))
#else
RUNTIME(cudaEventElapsedTime, v3020, (float *ms, cudaEvent_t start, cudaEvent_t end), (ms, start, end),
        cuEventElapsedTime_v2(ms, start, end))
#endif

/* ---- capture and graphs ---- */

RUNTIME_PT(cudaStreamBeginCapture, _ptsz, v10000, v10000, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
           (stream, mode), TWIN(cuStreamBeginCapture_v2, _ptsz)(stream, (CUstreamCaptureMode)mode))
RUNTIME_PT(cudaStreamEndCapture, _ptsz, v10000, v10000, (cudaStream_t stream, cudaGraph_t *pGraph), (stream, pGraph),
           TWIN(cuStreamEndCapture, _ptsz)(stream, pGraph))
RUNTIME_PT(cudaStreamIsCapturing, _ptsz, v10000, v10000,
           (cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus), (stream, pCaptureStatus),
           TWIN(cuStreamIsCapturing, _ptsz)(stream, (CUstreamCaptureStatus *)(void *)pCaptureStatus))
#if CUDART_VERSION >= 13000
RUNTIME_PT(cudaStreamGetCaptureInfo, _ptsz, v12030, v12030,
           (cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out, unsigned long long *id_out,
            cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out, const cudaGraphEdgeData **edgeData_out,
            size_t *numDependencies_out),
           (stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out),
           TWIN(cuStreamGetCaptureInfo_v3, _ptsz)(stream, (CUstreamCaptureStatus *)(void *)captureStatus_out,
                                                  (cuuint64_t *)id_out, graph_out, dependencies_out,
                                                  (const CUgraphEdgeData **)(void *)edgeData_out, numDependencies_out))
#endif
RUNTIME(cudaThreadExchangeStreamCaptureMode, v10010, (enum cudaStreamCaptureMode * mode), (mode),
        cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)(void *)mode))

RUNTIME(cudaGraphCreate, v10000, (cudaGraph_t * pGraph, unsigned flags), (pGraph, flags), cuGraphCreate(pGraph, flags))
RUNTIME(cudaGraphDestroy, v10000, (cudaGraph_t graph), (graph), cuGraphDestroy(graph))
RUNTIME(cudaGraphGetNodes, v10000, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes),
        (graph, nodes, numNodes), cuGraphGetNodes(graph, nodes, numNodes))
RUNTIME(cudaGraphInstantiate, v12000, (cudaGraphExec_t * pGraphExec, cudaGraph_t graph, unsigned long long flags),
        (pGraphExec, graph, flags), cuGraphInstantiateWithFlags(pGraphExec, graph, flags))
RUNTIME(cudaGraphInstantiateWithFlags, v11040,
        (cudaGraphExec_t * pGraphExec, cudaGraph_t graph, unsigned long long flags), (pGraphExec, graph, flags),
        cuGraphInstantiateWithFlags(pGraphExec, graph, flags))
RUNTIME(cudaGraphExecDestroy, v10000, (cudaGraphExec_t graphExec), (graphExec), cuGraphExecDestroy(graphExec))
RUNTIME_PT(cudaGraphLaunch, _ptsz, v10000, v10000, (cudaGraphExec_t graphExec, cudaStream_t stream),
           (graphExec, stream), TWIN(cuGraphLaunch, _ptsz)(graphExec, stream))
RUNTIME_PT(cudaGraphUpload, _ptsz, v10000, v10000, (cudaGraphExec_t graphExec, cudaStream_t stream),
           (graphExec, stream), TWIN(cuGraphUpload, _ptsz)(graphExec, stream))
