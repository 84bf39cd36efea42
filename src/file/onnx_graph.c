/* onnx_graph.c - GraphProto and all it holds but tensors: nodes, attributes, values, types,
 * functions. Graphs nest through attributes: recursion is bounded by OX_ONNX_MAX_DEPTH. */
#include "file/onnx_internal.h"

#include "base/hash.h"

static ox_status want_len(ox_onnx_reader *r, const ox_proto_field *f)
{
    return ox_onnx_want(r, f, OX_PROTO_LEN);
}

static ox_status read_dim(ox_onnx_reader *r, ox_str bytes, ox_onnx_dim *out)
{
    ox_proto w = ox_proto_of(bytes);
    *out = (ox_onnx_dim){-1, {"", 0}};
    for (ox_proto_field f; ox_proto_next(&w, &f);) {
        if (f.number == 1 && ox_proto_is_varint(&f))
            *out = (ox_onnx_dim){f.value > INT64_MAX ? -1 : (int64_t)f.value, {"", 0}};
        if (f.number == 2 && ox_proto_is_len(&f)) *out = (ox_onnx_dim){-1, f.bytes};
    }
    return w.bad ? ox_onnx_damaged(r, &w, "dimension") : OX_OK;
}

/* A shape of more dimensions than a tensor can have counts as unknown. */
static ox_status read_shape(ox_onnx_reader *r, ox_str bytes, ox_onnx_value *out)
{
    ox_proto w = ox_proto_of(bytes);
    int32_t rank = 0;
    for (ox_proto_field f; ox_proto_next(&w, &f);) {
        if (f.number != 1) continue;
        OX_TRY(want_len(r, &f));
        if (rank < OX_RANK_MAX) OX_TRY(read_dim(r, f.bytes, &out->dims[rank]));
        if (rank <= OX_RANK_MAX) rank++;
    }
    if (w.bad) return ox_onnx_damaged(r, &w, "shape");
    out->rank = rank <= OX_RANK_MAX ? rank : -1;
    return OX_OK;
}

static ox_status read_tensor_type(ox_onnx_reader *r, ox_str bytes, ox_onnx_value *out)
{
    ox_proto w = ox_proto_of(bytes);
    for (ox_proto_field f; ox_proto_next(&w, &f);) {
        if (f.number == 1) {
            OX_TRY(ox_onnx_want(r, &f, OX_PROTO_VARINT));
            out->dtype = f.value < OX_DTYPE_COUNT ? (ox_dtype)f.value : OX_DTYPE_NONE;
        } else if (f.number == 2) {
            OX_TRY(want_len(r, &f));
            OX_TRY(read_shape(r, f.bytes, out));
        }
    }
    return w.bad ? ox_onnx_damaged(r, &w, "type") : OX_OK;
}

/* The single message field of a sequence or optional type. */
static ox_status element_type(ox_onnx_reader *r, ox_str bytes, ox_str *out)
{
    ox_proto w = ox_proto_of(bytes);
    *out = (ox_str){"", 0};
    for (ox_proto_field f; ox_proto_next(&w, &f);)
        if (f.number == 1 && ox_proto_is_len(&f)) *out = f.bytes;
    return w.bad ? ox_onnx_damaged(r, &w, "type") : OX_OK;
}

