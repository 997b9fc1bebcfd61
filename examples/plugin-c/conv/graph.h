/* What the device says of connected nodes, and of the order of a stage. */
#ifndef CONV_GRAPH_H
#define CONV_GRAPH_H

#include "layer.h"

#include <stdlib.h>

/* Two convolutions are one node where nobody else reads what is between them. */

#define MOST_ATTRIBUTES 64

typedef struct {
    KilimAttribute list[MOST_ATTRIBUTES];
    char names[MOST_ATTRIBUTES][64];
    size_t count;
} Attributes;

static int gather(Attributes *all, const KilimNode *node, const char *prefix) {
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (all->count == MOST_ATTRIBUTES || node->attributes[i].kind == KILIM_TENSORS) return 0;
        char *name = all->names[all->count];
        if (snprintf(name, sizeof all->names[0], "%s%s", prefix, node->attributes[i].name) >= (int)sizeof all->names[0]) return 0;
        all->list[all->count] = node->attributes[i];
        all->list[all->count++].name = name;
    }
    return 1;
}

static size_t readers(const KilimSubgraph *g, size_t tensor, size_t *reader) {
    size_t count = g->escapes[tensor];
    for (size_t s = 0; s < g->step_count; s++)
        for (size_t k = 0; k < g->steps[s].node->input_count; k++)
            if (g->steps[s].inputs[k] == tensor) {
                *reader = s;
                count++;
            }
    return count;
}

static KilimStatus optimise(void *self, const KilimSubgraph *g, const KilimRewrite *rewrite, KilimMessage *error) {
    (void)self;
    unsigned char *taken = calloc(g->step_count + 1, 1);
    if (!taken) return fail(error, KILIM_LIMIT, "no memory");
    for (size_t s = 0; s < g->step_count; s++) {
        const KilimStep *first = &g->steps[s];
        size_t next = s;
        if (taken[s] || is_pair(first->node) || readers(g, first->outputs[0], &next) != 1 || next == s || taken[next]) continue;
        const KilimStep *second = &g->steps[next];
        if (is_pair(second->node) || second->inputs[0] != first->outputs[0]) continue;
        /* What is added to a convolution would be an input more. */
        if (first->node->input_count > 3 || second->node->input_count > 3) continue;
        Attributes all = {.count = 0};
        if (!gather(&all, first->node, "first.") || !gather(&all, second->node, "second.")) continue;
        size_t inputs[5] = {first->inputs[0], first->inputs[1], KILIM_ABSENT, second->inputs[1], KILIM_ABSENT}, both[2] = {s, next};
        if (first->node->input_count > 2) inputs[2] = first->inputs[2];
        if (second->node->input_count > 2) inputs[4] = second->inputs[2];
        KilimNode node = {.name = second->node->name, .domain = "com.example", .op = "ConvPair", .attribute_count = all.count,
                          .attributes = all.list, .input_count = 5, .output_count = 1};
        KilimStep with = {&node, inputs, second->outputs};
        rewrite->replace(rewrite->self, both, 2, &with);
        taken[s] = taken[next] = 1;
    }
    free(taken);
    return KILIM_OK;
}

/* The device gets its work as early as possible, so that it computes beside the others. */

static int ready(const KilimTask *tasks, size_t i, const unsigned char *done) {
    for (size_t k = 0; k < i; k++) {
        const KilimTask *a = &tasks[k], *b = &tasks[i];
        int share = a->backend == b->backend || a->backend == b->to || a->to == b->backend || a->to == b->to;
        if (!done[k] && share) return 0;
    }
    return !done[i];
}

static KilimStatus schedule(void *self, const KilimTask *tasks, size_t count, size_t *order, KilimMessage *error) {
    (void)self;
    unsigned char *done = calloc(count + 1, 1);
    if (!done) return fail(error, KILIM_LIMIT, "no memory");
    for (size_t at = 0; at < count; at++) {
        size_t best = count;
        for (size_t i = 0; i < count && (best == count || !tasks[best].executable); i++) {
            if (ready(tasks, i, done) && (best == count || tasks[i].executable)) best = i;
        }
        order[at] = best;
        done[best] = 1;
    }
    free(done);
    tell("schedule", "");
    return KILIM_OK;
}

#endif
