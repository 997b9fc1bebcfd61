/* What the device keeps for a session: its weights, which runs at the same time share. */
#ifndef CONV_CONTEXT_H
#define CONV_CONTEXT_H

#include "layer.h"

#include <stdlib.h>

/* Contexts. What they share with replicas is a list that only grows at its head. */

typedef struct Packed {
    uint64_t key;
    float *data;
    struct Packed *next;
} Packed;

typedef struct {
    Packed *packed;
    /* What a replica had from the beginning is not its own. */
    Packed *shared;
    int64_t lose;
} Context;

static struct {
    _Atomic int64_t runs;
    _Atomic int lost;
} device;

static KilimStatus create_context(void *self, const KilimContextOptions *options, void **context, KilimMessage *error) {
    (void)self;
    Context *c = calloc(1, sizeof *c);
    if (!c) return fail(error, KILIM_LIMIT, "no memory");
    c->lose = -1;
    for (size_t i = 0; i < options->setting_count; i++) {
        if (strcmp(options->settings[i].name, "lose") == 0) c->lose = strtoll(options->settings[i].value, NULL, 10);
    }
    tell("create_context", "");
    *context = c;
    return KILIM_OK;
}

static void release_context(void *self, void *context) {
    (void)self;
    Context *c = context;
    while (c->packed != c->shared) {
        Packed *head = c->packed;
        c->packed = head->next;
        free(head->data);
        free(head);
    }
    free(c);
    tell("release_context", "");
}

static KilimStatus replica(void *self, void *context, void **made, KilimMessage *error) {
    (void)self;
    Context *c = malloc(sizeof *c);
    if (!c) return fail(error, KILIM_LIMIT, "no memory");
    *c = *(Context *)context;
    c->shared = c->packed;
    tell("replica", "");
    *made = c;
    return KILIM_OK;
}

static const Packed *find(const Context *c, uint64_t key) {
    const Packed *p = c->packed;
    while (p && p->key != key) p = p->next;
    return p;
}

static int32_t is_packed(void *self, void *context, uint64_t key) {
    (void)self;
    int there = find(context, key) != NULL;
    if (there) tell("is_packed", "");
    return there;
}

static float *copy_of(const void *data, size_t bytes) {
    float *copy = malloc(bytes + 1);
    if (copy) memcpy(copy, data, bytes);
    return copy;
}

static const float *pack(Context *c, const KilimSlot *slot) {
    const Packed *known = find(c, slot->key);
    if (known) return known->data;
    Packed *p = malloc(sizeof *p);
    float *data = copy_of(slot->tensor.data, slot->tensor.bytes);
    if (!p || !data) {
        free(p);
        free(data);
        return NULL;
    }
    *p = (Packed){slot->key, data, c->packed};
    c->packed = p;
    return data;
}

#endif
