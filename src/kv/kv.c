/* kv.c - see kv.h. Free pages are kept on a list, so a rewound chat re-uses its memory. */
#include "kv/kv.h"

#include "kernel/kv_append/kv.h"

#include <string.h>

typedef struct ox_kv_block {
    void *bytes;
    size_t n_refs;
    struct ox_kv_block *next_free;
} ox_kv_block;

struct ox_kv_pool {
    ox_dtype dtype;
    size_t page_bytes, max_bytes, used_bytes; /* used: taken by sequences */
    ox_kv_place *places;
    ox_kv_block *free;
    const ox_kv_memory *memory; /* NULL = the host's */
};

ox_status ox_kv_pool_open(ox_kv_pool **out, const ox_cache *caches, size_t n_caches, ox_dtype dtype,
                          size_t max_bytes, ox_err *err)
{
    *out = NULL;
    ox_kv_pool *p = ox_calloc(1, sizeof(*p));
    ox_kv_place *places = ox_calloc(n_caches, sizeof(*places));
    if (!p || !places) {
        ox_free(p);
        ox_free(places);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for the cache pool");
    }
    const size_t element = (size_t)ox_dtype_bits(dtype) / 8;
    size_t at = 0;
    for (size_t i = 0; i < n_caches; i++) {
        const ox_cache *c = &caches[i];
        const size_t head_rows = (size_t)c->n_kv_heads * OX_KV_PAGE * element;
        places[i] = (ox_kv_place){.k_offset = at,
                                  .v_offset = at + head_rows * (size_t)c->head_size,
                                  .n_kv_heads = c->n_kv_heads,
                                  .head_size = c->head_size,
                                  .v_head_size = c->v_head_size};
        at = places[i].v_offset + head_rows * (size_t)c->v_head_size;
        at = (at + 63) / 64 * 64;
    }
    *p = (ox_kv_pool){
        .dtype = dtype, .page_bytes = at ? at : 64, .max_bytes = max_bytes, .places = places};
    *out = p;
    return OX_OK;
}

void ox_kv_pool_use(ox_kv_pool *pool, const ox_kv_memory *memory)
{
    pool->memory = memory;
}

static void *bytes_take(const ox_kv_pool *p)
{
    return p->memory ? p->memory->take(p->memory->user, p->page_bytes)
                     : ox_pages_alloc(p->page_bytes);
}

static void bytes_give(const ox_kv_pool *p, void *bytes)
{
    if (p->memory)
        p->memory->give(p->memory->user, bytes, p->page_bytes);
    else
        ox_pages_free(bytes, p->page_bytes);
}

void ox_kv_pool_close(ox_kv_pool **pool)
{
    ox_kv_pool *p = *pool;
    if (!p) return;
    while (p->free) {
        ox_kv_block *page = p->free;
        p->free = page->next_free;
        bytes_give(p, page->bytes);
        ox_free(page);
    }
    ox_free(p->places);
    ox_free(p);
    *pool = NULL;
}

const ox_kv_place *ox_kv_pool_places(const ox_kv_pool *pool)
{
    return pool->places;
}

ox_dtype ox_kv_pool_dtype(const ox_kv_pool *pool)
{
    return pool->dtype;
}

size_t ox_kv_pool_page_bytes(const ox_kv_pool *pool)
{
    return pool->page_bytes;
}

size_t ox_kv_pool_used_bytes(const ox_kv_pool *pool)
{
    return pool->used_bytes;
}

static ox_status page_take(ox_kv_pool *p, ox_kv_block **out, ox_err *err)
{
    if (p->max_bytes && p->used_bytes + p->page_bytes > p->max_bytes)
        return OX_FAIL(err, OX_NO_MEMORY,
                       "the key/value cache needs %.2f GiB more than its limit of %.2f GiB; lower "
                       "--context or use --kv f16",
                       (double)(p->used_bytes + p->page_bytes - p->max_bytes) / 0x1p30,
                       (double)p->max_bytes / 0x1p30);
    ox_kv_block *page = p->free;
    if (page) {
        p->free = page->next_free;
    } else {
        page = ox_calloc(1, sizeof(*page));
        if (page) page->bytes = bytes_take(p);
        if (!page || !page->bytes) {
            ox_free(page);
            return OX_FAIL(err, OX_NO_MEMORY,
                           "no memory for another %zu bytes of key/value cache; lower --context or "
                           "use --kv f16",
                           p->page_bytes);
        }
    }
    page->n_refs = 1;
    page->next_free = NULL;
    p->used_bytes += p->page_bytes;
    *out = page;
    return OX_OK;
}

