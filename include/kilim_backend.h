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
 * its size instead, as do fields at the end of KilimDescription, KilimContextOptions and KilimStage, which a library
 * leaves alone where KILIM_HOST_HAS says so; operators, attributes and variants that are only added change nothing. */
#define KILIM_BACKEND_VERSION 1u

/* Whether the Kilim that asks for a backend knows a field of KilimBackend, and what came with it. */
#define KILIM_HOST_HAS(host, field) \
    ((host)->size >= offsetof(KilimBackend, field) + sizeof(((KilimBackend *)0)->field))

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
    /* Empty where the tensor has no name: of a node that mixed precision asks about, and of an attribute's tensors within a
     * list. */
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

/* How memory of the user's is named. */
enum {
    /* KilimHandle.value is the address of host memory. */
    KILIM_HANDLE_HOST = 1,
    /* A file descriptor of a dma-buf. */
    KILIM_HANDLE_DMA_BUF = 2,
    /* A file descriptor of a dma-buf that the host must neither read nor write. */
    KILIM_HANDLE_DMA_BUF_PROTECTED = 3,
    /* An AHardwareBuffer *. */
    KILIM_HANDLE_HARDWARE_BUFFER = 4,
    /* What the backend knows the memory by, a cl_mem for instance, of the kind that KilimHandleKind.name says. */
    KILIM_HANDLE_OWN = 5,
};

typedef struct KilimHandleKind {
    int32_t kind;
    /* The backend's own name for a KILIM_HANDLE_OWN, "cl_mem" for instance; NULL for every other kind. */
    const char *name;
} KilimHandleKind;

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

    /* What follows is there where KILIM_HOST_HAS(host, options). */

    /* Layouts of spatial tensors that convolutions and their like read, the fastest first; without any, KILIM_NCHW.
     * Operators have the attribute `channels_last` in KILIM_NHWC. */
    size_t layout_count;
    const int32_t *layouts;
    /* 0 where a session has one set of input shapes; 1, the default, where it may be planned again for others. */
    int32_t dynamic_shapes;
    /* What is computed in float16; KILIM_HALF_BY_GRADE, the default, is KILIM_HALF_KEPT where float16 is KILIM_FAST,
     * else KILIM_HALF_OFF. */
    int32_t half;
    /* How quantised tensors may be computed; KILIM_QUANTIZED_EXACT by default. */
    int32_t quantized;
    /* Where the backend computes; KILIM_MEMORY_DEVICE by default. KILIM_MEMORY_HOST takes `attach`. */
    int32_t memory;

    /* What follows is there where KILIM_HOST_HAS(host, import_memory). */

    /* The kinds of the user's memory that `import_memory` takes. With KILIM_MEMORY_HOST, KILIM_HANDLE_HOST is taken without
     * it: the memory comes by `attach`. */
    size_t handle_kind_count;
    const KilimHandleKind *handle_kinds;
} KilimDescription;

/* Memory of the user's that a tensor lies in. */
typedef struct KilimHandle {
    KilimHandleKind kind;
    /* An address, a file descriptor, or what the backend knows the memory by. */
    uint64_t value;
    /* The tensor begins `offset` bytes behind the beginning of the memory. From there on it may use `bytes` bytes, which are
     * at least KilimTensor.bytes. */
    size_t offset;
    size_t bytes;
} KilimHandle;

/* Where a backend's tensors are. */
enum {
    /* What the backend reads is written to it, what it computes is read. */
    KILIM_MEMORY_DEVICE = 1,
    /* The backend reads and writes host memory in place. */
    KILIM_MEMORY_HOST = 2,
};

/* Layouts of spatial tensors. */
enum {
    KILIM_NCHW = 1,
    KILIM_NHWC = 2,
};

/* What a backend computes in half precision. */
enum {
    KILIM_HALF_BY_GRADE = -1,
    KILIM_HALF_OFF = 0,
    /* Nodes that mixed precision chooses. */
    KILIM_HALF_CHOSEN = 1,
    /* Models of half precision, too. */
    KILIM_HALF_KEPT = 2,
};