/* The outermost container gives the kind, the innermost tensor gives type and shape. */
static ox_status read_type(ox_onnx_reader *r, ox_str bytes, ox_onnx_value *out)
{
    enum { TENSOR = 1, SEQUENCE = 4, MAP = 5, OPAQUE = 7, SPARSE = 8, OPTIONAL = 9 };
    for (int depth = 0; depth < OX_ONNX_MAX_TYPE_DEPTH; depth++) {
        ox_proto w = ox_proto_of(bytes);
        ox_onnx_kind kind = OX_ONNX_TENSOR;
        bool nested = false;
        for (ox_proto_field f; ox_proto_next(&w, &f);) {
            if (f.number == TENSOR) {
                OX_TRY(want_len(r, &f));
                OX_TRY(read_tensor_type(r, f.bytes, out));
                kind = OX_ONNX_TENSOR;
                nested = false;
            } else if (f.number == SEQUENCE || f.number == OPTIONAL) {
                OX_TRY(want_len(r, &f));
                OX_TRY(element_type(r, f.bytes, &bytes));
                kind = f.number == SEQUENCE ? OX_ONNX_SEQUENCE : OX_ONNX_OPTIONAL;
                nested = true;
            } else if (f.number == MAP || f.number == OPAQUE || f.number == SPARSE) {
                kind = OX_ONNX_OTHER;
                nested = false;
            }
        }
        if (w.bad) return ox_onnx_damaged(r, &w, "type");
        if (!depth || kind == OX_ONNX_OTHER) out->kind = kind;
        if (!nested) return OX_OK;
    }
    return OX_FAIL(r->err, OX_LIMIT, "types nest deeper than %d levels", OX_ONNX_MAX_TYPE_DEPTH);
}

static ox_status read_value(ox_onnx_reader *r, ox_str bytes, ox_onnx_value *out)
{
    ox_proto w = ox_proto_of(bytes);
    ox_status st = OX_OK;
    *out = (ox_onnx_value){.name = {"", 0}, .rank = -1};
    for (ox_proto_field f; !st && ox_proto_next(&w, &f);) {
        if (f.number != 1 && f.number != 2) continue;
        st = want_len(r, &f);
        if (f.number == 1)
            out->name = f.bytes;
        else if (!st)
            st = read_type(r, f.bytes, out);
    }
    if (!st && w.bad) st = ox_onnx_damaged(r, &w, "ValueInfoProto");
    if (st && out->name.n) ox_err_prefix(r->err, "value %.*s", OX_STR_ARGS(out->name));
    return st;
}

/* --- attributes --- */

enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TENSORS = 10,
    ATTR_GRAPHS = 11,
    ATTR_TYPE_VALUE = 14,
    ATTR_TYPE_VALUES = 15,
    ATTR_TYPE = 20,
    ATTR_REF = 21,
    ATTR_SPARSE = 22,
    ATTR_SPARSES = 23,
};

/* Which field holds the value of each attribute type; inference takes the first that is there. */
static const uint8_t attr_field[] = {
    [OX_ONNX_ATTR_UNDEFINED] = 0,
    [OX_ONNX_ATTR_FLOAT] = ATTR_F,
    [OX_ONNX_ATTR_INT] = ATTR_I,
    [OX_ONNX_ATTR_STRING] = ATTR_S,
    [OX_ONNX_ATTR_TENSOR] = ATTR_T,
    [OX_ONNX_ATTR_GRAPH] = ATTR_G,
    [OX_ONNX_ATTR_FLOATS] = ATTR_FLOATS,
    [OX_ONNX_ATTR_INTS] = ATTR_INTS,
    [OX_ONNX_ATTR_STRINGS] = ATTR_STRINGS,
    [OX_ONNX_ATTR_TENSORS] = ATTR_TENSORS,
    [OX_ONNX_ATTR_GRAPHS] = ATTR_GRAPHS,
    [OX_ONNX_ATTR_SPARSE] = ATTR_SPARSE,
    [OX_ONNX_ATTR_SPARSES] = ATTR_SPARSES,
    [OX_ONNX_ATTR_TYPE] = ATTR_TYPE_VALUE,
    [OX_ONNX_ATTR_TYPES] = ATTR_TYPE_VALUES,
};

