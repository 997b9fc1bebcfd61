/*
 * A sample of an importer for Kilim: it reads texts that begin with `chain 1` and have an operator in each line, `relu` or `scale FACTOR`.
 * The input `x` is a vector of any length, and so is the output `y`.
 *
 *     cc -shared -fPIC -I include examples/plugin-c/chain.c -o libimporter_chain.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kilim_importer.h"

#define FIRST "chain 1\n"

static int32_t probe(void *self, const void *head, size_t byte_count, const char *name) {
    (void)self, (void)name;
    return byte_count >= strlen(FIRST) && memcmp(head, FIRST, strlen(FIRST)) == 0;
}

static KilimStatus fail(KilimMessage *error, KilimStatus status, const char *what, int line) {
    if (error) snprintf(error->text, error->capacity, "line %d %s", line, what);
    return status;
}

/* What Kilim says of a node is in `error` when a call has failed. */
static KilimStatus node(const KilimGraph *graph, int line, const char *op, size_t count, const char *const *inputs, const char *output,
                        KilimMessage *error) {
    char name[32];
    snprintf(name, sizeof name, "line %d", line);
    const KilimOperation told = {
        .name = name, .op = op, .input_count = count, .inputs = inputs, .output_count = 1, .outputs = &output};
    return graph->node(graph->self, &told, error);
}

/* The operator of a line, on the value `from`. */
static KilimStatus operator(const KilimGraph *graph, int line, const char *words, const char *from, const char *to, KilimMessage *error) {
    if (strcmp(words, "relu") == 0) return node(graph, line, "Relu", 1, &from, to, error);
    if (strncmp(words, "scale ", 6) != 0) return fail(error, KILIM_UNSUPPORTED, "has an operator that nobody knows", line);
    char *end;
    const float factor = strtof(words + 6, &end);
    if (end == words + 6 || *end) return fail(error, KILIM_INVALID_VALUE, "has a factor that is no number", line);
    char by[32];
    snprintf(by, sizeof by, "factor %d", line);
    /* A scalar: it has no dimensions. */
    const KilimTensor constant = {.name = by, .dtype = KILIM_FLOAT32, .rank = 0, .data = &factor, .bytes = sizeof factor};
    const KilimStatus status = graph->constant(graph->self, &constant, error);
    const char *both[] = {from, by};
    return status ? status : node(graph, line, "Mul", 2, both, to, error);
}

static KilimStatus load(void *self, const KilimFile *file, const KilimGraph *graph, KilimMessage *error) {
    (void)self;
    const KilimDim dims[] = {{.size = -1, .symbol = "n"}};
    const KilimInput x = {.name = "x", .dtype = KILIM_FLOAT32, .rank = 1, .dims = dims};
    KilimStatus status = graph->input(graph->self, &x, error);
    const char *at = (const char *)file->bytes + strlen(FIRST), *end = (const char *)file->bytes + file->byte_count;
    char from[32] = "x", to[32];
    for (int line = 2; !status && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((stop ? stop : end) - at);
        char words[64];
        if (length >= sizeof words) return fail(error, KILIM_INVALID_VALUE, "is too long", line);
        memcpy(words, at, length);
        words[length] = 0;
        at += length + 1;
        snprintf(to, sizeof to, "value %d", line);
        status = operator(graph, line, words, from, to, error);
        memcpy(from, to, sizeof from);
    }
    if (status) return status;
    const char *last = from, *y = "y";
    const KilimOperation named = {.op = "Identity", .input_count = 1, .inputs = &last, .output_count = 1, .outputs = &y};
    status = graph->node(graph->self, &named, error);
    return status ? status : graph->output(graph->self, y, error);
}

const KilimImporter *kilim_importer(const KilimHost *host) {
    (void)host;
    static const KilimImporter table = {
        .version = KILIM_IMPORTER_VERSION, .size = sizeof(KilimImporter), .probe = probe, .load = load};
    return &table;
}
