/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN as both ends know it: the types of its ABI (9, and what 8 has beside them; no header of
 * NVIDIA's is needed to build). Enumerations are `int`, as the ABI has them. The numbers are
 * the same in 8 and 9 but for the statuses (cudnn_status.h). The graph API's own are in
 * cudnn_backend.h.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUDNN_H
#define VCUDA_PROTOCOL_LIBRARIES_CUDNN_H

#include <driver_types.h>
#include <library_types.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/libraries/cudnn_backend.h"
#include "protocol/libraries/cudnn_status.h"

typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;
typedef struct cudnnPoolingStruct *cudnnPoolingDescriptor_t;
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t;
typedef struct cudnnLRNStruct *cudnnLRNDescriptor_t;
typedef struct cudnnSpatialTransformerStruct *cudnnSpatialTransformerDescriptor_t;
typedef struct cudnnOpTensorStruct *cudnnOpTensorDescriptor_t;
typedef struct cudnnReduceTensorStruct *cudnnReduceTensorDescriptor_t;
typedef struct cudnnCTCLossStruct *cudnnCTCLossDescriptor_t;
typedef struct cudnnTensorTransformStruct *cudnnTensorTransformDescriptor_t;
typedef struct cudnnDropoutStruct *cudnnDropoutDescriptor_t;
typedef struct cudnnRNNStruct *cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct *cudnnRNNDataDescriptor_t;
typedef struct cudnnSeqDataStruct *cudnnSeqDataDescriptor_t;
typedef struct cudnnAttnStruct *cudnnAttnDescriptor_t;
typedef struct cudnnPersistentRNNPlan *cudnnPersistentRNNPlan_t;
typedef struct cudnnAlgorithmStruct *cudnnAlgorithmDescriptor_t;
typedef struct cudnnAlgorithmPerformanceStruct *cudnnAlgorithmPerformance_t;
typedef struct cudnnFusedOpsConstParamStruct *cudnnFusedOpsConstParamPack_t;
typedef struct cudnnFusedOpsVariantParamStruct *cudnnFusedOpsVariantParamPack_t;
typedef struct cudnnFusedOpsPlanStruct *cudnnFusedOpsPlan_t;
typedef struct cudnnRuntimeTag_t cudnnRuntimeTag_t;

typedef int cudnnErrQueryMode_t;
enum {
	CUDNN_ERRQUERY_RAWCODE = 0,
	CUDNN_ERRQUERY_NONBLOCKING = 1,
	CUDNN_ERRQUERY_BLOCKING = 2
};
typedef int cudnnDataType_t;
enum {
	CUDNN_DATA_FLOAT = 0,
	CUDNN_DATA_DOUBLE = 1,
	CUDNN_DATA_HALF = 2,
	CUDNN_DATA_INT8 = 3,
	CUDNN_DATA_INT32 = 4,
	CUDNN_DATA_INT8x4 = 5,
	CUDNN_DATA_UINT8 = 6,
	CUDNN_DATA_UINT8x4 = 7,
	CUDNN_DATA_INT8x32 = 8,
	CUDNN_DATA_BFLOAT16 = 9,
	CUDNN_DATA_INT64 = 10,
	CUDNN_DATA_BOOLEAN = 11,
	CUDNN_DATA_FP8_E4M3 = 12,
	CUDNN_DATA_FP8_E5M2 = 13,
	CUDNN_DATA_FAST_FLOAT_FOR_FP8 = 14,
	CUDNN_DATA_FP8_E8M0 = 15,
	CUDNN_DATA_FP4_E2M1 = 16,
	CUDNN_DATA_INT4 = 17,
	CUDNN_DATA_UINT4 = 18,
	CUDNN_DATA_UINT32 = 19,
	CUDNN_DATA_COMPLEX_FP32 = 20,
	CUDNN_DATA_COMPLEX_FP64 = 21,
	CUDNN_DATA_BYTE_BOOLEAN = 22,
	CUDNN_DATA_FP8_E5M3 = 23
};
typedef int cudnnMathType_t;
enum {
	CUDNN_DEFAULT_MATH = 0,
	CUDNN_TENSOR_OP_MATH = 1,
	CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
	CUDNN_FMA_MATH = 3
};
typedef int cudnnNanPropagation_t;
enum { CUDNN_NOT_PROPAGATE_NAN = 0, CUDNN_PROPAGATE_NAN = 1 };
typedef int cudnnCTCGradMode_t;
enum { CUDNN_CTC_ZERO_OOB_GRADIENTS = 0, CUDNN_CTC_SKIP_OOB_GRADIENTS = 1 };
typedef int cudnnTensorFormat_t;
enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1, CUDNN_TENSOR_NCHW_VECT_C = 2 };
typedef int cudnnReduceTensorOp_t;
enum {
	CUDNN_REDUCE_TENSOR_ADD = 0,
	CUDNN_REDUCE_TENSOR_MUL = 1,
	CUDNN_REDUCE_TENSOR_MIN = 2,
	CUDNN_REDUCE_TENSOR_MAX = 3,
	CUDNN_REDUCE_TENSOR_AMAX = 4,
	CUDNN_REDUCE_TENSOR_AVG = 5,
	CUDNN_REDUCE_TENSOR_NORM1 = 6,
	CUDNN_REDUCE_TENSOR_NORM2 = 7,
	CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS = 8
};
typedef int cudnnActivationMode_t;
enum {
	CUDNN_ACTIVATION_SIGMOID = 0,
	CUDNN_ACTIVATION_RELU = 1,
	CUDNN_ACTIVATION_TANH = 2,
	CUDNN_ACTIVATION_CLIPPED_RELU = 3,
	CUDNN_ACTIVATION_ELU = 4,
	CUDNN_ACTIVATION_IDENTITY = 5,
	CUDNN_ACTIVATION_SWISH = 6
};
typedef int cudnnSeverity_t;
enum { CUDNN_SEV_FATAL = 0, CUDNN_SEV_ERROR = 1, CUDNN_SEV_WARNING = 2, CUDNN_SEV_INFO = 3 };
typedef int cudnnConvolutionMode_t;
enum { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 };
typedef int cudnnReorderType_t;
enum { CUDNN_DEFAULT_REORDER = 0, CUDNN_NO_REORDER = 1 };
typedef int cudnnDeterminism_t;
enum { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 };
typedef int cudnnFoldingDirection_t;
enum { CUDNN_TRANSFORM_FOLD = 0, CUDNN_TRANSFORM_UNFOLD = 1 };
typedef int cudnnOpTensorOp_t;
enum {
	CUDNN_OP_TENSOR_ADD = 0,
	CUDNN_OP_TENSOR_MUL = 1,
	CUDNN_OP_TENSOR_MIN = 2,
	CUDNN_OP_TENSOR_MAX = 3,
	CUDNN_OP_TENSOR_SQRT = 4,
	CUDNN_OP_TENSOR_NOT = 5
};
typedef int cudnnReduceTensorIndices_t;
enum { CUDNN_REDUCE_TENSOR_NO_INDICES = 0, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES = 1 };
typedef int cudnnIndicesType_t;
enum {
	CUDNN_32BIT_INDICES = 0,
	CUDNN_64BIT_INDICES = 1,
	CUDNN_16BIT_INDICES = 2,
	CUDNN_8BIT_INDICES = 3
};
typedef int cudnnSoftmaxAlgorithm_t;
enum { CUDNN_SOFTMAX_FAST = 0, CUDNN_SOFTMAX_ACCURATE = 1, CUDNN_SOFTMAX_LOG = 2 };
typedef int cudnnSoftmaxMode_t;
enum { CUDNN_SOFTMAX_MODE_INSTANCE = 0, CUDNN_SOFTMAX_MODE_CHANNEL = 1 };
typedef int cudnnPoolingMode_t;
enum {
	CUDNN_POOLING_MAX = 0,
	CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
	CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2,
	CUDNN_POOLING_MAX_DETERMINISTIC = 3
};
typedef int cudnnLRNMode_t;
enum { CUDNN_LRN_CROSS_CHANNEL_DIM1 = 0 };
typedef int cudnnDivNormMode_t;
enum { CUDNN_DIVNORM_PRECOMPUTED_MEANS = 0 };
typedef int cudnnBatchNormMode_t;
enum {
	CUDNN_BATCHNORM_PER_ACTIVATION = 0,
	CUDNN_BATCHNORM_SPATIAL = 1,
	CUDNN_BATCHNORM_SPATIAL_PERSISTENT = 2
};
typedef int cudnnBatchNormOps_t;
enum {
	CUDNN_BATCHNORM_OPS_BN = 0,
	CUDNN_BATCHNORM_OPS_BN_ACTIVATION = 1,
	CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION = 2
};
typedef int cudnnNormMode_t;
enum { CUDNN_NORM_PER_ACTIVATION = 0, CUDNN_NORM_PER_CHANNEL = 1 };
typedef int cudnnNormAlgo_t;
enum { CUDNN_NORM_ALGO_STANDARD = 0, CUDNN_NORM_ALGO_PERSIST = 1 };
typedef int cudnnNormOps_t;
enum {
	CUDNN_NORM_OPS_NORM = 0,
	CUDNN_NORM_OPS_NORM_ACTIVATION = 1,
	CUDNN_NORM_OPS_NORM_ADD_ACTIVATION = 2
};
typedef int cudnnCausalConv1dActivation_t;
enum { CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY = 0, CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU = 1 };
typedef int cudnnSamplerType_t;
enum { CUDNN_SAMPLER_BILINEAR = 0 };
typedef int cudnnConvolutionFwdAlgo_t;
enum {
	CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
	CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
	CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
	CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
	CUDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
	CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
	CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
	CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
	CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8
};
typedef int cudnnConvolutionBwdFilterAlgo_t;
enum {
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT = 2,
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 = 3,
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD = 4,
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED = 5,
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING = 6,
	CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT = 7
};
typedef int cudnnConvolutionBwdDataAlgo_t;
enum {
	CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
	CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
	CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT = 2,
	CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING = 3,
	CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD = 4,
	CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED = 5,
	CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT = 6
};
typedef int cudnnCTCLossAlgo_t;
enum { CUDNN_CTC_LOSS_ALGO_DETERMINISTIC = 0, CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC = 1 };
typedef int cudnnRNNAlgo_t;
enum {
	CUDNN_RNN_ALGO_STANDARD = 0,
	CUDNN_RNN_ALGO_PERSIST_STATIC = 1,
	CUDNN_RNN_ALGO_PERSIST_DYNAMIC = 2,
	CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3,
	CUDNN_RNN_ALGO_COUNT = 4
};
typedef int cudnnForwardMode_t;
enum { CUDNN_FWD_MODE_INFERENCE = 0, CUDNN_FWD_MODE_TRAINING = 1 };
typedef int cudnnRNNMode_t;
enum { CUDNN_RNN_RELU = 0, CUDNN_RNN_TANH = 1, CUDNN_LSTM = 2, CUDNN_GRU = 3 };
typedef int cudnnRNNBiasMode_t;
enum {
	CUDNN_RNN_NO_BIAS = 0,
	CUDNN_RNN_SINGLE_INP_BIAS = 1,
	CUDNN_RNN_DOUBLE_BIAS = 2,
	CUDNN_RNN_SINGLE_REC_BIAS = 3
};
typedef int cudnnDirectionMode_t;
enum { CUDNN_UNIDIRECTIONAL = 0, CUDNN_BIDIRECTIONAL = 1 };
typedef int cudnnRNNInputMode_t;
enum { CUDNN_LINEAR_INPUT = 0, CUDNN_SKIP_INPUT = 1 };
typedef int cudnnRNNClipMode_t;
enum { CUDNN_RNN_CLIP_NONE = 0, CUDNN_RNN_CLIP_MINMAX = 1 };
typedef int cudnnRNNDataLayout_t;
enum {
	CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0,
	CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1,
	CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2
};
typedef int cudnnSeqDataAxis_t;
enum {
	CUDNN_SEQDATA_TIME_DIM = 0,
	CUDNN_SEQDATA_BATCH_DIM = 1,
	CUDNN_SEQDATA_BEAM_DIM = 2,
	CUDNN_SEQDATA_VECT_DIM = 3
};
typedef int cudnnMultiHeadAttnWeightKind_t;
enum {
	CUDNN_MH_ATTN_Q_WEIGHTS = 0,
	CUDNN_MH_ATTN_K_WEIGHTS = 1,
	CUDNN_MH_ATTN_V_WEIGHTS = 2,
	CUDNN_MH_ATTN_O_WEIGHTS = 3,
	CUDNN_MH_ATTN_Q_BIASES = 4,
	CUDNN_MH_ATTN_K_BIASES = 5,
	CUDNN_MH_ATTN_V_BIASES = 6,
	CUDNN_MH_ATTN_O_BIASES = 7
};
typedef int cudnnWgradMode_t;
enum { CUDNN_WGRAD_MODE_ADD = 0, CUDNN_WGRAD_MODE_SET = 1 };
typedef int cudnnFusedOps_t;
enum {
	CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS = 0,
	CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD = 1,
	CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING = 2,
	CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE = 3,
	CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION = 4,
	CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK = 5,
	CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM = 6
};
typedef int cudnnFusedOpsConstParamLabel_t;
enum {
	CUDNN_PARAM_XDESC = 0,
	CUDNN_PARAM_XDATA_PLACEHOLDER = 1,
	CUDNN_PARAM_BN_MODE = 2,
	CUDNN_PARAM_BN_EQSCALEBIAS_DESC = 3,
	CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER = 4,
	CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER = 5,
	CUDNN_PARAM_ACTIVATION_DESC = 6,
	CUDNN_PARAM_CONV_DESC = 7,
	CUDNN_PARAM_WDESC = 8,
	CUDNN_PARAM_WDATA_PLACEHOLDER = 9,
	CUDNN_PARAM_DWDESC = 10,
	CUDNN_PARAM_DWDATA_PLACEHOLDER = 11,
	CUDNN_PARAM_YDESC = 12,
	CUDNN_PARAM_YDATA_PLACEHOLDER = 13,
	CUDNN_PARAM_DYDESC = 14,
	CUDNN_PARAM_DYDATA_PLACEHOLDER = 15,
	CUDNN_PARAM_YSTATS_DESC = 16,
	CUDNN_PARAM_YSUM_PLACEHOLDER = 17,
	CUDNN_PARAM_YSQSUM_PLACEHOLDER = 18,
	CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC = 19,
	CUDNN_PARAM_BN_SCALE_PLACEHOLDER = 20,
	CUDNN_PARAM_BN_BIAS_PLACEHOLDER = 21,
	CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER = 22,
	CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER = 23,
	CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER = 24,
	CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER = 25,
	CUDNN_PARAM_ZDESC = 26,
	CUDNN_PARAM_ZDATA_PLACEHOLDER = 27,
	CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC = 28,
	CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER = 29,
	CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER = 30,
	CUDNN_PARAM_ACTIVATION_BITMASK_DESC = 31,
	CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER = 32,
	CUDNN_PARAM_DXDESC = 33,
	CUDNN_PARAM_DXDATA_PLACEHOLDER = 34,
	CUDNN_PARAM_DZDESC = 35,
	CUDNN_PARAM_DZDATA_PLACEHOLDER = 36,
	CUDNN_PARAM_BN_DSCALE_PLACEHOLDER = 37,
	CUDNN_PARAM_BN_DBIAS_PLACEHOLDER = 38
};
typedef int cudnnFusedOpsPointerPlaceHolder_t;
enum { CUDNN_PTR_NULL = 0, CUDNN_PTR_ELEM_ALIGNED = 1, CUDNN_PTR_16B_ALIGNED = 2 };
typedef int cudnnFusedOpsVariantParamLabel_t;
enum {
	CUDNN_PTR_XDATA = 0,
	CUDNN_PTR_BN_EQSCALE = 1,
	CUDNN_PTR_BN_EQBIAS = 2,
	CUDNN_PTR_WDATA = 3,
	CUDNN_PTR_DWDATA = 4,
	CUDNN_PTR_YDATA = 5,
	CUDNN_PTR_DYDATA = 6,
	CUDNN_PTR_YSUM = 7,
	CUDNN_PTR_YSQSUM = 8,
	CUDNN_PTR_WORKSPACE = 9,
	CUDNN_PTR_BN_SCALE = 10,
	CUDNN_PTR_BN_BIAS = 11,
	CUDNN_PTR_BN_SAVED_MEAN = 12,
	CUDNN_PTR_BN_SAVED_INVSTD = 13,
	CUDNN_PTR_BN_RUNNING_MEAN = 14,
	CUDNN_PTR_BN_RUNNING_VAR = 15,
	CUDNN_PTR_ZDATA = 16,
	CUDNN_PTR_BN_Z_EQSCALE = 17,
	CUDNN_PTR_BN_Z_EQBIAS = 18,
	CUDNN_PTR_ACTIVATION_BITMASK = 19,
	CUDNN_PTR_DXDATA = 20,
	CUDNN_PTR_DZDATA = 21,
	CUDNN_PTR_BN_DSCALE = 22,
	CUDNN_PTR_BN_DBIAS = 23,
	CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES = 100,
	CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT = 101,
	CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR = 102,
	CUDNN_SCALAR_DOUBLE_BN_EPSILON = 103
};
typedef int cudnnLossNormalizationMode_t;
enum { CUDNN_LOSS_NORMALIZATION_NONE = 0, CUDNN_LOSS_NORMALIZATION_SOFTMAX = 1 };