static const struct {
    bool known;
    int32_t wire;
} attr_wire[] = {
    [ATTR_NAME] = {true, OX_PROTO_LEN},        [ATTR_F] = {true, OX_PROTO_I32},
    [ATTR_I] = {true, OX_PROTO_VARINT},        [ATTR_S] = {true, OX_PROTO_LEN},
    [ATTR_T] = {true, OX_PROTO_LEN},           [ATTR_G] = {true, OX_PROTO_LEN},
    [ATTR_FLOATS] = {true, OX_PROTO_I32},      [ATTR_INTS] = {true, OX_PROTO_VARINT},
    [ATTR_STRINGS] = {true, OX_PROTO_LEN},     [ATTR_TENSORS] = {true, OX_PROTO_LEN},
    [ATTR_GRAPHS] = {true, OX_PROTO_LEN},      [ATTR_TYPE_VALUE] = {true, OX_PROTO_LEN},
    [ATTR_TYPE_VALUES] = {true, OX_PROTO_LEN}, [ATTR_TYPE] = {true, OX_PROTO_VARINT},
    [ATTR_REF] = {true, OX_PROTO_LEN},         [ATTR_SPARSE] = {true, OX_PROTO_LEN},
    [ATTR_SPARSES] = {true, OX_PROTO_LEN},
};

/* First walk: entries of each field, lists of numbers packed or not; type and name. */
static ox_status attr_scan(ox_onnx_reader *r, ox_str bytes, ox_onnx_attr *out,
                           size_t n[OX_ONNX_FIELDS])
{
    ox_proto w = ox_proto_of(bytes);
    memset(n, 0, OX_ONNX_FIELDS * sizeof(n[0]));
    for (ox_proto_field f; ox_proto_next(&w, &f);) {
        if (f.number >= OX_COUNT(attr_wire) || !attr_wire[f.number].known) continue;
        size_t k = 1;
        if (f.number == ATTR_FLOATS || f.number == ATTR_INTS)
            k = ox_proto_count(&f, attr_wire[f.number].wire);
        else
            OX_TRY(ox_onnx_want(r, &f, attr_wire[f.number].wire));
        if (k == SIZE_MAX) return OX_FAIL(r->err, OX_BAD_FILE, "a damaged list of numbers");
        n[f.number] += k;
        if (f.number == ATTR_NAME) out->name = f.bytes;
        if (f.number == ATTR_REF) out->ref_name = f.bytes;
        if (f.number == ATTR_TYPE) {
            if (f.value >= OX_COUNT(attr_field))
                return OX_FAIL(r->err, OX_BAD_FILE, "attribute type %llu; expected 1 to 14",
                               (unsigned long long)f.value);
            out->type = (int32_t)f.value;
        }
    }
    return w.bad ? ox_onnx_damaged(r, &w, "AttributeProto") : OX_OK;
}

static ox_status attr_type(ox_onnx_reader *r, ox_onnx_attr *a, const size_t n[OX_ONNX_FIELDS])
{
    for (int32_t t = 1; !a->type && t < (int32_t)OX_COUNT(attr_field); t++)
        if (n[attr_field[t]]) a->type = t;
    const bool needs = a->type == OX_ONNX_ATTR_TENSOR || a->type == OX_ONNX_ATTR_GRAPH ||
                       a->type == OX_ONNX_ATTR_TYPE || a->type == OX_ONNX_ATTR_SPARSE;
    if (needs && !a->ref_name.n && !n[attr_field[a->type]])
        return OX_FAIL(r->err, OX_BAD_FILE, "its type promises a value that is not there");
    return OX_OK;
}

/* Arrays for the list that the type names; single records likewise. */
static ox_status attr_make_room(ox_onnx_reader *r, ox_onnx_attr *a, const size_t n[OX_ONNX_FIELDS])
{
    const uint32_t field = attr_field[a->type];
    switch (field) {
    case ATTR_T:
        return n[field] ? ox_onnx_take(r, 1, sizeof(*a->t), &a->t) : OX_OK;
    case ATTR_G:
        return n[field] ? ox_onnx_take(r, 1, sizeof(*a->g), &a->g) : OX_OK;
    case ATTR_TYPE_VALUE:
        return n[field] ? ox_onnx_take(r, 1, sizeof(*a->type_value), &a->type_value) : OX_OK;
    case ATTR_SPARSE:
        return n[field] ? ox_onnx_take(r, 1, sizeof(*a->sparse), &a->sparse) : OX_OK;
    case ATTR_FLOATS:
        return ox_onnx_take_plain(r, n[field], sizeof(*a->floats), &a->floats);
    case ATTR_INTS:
        return ox_onnx_take_plain(r, n[field], sizeof(*a->ints), &a->ints);
    case ATTR_STRINGS:
        return ox_onnx_take_plain(r, n[field], sizeof(*a->strings), &a->strings);
    case ATTR_TENSORS:
        return ox_onnx_take(r, n[field], sizeof(*a->tensors), &a->tensors);
    case ATTR_GRAPHS:
        return ox_onnx_take(r, n[field], sizeof(ox_onnx_graph *), &a->graphs);
    default:
        return OX_OK;
    }
}

