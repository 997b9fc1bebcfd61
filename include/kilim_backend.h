/*
 * The interface between Kilim and a backend in a library of its own.
 *
 * A backend `ID` that a build of Kilim does not hold is looked for as `libbackend_ID.so` (Linux),
 * `libbackend_ID.dylib` (macOS) or `backend_ID.dll` or `libbackend_ID.dll` (Windows), in the folders
 * that the caller names and in those of the environment variable KILIM_BACKEND_PATH. Two functions are
 * looked up in it, kilim_backend_create and kilim_backend_destroy; everything else goes through the
 * table that the first one gives. See docs/backends.md.
 *
 * Rules of the interface:
 *
 * - Strings are UTF-8 and end with a zero. Pointers that a call gets are valid during that call only,
 *   unless it says otherwise. What a backend gives out stays valid until it is destroyed.
 * - `describe`, `supports`, `create_context` and the `infer` of operators may be called by several
 *   threads at once. What concerns one context and its executables is called by one thread at a time,
 *   which need not be the same one every time.
 * - A function that fails says so by its status and, in KilimMessage, in words. It must not throw, nor
 *   leave by longjmp. After a failed run the executable may be written and run again.
 */
#ifndef KILIM_BACKEND_H
#define KILIM_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when what is below changes its meaning or order, or an operator, attribute or variant that
 * docs/attributes.md lists its name or meaning. Fields that are only added at the end of KilimBackend change
 * its size instead; operators, attributes and variants that are only added change nothing. */
#define KILIM_BACKEND_VERSION 1u

#define KILIM_MAX_RANK 16

#if defined(_WIN32)
#define KILIM_EXPORT __declspec(dllexport)
#else
#define KILIM_EXPORT __attribute__((visibility("default")))
#endif

/* How a call ended. */
typedef int32_t KilimStatus;
enum {
    KILIM_OK = 0,
    /* The node, the stage or the system is not one that the backend runs. */
    KILIM_UNSUPPORTED = 1,
    /* The data is out of an operator's domain, an index too large for instance. */
    KILIM_INVALID_VALUE = 2,
    /* The device has not enough memory, or another limit was passed. */
    KILIM_LIMIT = 3,
    /* The device failed. */
    KILIM_DEVICE = 4,
};

/* Element types, numbered as in ONNX's TensorProto.DataType. */
enum {
    KILIM_FLOAT32 = 1,
    KILIM_UINT8 = 2,
    KILIM_INT8 = 3,
    KILIM_UINT16 = 4,
    KILIM_INT16 = 5,
    KILIM_INT32 = 6,
    KILIM_INT64 = 7,
    KILIM_BOOL = 9,
    KILIM_FLOAT16 = 10,
    KILIM_FLOAT64 = 11,
    KILIM_UINT32 = 12,
    KILIM_UINT64 = 13,
    KILIM_BFLOAT16 = 16,
};

/* Takes what a function has to say when it fails. */
typedef struct KilimMessage {
    /* Room for `capacity` bytes; made for snprintf. */
    char *text;
    size_t capacity;
    /* The node of the stage that failed; -1, which stands there before, where it is none. */
    int64_t node;
} KilimMessage;

typedef struct KilimTensor {
    /* Empty but in a stage: `supports` and `infer` see tensors that have no place yet. */
    const char *name;
    int32_t dtype;
    int32_t rank;
    /* `rank` sizes. -1 for one that is not known, in KilimOperator.infer only, as is a rank of -1. */
    const int64_t *shape;
    /* The elements, row-major and dense, where they are known; otherwise NULL. */
    const void *data;
    size_t bytes;
} KilimTensor;

/* What KilimAttribute.values points to. */
enum {
    KILIM_INTS = 1,    /* int64_t; booleans are 0 and 1 */
    KILIM_FLOATS = 2,  /* double */
    KILIM_TEXTS = 3,   /* const char * */
    KILIM_BYTES = 4,   /* unsigned char */
    KILIM_TENSORS = 5, /* KilimTensor */
};

/* An attribute of an operator; docs/attributes.md lists those of Kilim's own. A single value is a list of one;
 * a list of none is KILIM_INTS, whatever its values would be. */
