/* export_form.c - the form a matrix takes in a written graph: what ONNX Runtime's operators accept
 * (4 bits with any zero points, 8 bits with integer ones, scales of the graph's float type) against
 * what the source holds and the user asks for. */
#include "convert/export_internal.h"

static bool is_float_kind(ox_quant_kind k)
{
    return k == OX_QUANT_F16 || k == OX_QUANT_BF16 || k == OX_QUANT_F32;
}

static ox_dtype dtype_of(ox_format f)
{
    return f == OX_FORMAT_F16 ? OX_DTYPE_F16 : f == OX_FORMAT_BF16 ? OX_DTYPE_BF16 : OX_DTYPE_F32;
}

static bool holds(ox_dtype wide, ox_dtype narrow)
{
    return wide == OX_DTYPE_F32 || wide == narrow;
}

static ox_form as_floats(const ox_weight *w, ox_dtype stored)
{
    const bool is_float = ox_format_block(w->format) == 1;
    ox_form f = {.stored = stored};
    f.exact = holds(stored, is_float ? dtype_of(w->format) : OX_DTYPE_F32);
    if (!f.exact) f.note = "rounded to fewer bits";
    return f;
}

/* The source's own codes. */
static ox_form as_codes(const ox_code_layout *l, ox_dtype io)
{
    ox_form f = {.nbits = true, .bits = l->bits, .block = l->block, .stored = io, .exact = true};
    if (l->zero == OX_ZERO_CODE) f.zeros = OX_ZEROS_PACKED;
    if (io != OX_DTYPE_F32 && !(io == OX_DTYPE_F16 && l->scale_f16)) {
        f.exact = false;
        f.note = "scales rounded to the graph's type";
    }
    if (l->zero == OX_ZERO_MIN) {
        f.zeros = OX_ZEROS_FLOAT;
        f.exact = false;
        f.keeps = io == OX_DTYPE_F32;
        f.note = f.keeps ? "the same codes and scales; minima as zero points, which rounds in the "
                           "seventh digit"
                         : "the same codes; minima as zero points of the graph's type";
    }
    return f;
}

static ox_form as_remade(int32_t bits, const ox_quant_choice *q, ox_dtype io)
{
    return (ox_form){.nbits = true,
                     .bits = bits,
                     .block = q->block,
                     .zeros = q->asym ? OX_ZEROS_PACKED : OX_ZEROS_NONE,
                     .remade = true,
                     .stored = io,
                     .note = "quantised anew"};
}

static ox_form kept(const ox_weight *w, const ox_export_options *o)
{
    const ox_code_layout l = ox_weight_code_layout(w);
    if (!l.bits) return as_floats(w, o->io);
    if (l.bits != 8 || l.zero != OX_ZERO_MIN) return as_codes(&l, o->io);
    ox_form f = as_floats(w, o->io);
    if (f.exact) f.note = "floats: ONNX Runtime has no 8-bit form with minima";
    return f;
}

ox_form ox_form_matrix(const ox_weight *w, const ox_export_options *o, bool is_head)
{
    const ox_quant_choice *q = &o->quant;
    const int32_t bits = ox_quant_bits(q, is_head);
    if (bits) {
        const ox_code_layout l = ox_weight_code_layout(w);
        const bool fits = l.bits == bits && l.block == q->block && l.zero != OX_ZERO_MIN &&
                          (l.zero == OX_ZERO_CODE) == q->asym;
        return fits ? as_codes(&l, o->io) : as_remade(bits, q, o->io);
    }
    if (!is_float_kind(q->kind)) return kept(w, o); /* keep, and 16-bit heads */
    return as_floats(w, q->kind == OX_QUANT_F16    ? OX_DTYPE_F16
                        : q->kind == OX_QUANT_BF16 ? OX_DTYPE_BF16
                                                   : OX_DTYPE_F32);
}

ox_form ox_form_table(const ox_weight *w, const ox_export_options *o)
{
    if (is_float_kind(o->quant.kind)) return ox_form_matrix(w, o, false);
    const ox_form f = kept(w, o);
    if (!f.nbits || (f.zeros != OX_ZEROS_FLOAT && w->cols % f.block == 0)) return f;
    return as_floats(w, o->io);
}

bool ox_form_same(const ox_form *a, const ox_form *b)
{
    return a->nbits == b->nbits && a->bits == b->bits && a->block == b->block &&
           a->zeros == b->zeros && a->remade == b->remade && a->stored == b->stored;
}

bool ox_form_keeps(const ox_form *f)
{
    return f->exact || f->keeps;
}

void ox_form_print(const ox_form *f, ox_buf *out)
{
    static const char *const zeros[] = {"", ", zero points", ", float zero points"};
    if (f->nbits)
        ox_buf_printf(out, "int%d block %d%s", f->bits, f->block, zeros[f->zeros]);
    else
        ox_buf_put_z(out, ox_dtype_name(f->stored));
    if (f->exact) ox_buf_put_z(out, "; exact");
    if (f->note) ox_buf_printf(out, "; %s", f->note);
}