#define CUDNN_DIM_MAX 8
#define CUDNN_LRN_MIN_N 1
#define CUDNN_LRN_MAX_N 16
#define CUDNN_LRN_MIN_K 1e-5
#define CUDNN_LRN_MIN_BETA 0.01
#define CUDNN_BN_MIN_EPSILON 0.0
#define CUDNN_RNN_PADDED_IO_DISABLED 0
#define CUDNN_RNN_PADDED_IO_ENABLED 1u
#define CUDNN_SEQDATA_DIM_COUNT 4
#define CUDNN_ATTN_QUERYMAP_ALL_TO_ONE 0
#define CUDNN_ATTN_QUERYMAP_ONE_TO_ONE 1u
#define CUDNN_ATTN_DISABLE_PROJ_BIASES 0
#define CUDNN_ATTN_ENABLE_PROJ_BIASES 2u
#define CUDNN_ATTN_WKIND_COUNT 8

/* What a search for an algorithm finds; one layout for the three directions. */
struct cudnn_perf {
	int algo;
	cudnnStatus_t status;
	float time; /* milliseconds */
	size_t memory;
	cudnnDeterminism_t determinism;
	cudnnMathType_t mathType;
	int reserved[3];
};
typedef struct cudnn_perf cudnnConvolutionFwdAlgoPerf_t;
typedef struct cudnn_perf cudnnConvolutionBwdDataAlgoPerf_t;
typedef struct cudnn_perf cudnnConvolutionBwdFilterAlgoPerf_t;
_Static_assert(sizeof(struct cudnn_perf) == 48, "as in cuDNN");

/* cuDNN 8 alone. */
typedef struct {
	int algo;
} cudnnAlgorithm_t;

typedef struct {
	unsigned cudnn_version;
	cudnnStatus_t cudnnStatus;
	unsigned time_sec;
	unsigned time_usec;
	unsigned time_delta;
	cudnnHandle_t handle;
	cudaStream_t stream;
	unsigned long long pid;
	unsigned long long tid;
	int cudaDeviceId;
	int reserved[15];
} cudnnDebug_t;
typedef void (*cudnnCallback_t)(
	cudnnSeverity_t sev, void *udata, const cudnnDebug_t *dbg, const char *msg);

#endif