static float f32_of(uint64_t bits)
{
    const uint32_t u = (uint32_t)bits;
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static ox_status attr_numbers(ox_onnx_reader *r, const ox_proto_field *f, ox_onnx_attr *a)
{
    if (f->number == ATTR_FLOATS) {
        if (f->wire == OX_PROTO_I32) {
            a->floats[a->n++] = f32_of(f->value);
        } else if (f->bytes.n) {
            memcpy(a->floats + a->n, f->bytes.p, f->bytes.n);
            a->n += f->bytes.n / 4;
        }
        return OX_OK;
    }
    if (f->wire == OX_PROTO_VARINT) {
        a->ints[a->n++] = (int64_t)f->value;
        return OX_OK;
    }
    ox_proto w = ox_proto_of(f->bytes);
    for (uint64_t v; w.p != w.end;) {
        if (!ox_proto_varint(&w, &v)) return ox_onnx_damaged(r, &w, "ints");
        a->ints[a->n++] = (int64_t)v;
    }
    return OX_OK;
}

static ox_status attr_value(ox_onnx_reader *r, const ox_proto_field *f, ox_onnx_attr *a)
{
    switch (f->number) {
    case ATTR_F:
        a->f = f32_of(f->value);
        return OX_OK;
    case ATTR_I:
        a->i = (int64_t)f->value;
        return OX_OK;
    case ATTR_S:
        a->s = f->bytes;
        return OX_OK;
    case ATTR_T:
        return ox_onnx_read_tensor(r, f->bytes, a->t);
    case ATTR_G:
        *a->g = (ox_onnx_graph){.name = {"", 0}};
        return ox_onnx_read_graph(r, f->bytes, a->g);
    case ATTR_FLOATS:
    case ATTR_INTS:
        return attr_numbers(r, f, a);
    case ATTR_STRINGS:
        a->strings[a->n++] = f->bytes;
        return OX_OK;
    case ATTR_TENSORS:
        return ox_onnx_read_tensor(r, f->bytes, &a->tensors[a->n++]);
    case ATTR_GRAPHS:
        OX_TRY(ox_onnx_take(r, 1, sizeof(ox_onnx_graph), &a->graphs[a->n]));
        return ox_onnx_read_graph(r, f->bytes, a->graphs[a->n++]);
    case ATTR_TYPE_VALUE:
        *a->type_value = (ox_onnx_value){.name = {"", 0}, .rank = -1};
        return read_type(r, f->bytes, a->type_value);
    case ATTR_SPARSE:
        *a->sparse = (ox_onnx_sparse){.rank = 0};
        return ox_onnx_read_sparse(r, f->bytes, a->sparse);
    default:
        return OX_OK;
    }
}

static ox_status read_attr_fields(ox_onnx_reader *r, ox_str bytes, ox_onnx_attr *out)
{
    size_t n[OX_ONNX_FIELDS];
    OX_TRY(attr_scan(r, bytes, out, n));
    OX_TRY(attr_type(r, out, n));
    OX_TRY(attr_make_room(r, out, n));
    const uint32_t field = attr_field[out->type];
    ox_proto w = ox_proto_of(bytes);
    for (ox_proto_field f; ox_proto_next(&w, &f);)
        if (field && f.number == field) OX_TRY(attr_value(r, &f, out));
    if (!out->name.n) return OX_FAIL(r->err, OX_BAD_FILE, "an attribute without a name");
    return OX_OK;
}

static ox_status read_attr(ox_onnx_reader *r, ox_str bytes, ox_onnx_attr *out)
{
    *out = (ox_onnx_attr){.name = {"", 0}, .ref_name = {"", 0}, .s = {"", 0}};
    const ox_status st = read_attr_fields(r, bytes, out);
    if (st && out->name.n) ox_err_prefix(r->err, "attribute %.*s", OX_STR_ARGS(out->name));
    return st;
}

/* --- nodes --- */

static ox_status read_node_field(ox_onnx_reader *r, const ox_proto_field *f, ox_onnx_node *out)
{
    enum { INPUT = 1, OUTPUT, NAME, OP_TYPE, ATTRIBUTE, DOMAIN = 7, OVERLOAD = 8 };
    if (f->number > OVERLOAD || f->number == 6) return OX_OK;
    OX_TRY(want_len(r, f));
    switch (f->number) {
    case INPUT:
        out->inputs[out->n_inputs++] = f->bytes;
        break;
    case OUTPUT:
        out->outputs[out->n_outputs++] = f->bytes;
        break;
    case NAME:
        out->name = f->bytes;
        break;
    case OP_TYPE:
        out->op_type = f->bytes;
        break;
    case ATTRIBUTE:
        return read_attr(r, f->bytes, &out->attrs[out->n_attrs++]);
    case DOMAIN:
        out->domain = ox_str_is(f->bytes, "ai.onnx") ? (ox_str){"", 0} : f->bytes;
        break;
    case OVERLOAD:
        out->overload = f->bytes;
        break;
    default:
        break;
    }
    return OX_OK;
}

static ox_status read_node_fields(ox_onnx_reader *r, ox_str bytes, ox_onnx_node *out)
{
    size_t n[OX_ONNX_FIELDS];
    OX_TRY(ox_onnx_count(r, bytes, n));
    OX_TRY(ox_onnx_take_plain(r, n[1], sizeof(ox_str), &out->inputs));
    OX_TRY(ox_onnx_take_plain(r, n[2], sizeof(ox_str), &out->outputs));
    OX_TRY(ox_onnx_take(r, n[5], sizeof(ox_onnx_attr), &out->attrs));
    ox_proto w = ox_proto_of(bytes);
    ox_proto_field f;
    /* Names first: they lead the messages about attributes. */
    while (ox_proto_next(&w, &f)) {
        if (f.number == 3 && ox_proto_is_len(&f)) out->name = f.bytes;
        if (f.number == 4 && ox_proto_is_len(&f)) out->op_type = f.bytes;
    }
    w = ox_proto_of(bytes);
    while (ox_proto_next(&w, &f))
        OX_TRY(read_node_field(r, &f, out));
    if (!out->op_type.n) return OX_FAIL(r->err, OX_BAD_FILE, "a node without an operator");
    return OX_OK;
}

static ox_status read_node(ox_onnx_reader *r, ox_str bytes, ox_onnx_node *out, size_t i)
{
    *out =
        (ox_onnx_node){.name = {"", 0}, .op_type = {"", 0}, .domain = {"", 0}, .overload = {"", 0}};
    const ox_status st = read_node_fields(r, bytes, out);
    if (!st) return st;
    if (out->name.n)
        ox_err_prefix(r->err, "node %.*s (%.*s)", OX_STR_ARGS(out->name),
                      OX_STR_ARGS(out->op_type));
    else
        ox_err_prefix(r->err, "node number %zu (%.*s)", i, OX_STR_ARGS(out->op_type));
    return st;
}

/* --- graphs --- */

static ox_status initializers_are_unique(ox_onnx_reader *r, const ox_onnx_graph *g)
{
    ox_map seen = {0};
    ox_status st = OX_OK;
    for (size_t i = 0; !st && i < g->n_initializers + g->n_sparse; i++) {
        const ox_str name = i < g->n_initializers ? g->initializers[i].name
                                                  : g->sparse[i - g->n_initializers].values.name;
        if (!name.n)
            st = OX_FAIL(r->err, OX_BAD_FILE, "initializer number %zu has no name", i);
        else if (ox_map_get(&seen, name, NULL))
            st =
                OX_FAIL(r->err, OX_BAD_FILE, "two initializers are called %.*s", OX_STR_ARGS(name));
        else if (!ox_map_put(&seen, name, i))
            st = OX_FAIL(r->err, OX_NO_MEMORY, "no memory for names");
    }
    ox_map_deinit(&seen);
    return st;
}

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_TENSOR = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE = 13,
    GRAPH_SPARSE = 15
};