static void page_give(ox_kv_pool *p, ox_kv_block *page)
{
    if (--page->n_refs) return;
    page->next_free = p->free;
    p->free = page;
    p->used_bytes -= p->page_bytes;
}

void ox_kv_seq_open(ox_kv_seq *seq, ox_kv_pool *pool)
{
    memset(seq, 0, sizeof(*seq));
    seq->pool = pool;
}

static void drop_pages(ox_kv_seq *seq, size_t keep)
{
    while (seq->pages.n > keep) {
        page_give(seq->pool, seq->pages.p[--seq->pages.n]);
        seq->table.n--;
    }
}

void ox_kv_seq_close(ox_kv_seq *seq)
{
    if (!seq->pool) return;
    drop_pages(seq, 0);
    ox_vec_deinit(&seq->pages);
    ox_vec_deinit(&seq->table);
    seq->n_positions = 0;
    seq->pool = NULL;
}

/* A page that another sequence also reads is copied before it is written. */
static ox_status own_page(ox_kv_seq *seq, size_t i, ox_err *err)
{
    ox_kv_block *shared = seq->pages.p[i], *copy;
    if (shared->n_refs == 1) return OX_OK;
    OX_TRY(page_take(seq->pool, &copy, err));
    const ox_kv_memory *memory = seq->pool->memory;
    if (memory)
        memory->copy(memory->user, copy->bytes, shared->bytes, seq->pool->page_bytes);
    else
        memcpy(copy->bytes, shared->bytes, seq->pool->page_bytes);
    page_give(seq->pool, shared);
    seq->pages.p[i] = copy;
    seq->table.p[i] = copy->bytes;
    return OX_OK;
}

ox_status ox_kv_seq_reserve(ox_kv_seq *seq, size_t upto, ox_err *err)
{
    const size_t before = seq->pages.n, need = (upto + OX_KV_PAGE - 1) / OX_KV_PAGE;
    ox_status st = OX_OK;

    for (size_t i = seq->n_positions / OX_KV_PAGE; i < before && i < need; i++)
        OX_TRY(own_page(seq, i, err));
    if (!ox_vec_reserve(&seq->pages, need) || !ox_vec_reserve(&seq->table, need))
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for the page table");
    while (seq->pages.n < need) {
        ox_kv_block *page;
        OX_TRY_GOTO(page_take(seq->pool, &page, err));
        seq->pages.p[seq->pages.n++] = page;
        seq->table.p[seq->table.n++] = page->bytes;
    }
    return OX_OK;
fail:
    drop_pages(seq, before);
    return st;
}

void ox_kv_seq_truncate(ox_kv_seq *seq, size_t n_positions)
{
    if (n_positions > seq->n_positions) return;
    seq->n_positions = n_positions;
    drop_pages(seq, (n_positions + OX_KV_PAGE - 1) / OX_KV_PAGE);
}

ox_status ox_kv_seq_fork(ox_kv_seq *out, const ox_kv_seq *seq, ox_err *err)
{
    ox_kv_seq_open(out, seq->pool);
    if (!ox_vec_reserve(&out->pages, seq->pages.n) || !ox_vec_reserve(&out->table, seq->pages.n)) {
        ox_kv_seq_close(out);
        return OX_FAIL(err, OX_NO_MEMORY, "no memory for the page table");
    }
    for (size_t i = 0; i < seq->pages.n; i++) {
        seq->pages.p[i]->n_refs++;
        out->pages.p[out->pages.n++] = seq->pages.p[i];
        out->table.p[out->table.n++] = seq->table.p[i];
    }
    out->n_positions = seq->n_positions;
    return OX_OK;
}
