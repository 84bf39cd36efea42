/* micro.c - the table of micro-benchmarks (micro.def), opening and running a case, and the choice
 * of kernel rows as `oxgen kernels --time` reports it. Makers of cases: micro_tensor.c (the public
 * table's tensor rows), micro_kernel.c (kernels on
 * typical shapes), micro_text.c, micro_sample.c. */
#include "engine/micro.h"

#include "base/mem.h"
#include "tensor/half.h"

#include <string.h>

static const micro_row rows[] = {
#define OX_MICRO(name, make, kind, a, b, c, n_threads, runs)                                       \
    {name, ox_micro_##make, kind, a, b, c, n_threads, runs},
#define OX_MICRO_ABSENT(name, why) {name, NULL, 0, 0, 0, 0, 1, why},
#include "engine/micro.def"
#undef OX_MICRO
#undef OX_MICRO_ABSENT
};

/* ---- memory ---- */

void *ox_micro_bytes(ox_micro_case *c, size_t n, ox_err *err)
{
    const uint32_t mix = (c->layout * 64u + (uint32_t)c->n_blocks) * 2654435761u;
    const size_t shift = c->layout ? mix >> 26 << 6 : 0;
    char *p = c->n_blocks < MICRO_BLOCKS ? ox_pages_alloc(n + shift) : NULL;
    if (p) {
        c->blocks[c->n_blocks++] = (micro_block){p, n + shift};
        return p + shift;
    }
    (void)OX_FAIL(err, OX_NO_MEMORY, "no memory for %zu bytes of a micro-benchmark", n);
    return NULL;
}

void *ox_micro_values(ox_micro_case *c, ox_dtype t, size_t n, ox_err *err)
{
    void *p = ox_micro_bytes(c, n * (t == OX_DTYPE_F32 ? 4 : 2), err);
    for (size_t i = 0; p && i < n; i++) {
        const float v = ((float)(i % 251) - 125.0f) / 64.0f;
        if (t == OX_DTYPE_F32)
            ((float *)p)[i] = v;
        else
            ((uint16_t *)p)[i] = t == OX_DTYPE_F16 ? ox_f32_to_f16(v) : ox_f32_to_bf16(v);
    }
    return p;
}

float *ox_micro_floats(ox_micro_case *c, size_t n, ox_err *err)
{
    return ox_micro_values(c, OX_DTYPE_F32, n, err);
}

/* ---- cases ---- */

ox_status ox_micro_launch(ox_micro_case *c, const ox_kernel_row *family, micro_call_fn *call,
                          const micro_args *args, size_t units, size_t step, ox_err *err)
{
    ox_machine m = {0};
    OX_TRY(ox_cpu_features(&m.cpu_features, err));
    const ox_kernel_row *row = ox_kernel_pick(family, OX_DEVICE_CPU, &m, args);
    if (c->forced && c->rows == family) row = c->forced;
    if (row && row->accepts && !row->accepts(args))
        return OX_FAIL(err, OX_UNSUPPORTED, "%s does not take this shape", row->name);
    if (!row || c->n_launches == MICRO_LAUNCHES)
        return OX_FAIL(err, OX_FAILED, "no kernel row for a micro-benchmark");
    c->launches[c->n_launches++] =
        (micro_launch){.fn = row->fn, .call = call, .args = *args, .units = units, .step = step};
    return OX_OK;
}

static void run_launches(void *user, int i, int n)
{
    ox_micro_case *c = user;
    for (size_t k = 0; k < c->n_launches; k++) {
        micro_launch *l = &c->launches[k];
        size_t begin, end;
        ox_team_split(l->units, l->step, i, n, &begin, &end);
        if (k && n > 1) ox_team_barrier(c->team);
        if (begin < end) l->call(l->fn, &l->args, begin, end);
    }
}

static int32_t threads_of(const micro_row *row)
{
    const int32_t cpus = ox_cpu_count(), n = row->n_threads;
    return n && n < cpus ? n : cpus;
}

static ox_status open_row(ox_micro_case **out, const micro_row *row, uint32_t layout,
                          const ox_kernel_row *family, const ox_kernel_row *forced, ox_err *err)
{
    ox_status st = OX_OK;
    *out = NULL;
    if (!row->make) return OX_FAIL(err, OX_UNSUPPORTED, "%s: %s", row->name, row->text);
    ox_micro_case *c = ox_calloc(1, sizeof(*c));
    if (!c) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    c->cost.n_threads = threads_of(row);
    c->layout = layout;
    c->forced = forced;
    c->rows = family;
    if (forced) c->cost.n_threads = 1;
    if (c->cost.n_threads > OX_TEAM_MAX) c->cost.n_threads = OX_TEAM_MAX;
    if (c->cost.n_threads > 1) OX_TRY_GOTO(ox_team_open(&c->team, c->cost.n_threads, err));
    OX_TRY_GOTO(row->make(c, row, err));
    *out = c;
    return OX_OK;
fail:
    ox_micro_close(&c);
    return st;
}

/* Why a row cannot be run here, or NULL. */
static const char *absent(const micro_row *r)
{
    if (!r->make) return r->text;
    return r->n_threads > ox_cpu_count() ? "this machine has fewer CPUs than the row threads"
                                         : NULL;
}

size_t ox_micro_count(void)
{
    return OX_COUNT(rows);
}

ox_status ox_micro_at(size_t i, ox_micro *out, ox_err *err)
{
    if (i >= OX_COUNT(rows))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "there is no micro-benchmark %zu", i);
    const micro_row *r = &rows[i];
    *out = (ox_micro){.name = r->name,
                      .runs = absent(r) ? NULL : r->text,
                      .absent = absent(r),
                      .few_cpus = r->make && absent(r)};
    return OX_OK;
}

