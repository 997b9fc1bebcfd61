/* A backend that goes wrong in the way that BROKEN says when it is compiled. */
#include "kilim_backend.h"

#include <stdio.h>
#include <string.h>

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
};

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

static KilimStatus prepare(void *self, void *context, const KilimStage *stage, void **executable, KilimMessage *error) {
    (void)self;
    (void)context;
    if (BROKEN == PREPARE_FAILS) {
        error->node = 0;
        return fail(error, KILIM_LIMIT, "no memory for this");
    }
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
    memcpy(memory, data, bytes);
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
    for (size_t i = 0; i < 1024; i++) memory[i] = memory[i] > 0 ? memory[i] : 0;
    return KILIM_OK;
}

static KilimStatus read_tensor(void *self, void *executable, size_t tensor, void *data, size_t bytes, KilimMessage *error) {
    (void)self;
    (void)executable;
    (void)tensor;
    (void)error;
    if (BROKEN == READ_FAILS) return 99;
    memcpy(data, memory, bytes);
    return KILIM_OK;
}

static void describe(void *self, KilimDescription *description) {
    (void)self;
    if (BROKEN == BAD_SPEED) description->flops_per_second = 0;
}

static struct {
    KilimBackend table;
    /* What a later version may add. */
    void *more[4];
} backend = {{
    .version = BROKEN == OTHER_VERSION ? KILIM_BACKEND_VERSION + 1 : KILIM_BACKEND_VERSION,
    .size = BROKEN == SMALL_TABLE ? 24 : BROKEN == LONGER_TABLE ? sizeof backend : sizeof(KilimBackend),
    .describe = describe,
    .supports = supports,
    .prepare = prepare,
    .release_executable = release,
    .write = write_tensor,
    .run = BROKEN == NO_RUN ? NULL : run,
    .read = read_tensor,
}, {NULL}};

KilimStatus kilim_backend_create(const KilimHost *host, const KilimBackend **out, KilimMessage *error) {
    (void)host;
    if (BROKEN == CREATION_FAILS) return fail(error, KILIM_DEVICE, "there is no such device");
    if (BROKEN == CREATION_GIVES_NOTHING) return KILIM_OK;
    *out = &backend.table;
    return KILIM_OK;
}

void kilim_backend_destroy(const KilimBackend *b) {
    (void)b;
}