typedef struct KilimAttribute {
    const char *name;
    int32_t kind;
    size_t count;
    const void *values;
} KilimAttribute;

/* Kilim merges nodes before it asks about them: a product or a convolution may have a bias as one input more
 * than ONNX's, and an attribute `activation`, which is `None` where nothing is merged into it. A backend refuses
 * a node with an input or an attribute that it does not know. */
typedef struct KilimNode {
    /* Empty in `infer`. */
    const char *name;
    /* "" for Kilim's own operators, whose meaning is that of the newest opset of ONNX. */
    const char *domain;
    const char *op;
    size_t attribute_count;
    const KilimAttribute *attributes;
    /* NULL in the place of an optional input that is left out. */
    size_t input_count;
    const KilimTensor *const *inputs;
    size_t output_count;
    const KilimTensor *const *outputs;
} KilimNode;

/* The work of a node, for the partitioner. */
typedef struct KilimCost {
    /* Operations; a multiply-add counts two. */
    double flops;
    /* Bytes read and written. */
    double bytes;
} KilimCost;

/* How well a backend handles an element type; each includes those before it. */
enum {
    KILIM_STORAGE = 1,
    KILIM_ARITHMETIC = 2,
    KILIM_FAST = 3,
};

typedef struct KilimDtypeGrade {
    int32_t dtype;
    int32_t grade;
} KilimDtypeGrade;

/* What a backend says of itself. Everything is filled with a default before. */
typedef struct KilimDescription {
    /* The device in words. */
    const char *device;
    size_t dtype_count;
    const KilimDtypeGrade *dtypes;
    /* Offsets in the arena are multiples of this. */
    size_t alignment;
    uint64_t max_tensor_bytes;
    uint64_t max_arena_bytes;
    double flops_per_second;
    double bytes_per_second;
    /* Seconds that starting one kernel costs. */
    double kernel_start;
    /* Seconds that one transfer costs, whatever its size. */
    double transfer_start;
    double transfer_bytes_per_second;
} KilimDescription;

/* Where a tensor of a stage is. */
enum {
    /* A constant of the session. Its data stays valid until the context is released. */
    KILIM_CONSTANT = 1,
    /* Known, but only for this stage. Its data stays valid until the executable is released. */
    KILIM_PLANNED = 2,
    /* In the stage's arena, `offset` bytes from its beginning. Tensors that are never needed at the
     * same time may overlap. */
    KILIM_ARENA = 3,
    /* The bytes of the tensor `of` under another shape. */
    KILIM_ALIAS = 4,
};

typedef struct KilimSlot {
    KilimTensor tensor;
    int32_t place;
    size_t offset;
    size_t of;
    /* Names a constant across the stages of a context, so that it is prepared once. */
    uint64_t key;
} KilimSlot;

#define KILIM_ABSENT SIZE_MAX

typedef struct KilimStep {
    const KilimNode *node;
    /* Tensors of the stage, KILIM_ABSENT for an input that is left out. */
    const size_t *inputs;
    const size_t *outputs;
} KilimStep;

/* A backend's share of the graph, with concrete shapes. */
typedef struct KilimStage {
    size_t tensor_count;
    const KilimSlot *tensors;
    /* In order of execution. */
    size_t step_count;
    const KilimStep *steps;
    /* Part i is the steps from parts[i] to parts[i + 1]; between parts other backends work. */
    size_t part_count;
    const size_t *parts;
    size_t arena_bytes;
} KilimStage;

typedef struct KilimContextOptions {
    /* Threads that the backend may use; 0 leaves it to the backend. */
    size_t threads;
} KilimContextOptions;

/* The element type and shape of an output. */
typedef struct KilimOutput {
    int32_t dtype;
    int32_t rank;
    int64_t shape[KILIM_MAX_RANK];
} KilimOutput;

/* An operator beside Kilim's own: models that have it can be loaded when the backend is there. */
typedef struct KilimOperator {
    const char *domain;
    const char *name;
    void *self;
    /* Fills `outputs`, one for each output of the node. Sizes of inputs may be unknown (-1); those of
     * outputs that follow from them are -1, too. With all sizes known, all outputs must be. */
    KilimStatus (*infer)(void *self, const KilimNode *node, KilimOutput *outputs, KilimMessage *error);
} KilimOperator;

