/* profile.c - where a step's time goes: an event before every call, sums by kind of call and row.
 *
 * While a profile is on, steps are launched call by call instead of replayed, so that events can
 * stand between the calls: shares are right, sums are larger than an unobserved step's. Numbers
 * are device time from one event to the next. The last step becomes a Chrome trace. */
#include "backend/cuda/cuda.h"

enum { MOST_CALLS = 4096, MOST_LINES = 64 };

typedef struct line {
    const char *kind, *row;
    int32_t rows; /* class of the step: its rows, rounded up to a power of two */
    uint64_t n;
    double us;
} line;

struct ox_cuda_profile {
    cudaEvent_t at[MOST_CALLS + 1];
    size_t n_at;
    line lines[MOST_LINES];
    size_t n_lines;
    uint64_t n_steps;
    ox_buf trace; /* of the last step */
};

static const char *const kind_names[OX_CALL_COUNT] = {
#define OX_CALL(suffix, name) name,
#include "backend/calls.def"
#undef OX_CALL
};

ox_status ox_cuda_profile_open(ox_cuda_backend *b, ox_err *err)
{
    b->profile = ox_calloc(1, sizeof(*b->profile));
    return b->profile ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for a profile");
}

void ox_cuda_profile_close(ox_cuda_backend *b)
{
    struct ox_cuda_profile *p = b->profile;
    if (!p) return;
    for (size_t i = 0; i < p->n_at; i++)
        cudaEventDestroy(p->at[i]);
    ox_buf_deinit(&p->trace);
    ox_free(p);
    b->profile = NULL;
}

void ox_cuda_profile_mark(ox_cuda_backend *b, size_t i)
{
    struct ox_cuda_profile *p = b->profile;
    if (i > MOST_CALLS) return;
    while (p->n_at <= i) {
        if (ox_cuda_check(b, cudaEventCreate(&p->at[p->n_at]), "cudaEventCreate", NULL)) return;
        p->n_at++;
    }
    cudaEventRecord(p->at[i], b->stream);
}

static line *line_of(struct ox_cuda_profile *p, const char *kind, const char *row, int32_t rows)
{
    for (size_t i = 0; i < p->n_lines; i++) {
        line *l = &p->lines[i];
        if (l->kind == kind && l->row == row && l->rows == rows) return l;
    }
    if (p->n_lines == MOST_LINES) return NULL;
    p->lines[p->n_lines] = (line){.kind = kind, .row = row, .rows = rows};
    return &p->lines[p->n_lines++];
}

void ox_cuda_profile_step(ox_cuda_backend *b, const ox_cuda_run *r, const ox_call *calls, size_t n)
{
    struct ox_cuda_profile *p = b->profile;
    int32_t rows = 1;
    double at = 0;
    while (rows < r->rows)
        rows *= 2;
    if (n > MOST_CALLS || cudaStreamSynchronize(b->stream) != cudaSuccess) return;
    p->n_steps++;
    p->trace.n = 0;
    ox_buf_put_z(&p->trace, "[");
    for (size_t i = 0; i < n; i++) {
        float ms = 0;
        if (cudaEventElapsedTime(&ms, p->at[i], p->at[i + 1]) != cudaSuccess) break;
        const char *kind = kind_names[calls[i].kind];
        const char *row = calls[i].rows[ox_cuda_class_of(r, &calls[i])];
        line *l = line_of(p, kind, row, rows);
        if (l) {
            l->n++;
            l->us += 1e3 * (double)ms;
        }
        ox_buf_printf(
            &p->trace,
            "%s{\"name\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"node\":\"%s\",\"row\":\"%s\"}}",
            i ? ",\n" : "", kind, at, 1e3 * (double)ms, calls[i].name, row);
        at += 1e3 * (double)ms;
    }
    ox_buf_put_z(&p->trace, "]\n");
}

ox_status ox_cuda_end_profile(ox_backend *base, ox_buf *table, ox_buf *trace, ox_err *err)
{
    ox_cuda_backend *b = (ox_cuda_backend *)base;
    struct ox_cuda_profile *p = b->profile;
    if (!p) return OX_FAIL(err, OX_BAD_ARGUMENT, "the model was opened without a profile");
    ox_buf_printf(table, "%s, %llu steps, launched call by call\n%6s %-14s %-28s %9s %9s %12s\n",
                  b->name, (unsigned long long)p->n_steps, "rows", "call", "row", "calls",
                  "us each", "us");
    for (size_t i = 0; i < p->n_lines; i++) {
        const line *l = &p->lines[i];
        ox_buf_printf(table, "%6d %-14s %-28s %9llu %9.2f %12.1f\n", l->rows, l->kind,
                      l->row ? l->row : "", (unsigned long long)l->n, l->us / (double)l->n, l->us);
    }
    ox_buf_put(trace, p->trace.p, p->trace.n);
    return table->failed || trace->failed ? OX_FAIL(err, OX_NO_MEMORY, "no memory for a profile")
                                          : OX_OK;
}