static ox_status read_graph_field(ox_onnx_reader *r, const ox_proto_field *f, ox_onnx_graph *g)
{
    switch (f->number) {
    case GRAPH_NODE:
        OX_TRY(want_len(r, f));
        g->n_nodes++;
        return read_node(r, f->bytes, &g->nodes[g->n_nodes - 1], g->n_nodes - 1);
    case GRAPH_NAME:
        g->name = f->bytes;
        return want_len(r, f);
    case GRAPH_TENSOR:
        OX_TRY(want_len(r, f));
        return ox_onnx_read_tensor(r, f->bytes, &g->initializers[g->n_initializers++]);
    case GRAPH_INPUT:
        OX_TRY(want_len(r, f));
        return read_value(r, f->bytes, &g->inputs[g->n_inputs++]);
    case GRAPH_OUTPUT:
        OX_TRY(want_len(r, f));
        return read_value(r, f->bytes, &g->outputs[g->n_outputs++]);
    case GRAPH_VALUE:
        OX_TRY(want_len(r, f));
        return read_value(r, f->bytes, &g->values[g->n_values++]);
    case GRAPH_SPARSE:
        OX_TRY(want_len(r, f));
        return ox_onnx_read_sparse(r, f->bytes, &g->sparse[g->n_sparse++]);
    default:
        return OX_OK;
    }
}

