/* decoder_internal.h - what a decoder graph's ports are, shared by decoder.c (finds them) and
 * state.c (binds memory to them). */
#ifndef OX_BACKEND_ORT_DECODER_INTERNAL_H
#define OX_BACKEND_ORT_DECODER_INTERNAL_H
#include "backend/ort/session.h"
#include "base/vec.h"

typedef enum feed_rule {
    FEED_IDS,
    FEED_MASK,
    FEED_POSITIONS,
    FEED_PAST,
    FEED_TOTAL,
    FEED_CURRENT,
    FEED_KEEP,
    FEED_BRANCH,
} feed_rule;

/* An input of numbers that a step fills. */
typedef struct feed {
    feed_rule rule;
    const ox_onnx_value *port;
} feed;

/* A past input and the present output that becomes it. */
typedef struct cache_port {
    const char *past, *present;
    ox_dtype dtype;
    int32_t rank, axis;        /* axis that grows; -1 = the size is fixed */
    int64_t dims[OX_RANK_MAX]; /* dims[axis] is 0 */
    size_t outer, inner;       /* items before the axis; bytes behind it */
    bool shared; /* past and present may be the same memory, longer than what is in it */
} cache_port;

typedef enum logits_rows {
    LOGITS_ALL,     /* one row a token */
    LOGITS_LAST,    /* the last token's row only */
    LOGITS_UNKNOWN, /* the graph does not say: ask after the run */
} logits_rows;

struct ox_ort_decoder {
    ox_ort *o;
    ox_ort_session *session;
    ox_arena arena;
    ox_buf settings;
    ox_onnx_graph ports; /* inputs and outputs only */
    OX_VEC(feed) feeds;
    OX_VEC(cache_port) caches;
    const char *logits;
    ox_dtype logits_dtype;
    int32_t logits_rank;
    logits_rows rows;
    int64_t vocab;
    size_t most_rows;
    uint64_t weight_bytes; /* of all initializers; 0 = not known */
    ox_ort_cost cost;
    bool can_go_back;    /* no state that only knows its latest value */
    ox_ort_memory *held; /* not NULL: caches stay values of the library, made in this memory */
    bool profiled;
};

/* decoder_caches.c: pairs every input that is no feed with the output that becomes it, and looks
 * into the file for what may share memory and how large the weights are. */
ox_status ox_ort_find_caches(ox_ort_decoder *d, const ox_source *s, ox_err *err);
ox_status ox_ort_look_into_file(ox_ort_decoder *d, const char *onnx, ox_err *err);
#endif
