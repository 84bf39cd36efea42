/* cmd_convert.c - a checkpoint becomes an ORT-GenAI folder. */
#include "cli/cli.h"

#include <string.h>

static ox_status narrow(long long v, long long least, long long most, const char *flag,
                        int32_t *out, ox_err *err)
{
    if (v < least || v > most)
        return OX_FAIL(err, OX_BAD_ARGUMENT, "--%s %lld: expected %lld to %lld", flag, v, least,
                       most);
    *out = (int32_t)v;
    return OX_OK;
}

static ox_status read_options(ox_convert_options *co, const cli_options *o, ox_err *err)
{
    ox_convert_options_init(co);
    co->quant = o->quant;
    co->io = o->io;
    co->asym = o->asym;
    co->dry_run = o->dry_run;
    co->each = o->verbose;
    co->progress = cli_progress;
    co->user = (void *)(uintptr_t)o;
    if (o->has_block) OX_TRY(narrow(o->block, 16, 256, "block", &co->block, err));
    if (o->has_head_bits) OX_TRY(narrow(o->head_bits, 4, 16, "head-bits", &co->head_bits, err));
    if (o->has_accuracy) OX_TRY(narrow(o->accuracy, 0, 4, "accuracy", &co->accuracy, err));
    return OX_OK;
}

int cmd_convert(const cli_options *o)
{
    ox_convert_options co;
    ox_err err = OX_ERR_INIT;
    char *report = NULL;

    if (!o->args.n || !o->output) return cli_usage("expected: oxgen convert SRC -o DIR");
    ox_status st = read_options(&co, o, &err);
    if (!st) st = ox_convert(o->args.p[0], o->output, &co, &report, &err);
    cli_progress_end();
    if (st) return cli_fail(&err);
    ox_buf b = {0};
    ox_buf_put_z(&b, report);
    if (o->dry_run)
        ox_buf_printf(&b, "nothing is written (--dry-run)\n");
    else
        ox_buf_printf(&b, "written: %s; next: oxgen run %s\n", o->output, o->output);
    const int code = o->quiet ? 0 : b.failed ? 4 : cli_stdout(ox_buf_view(&b));
    ox_buf_deinit(&b);
    ox_release(report);
    return code;
}
