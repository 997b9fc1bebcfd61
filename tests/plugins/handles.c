/*
 * A device in memory of the host that runs Relu on tensors which may lie in memory of the user's: in a dma-buf, whose memory it maps,
 * in host memory, or in a "slot", which is memory of its own by a number. It writes its calls into the file LOG.
 *
 * HOST has it compute in the session's memory, SHORT show a table of before memory of the user's, NO_HOST not take host memory,
 * NO_QUEUES know no queues, DEAF use a queue of its own whatever it is given, COPIES copy an output at the end of a run.
 * MISSING names a function that is left out.
 */
#define _GNU_SOURCE
#include "kilim_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define OWN_QUEUE 7

static void tell(const char *what, const void *place) {
    FILE *log = fopen(LOG, "a");
    if (!log) return;
    if (place)
        fprintf(log, "%s %p\n", what, place);
    else
        fprintf(log, "%s\n", what);
    fclose(log);
}

static KilimStatus fail(KilimMessage *error, KilimStatus status, const char *text) {
    snprintf(error->text, error->capacity, "%s", text);
    return status;
}

static void describe(void *self, KilimDescription *d) {
    (void)self;
    static const KilimDtypeGrade dtypes[] = {{KILIM_FLOAT32, KILIM_ARITHMETIC}};
    d->device = "a device that maps memory";
    d->dtypes = dtypes;
    d->dtype_count = 1;
#ifdef HOST
    d->memory = KILIM_MEMORY_HOST;
#endif
#ifndef SHORT
    static const KilimHandleKind kinds[] = {
        {KILIM_HANDLE_DMA_BUF, NULL},
        {KILIM_HANDLE_OWN, "slot"},
        {KILIM_HANDLE_HOST, NULL},
    };
    d->handle_kinds = kinds;
#ifdef NO_HOST
    d->handle_kind_count = 2;
#else
    d->handle_kind_count = 3;
#endif
#endif
}

static KilimStatus supports(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason) {
    (void)self;
    (void)cost;
    (void)reason;
    return strcmp(node->op, "Relu") == 0 ? KILIM_OK : KILIM_UNSUPPORTED;
}

typedef struct {
    uint64_t queue;
} Context;

static KilimStatus create_context(void *self, const KilimContextOptions *options, void **context, KilimMessage *error) {
    (void)self;
    (void)error;
    Context *c = calloc(1, sizeof *c);
    c->queue = OWN_QUEUE;
#if !defined(SHORT) && !defined(DEAF)
    if (options->queue) c->queue = *options->queue;
#else
    (void)options;
#endif
    *context = c;
    return KILIM_OK;
}

static void release_context(void *self, void *context) {
    (void)self;
    free(context);
}

/* A kept tensor. `data` is its own memory, or lies in `map`, or is the user's. */
typedef struct {
    float *data;
    size_t bytes;
    void *own, *map;
    size_t mapped;
    int is_users;
} Kept;

/* A stage of one step. Index 1 is the output, 0 the input. */
typedef struct {
    size_t out, bytes;
    float *own[2], *now[2];
    Kept *copied_to;
} Program;

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)self;
    (void)context;
    (void)error;
    Program *p = calloc(1, sizeof *p);
    p->out = stage->steps[stage->step_count - 1].outputs[0];
    p->bytes = stage->tensors[p->out].tensor.bytes;
    for (int i = 0; i < 2; i++) p->now[i] = p->own[i] = calloc(1, p->bytes + 1);
    *executable = p;
    return KILIM_OK;
}

static void release_executable(void *self, void *executable) {
    (void)self;
    Program *p = executable;
    free(p->own[0]);
    free(p->own[1]);
    free(p);
}

static float *of(Program *p, size_t tensor) { return p->now[tensor == p->out]; }

static KilimStatus write_tensor(void *self, void *executable, size_t tensor, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("write", NULL);
    memcpy(of(executable, tensor), data, bytes);
    return KILIM_OK;
}

static KilimStatus run(void *self, void *executable, size_t part, KilimMessage *error) {
    (void)self;
    (void)part;
    (void)error;
    Program *p = executable;
    tell("run", NULL);
    for (size_t i = 0; i < p->bytes / sizeof(float); i++) p->now[1][i] = p->now[0][i] > 0 ? p->now[0][i] : 0;
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("read", NULL);
    memcpy(data, of(executable, tensor), bytes);
    return KILIM_OK;
}

static KilimStatus end(void *self, void *executable, KilimMessage *error) {
    (void)self;
    (void)error;
    Program *p = executable;
    if (p->copied_to) memcpy(p->copied_to->data, p->now[1], p->bytes);
    p->copied_to = NULL;
    for (int i = 0; i < 2; i++) p->now[i] = p->own[i];
    return KILIM_OK;
}

#ifdef HOST
static KilimStatus attach(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)bytes;
    (void)error;
    Program *p = executable;
    tell("attach", data);
    p->now[tensor == p->out] = data;
    return KILIM_OK;
}
#endif

