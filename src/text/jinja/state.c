/* state.c - messages with line numbers, memory and step limits of a render. */
#include "text/jinja/state.h"

#include <stdarg.h>
#include <stdio.h>

static ox_status fail_line(ox_err *err, ox_status st, uint32_t line, const char *fmt, va_list ap)
{
    char text[OX_ERR_MAX / 2];
    vsnprintf(text, sizeof(text), fmt, ap);
    return OX_FAIL(err, st, "template: line %u: %s", line, text);
}

ox_status ox_jsyntax(ox_err *err, ox_status st, uint32_t line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    st = fail_line(err, st, line, fmt, ap);
    va_end(ap);
    return st;
}

ox_status ox_jfail(ox_jstate *j, ox_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    st = fail_line(j->err, st, j->line, fmt, ap);
    va_end(ap);
    return st;
}

ox_status ox_jno_memory(ox_jstate *j)
{
    return OX_FAIL(j->err, OX_NO_MEMORY, "template: line %u: out of memory", j->line);
}

ox_status ox_jout_of_steps(ox_jstate *j)
{
    return ox_jfail(j, OX_UNSUPPORTED, "the template does not end: stopped after %llu steps",
                    (unsigned long long)j->steps_max);
}

ox_status ox_jundefined_error(ox_jstate *j, ox_jval v)
{
    const ox_jnode *n = v.kind == OX_JKIND_UNDEFINED ? v.u.node : NULL;
    if (n && n->op == OX_JOP_NAME) {
        const ox_str name = j->tree->names[n->name];
        return OX_JFAIL(j, "'%.*s' is undefined", OX_STR_ARGS(name));
    }
    if (n && n->op == OX_JOP_GETATTR) {
        const ox_str name = ox_jview(n->u.value);
        return OX_JFAIL(j, "an object has no attribute '%.*s' (used on line %u)", OX_STR_ARGS(name),
                        n->line);
    }
    if (n && n->op == OX_JOP_GETITEM)
        return OX_JFAIL(j, "an object has no such element (used on line %u)", n->line);
    return OX_JFAIL(j, "a value is undefined");
}

ox_status ox_jtake(ox_jstate *j, size_t n, size_t size, void **out)
{
    size_t bytes;
    if (!ox_size_mul(n, size, &bytes) || bytes > j->memory_max ||
        j->arena.used_bytes > j->memory_max - bytes)
        return ox_jfail(j, OX_UNSUPPORTED, "the template needs more than %zu bytes of memory",
                        j->memory_max);
    *out = ox_arena_take(&j->arena, bytes);
    return *out ? OX_OK : ox_jno_memory(j);
}
