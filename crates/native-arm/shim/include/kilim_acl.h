/* The C interface between Kilim and the ARM Compute Library (ACL).
 *
 * ACL is a C++ library whose ABI changes with every release. libkilim_acl.so is built against the
 * release that a board has and shows Kilim this interface, which stays the same.
 *
 * There is one function for each family of operators. It asks ACL's own `validate` whether it runs
 * the operator on exactly these tensors and, where the caller wants it, makes the operator. */
#ifndef KILIM_ACL_H
#define KILIM_ACL_H

#include <stddef.h>
#include <stdint.h>

/* Raised with every change of this file. */
#define KILIM_ACL_ABI 4
#define KILIM_ACL_MAX_RANK 6

#ifdef __cplusplus
extern "C" {
#pragma GCC visibility push(default)
#endif

enum kilim_acl_target { KILIM_ACL_NEON, KILIM_ACL_CL };

enum kilim_acl_dtype {
    KILIM_ACL_ABSENT, /* an optional input that is left out */
    KILIM_ACL_F32,
    KILIM_ACL_F16,
    KILIM_ACL_S32,
    KILIM_ACL_QASYMM8,
    KILIM_ACL_QASYMM8_SIGNED,
    KILIM_ACL_QSYMM8_PER_CHANNEL,
};

enum kilim_acl_layout { KILIM_ACL_NO_LAYOUT, KILIM_ACL_NCHW, KILIM_ACL_NHWC };

enum kilim_acl_status {
    KILIM_ACL_OK,
    KILIM_ACL_REFUSED, /* ACL does not run this; the reason says why */
    KILIM_ACL_FAILED,  /* ACL or its device failed; the reason says how */
};

/* A dense tensor. */
typedef struct {
    int32_t dtype;
    int32_t layout;
    uint32_t rank;
    uint32_t dims[KILIM_ACL_MAX_RANK]; /* innermost first */
    /* Quantised types: one scale, or one for each output channel. */
    const float *scales;
    uint32_t scale_count;
    int32_t zero_point;
    /* Not 0: the tensor does not change between runs. */
    int32_t constant;
    /* The elements of a constant; needed only while an operator is made. */
    const void *data;
} kilim_acl_tensor;

typedef struct kilim_acl_operator kilim_acl_operator;

typedef struct {
    int32_t target;
    const kilim_acl_tensor *inputs;
    uint32_t input_count;
    const kilim_acl_tensor *outputs;
    uint32_t output_count;
    /* Takes the operator; NULL only asks. */
    kilim_acl_operator **make;
    /* Takes a sentence that ends with a zero byte where the status is not OK. */
    char *reason;
    size_t reason_size;
} kilim_acl_request;

/* In the order of ACL's ActivationFunction. */
enum kilim_acl_function {
    KILIM_ACL_LOGISTIC,
    KILIM_ACL_TANH,
    KILIM_ACL_RELU,
    KILIM_ACL_BOUNDED_RELU,
    KILIM_ACL_LU_BOUNDED_RELU,
    KILIM_ACL_LEAKY_RELU,
    KILIM_ACL_SOFT_RELU,
    KILIM_ACL_ELU,
    KILIM_ACL_ABS,
    KILIM_ACL_SQUARE,
    KILIM_ACL_SQRT,
    KILIM_ACL_LINEAR,
    KILIM_ACL_IDENTITY,
    KILIM_ACL_HARD_SWISH,
    KILIM_ACL_SWISH, /* from here on not in old releases */
    KILIM_ACL_GELU,
};

/* x -> y; `enabled` is 0 where there is none, in the structures below. */
typedef struct {
    int32_t enabled;
    int32_t function;
    float a;
    float b;
} kilim_acl_activation_info;

/* Strides, padding and dilation of a window over height and width. */
typedef struct {
    uint32_t stride_x, stride_y;
    uint32_t pad_left, pad_right, pad_top, pad_bottom;
    uint32_t dilation_x, dilation_y;
} kilim_acl_window;

/* x, weights, optional bias -> y. Weights are OIHW or OHWI, as the layout says. */
typedef struct {
    kilim_acl_window window;
    uint32_t groups;
    kilim_acl_activation_info activation;
} kilim_acl_convolution_info;

/* x, weights, optional bias -> y. Weights are [c, kh, kw] or [kh, kw, c] of output channels. */
typedef struct {
    kilim_acl_window window;
    uint32_t multiplier;
    kilim_acl_activation_info activation;
} kilim_acl_depthwise_convolution_info;

/* x, weights, optional bias -> y. Weights are [in, out, kh, kw] as OIHW of the forward direction. */
typedef struct {
    kilim_acl_window window;
} kilim_acl_deconvolution_info;

/* x [m, k], weights [n, k], optional bias [n] -> y [m, n]. */
typedef struct {
    kilim_acl_activation_info activation;
} kilim_acl_fully_connected_info;

/* a [m, k], b [k, n] -> alpha a b. */
typedef struct {
    float alpha;
} kilim_acl_gemm_info;

/* a [.., m, k], b [.., k, n], stored with their last two dimensions exchanged where it says so -> y
 * [.., m, n]; not in old releases. */
typedef struct {
    int32_t transpose_a, transpose_b;
} kilim_acl_matmul_info;

/* a [m, k], b [k, n], of quantised types -> y [m, n] in S32: sums of products without the zero points. */
typedef struct {
    int32_t unused;
} kilim_acl_integer_product_info;

/* x -> y. */
typedef struct {
    int32_t max; /* 0 is the average */
    uint32_t kernel_x, kernel_y;
    kilim_acl_window window;
    int32_t exclude_padding;
} kilim_acl_pooling_info;

/* x -> y, over `axis`, counted from the innermost. */
typedef struct {
    float beta;
    uint32_t axis;
    int32_t logarithm; /* of the result */
} kilim_acl_softmax_info;

enum kilim_acl_binary { KILIM_ACL_ADD, KILIM_ACL_SUB, KILIM_ACL_MUL, KILIM_ACL_DIV, KILIM_ACL_MAX, KILIM_ACL_MIN, KILIM_ACL_PRELU };

/* a, b -> y. */
typedef struct {
    int32_t kind;
} kilim_acl_binary_info;

enum kilim_acl_unary { KILIM_ACL_EXP, KILIM_ACL_NEG, KILIM_ACL_LOG, KILIM_ACL_ABSOLUTE, KILIM_ACL_ROUND, KILIM_ACL_FLOOR };

/* x -> y. */
typedef struct {
    int32_t kind;
} kilim_acl_unary_info;

/* x, mean, variance, shift, scale -> y. */
typedef struct {
    float epsilon;
} kilim_acl_batch_normalization_info;

/* Inputs -> y, along `axis`, counted from the innermost. */
typedef struct {
    uint32_t axis;
} kilim_acl_concatenate_info;

/* x -> y; dimension i of y is dimension order[i] of x, innermost first. */
typedef struct {
    uint32_t rank;
    uint32_t order[4];
} kilim_acl_permute_info;

/* x -> y, over height and width. */
typedef struct {
    int32_t bilinear; /* 0 is the nearest */
    int32_t center;   /* samples at the middle of a pixel, not at its corner */
    int32_t align_corners;
} kilim_acl_resize_info;

/* x -> y, from a quantised type to a float. */
typedef struct {
    int32_t unused;
} kilim_acl_dequantize_info;

/* x -> y, from a float or a quantised type to a quantised one. */
typedef struct {
    int32_t unused;
} kilim_acl_quantize_info;

#define KILIM_ACL_FAMILY(name) int32_t kilim_acl_##name(const kilim_acl_request *request, const kilim_acl_##name##_info *info)
KILIM_ACL_FAMILY(activation);
KILIM_ACL_FAMILY(convolution);
KILIM_ACL_FAMILY(depthwise_convolution);
KILIM_ACL_FAMILY(deconvolution);
KILIM_ACL_FAMILY(fully_connected);
KILIM_ACL_FAMILY(gemm);
KILIM_ACL_FAMILY(matmul);
KILIM_ACL_FAMILY(integer_product);
KILIM_ACL_FAMILY(pooling);
KILIM_ACL_FAMILY(softmax);
KILIM_ACL_FAMILY(binary);
KILIM_ACL_FAMILY(unary);
KILIM_ACL_FAMILY(batch_normalization);
KILIM_ACL_FAMILY(concatenate);
KILIM_ACL_FAMILY(permute);
KILIM_ACL_FAMILY(resize);
KILIM_ACL_FAMILY(dequantize);
KILIM_ACL_FAMILY(quantize);

/* KILIM_ACL_ABI of the library. */
uint32_t kilim_acl_abi(void);
/* ACL's version and build options, in its own words. */
const char *kilim_acl_build_info(void);
/* Starts a target. REFUSED where the machine does not have it. Not from two threads at once. */
int32_t kilim_acl_start(int32_t target, char *reason, size_t reason_size);
/* The threads of all NEON operators of the process; 0 lets ACL choose. */
void kilim_acl_set_threads(uint32_t threads);
/* Runs an operator; one thread of the process at a time. `inputs` and `outputs` are the elements of
 * the tensors of its request, constants and absent inputs NULL. An output may be an input, too, of
 * functions that work element by element. */
int32_t kilim_acl_run(kilim_acl_operator *op, const void *const *inputs, void *const *outputs, char *reason, size_t reason_size);
/* Bytes that the operator keeps: constants and padded copies, without ACL's own work space. */
size_t kilim_acl_bytes(const kilim_acl_operator *op);
void kilim_acl_destroy(kilim_acl_operator *op);

#ifdef __cplusplus
#pragma GCC visibility pop
}
#endif
#endif