ox_status ox_micro_open(ox_micro_case **out, size_t i, uint32_t layout, ox_err *err)
{
    *out = NULL;
    if (i >= OX_COUNT(rows))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "there is no micro-benchmark %zu", i);
    if (absent(&rows[i]))
        return OX_FAIL(err, OX_UNSUPPORTED, "%s: %s", rows[i].name, absent(&rows[i]));
    return open_row(out, &rows[i], layout, NULL, NULL, err);
}

ox_status ox_micro_open_peer(ox_micro_case **out, size_t i, uint32_t layout, ox_err *err)
{
    *out = NULL;
    if (i >= OX_COUNT(rows))
        return OX_FAIL(err, OX_BAD_ARGUMENT, "there is no micro-benchmark %zu", i);
    if (!rows[i].make) return OX_FAIL(err, OX_UNSUPPORTED, "%s: %s", rows[i].name, rows[i].text);
    const micro_row row = rows[i];
    ox_status st = OX_OK;
    ox_micro_case *c = ox_calloc(1, sizeof(*c));
    if (!c) return OX_FAIL(err, OX_NO_MEMORY, "no memory for a micro-benchmark");
    c->layout = layout;
    c->cost.n_threads = threads_of(&row);
    OX_TRY_GOTO(ox_micro_peer_make(c, &row, err));
    *out = c;
    return OX_OK;
fail:
    ox_micro_close(&c);
    return st;
}

void ox_micro_cost_of(const ox_micro_case *c, ox_micro_cost *out)
{
    *out = c->cost;
}

ox_status ox_micro_run(ox_micro_case *c, size_t times, ox_err *err)
{
    for (size_t i = 0; i < times; i++)
        if (c->run)
            OX_TRY(c->run(c, err));
        else
            ox_team_run(c->team, run_launches, c);
    return OX_OK;
}

void ox_micro_close(ox_micro_case **micro)
{
    ox_micro_case *c = *micro;
    if (!c) return;
    if (c->close && c->state) c->close(c->state);
    for (size_t i = 0; i < c->n_blocks; i++)
        ox_pages_free(c->blocks[i].p, c->blocks[i].n);
    ox_team_close(&c->team);
    ox_free(c);
    *micro = NULL;
}

/* ---- kernel rows on typical shapes ---- */

/* Kernel row i, its family, and the micro-benchmark "oxgen/FAMILY/..." that
 * comes first, or NULL. */
static ox_status find_kernel(size_t i, const ox_kernel_family **family, const ox_kernel_row **row,
                             const micro_row **typical, ox_err *err)
{
    for (const ox_kernel_family *f = ox_kernel_families; f->name; f++)
        for (const ox_kernel_row *r = f->rows; r->device; r++) {
            if (i--) continue;
            const size_t n = strlen(f->name);
            *family = f;
            *row = r;
            *typical = NULL;
            for (size_t k = 0; k < OX_COUNT(rows) && !*typical; k++)
                if (!strncmp(rows[k].name, "oxgen/", 6) && !strncmp(rows[k].name + 6, f->name, n) &&
                    rows[k].name[6 + n] == '/')
                    *typical = &rows[k];
            return OX_OK;
        }
    return OX_FAIL(err, OX_BAD_ARGUMENT, "there is no such kernel row");
}

ox_status ox_kernel_open(ox_micro_case **out, size_t i, ox_err *err)
{
    const ox_kernel_family *f;
    const ox_kernel_row *row;
    const micro_row *typical;
    ox_machine m = {0};
    *out = NULL;
    OX_TRY(find_kernel(i, &f, &row, &typical, err));
    OX_TRY(ox_cpu_features(&m.cpu_features, err));
    if (row->device != OX_DEVICE_CPU || !ox_kernel_runs_on(row, &m))
        return OX_FAIL(err, OX_UNSUPPORTED, "%s: this machine lacks %s", row->name,
                       ox_cpu_tier_name(row->needs));
    if (!typical) return OX_FAIL(err, OX_UNSUPPORTED, "family %s has no typical shape", f->name);
    return open_row(out, typical, 0, f->rows, row, err);
}

/* The arguments of a case's launch of that family; NULL when it has none. */
static const void *args_for(const ox_micro_case *c, const ox_kernel_row *row)
{
    for (size_t i = 0; i < c->n_launches; i++)
        if (c->launches[i].fn == row->fn) return &c->launches[i].args;
    return NULL;
}

ox_status ox_kernel_choose(size_t i, ox_kernel_choice *out, ox_err *err)
{
    const ox_kernel_family *f;
    const ox_kernel_row *row;
    const micro_row *typical;
    ox_machine m = {0};
    ox_err refused = OX_ERR_INIT;
    OX_TRY(find_kernel(i, &f, &row, &typical, err));
    OX_TRY(ox_cpu_features(&m.cpu_features, err));
    *out = (ox_kernel_choice){.shape = typical ? typical->name : NULL};
    if (row->device != OX_DEVICE_CPU || !ox_kernel_runs_on(row, &m)) {
        out->why = "the machine lacks what it needs";
        return OX_OK;
    }
    const void *args = NULL;
    ox_micro_case *c = NULL;
    const ox_status st = typical ? open_row(&c, typical, 0, f->rows, row, &refused) : OX_OK;
    if (st == OX_NO_MEMORY) return OX_FAIL(err, st, "%s", refused.msg);
    if (c) args = args_for(c, row);
    const ox_kernel_row *best = st ? NULL : ox_kernel_pick(f->rows, OX_DEVICE_CPU, &m, args);
    out->picked = !st && best == row;
    out->why = st            ? "it does not take this shape"
               : out->picked ? "first row whose needs are met and that takes the shape"
                             : "a row above it runs here";
    ox_micro_close(&c);
    return OX_OK;
}