/* A backend. `self` is handed to every function; what is marked optional may be NULL. */
typedef struct KilimBackend {
    /* KILIM_BACKEND_VERSION and sizeof(KilimBackend) when the library was built. */
    uint32_t version;
    uint32_t size;
    void *self;

    /* Optional: overwrites what differs from the defaults. */
    void (*describe)(void *self, KilimDescription *description);

    /* Whether the backend runs exactly this node: KILIM_OK, or KILIM_UNSUPPORTED with the reason.
     * `cost` holds Kilim's own estimate before. */
    KilimStatus (*supports)(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason);

    /* Optional: what the backend keeps for one session. Without it, contexts are NULL. */
    KilimStatus (*create_context)(void *self, const KilimContextOptions *options, void **context, KilimMessage *error);
    void (*release_context)(void *self, void *context);

    /* Makes memory and kernels of a stage. */
    KilimStatus (*prepare)(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error);
    void (*release_executable)(void *self, void *executable);

    /* Gives a tensor its elements. */
    KilimStatus (*write)(void *self, void *executable, size_t tensor, const void *data, size_t bytes, KilimMessage *error);
    /* Runs the steps of a part. */
    KilimStatus (*run)(void *self, void *executable, size_t part, KilimMessage *error);
    /* Takes the elements of a tensor. */
    KilimStatus (*read)(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error);

    /* Optional: before and after the parts of a stage are run. */
    KilimStatus (*begin)(void *self, void *executable, KilimMessage *error);
    KilimStatus (*end)(void *self, void *executable, KilimMessage *error);

    /* Optional: bytes that an executable holds on the device; not those that `allocate` gave. */
    size_t (*bytes)(void *self, void *executable);

    /* Optional. */
    size_t operator_count;
    const KilimOperator *operators;

    /* Optional, but the first three together: the backend's memory is planned. Kilim asks for one
     * block when all stages of a session are planned, binds every executable to it, since they run
     * one after another, and gives it back when it needs a larger one, when a session is cleared and
     * in the end. Sessions may share a block, and a caller may own one. Without these functions, and
     * with a host whose table (KilimHost.size) ends before them, executables hold memory of their own.
     *
     * `*memory` is the backend's name for the block, not NULL; the block begins at a multiple of
     * `alignment` and holds whatever it did before. */
    KilimStatus (*allocate)(void *self, size_t bytes, void **memory, KilimMessage *error);
    void (*release)(void *self, void *memory);
    /* Puts the tensors with the place KILIM_ARENA into a block: called before an executable is first
     * written, run or read, and again whenever it gets another block. What it held is lost then, and
     * the block that it had may be gone. `bytes` is what the executable may use of it. Not called
     * where that is nothing. */
    KilimStatus (*bind)(void *self, void *executable, void *memory, size_t bytes, KilimMessage *error);
    /* Optional: bytes of the block that kernels need for themselves while they run. They begin at
     * `arena_bytes` of the stage, rounded up to `alignment`. */
    size_t (*scratch_bytes)(void *self, void *executable);
    /* Optional: bytes that a tensor takes in a block, if that is not KilimTensor.bytes. */
    size_t (*tensor_bytes)(void *self, const KilimTensor *tensor);
} KilimBackend;

/* Who asks for a backend. */
typedef struct KilimHost {
    /* KILIM_BACKEND_VERSION and sizeof(KilimBackend) of the host. */
    uint32_t version;
    uint32_t size;
    /* Kilim's own version, "0.1.0" for instance. */
    const char *release;
} KilimHost;

/* Opens the device and gives the backend. On failure `*backend` stays NULL. On Linux a copy of the process tries
 * it first, and ends the backend that it got; a call that takes longer than 10 seconds there counts as one that
 * hangs, see KILIM_BACKEND_TRIAL in docs/backends.md. */
KILIM_EXPORT KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **backend, KilimMessage *error);

/* Ends the backend; called once, after everything that it made was released. A program that ends without
 * giving up its runtime does not call it. */
KILIM_EXPORT void kilim_backend_destroy(const KilimBackend *backend);

#ifdef __cplusplus
}
#endif

#endif
