/* A backend that goes wrong in the way that BROKEN says when it is compiled. */
#include "kilim_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CREATION_FAILS = 1,
    CREATION_GIVES_NOTHING,
    OTHER_VERSION,
    SMALL_TABLE,
    NO_RUN,
    REFUSES_ALL,
    RUN_FAILS,
    PREPARE_FAILS,
    READ_FAILS,
    BAD_SPEED,
    LONGER_TABLE,
    NO_MEMORY,
    NO_BIND,
    TABLE_BEFORE_MEMORY,
    BIND_FAILS,
    ABSURD_BYTES,
    PADS,
    CREATION_CRASHES,
    CREATION_ABORTS,
    NO_DESTROY,
    CREATION_EXITS,
    CREATION_HANGS,
    PREPARE_REFUSES,
    SMALL_TENSORS,
    WAITS_AT_EXIT,
    WRONG_RESULTS = 50,
};

/* Into the file LOG, if one is named: `+` for each backend that is created, `-` for each that is gone. */
static void note(char what) {
#ifdef LOG
    FILE *log = fopen(LOG, "a");
    if (log && fputc(what, log) != EOF) fclose(log);
#else
    (void)what;
#endif
}

static KilimStatus fail(KilimMessage *m, KilimStatus status, const char *text) {
    snprintf(m->text, m->capacity, "%s", text);
    return status;
}

static KilimStatus supports(void *self, const KilimNode *node, KilimCost *cost, KilimMessage *reason) {
    (void)self;
    (void)cost;
    if (BROKEN == REFUSES_ALL) return fail(reason, KILIM_UNSUPPORTED, "I refuse everything");
    return strcmp(node->op, "Relu") == 0 ? KILIM_OK : KILIM_UNSUPPORTED;
}

static float memory[1024];

/* Where the tensors are, and how many floats; `memory`, unless that is planned. */
static float *at = memory;
static size_t count = 1024;
static int blocks;

static KilimStatus allocate(void *self, size_t bytes, void **block, KilimMessage *error) {
    (void)self;
    if (BROKEN == TABLE_BEFORE_MEMORY) abort();
    if (BROKEN == NO_MEMORY) return fail(error, KILIM_LIMIT, "the device is full");
    *block = malloc(bytes);
    blocks++;
    return KILIM_OK;
}

static void release_block(void *self, void *block) {
    (void)self;
    free(block);
    blocks--;
}

static int binds;

static KilimStatus bind(void *self, void *executable, void *block, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)executable;
    /* The first time fails, later ones do not. */
    if (BROKEN == BIND_FAILS && binds++ == 0) return fail(error, KILIM_DEVICE, "the block is not mine");
    at = block;
    count = bytes / sizeof *at;
    return KILIM_OK;
}

static size_t scratch_bytes(void *self, void *executable) {
    (void)self;
    (void)executable;
    return BROKEN == PADS ? 1000 : 0;
}

static size_t tensor_bytes(void *self, const KilimTensor *tensor) {
    (void)self;
    return BROKEN == ABSURD_BYTES ? SIZE_MAX - 7 : BROKEN == PADS ? tensor->bytes + 100 : tensor->bytes;
}

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)self;
    (void)context;
    if (BROKEN == PREPARE_FAILS) {
        error->node = 0;
        return fail(error, KILIM_LIMIT, "no memory for this");
    }
    if (BROKEN == PREPARE_REFUSES) return fail(error, KILIM_UNSUPPORTED, "not this after all");
    if (stage->arena_bytes > sizeof memory) return KILIM_LIMIT;
    *executable = memory;
    return KILIM_OK;
}

static void release(void *self, void *executable) {
    (void)self;
    (void)executable;
}

static KilimStatus write_tensor(void *self, void *executable, size_t tensor, const void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)executable;
    (void)tensor;
    (void)error;
    memcpy(at, data, bytes);
    return KILIM_OK;
}

static int runs;

static KilimStatus run(void *self, void *executable, size_t part, KilimMessage *error) {
    (void)self;
    (void)executable;
    (void)part;
    /* The first run fails, later ones do not. */
    if (BROKEN == RUN_FAILS && runs++ == 0) {
        error->node = 0;
        return fail(error, KILIM_DEVICE, "the device caught fire");
    }
    for (size_t i = 0; i < count; i++) at[i] = at[i] > 0 || BROKEN == WRONG_RESULTS ? at[i] : 0;
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)executable;
    (void)tensor;
    (void)error;
    if (BROKEN == READ_FAILS) return 99;
    memcpy(data, at, bytes);
    return KILIM_OK;
}

static void describe(void *self, KilimDescription *description) {
    (void)self;
    if (BROKEN == BAD_SPEED) description->flops_per_second = 0;
    if (BROKEN == SMALL_TENSORS) description->max_tensor_bytes = 4;
}

static struct {
    KilimBackend table;
    /* What a later version may add. */
    void *more[4];
} backend = {{
    .version = BROKEN == OTHER_VERSION ? KILIM_BACKEND_VERSION + 1 : KILIM_BACKEND_VERSION,
    .size = BROKEN == SMALL_TABLE           ? 24
            : BROKEN == LONGER_TABLE        ? sizeof backend
            : BROKEN == TABLE_BEFORE_MEMORY ? offsetof(KilimBackend, allocate)
                                            : sizeof(KilimBackend),
    .describe = describe,
    .supports = supports,
    .prepare = prepare,
    .release_executable = release,
    .write = write_tensor,
    .run = BROKEN == NO_RUN ? NULL : run,
    .read = read_tensor,
    .allocate = BROKEN >= NO_MEMORY ? allocate : NULL,
    .release = BROKEN >= NO_MEMORY ? release_block : NULL,
    .bind = BROKEN >= NO_MEMORY && BROKEN != NO_BIND ? bind : NULL,
    .scratch_bytes = scratch_bytes,
    .tensor_bytes = BROKEN >= NO_MEMORY ? tensor_bytes : NULL,
}, {NULL}};

/* The process whose end waits for nothing. */
static long process;

/* As a driver that joins its threads: a copy of the process has none of them. */
static void wait_in_copies(void) {
    while (getpid() != process) sleep(1);
}

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    (void)host;
    if (BROKEN == CREATION_FAILS) return fail(error, KILIM_DEVICE, "there is no such device");
    if (BROKEN == CREATION_GIVES_NOTHING) return KILIM_OK;
    if (BROKEN == CREATION_CRASHES) {
        volatile int *volatile nowhere = NULL;
        *nowhere = 1;
    }
    if (BROKEN == CREATION_ABORTS) abort();
    if (BROKEN == CREATION_EXITS) exit(0);
    while (BROKEN == CREATION_HANGS) sleep(1);
    if (BROKEN == WAITS_AT_EXIT) {
        process = getpid();
        atexit(wait_in_copies);
    }
    note('+');
    *out = &backend.table;
    return KILIM_OK;
}

#if BROKEN != 20 /* NO_DESTROY */
void kilim_backend_destroy(const KilimBackend *b) {
    (void)b;
    note('-');
    /* Whatever was allocated was given back before. */
    if (blocks != 0) abort();
}
#endif