ox_status ox_onnx_read_graph(ox_onnx_reader *r, ox_str bytes, ox_onnx_graph *g)
{
    size_t n[OX_ONNX_FIELDS];
    if (r->depth == OX_ONNX_MAX_DEPTH)
        return OX_FAIL(r->err, OX_LIMIT, "graphs nest deeper than %d levels", OX_ONNX_MAX_DEPTH);
    g->name = (ox_str){"", 0};
    OX_TRY(ox_onnx_count(r, bytes, n));
    OX_TRY(ox_onnx_take(r, n[GRAPH_NODE], sizeof(*g->nodes), &g->nodes));
    OX_TRY(ox_onnx_take(r, n[GRAPH_TENSOR], sizeof(*g->initializers), &g->initializers));
    OX_TRY(ox_onnx_take(r, n[GRAPH_SPARSE], sizeof(*g->sparse), &g->sparse));
    OX_TRY(ox_onnx_take(r, n[GRAPH_INPUT], sizeof(*g->inputs), &g->inputs));
    OX_TRY(ox_onnx_take(r, n[GRAPH_OUTPUT], sizeof(*g->outputs), &g->outputs));
    OX_TRY(ox_onnx_take(r, n[GRAPH_VALUE], sizeof(*g->values), &g->values));
    r->depth++;
    ox_proto w = ox_proto_of(bytes);
    for (ox_proto_field f; ox_proto_next(&w, &f);)
        OX_TRY(read_graph_field(r, &f, g));
    r->depth--;
    return initializers_are_unique(r, g);
}

/* --- functions --- */

ox_status ox_onnx_read_opset(ox_onnx_reader *r, ox_str bytes, ox_onnx_opset *out)
{
    ox_proto w = ox_proto_of(bytes);
    *out = (ox_onnx_opset){{"", 0}, 0};
    for (ox_proto_field f; ox_proto_next(&w, &f);) {
        if (f.number == 1 && ox_proto_is_len(&f) && !ox_str_is(f.bytes, "ai.onnx"))
            out->domain = f.bytes;
        if (f.number == 2 && ox_proto_is_varint(&f)) out->version = (int64_t)f.value;
    }
    return w.bad ? ox_onnx_damaged(r, &w, "opset_import") : OX_OK;
}

