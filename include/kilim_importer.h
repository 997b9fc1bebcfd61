/*
 * The interface between Kilim and an importer in a library of its own: what reads models of a format that Kilim does not have.
 *
 * Where no format of a program knows a file, Kilim asks the libraries that are called `libimporter_ID.so` (Linux),
 * `libimporter_ID.dylib` (macOS) or `importer_ID.dll` or `libimporter_ID.dll` (Windows), in the folders that the caller names and
 * in those of the environment variable KILIM_BACKEND_PATH. One function is looked up in them, kilim_importer. A library that
 * holds a backend as well lies there under both names. See docs/importers.md.
 *
 * Rules of the interface:
 *
 * - Strings are UTF-8 and end with a zero. Pointers that a call gets are valid during that call only, and what a library gives is
 *   read during the call that it is given in.
 * - Functions of KilimImporter may be called by several threads at once, those of KilimFile and KilimGraph by the thread that is
 *   in `load` alone, until it returns.
 * - A function that fails says so by its status and, in KilimMessage, in words. It must not throw, nor leave by longjmp.
 */
#ifndef KILIM_IMPORTER_H
#define KILIM_IMPORTER_H

#include "kilim_backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when what is below changes its meaning or order. Functions that are only added at the end of KilimImporter, KilimFile and
 * KilimGraph change their sizes instead. */
#define KILIM_IMPORTER_VERSION 1u

/* Whether the Kilim that calls has a function of KilimFile or KilimGraph: KILIM_IMPORTER_HAS(graph, KilimGraph, model). */
#define KILIM_IMPORTER_HAS(table, type, field) \
    ((table)->size >= offsetof(type, field) + sizeof(((type *)0)->field))

/* A dimension of an input. */
typedef struct KilimDim {
    /* The size; -1 where it is open. */
    int64_t size;
    /* The name of an open size, which is the same wherever it stands; NULL for one without a name. */
    const char *symbol;
} KilimDim;

/* The element type of an input of a body that is as the node around it says: `rank` and `dims` are not read. */
#define KILIM_UNTYPED 0

/* An input of the model, or of a body. */
typedef struct KilimInput {
    const char *name;
    int32_t dtype;
    int32_t rank;
    const KilimDim *dims;
} KilimInput;

/* A node of the model: an operator of the newest operator sets of ONNX, or one that the session or a backend brings. */
typedef struct KilimOperation {
    /* NULL or empty for the name of its first output. */
    const char *name;
    /* NULL or empty for the standard domain; "com.microsoft", "ai.onnx.ml", or an own one. */
    const char *domain;
    const char *op;
    /* Under the names that ONNX gives them. An operator that wants a single value takes a list of one, and one that wants
     * numbers takes integers. Lists of tensors have one item. */
    size_t attribute_count;
    const KilimAttribute *attributes;
    /* The names of values, also of those that a later node writes; NULL or empty for an optional input that is left out. */
    size_t input_count;
    const char *const *inputs;
    /* New names; NULL or empty for an output that is left out. */
    size_t output_count;
    const char *const *outputs;
} KilimOperation;

/* What a model says of itself. Texts are NULL or empty where it says nothing. */
typedef struct KilimMetadata {
    const char *name;
    const char *description;
    /* The program that wrote the file, and its version. */
    const char *producer;
    const char *producer_version;
    /* Whose model it is, as a domain in the reverse order: org.example. */
    const char *domain;
    /* The version of the model. */
    const char *version;
    /* Everything else: keys, none of them empty, each with its text. */
    size_t entry_count;
    const char *const *keys;
    const char *const *texts;
} KilimMetadata;

/* A model file. */
typedef struct KilimFile {
    /* sizeof(KilimFile) of the host. */
    uint32_t size;
    void *self;
    /* The path or address of the file, or what the program calls it. */
    const char *name;
    const void *bytes;
    size_t byte_count;
    /* Reads a file beside the model, by its path relative to the model's folder, with `/` between its parts. The bytes stay until `load`
     * returns. Fails where there is no such file, and where the path leads out of the folder. */
    KilimStatus (*beside)(void *self, const char *path, const void **bytes, size_t *byte_count, KilimMessage *error);
} KilimFile;

/* Takes the model. The first call that fails decides: whatever `load` returns, that is the error of the load. Where `error` is NULL
 * nothing is said. Names of inputs, constants and outputs of nodes are different in one graph. */
typedef struct KilimGraph {
    /* sizeof(KilimGraph) of the host. */
    uint32_t size;
    void *self;
    /* The next input. */
    KilimStatus (*input)(void *self, const KilimInput *input, KilimMessage *error);
    /* A value with its elements: row-major and dense, the low byte first. They are not copied where they lie in the
     * bytes of the model file, or of one beside it. */
    KilimStatus (*constant)(void *self, const KilimTensor *constant, KilimMessage *error);
    /* The next node. */
    KilimStatus (*node)(void *self, const KilimOperation *node, KilimMessage *error);
    /* The next output: a value by its name. */
    KilimStatus (*output)(void *self, const char *name, KilimMessage *error);
    /* In the place of all others, once: the file of a model in a format that Kilim has, which is read under the same name and with the
     * same files beside it. The bytes are copied. */
    KilimStatus (*model)(void *self, const void *bytes, size_t byte_count, KilimMessage *error);
    /* Begins a body of control flow: the graph in the attribute of this name of the next node (`then_branch`, `else_branch` of If, `body` of
     * Loop and Scan). Until `end_body` the calls give inputs, constants, nodes and outputs to the body; another one may begin in it. A
     * body sees the values of the graphs around it, and what it names itself goes before. */
    KilimStatus (*begin_body)(void *self, const char *attribute, KilimMessage *error);
    /* Ends the body that has begun last. A node gets the bodies that have ended before it in its graph. */
    KilimStatus (*end_body)(void *self, KilimMessage *error);
    /* What the model says of itself, in place of what was said before. May be called whichever body has begun. */
    KilimStatus (*metadata)(void *self, const KilimMetadata *metadata, KilimMessage *error);
} KilimGraph;

/* What a library gives: its table. It stays as it is while the library is loaded. */
typedef struct KilimImporter {
    /* KILIM_IMPORTER_VERSION and sizeof(KilimImporter) of the library. */
    uint32_t version;
    uint32_t size;
    void *self;
    /* Whether a file is of this format: 1 where it is. Told the first bytes of the file, at most 65536, and its name. */
    int32_t (*probe)(void *self, const void *head, size_t byte_count, const char *name);
    /* Reads a file: gives its model to `graph`. KILIM_INVALID_VALUE where the file is garbled, KILIM_UNSUPPORTED where it needs what
     * the importer does not have, KILIM_LIMIT where it is too large. */
    KilimStatus (*load)(void *self, const KilimFile *file, const KilimGraph *graph, KilimMessage *error);
} KilimImporter;

/* Gives the table of the library; NULL where the host is one that it does not work with. `host` has KILIM_IMPORTER_VERSION and
 * sizeof(KilimImporter) of Kilim. On Linux a copy of the process tries it first, as it does with kilim_backend_create. */
KILIM_EXPORT const KilimImporter *kilim_importer(const KilimHost *host);

#ifdef __cplusplus
}
#endif

#endif