static KilimStatus keep(void *self, void *executable, size_t tensor, void **kept, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("keep", NULL);
    Program *p = executable;
    Kept *k = calloc(1, sizeof *k);
    k->bytes = p->bytes;
    k->data = k->own = malloc(p->bytes + 1);
    memcpy(k->data, of(p, tensor), p->bytes);
    *kept = k;
    return KILIM_OK;
}

static KilimStatus use(void *self, void *executable, size_t tensor, void *kept, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("use", NULL);
    Kept *k = kept;
    Program *p = executable;
    if (k->is_users)
        p->now[tensor == p->out] = k->data;
    else
        memcpy(of(p, tensor), k->data, k->bytes);
    return KILIM_OK;
}

static KilimStatus read_kept(void *self, void *kept, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("read_kept", NULL);
    memcpy(data, ((Kept *)kept)->data, bytes);
    return KILIM_OK;
}

static void release_kept(void *self, void *kept) {
    (void)self;
    Kept *k = kept;
    tell("release_kept", NULL);
    if (k->map) munmap(k->map, k->mapped);
    free(k->own);
    free(k);
}

#ifndef SHORT

/* Memory of the device that has numbers. */
static float slots[2][16];

static KilimStatus import_memory(void *self, void *context, const KilimTensor *tensor, const KilimHandle *handle, void **kept,
                                 KilimMessage *error) {
    (void)self;
    (void)context;
    Kept k = {.bytes = tensor->bytes, .is_users = 1};
    size_t end = handle->offset + handle->bytes;
    char *start = NULL;
    switch (handle->kind.kind) {
    case KILIM_HANDLE_DMA_BUF: {
        struct stat file;
        if (fstat((int)handle->value, &file)) return fail(error, KILIM_INVALID_VALUE, "this is no file");
        if ((size_t)file.st_size < end) return fail(error, KILIM_INVALID_VALUE, "the file is smaller");
        /* The map holds the memory: the descriptor is not needed any more. */
        k.map = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED, (int)handle->value, 0);
        if (k.map == MAP_FAILED) return fail(error, KILIM_DEVICE, "the memory cannot be mapped");
        k.mapped = end;
        start = k.map;
        tell("import dma-buf", NULL);
        break;
    }
    case KILIM_HANDLE_OWN:
        if (strcmp(handle->kind.name, "slot")) return fail(error, KILIM_INVALID_VALUE, "no such kind");
        if (handle->value > 1 || end > sizeof slots[0]) return fail(error, KILIM_INVALID_VALUE, "no such slot");
        start = (char *)slots[handle->value];
        tell("import slot", NULL);
        break;
    case KILIM_HANDLE_HOST:
        start = (char *)(uintptr_t)handle->value;
        tell("import host", start);
        break;
    default: return fail(error, KILIM_INVALID_VALUE, "no such kind");
    }
    k.data = (float *)(void *)(start + handle->offset);
    *kept = memcpy(malloc(sizeof k), &k, sizeof k);
    return KILIM_OK;
}

static KilimStatus keep_in(void *self, void *executable, size_t tensor, void *kept, KilimMessage *error) {
    (void)self;
    Program *p = executable;
    if (tensor != p->out) return fail(error, KILIM_UNSUPPORTED, "no output");
    tell("keep_in", NULL);
#ifdef COPIES
    p->copied_to = kept;
#else
    p->now[1] = ((Kept *)kept)->data;
#endif
    return KILIM_OK;
}

static KilimStatus write_kept(void *self, void *kept, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)error;
    tell("write_kept", NULL);
    memcpy(((Kept *)kept)->data, data, bytes);
    return KILIM_OK;
}

#ifndef NO_QUEUES
static KilimStatus queue(void *self, void *context, uint64_t *told, KilimMessage *error) {
    (void)self;
    (void)error;
    *told = ((Context *)context)->queue;
    return KILIM_OK;
}
#endif

#endif

static const KilimBackend backend = {
    .version = KILIM_BACKEND_VERSION,
    .describe = describe,
    .supports = supports,
    .create_context = create_context,
    .release_context = release_context,
    .prepare = prepare,
    .release_executable = release_executable,
    .write = write_tensor,
    .run = run,
    .read = read_tensor,
    .end = end,
    .keep = keep,
    .use = use,
    .read_kept = read_kept,
    .release_kept = release_kept,
#ifdef HOST
    .attach = attach,
#endif
#ifdef SHORT
    .size = offsetof(KilimBackend, import_memory),
#else
    .size = sizeof(KilimBackend),
    .import_memory = import_memory,
    .keep_in = keep_in,
    .write_kept = write_kept,
#ifndef NO_QUEUES
    .queue = queue,
#endif
#endif
};

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    if (!KILIM_HOST_HAS(host, queue)) return fail(error, KILIM_UNSUPPORTED, "Kilim is too old");
#ifdef MISSING
    static KilimBackend less;
    less = backend;
    less.MISSING = NULL;
    *out = &less;
#else
    *out = &backend;
#endif
    return KILIM_OK;
}

void kilim_backend_destroy(const KilimBackend *b) { (void)b; }