/* The arithmetic of quantised tensors. */
enum {
    /* The same bytes as on every other backend. */
    KILIM_QUANTIZED_EXACT = 0,
    /* At most a step of quantisation off in each operator, where the backend has nothing exact. */
    KILIM_QUANTIZED_NATIVE = 1,
};

/* What the value of an option may be. */
enum {
    KILIM_OPTION_SWITCH = 1,  /* "on" or "off" */
    KILIM_OPTION_INTEGER = 2, /* a decimal number that fits int64_t */
    KILIM_OPTION_NUMBER = 3,  /* a finite decimal number */
    KILIM_OPTION_TEXT = 4,    /* any text */
    KILIM_OPTION_CHOICE = 5,  /* one of `choices` */
};

/* An option of the backend's own: users write `--config ID:NAME=VALUE`. Kilim refuses names and values that are none. */
typedef struct KilimOption {
    const char *name;
    int32_t kind;
    /* The value where the user gives none. */
    const char *initial;
    /* One sentence without a full stop. */
    const char *meaning;
    size_t choice_count;
    const char *const *choices;
} KilimOption;

/* The value of an option: the user's, or the initial one. */
typedef struct KilimSetting {
    const char *name;
    const char *value;
} KilimSetting;

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
    /* Elements in host memory that are only read: `attach` says where before each run. Only with KILIM_MEMORY_HOST. */
    KILIM_INPUT = 5,
    /* Room in host memory for elements that leave the stage: `attach` says where before each run. Only with
     * KILIM_MEMORY_HOST. */
    KILIM_OUTPUT = 6,
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

    /* What follows is there where KILIM_HOST_HAS(host, choice). */

    /* For each step the name of the algorithm that its kernel is to have, one of those that `choice` names for the node, or
     * NULL where it has no choice. NULL as a whole for a table without `choice`. */
    const char *const *algorithms;
} KilimStage;

/* Nodes of one stage that are connected and were placed on the backend, see `optimise`. */
typedef struct KilimSubgraph {
    size_t tensor_count;
    const KilimTensor *tensors;
    /* 1 for a tensor that something outside of the subgraph reads: it must still be written. */
    const unsigned char *escapes;
    /* In an order in which every tensor is written before it is read. */
    size_t step_count;
    const KilimStep *steps;
} KilimSubgraph;

/* Takes what a backend makes of a subgraph. What it says nothing of stays as it is. `self` is handed to both functions. */
typedef struct KilimRewrite {
    void *self;
    /* Gives a step of the subgraph back: another backend gets it. */
    void (*refuse)(void *self, size_t step, const char *reason);
    /* Has one node take the place of `count` steps. Its operator is one of KilimBackend.operators; of `with->node`, name,
     * domain, operator, attributes but KILIM_TENSORS, and the numbers of inputs and outputs are read. It reads and writes
     * tensors of the subgraph. `supports` is asked about it as about any node. */
    void (*replace)(void *self, const size_t *steps, size_t count, const KilimStep *with);
} KilimRewrite;

typedef struct KilimContextOptions {
    /* Threads that the backend may use; 0 leaves it to the backend. */
    size_t threads;

    /* What follows is there where KILIM_HOST_HAS(host, options). */

    /* 1 where the session is to spare memory rather than time. */
    int32_t spare_memory;
    /* The user's choice among what the backend describes, or else what it does by itself. */
    int32_t layout;
    int32_t dynamic_shapes;
    int32_t half;
    int32_t quantized;
    /* 1 where every run is timed, see `set_timing`. */
    int32_t timers;
    /* A value for each of the backend's own options, in the order of their names. */
    size_t setting_count;
    const KilimSetting *settings;

    /* What follows is there where KILIM_HOST_HAS(host, queue). */

    /* The user's command queue, which the backend is to use; NULL where it takes one of its own. It lives longer than the
     * context. Kilim refuses a context whose `queue` is another one. */
    const uint64_t *queue;
} KilimContextOptions;

/* What a task does. */
enum {
    /* The steps of a part of a stage, on one backend. */
    KILIM_TASK_PART = 1,
    /* Tensors that go from one backend to another. */
    KILIM_TASK_CROSS = 2,
};