enum {
    FN_NAME = 1,
    FN_INPUT = 4,
    FN_OUTPUT = 5,
    FN_ATTR_NAME = 6,
    FN_NODE = 7,
    FN_OPSET = 9,
    FN_DOMAIN = 10,
    FN_DEFAULT = 11,
    FN_OVERLOAD = 13
};

static ox_status read_function_field(ox_onnx_reader *r, const ox_proto_field *f,
                                     ox_onnx_function *out)
{
    if (f->number > FN_OVERLOAD) return OX_OK;
    switch (f->number) {
    case FN_NAME:
        out->name = f->bytes;
        return want_len(r, f);
    case FN_INPUT:
        OX_TRY(want_len(r, f));
        out->inputs[out->n_inputs++] = f->bytes;
        return OX_OK;
    case FN_OUTPUT:
        OX_TRY(want_len(r, f));
        out->outputs[out->n_outputs++] = f->bytes;
        return OX_OK;
    case FN_ATTR_NAME:
        OX_TRY(want_len(r, f));
        out->attr_names[out->n_attr_names++] = f->bytes;
        return OX_OK;
    case FN_NODE:
        OX_TRY(want_len(r, f));
        out->n_nodes++;
        return read_node(r, f->bytes, &out->nodes[out->n_nodes - 1], out->n_nodes - 1);
    case FN_OPSET:
        OX_TRY(want_len(r, f));
        return ox_onnx_read_opset(r, f->bytes, &out->opsets[out->n_opsets++]);
    case FN_DOMAIN:
        out->domain = ox_str_is(f->bytes, "ai.onnx") ? (ox_str){"", 0} : f->bytes;
        return want_len(r, f);
    case FN_DEFAULT:
        OX_TRY(want_len(r, f));
        return read_attr(r, f->bytes, &out->attr_defaults[out->n_attr_defaults++]);
    case FN_OVERLOAD:
        out->overload = f->bytes;
        return want_len(r, f);
    default:
        return OX_OK;
    }
}

static ox_status read_function_fields(ox_onnx_reader *r, ox_str bytes, ox_onnx_function *out)
{
    size_t n[OX_ONNX_FIELDS];
    OX_TRY(ox_onnx_count(r, bytes, n));
    OX_TRY(ox_onnx_take_plain(r, n[FN_INPUT], sizeof(ox_str), &out->inputs));
    OX_TRY(ox_onnx_take_plain(r, n[FN_OUTPUT], sizeof(ox_str), &out->outputs));
    OX_TRY(ox_onnx_take_plain(r, n[FN_ATTR_NAME], sizeof(ox_str), &out->attr_names));
    OX_TRY(ox_onnx_take(r, n[FN_NODE], sizeof(*out->nodes), &out->nodes));
    OX_TRY(ox_onnx_take(r, n[FN_OPSET], sizeof(*out->opsets), &out->opsets));
    OX_TRY(ox_onnx_take(r, n[FN_DEFAULT], sizeof(*out->attr_defaults), &out->attr_defaults));
    ox_proto w = ox_proto_of(bytes);
    for (ox_proto_field f; ox_proto_next(&w, &f);)
        OX_TRY(read_function_field(r, &f, out));
    if (!out->name.n) return OX_FAIL(r->err, OX_BAD_FILE, "a function without a name");
    return OX_OK;
}

ox_status ox_onnx_read_function(ox_onnx_reader *r, ox_str bytes, ox_onnx_function *out)
{
    *out = (ox_onnx_function){.name = {"", 0}, .domain = {"", 0}, .overload = {"", 0}};
    const ox_status st = read_function_fields(r, bytes, out);
    if (st && out->name.n) ox_err_prefix(r->err, "function %.*s", OX_STR_ARGS(out->name));
    return st;
}
