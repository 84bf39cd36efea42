/* template.c - the public face of chat templates: opening, the variables of a render, limits, and
 * the spans of the caller's bytes. The language itself is in jinja/. */
#include "text/template.h"

#include "text/jinja/builtin.h"
#include "text/jinja/functions.h"

typedef struct global {
    uint32_t name;
    const ox_jbuiltin *function;
} global;

struct ox_template {
    ox_jtree tree;
    OX_VEC(global) functions; /* those whose names the template mentions */
};

ox_status ox_template_open(ox_template **out, ox_str source, ox_err *err)
{
    ox_status st = OX_OK;
    ox_template *t = ox_calloc(1, sizeof(*t));
    *out = NULL;
    if (!t) return OX_FAIL(err, OX_NO_MEMORY, "template: out of memory");
    OX_TRY_GOTO(ox_jparse(&t->tree, source, err));
    for (size_t i = 0; i < t->tree.n_names; i++) {
        const ox_jbuiltin *f = ox_jfunction_find(t->tree.names[i]);
        if (f && !ox_vec_push(&t->functions, (global){(uint32_t)i, f}))
            OX_TRY_GOTO(OX_FAIL(err, OX_NO_MEMORY, "template: out of memory"));
    }
    *out = t;
    return OX_OK;
fail:
    ox_template_close(&t);
    return st;
}

void ox_template_close(ox_template **t)
{
    if (!*t) return;
    ox_vec_deinit(&(*t)->functions);
    ox_jtree_deinit(&(*t)->tree);
    ox_free(*t);
    *t = NULL;
}

static uint32_t name_id(const ox_template *t, ox_str name)
{
    uint64_t id;
    return ox_map_get(&t->tree.ids, name, &id) ? (uint32_t)id : UINT32_MAX;
}

bool ox_template_uses(const ox_template *t, ox_str name)
{
    return name_id(t, name) != UINT32_MAX;
}

/* Values are made only of what the template mentions. */
static ox_status set_json(ox_jstate *j, const ox_template *t, ox_str name, const ox_json *node)
{
    const uint32_t id = name_id(t, name);
    return id == UINT32_MAX ? OX_OK : ox_jvalue_of_json(j, node, OX_JFROM_INPUT, &j->globals[id]);
}

static ox_status set_variables(ox_jstate *j, const ox_template *t, const ox_template_input *in)
{
    void *mem;
    OX_TRY(ox_jtake(j, t->tree.n_names + 1, sizeof(ox_jval), &mem));
    j->globals = mem;
    for (size_t i = 0; i < t->functions.n; i++)
        j->globals[t->functions.p[i].name] =
            (ox_jval){.kind = OX_JKIND_BUILTIN, .u.builtin = t->functions.p[i].function};
    for (size_t i = 0; i < in->n_tokens; i++) {
        const uint32_t id = name_id(t, in->tokens[i].name);
        const ox_str text = in->tokens[i].text;
        if (id != UINT32_MAX)
            OX_TRY(ox_jstr_borrow(j, text.p, text.n, OX_JFROM_TEMPLATE, &j->globals[id]));
    }
    const uint32_t prompt = name_id(t, OX_STR("add_generation_prompt"));
    if (prompt != UINT32_MAX) j->globals[prompt] = ox_jbool(in->add_generation_prompt);
    if (in->messages) OX_TRY(set_json(j, t, OX_STR("messages"), in->messages));
    OX_TRY(set_json(j, t, OX_STR("tools"), in->tools));
    OX_TRY(set_json(j, t, OX_STR("documents"), in->documents));
    for (size_t i = 0; i < ox_json_n(in->extra); i++) {
        const ox_json_member *m = ox_json_member_at(in->extra, i);
        if (m) OX_TRY(set_json(j, t, ox_json_str(&m->key), &m->value));
    }
    return OX_OK;
}

static ox_status copy_output(ox_jstate *j, const ox_jbuf *b, ox_buf *out, ox_template_spans *spans)
{
    const size_t shift = out->n, n_spans = spans ? spans->n : 0;
    size_t begin = 0;
    for (size_t i = 0; spans && i < b->n_runs; begin = b->runs[i].end, i++) {
        const ox_template_span s = {shift + begin, shift + b->runs[i].end};
        if (b->runs[i].input && !ox_vec_push(spans, s)) {
            spans->n = n_spans;
            return ox_jno_memory(j);
        }
    }
    if (!ox_buf_reserve(out, b->n)) {
        if (spans) spans->n = n_spans;
        return ox_jno_memory(j);
    }
    ox_buf_put(out, b->p, b->n);
    return OX_OK;
}

ox_status ox_template_render(const ox_template *t, const ox_template_input *in, ox_buf *out,
                             ox_template_spans *spans, ox_err *err)
{
    ox_status st = OX_OK;
    ox_jbuf text = {0};
    const ox_template_limits *l = &in->limits;
    ox_jstate j = {
        .tree = &t->tree,
        .err = err,
        .steps_max = l->steps ? l->steps : 10000000,
        .memory_max = l->memory_bytes ? l->memory_bytes : (size_t)512 << 20,
        .output_max = l->output_bytes ? l->output_bytes : (size_t)16 << 20,
        .macro_depth_max = l->macro_depth ? l->macro_depth : 100,
        .out = &text,
        .final_out = &text,
        .id_loop = name_id(t, OX_STR("loop")),
        .id_caller = name_id(t, OX_STR("caller")),
        .id_varargs = name_id(t, OX_STR("varargs")),
        .id_kwargs = name_id(t, OX_STR("kwargs")),
        .now_seconds = in->now_seconds,
        .utc_offset_seconds = in->utc_offset_seconds,
    };
    OX_TRY_GOTO(set_variables(&j, t, in));
    OX_TRY_GOTO(ox_jexec(&j, &t->tree.body));
    st = copy_output(&j, &text, out, spans);
fail:
    ox_arena_deinit(&j.arena);
    return st;
}
