/* attrs.c - attribute look-up with defaults. */
#include "graph/graph.h"

const ox_attr *ox_node_attr(const ox_node *n, const char *name)
{
    for (uint32_t i = 0; i < n->n_attrs; i++)
        if (ox_str_is(n->attrs[i].name, name)) return &n->attrs[i];
    return NULL;
}

int64_t ox_node_int(const ox_node *n, const char *name, int64_t otherwise)
{
    const ox_attr *a = ox_node_attr(n, name);
    return a && a->type == OX_ATTR_INT ? a->i : otherwise;
}

float ox_node_float(const ox_node *n, const char *name, float otherwise)
{
    const ox_attr *a = ox_node_attr(n, name);
    return a && a->type == OX_ATTR_FLOAT ? a->f : otherwise;
}

ox_str ox_node_str(const ox_node *n, const char *name, const char *otherwise)
{
    const ox_attr *a = ox_node_attr(n, name);
    return a && a->type == OX_ATTR_STRING ? a->s : ox_str_of(otherwise);
}
