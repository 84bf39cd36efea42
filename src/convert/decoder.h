/* decoder.h - the one graph description behind every row of arch.def: a decoder-only transformer
 * with grouped attention and a gated MLP, its variants switched by ox_hparams. Weights are asked
 * for by the file's names; q, k, v (and gate, up) that a file keeps in one tensor become views of
 * its rows, so that the graph looks the same wherever it came from. */
#ifndef OX_CONVERT_DECODER_H
#define OX_CONVERT_DECODER_H
#include "convert/arch.h"
#include "convert/quantize.h"

/* Where tensors are found. find: *found false = the file has no tensor of this name; a tensor that
 * cannot be used (unknown type, more than two dimensions) is a failure that names it. Names of
 * *out are borrowed from the file and outlive the graph. */
typedef struct ox_tensors {
    void *user;
    ox_status (*find)(void *user, const char *name, ox_weight *out, bool *found, ox_err *err);
} ox_tensors;

/* Adds the whole decoder to the empty graph g. q NULL or KEEP = weights stay as the file has them;
 * re-made ones live in the graph's arena. */
ox_status ox_decoder_build(ox_graph *g, const ox_hparams *hp, const ox_tensors *tensors,
                           const ox_quant_choice *q, ox_err *err);
#endif
