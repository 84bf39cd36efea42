/* export_report.c - what became of the matrices: one line for all that went the same way, in the
 * order in which the graph has them, then what is worth knowing. With `each`, a line a matrix
 * before that. */
#include "convert/export_internal.h"

#include <string.h>

/* "model.layers.3.attn.qkv_proj.MatMul" is a qkv_proj. */
static ox_str role_of(ox_str name)
{
    const ox_str tail = OX_STR(".MatMul");
    if (ox_str_ends(name, tail)) name.n -= tail.n;
    for (size_t i = name.n; i > 0; i--)
        if (name.p[i - 1] == '.') return (ox_str){name.p + i, name.n - i};
    return name;
}

static ox_kind kind_of(const ox_job *job)
{
    ox_kind k = {.form = job->form};
    for (int32_t i = 0; i < job->n_parts; i++)
        if (!i || job->parts[i]->format != job->parts[0]->format)
            k.from[k.n_from++] = job->parts[i]->format;
    return k;
}

static bool same_kind(const ox_kind *a, const ox_kind *b)
{
    return ox_form_same(&a->form, &b->form) && a->form.exact == b->form.exact &&
           a->form.note == b->form.note && a->n_from == b->n_from &&
           !memcmp(a->from, b->from, sizeof(a->from));
}

static void put_change(const ox_kind *k, ox_buf *out)
{
    for (int32_t i = 0; i < k->n_from; i++)
        ox_buf_printf(out, "%s%s", i ? "+" : "", ox_format_name(k->from[i]));
    ox_buf_put_z(out, " -> ");
    ox_form_print(&k->form, out);
}

void ox_emit_count(ox_emitter *e, ox_str name, const ox_job *job)
{
    const ox_kind k = kind_of(job);
    const ox_str role = role_of(name);
    size_t i = 0, r = 0;
    if (e->o->each) {
        ox_buf_printf(e->report, "%.*s [%lld, %lld]: ", OX_STR_ARGS(name),
                      (long long)ox_job_rows(job), (long long)ox_job_cols(job));
        put_change(&k, e->report);
        ox_buf_put_c(e->report, '\n');
    }
    while (i < e->kinds.n && !same_kind(&e->kinds.p[i], &k))
        i++;
    if (i == e->kinds.n && !ox_vec_push(&e->kinds, k)) {
        e->failed = true;
        return;
    }
    ox_kind *at = &e->kinds.p[i];
    at->n++;
    while (r < at->n_roles && !ox_str_eq(at->roles[r], role))
        r++;
    if (r == at->n_roles && r < OX_COUNT(at->roles))
        at->roles[at->n_roles++] = ox_emit_name(e, "%.*s", OX_STR_ARGS(role));
}

void ox_emit_report(const ox_emitter *e)
{
    int32_t all = 0, kept = 0, widened = 0;
    for (size_t i = 0; i < e->kinds.n; i++) {
        const ox_kind *k = &e->kinds.p[i];
        ox_buf_printf(e->report, "%d %s (", k->n, k->n == 1 ? "matrix" : "matrices");
        for (size_t r = 0; r < k->n_roles; r++)
            ox_buf_printf(e->report, "%s%.*s", r ? ", " : "", OX_STR_ARGS(k->roles[r]));
        ox_buf_put_z(e->report, "): ");
        put_change(k, e->report);
        ox_buf_put_c(e->report, '\n');
        all += k->n;
        kept += ox_form_keeps(&k->form) ? k->n : 0;
        widened += !k->form.nbits && ox_format_block(k->from[0]) != 1 ? k->n : 0;
    }
    if (widened && e->o->quant.kind == OX_QUANT_KEEP)
        ox_buf_printf(e->report,
                      "warning: %d block-quantised matrices became floats, which is large and "
                      "slow; --quant int8 or int4 makes them small\n",
                      widened);
    ox_buf_printf(e->report, "%d of %d matrices keep the file's values; %.1f MB of data, %zu nodes",
                  kept, all, (double)e->end / 1e6, e->w.n_nodes);
}