/* One of the things that are to be done for a stage of the whole graph, see `schedule`. */
typedef struct KilimTask {
    int32_t kind;
    /* Backends by their places in the session's list: the one that computes or gives, and the one that takes, which is the
     * same for a KILIM_TASK_PART. */
    size_t backend;
    size_t to;
    /* The part, of a KILIM_TASK_PART. */
    size_t part;
    /* The library's own executable for `backend`; NULL where that is another backend. */
    void *executable;
} KilimTask;

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

    /* Optional: options of the backend's own. */
    size_t option_count;
    const KilimOption *options;

    /* Optional, but both together: steps are timed. `times` is called after a run for which timing was on; it fills
     * in the seconds of each step of the stage, `count` of them. */
    void (*set_timing)(void *self, void *executable, int32_t on);
    KilimStatus (*times)(void *self, void *executable, double *seconds, size_t count, KilimMessage *error);

    /* Optional, but both together: `run` may give the device its work without waiting. `submit` starts what `run` has
     * only recorded. `wait` says in `*done` whether the device has done everything of the context; with `block` it
     * returns when it has. `read` waits by itself. */
    KilimStatus (*submit)(void *self, void *executable, KilimMessage *error);
    KilimStatus (*wait)(void *self, void *context, int32_t block, int32_t *done, KilimMessage *error);

    /* Optional: copies a tensor to another of the stage, of the same element type and number of elements, on the
     * device. Without it Kilim reads and writes. */
    KilimStatus (*copy)(void *self, void *executable, size_t from, size_t to, KilimMessage *error);

    /* Optional, but all four together: a tensor that stays on the device when the run of its stage is over. `keep`
     * gives the elements that are there now, whatever the executable does afterwards; `use` gives a tensor the elements
     * of a kept one of the same backend, element type and number of elements; `read_kept` waits for them and brings
     * them to the host. A kept tensor does not need its executable or context, and may be used by any thread, one at a
     * time. Without these functions tensors pass from stage to stage over the host. */
    KilimStatus (*keep)(void *self, void *executable, size_t tensor, void **kept, KilimMessage *error);
    KilimStatus (*use)(void *self, void *executable, size_t tensor, void *kept, KilimMessage *error);
    KilimStatus (*read_kept)(void *self, void *kept, void *data, size_t bytes, KilimMessage *error);
    void (*release_kept)(void *self, void *kept);

    /* Optional, but both together: what was learnt of the device and would have to be found out again in another
     * process. `save_cache` gives its bytes and writes them where `capacity` is as many; `load_cache` is given the bytes
     * that the same backend saved on a device of the same name. Any thread may call them. */
    size_t (*save_cache)(void *self, void *data, size_t capacity);
    KilimStatus (*load_cache)(void *self, const void *data, size_t bytes, KilimMessage *error);

    /* Optional, but both together: whether the device of a context was lost. Before its next run, the session then has
     * `reopen` open the device again, releases the context with what belongs to it, and makes all anew. */
    int32_t (*is_lost)(void *self, void *context);
    KilimStatus (*reopen)(void *self, KilimMessage *error);

    /* Optional: looks at connected nodes instead of single ones, gives some back and merges others. */
    KilimStatus (*optimise)(void *self, const KilimSubgraph *subgraph, const KilimRewrite *rewrite, KilimMessage *error);

    /* Optional: runs one node, whose inputs all have data, at once. `outputs[i]` has room for the bytes of the node's
     * output i. Where no `cpu` is there, constants and shapes are computed so; KILIM_UNSUPPORTED leaves the node to a run.
     * Any thread may call it. */
    KilimStatus (*evaluate)(void *self, const KilimNode *node, void *const *outputs, KilimMessage *error);

    /* Needed with KILIM_MEMORY_HOST: where the elements of a tensor of the place KILIM_INPUT or KILIM_OUTPUT are until the
     * run has ended, at a multiple of 8 bytes. A second call for an output before the run takes the place of the first. Such
     * tensors are neither written nor read; those that other backends read or write within the stage are. */
    KilimStatus (*attach)(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error);

    /* Optional: the layout that is the fastest for a node, which is told as it is on KILIM_NCHW data: KILIM_NCHW,
     * KILIM_NHWC, or 0, which leaves it to the order of KilimDescription.layouts, where both must stand. Asked of nodes that
     * there are in both layouts. Any thread may call it. */
    int32_t (*node_layout)(void *self, const KilimNode *node);

    /* Optional: algorithms for a node among which only a measurement finds the fastest. It gives their number and, in
     * `*algorithms`, their names; the first is taken where nothing was measured, and less than two are no choice. It writes
     * into `class_name` on what the answer depends: nodes of one class get the same algorithm. Names and classes have no
     * tabs, no line breaks, and at least one character. Where a session is to tune, `prepare` is called for stages of one
     * node with one algorithm after the other, which KilimStage.algorithms says, and they are run with zeros; the
     * runtime keeps what was measured, and its caches hold it. Any thread may call it. */
    size_t (*choice)(void *self, const KilimNode *node, const char *const **algorithms, KilimMessage *class_name);

    /* Optional: the order in which the tasks of a stage are done, of all backends of the session: `order` takes the
     * indices of all `count` tasks. Tasks that share a backend keep their order among themselves; everything else is
     * free. Asked before every run of a stage, where the first backend with a scheduler is this one and the user chose
     * none. */
    KilimStatus (*schedule)(void *self, const KilimTask *tasks, size_t count, size_t *order, KilimMessage *error);

    /* Optional, but both together: runs of one session at the same time. `replica` gives a context that shares the constants
     * of another, and `replicate` an executable of such a context that does what an executable of the other one does,
     * with memory of its own, which is bound to it as to any. Replicas are used by one thread at a time as contexts are,
     * but at the same time as each other, and they are released before the context that they were made of.
     * KILIM_UNSUPPORTED leaves it to `create_context` and `prepare`. */
    KilimStatus (*replica)(void *self, void *context, void **replica, KilimMessage *error);
    KilimStatus (*replicate)(void *self, void *context, void *executable, void **replica, KilimMessage *error);

    /* Optional: 1 where the library has a constant of a context, by its key, in a form of its own and reads the elements that
     * `prepare` gave no more. Asked after `prepare` where nothing is planned later; Kilim lets go of the elements then. */
    int32_t (*is_packed)(void *self, void *context, uint64_t key);

    /* Optional, but all three together, and with `keep`: tensors in memory of the user's. `import_memory` makes a kept tensor of a
     * handle of one of KilimDescription.handle_kinds, which lies in that memory: `use` and `read_kept` see the elements that
     * are there when they do their work, not those of before. What the backend needs of the handle it takes during this call,
     * by dup or AHardwareBuffer_acquire for instance, and gives back in `release_kept`: the user may close a file descriptor
     * then. Host memory stays until `release_kept`. KILIM_INVALID_VALUE where the memory is smaller than the handle says.
     *
     * `keep_in` is called after `begin` and before the first `run`: until `end`, the elements of a tensor go into an imported
     * one of the same element type and size, where they are computed or by a copy on the device. They are there
     * when the work of the run is done; `read` and `copy` of the tensor go on as they were. KILIM_UNSUPPORTED where they cannot
     * go there: Kilim then brings them by `read` and `write_kept`, which gives an imported tensor elements from the host.
     *
     * With KILIM_MEMORY_HOST, `use` and `keep_in` come instead of `attach`, for tensors of the places KILIM_INPUT and
     * KILIM_OUTPUT, or after it, and the last call counts. */
    KilimStatus (*import_memory)(void *self, void *context, const KilimTensor *tensor, const KilimHandle *handle, void **kept,
                                 KilimMessage *error);
    KilimStatus (*keep_in)(void *self, void *executable, size_t tensor, void *kept, KilimMessage *error);
    KilimStatus (*write_kept)(void *self, void *kept, const void *data, size_t bytes, KilimMessage *error);

    /* Optional: the command queue on which the work of a context is done in the order in which it is given, a
     * cl_command_queue for instance; that of KilimContextOptions.queue where there is one. KILIM_UNSUPPORTED where there is
     * none. */
    KilimStatus (*queue)(void *self, void *context, uint64_t *queue, KilimMessage *error);
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
