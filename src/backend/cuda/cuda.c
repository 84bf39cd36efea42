/* cuda.c - the CUDA device: what the library exports, and the backend's vtable. */
#include "backend/cuda/cuda.h"
#include "base/fs.h"
#include "oxgen_build.h"

#include <stdio.h>

static ox_cuda_bind_fn *const bind_table[OX_CALL_COUNT] = {
#define OX_CUDA_CALL(kind, bind, run) [OX_CALL_##kind] = bind,
#include "backend/cuda/calls.def"
#undef OX_CUDA_CALL
};

static const char *const kind_names[OX_CALL_COUNT] = {
#define OX_CALL(suffix, name) name,
#include "backend/calls.def"
#undef OX_CALL
};

/* ---- devices --------------------------------------------------------------------------------- */

static ox_status count_devices(int *n, ox_err *err)
{
    const cudaError_t e = cudaGetDeviceCount(n);
    (void)cudaGetLastError();
    if (e == cudaSuccess && *n > 0) return OX_OK;
    if (e == cudaErrorInsufficientDriver) {
        int driver = 0;
        cudaDriverGetVersion(&driver);
        if (driver)
            return OX_FAIL(err, OX_NO_DEVICE,
                           "the NVIDIA driver is too old: it offers CUDA %d.%d, this build needs "
                           "%d.%d",
                           driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000,
                           CUDART_VERSION % 1000 / 10);
        return OX_FAIL(err, OX_NO_DEVICE,
                       "there is no NVIDIA driver (libcuda.so.1) on this machine");
    }
    if (e == cudaSuccess || e == cudaErrorNoDevice)
        return OX_FAIL(err, OX_NO_DEVICE, "there is no CUDA device on this machine");
    return OX_FAIL(err, OX_NO_DEVICE, "the CUDA devices cannot be used: %s", cudaGetErrorString(e));
}

/* "580.159.04, CUDA 13.0": the first from the kernel module, when it says. */
static void driver_name(char *out, size_t n)
{
    ox_buf b = {0};
    int version = 0;
    char words[64] = "";
    cudaDriverGetVersion(&version);
    if (!ox_file_read(&b, "/sys/module/nvidia/version", 64, NULL) && b.n)
        snprintf(words, sizeof(words), "%.*s, ", (int)strcspn(b.p, "\n"), b.p);
    snprintf(out, n, "%sCUDA %d.%d", words, version / 1000, version % 1000 / 10);
    ox_buf_deinit(&b);
}

static ox_status plugin_devices(ox_device_info *out, int32_t max, int32_t *n, ox_err *err)
{
    int count = 0;
    OX_TRY(count_devices(&count, err));
    for (*n = 0; *n < count && *n < max; (*n)++) {
        struct cudaDeviceProp p;
        const cudaError_t e = cudaGetDeviceProperties(&p, *n);
        if (e != cudaSuccess)
            return OX_FAIL(err, OX_NO_DEVICE, "device cuda:%d cannot be used: %s", *n,
                           cudaGetErrorString(e));
        ox_device_info *d = &out[*n];
        *d = (ox_device_info){
            .index = *n, .sm = p.major * 10 + p.minor, .total_bytes = p.totalGlobalMem};
        snprintf(d->name, sizeof(d->name), "%.*s", OX_DEVICE_NAME - 1, p.name);
        driver_name(d->driver, sizeof(d->driver));
    }
    return OX_OK;
}

/* ---- the vtable ------------------------------------------------------------------------------ */

static ox_status cuda_bind(ox_backend *base, ox_call *c, const ox_buffer *buffers, ox_err *err)
{
    ox_cuda_backend *b = (ox_cuda_backend *)base;
    if (!bind_table[c->kind])
        return OX_FAIL(err, OX_UNSUPPORTED, "node %s: the CUDA backend has no %s; use --device cpu",
                       c->name, kind_names[c->kind]);
    ox_cuda_bound *bound = ox_calloc(1, sizeof(*bound));
    if (!bound) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a plan");
    c->bound = bound;
    return bind_table[c->kind](b, c, bound, buffers, err);
}

static void cuda_unbind(ox_backend *base, ox_call *c)
{
    ox_cuda_graphs_drop((ox_cuda_backend *)base);
    ox_free(c->bound);
    c->bound = NULL;
}

static size_t cuda_buffer_bytes(const ox_backend *base, const ox_buffer *buffer, size_t rows)
{
    const int32_t type = ox_cuda_dtype((const ox_cuda_backend *)base, buffer);
    return (rows * (size_t)buffer->width * (type == OX_DEV_F32 ? 4 : 2) + 255) & ~(size_t)255;
}

ox_status ox_cuda_scratch(ox_cuda_backend *b, ox_err *err)
{
    if (b->scratch) return OX_OK;
    return ox_cuda_alloc(b, &b->scratch, OX_CUDA_SCRATCH_BYTES, "a step", err);
}

