/* memory.c - device memory: blocks that live as long as the backend, and slabs that the pages of
 * the cache and the step arena are cut from.
 *
 * The first slab holds what --context asks for, or 4,096 positions; when it is used up, another as
 * large as all before is taken. Pages that come back are kept for the next sequence, so decoding
 * allocates nothing in the common case. */
#include "backend/cuda/cuda.h"

#include <assert.h>

enum { FIRST_POSITIONS = 4096, PAGE_POSITIONS = 64 };

ox_status ox_cuda_check(ox_cuda_backend *b, cudaError_t e, const char *what, ox_err *err)
{
    if (e == cudaSuccess) return OX_OK;
    const char *call_end = strchr(what, '(');
    const ox_status st = e == cudaErrorMemoryAllocation ? OX_NO_MEMORY : OX_FAILED;
    ox_err why = OX_ERR_INIT;
    OX_FAIL(&why, st, "%s: %.*s failed: %s", b->name,
            call_end ? (int)(call_end - what) : (int)strlen(what), what, cudaGetErrorString(e));
    if (!b->failure.status) b->failure = why;
    if (err && !err->status) *err = why;
    return st;
}

static ox_status take_bytes(ox_cuda_backend *b, void **out, size_t bytes, const char *what,
                            ox_err *err)
{
    size_t left = 0, total = 0;
    *out = NULL;
    const cudaError_t e = cudaMalloc(out, bytes ? bytes : 16);
    if (e == cudaSuccess) return OX_OK;
    (void)cudaGetLastError();
    if (e != cudaErrorMemoryAllocation) return ox_cuda_check(b, e, "cudaMalloc", err);
    cudaMemGetInfo(&left, &total);
    return OX_FAIL(err, OX_NO_MEMORY,
                   "%s has no memory for %s: %.2f GiB are needed, %.2f GiB of %.2f GiB are free, "
                   "%.2f GiB are missing; lower --context or choose a smaller model",
                   b->name, what, (double)bytes / 0x1p30, (double)left / 0x1p30,
                   (double)total / 0x1p30, bytes > left ? (double)(bytes - left) / 0x1p30 : 0.0);
}

ox_status ox_cuda_alloc(ox_cuda_backend *b, void **out, size_t bytes, const char *what, ox_err *err)
{
    OX_TRY(take_bytes(b, out, bytes, what, err));
    if (ox_vec_push(&b->blocks, *out)) return OX_OK;
    cudaFree(*out);
    *out = NULL;
    return OX_FAIL(err, OX_NO_MEMORY, "no memory for the list of device blocks");
}

enum { SMALL_BLOCK = 4 << 20 };

ox_status ox_cuda_small(ox_cuda_backend *b, void **out, size_t bytes, ox_err *err)
{
    const size_t need = (bytes + 255) & ~(size_t)255;
    b->weight_bytes += bytes;
    if (need > SMALL_BLOCK / 4) return ox_cuda_alloc(b, out, need, "weights", err);
    if (need > b->small_left) {
        OX_TRY(ox_cuda_alloc(b, (void **)&b->small, SMALL_BLOCK, "weights", err));
        b->small_left = SMALL_BLOCK;
    }
    *out = b->small;
    b->small += need;
    b->small_left -= need;
    return OX_OK;
}

static bool add_slab(ox_cuda_backend *b, size_t page)
{
    size_t positions = FIRST_POSITIONS, have = 0;
    assert(b->slabs.p || !b->slabs.n);
    for (size_t i = 0; i < b->slabs.n; i++)
        have += b->slabs.p[i].bytes / page;
    if (b->options.context > 0) positions = (size_t)b->options.context;
    size_t pages = have ? have : (positions + PAGE_POSITIONS - 1) / PAGE_POSITIONS + 1;
    for (; pages; pages /= 2) { /* memory is short: as much as there is */
        ox_cuda_slab slab = {.bytes = pages * page};
        if (take_bytes(b, (void **)&slab.p, slab.bytes, "the cache", NULL)) continue;
        if (ox_vec_push(&b->slabs, slab)) return true;
        cudaFree(slab.p);
        return false;
    }
    return false;
}

static void *arena_take(void *user, size_t bytes)
{
    void *p = NULL;
    return take_bytes(user, &p, bytes, "a step", NULL) ? NULL : p;
}

static void arena_give(void *user, void *p, size_t bytes)
{
    ox_cuda_backend *b = user;
    (void)bytes;
    cudaStreamSynchronize(b->stream);
    for (size_t i = 0; i < b->n_graphs; i++)
        if (b->graphs[i].arena == p) {
            ox_cuda_graphs_drop(b);
            break;
        }
    cudaFree(p);
}

static void *page_take(void *user, size_t bytes)
{
    ox_cuda_backend *b = user;
    if (b->free_pages.n) return b->free_pages.p[--b->free_pages.n];
    for (int tries = 0; tries < 2; tries++) {
        ox_cuda_slab *s = b->slabs.n ? &b->slabs.p[b->slabs.n - 1] : NULL;
        if (s && s->used + bytes <= s->bytes) {
            s->used += bytes;
            return s->p + s->used - bytes;
        }
        if (!add_slab(b, bytes)) return NULL;
    }
    return NULL;
}

static void page_give(void *user, void *p, size_t bytes)
{
    ox_cuda_backend *b = user;
    (void)bytes;
    ox_vec_push(&b->free_pages, p); /* else it waits for close with its slab */
}

static void memory_copy(void *user, void *to, const void *from, size_t bytes)
{
    ox_cuda_backend *b = user;
    ox_cuda_check(b, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, b->stream),
                  "cudaMemcpyAsync", NULL);
}

void ox_cuda_memory_open(ox_cuda_backend *b)
{
    b->arena_memory = (ox_kv_memory){b, arena_take, arena_give, memory_copy};
    b->page_memory = (ox_kv_memory){b, page_take, page_give, memory_copy};
}

void ox_cuda_memory_close(ox_cuda_backend *b)
{
    for (size_t i = 0; i < b->slabs.n; i++)
        cudaFree(b->slabs.p[i].p);
    for (size_t i = 0; i < b->blocks.n; i++)
        cudaFree(b->blocks.p[i]);
    ox_vec_deinit(&b->slabs);
    ox_vec_deinit(&b->blocks);
    ox_vec_deinit(&b->free_pages);
}
