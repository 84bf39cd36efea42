/* CUDA rows of the elementwise families act, glu, add, scale and of gather: one thread an element,
 * float32 inside, one rounding at the store. Formulas: act.h, glu.h, add.h, scale.h. */
#include "kernel/device.cuh"

enum { BLOCK = 256 };
typedef enum map { MAP_ACT, MAP_GLU, MAP_ADD, MAP_SCALE, MAP_GATHER } map;

template <map M> static __global__ void map_kernel(ox_dev_map_args a)
{
    const size_t n = (size_t)a.rows * (size_t)a.dim;
    ox_let_next_start();
    ox_wait_for_step();
    for (size_t i = blockIdx.x * (size_t)BLOCK + threadIdx.x; i < n;
         i += (size_t)gridDim.x * BLOCK) {
        const int32_t r = (int32_t)(i / (size_t)a.dim), c = (int32_t)(i % (size_t)a.dim);
        const float x = ox_get(a.x, M == MAP_GATHER && a.index ? a.index[r] : r, c);
        float y = x;
        if (M == MAP_ACT) y = ox_act_float(a.act, x);
        if (M == MAP_GLU) y = ox_act_float(a.act, x) * ox_get(a.x2, r, c);
        if (M == MAP_ADD) y = x + ox_get(a.x2, r, c);
        if (M == MAP_SCALE) {
            y = x * a.scale;
            if (a.softcap > 0.0f) y = a.softcap * tanhf(y / a.softcap);
        }
        ox_put(a.y, r, c, y);
    }
}

template <map M> static void launch(const void *args, void *stream)
{
    const ox_dev_map_args *a = (const ox_dev_map_args *)args;
    if (!a->rows || !a->dim) return;
    ox_launch(map_kernel<M>, ox_grid((size_t)a->rows * (size_t)a->dim, BLOCK), BLOCK, 0,
              ox_stream_of(stream), *a);
}

void ox_act_cuda(const void *args, void *stream)
{
    launch<MAP_ACT>(args, stream);
}
void ox_glu_cuda(const void *args, void *stream)
{
    launch<MAP_GLU>(args, stream);
}
void ox_add_cuda(const void *args, void *stream)
{
    launch<MAP_ADD>(args, stream);
}
void ox_scale_cuda(const void *args, void *stream)
{
    launch<MAP_SCALE>(args, stream);
}
void ox_gather_cuda(const void *args, void *stream)
{
    launch<MAP_GATHER>(args, stream);
}