static uint64_t cuda_weight_bytes(const ox_backend *base)
{
    return ((const ox_cuda_backend *)base)->weight_bytes;
}

static const char *cuda_complaint(const ox_backend *base)
{
    const ox_cuda_backend *b = (const ox_cuda_backend *)base;
    return b->failure.status ? b->failure.msg : NULL;
}

static const char *cuda_device(const ox_backend *base)
{
    return ((const ox_cuda_backend *)base)->name;
}

static const ox_kv_memory *cuda_arena_memory(ox_backend *base)
{
    return &((ox_cuda_backend *)base)->arena_memory;
}

static const ox_kv_memory *cuda_page_memory(ox_backend *base)
{
    return &((ox_cuda_backend *)base)->page_memory;
}

static uint64_t cuda_free_bytes(ox_backend *base)
{
    size_t left = 0, total = 0;
    (void)base;
    return cudaMemGetInfo(&left, &total) == cudaSuccess ? left : 0;
}

static void cuda_close(ox_backend *base)
{
    ox_cuda_backend *b = (ox_cuda_backend *)base;
    if (b->stream) cudaStreamSynchronize(b->stream);
    ox_cuda_chain_close(b);
    ox_cuda_graphs_drop(b);
    for (size_t i = 0; i < b->matrices.n; i++)
        ox_free(b->matrices.p[i]);
    ox_vec_deinit(&b->matrices);
    ox_cuda_profile_close(b);
    ox_vec_deinit(&b->tables);
    ox_cuda_memory_close(b);
    if (b->step_host) cudaFreeHost(b->step_host);
    if (b->logits) cudaFreeHost(b->logits);
    if (b->stream) cudaStreamDestroy(b->stream);
    ox_free(b);
}

static const ox_backend_ops ops = {
    .name = "cuda",
    .bind = cuda_bind,
    .prepare = ox_cuda_prepare,
    .unbind = cuda_unbind,
    .buffer_bytes = cuda_buffer_bytes,
    .run = ox_cuda_run_step,
    .weight_bytes = cuda_weight_bytes,
    .complaint = cuda_complaint,
    .close = cuda_close,
    .device = cuda_device,
    .arena_memory = cuda_arena_memory,
    .page_memory = cuda_page_memory,
    .free_bytes = cuda_free_bytes,
    .fetch = ox_cuda_fetch,
    .end_profile = ox_cuda_end_profile,
    .decode = ox_cuda_decode,
    .float_activations = true,
    .many_rows = OX_CUDA_MANY_ROWS,
};

static ox_status open_device(ox_cuda_backend *b, ox_err *err)
{
    struct cudaDeviceProp p;
    OX_CUDA_TRY(b, err, cudaSetDevice(b->options.index));
    OX_CUDA_TRY(b, err, cudaGetDeviceProperties(&p, b->options.index));
    b->sm = p.major * 10 + p.minor;
    b->n_sm = p.multiProcessorCount;
    OX_CUDA_TRY(b, err, cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    OX_CUDA_TRY(b, err, cudaMallocHost((void **)&b->step_host, OX_CUDA_STEP_BYTES));
    return ox_cuda_alloc(b, (void **)&b->step_device, OX_CUDA_STEP_BYTES, "a step", err);
}

static ox_status plugin_open(ox_backend **out, const ox_device_options *o, ox_team *team,
                             ox_err *err)
{
    int n = 0;
    *out = NULL;
    OX_TRY(count_devices(&n, err));
    ox_cuda_backend *b = ox_calloc(1, sizeof(*b));
    if (!b) return OX_FAIL(err, OX_NO_MEMORY, "no memory for the CUDA backend");
    b->base.ops = &ops;
    b->team = team;
    b->options = *o;
    snprintf(b->name, sizeof(b->name), "cuda:%d", o->index);
    const char *graphs = ox_env("OXGEN_CUDA_GRAPHS");
    b->use_graphs = !graphs || strcmp(graphs, "0") != 0;
    ox_cuda_memory_open(b);
    ox_status st = open_device(b, err);
    if (!st && o->profile) st = ox_cuda_profile_open(b, err);
    if (st) {
        cuda_close(&b->base);
        return st;
    }
    *out = &b->base;
    return OX_OK;
}

OX_API const ox_plugin *ox_cuda_plugin(void);

const ox_plugin *ox_cuda_plugin(void)
{
    static const ox_plugin plugin = {.version = OX_PLUGIN_VERSION,
                                     .layout = OX_PLUGIN_LAYOUT,
                                     .oxgen = OXGEN_VERSION,
                                     .devices = plugin_devices,
                                     .open = plugin_open,
                                     .rows = ox_cuda_rows};
    return &plugin;
}
