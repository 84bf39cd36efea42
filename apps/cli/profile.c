/* profile.c - --profile: where the library's own trace goes while the model is open, and what is
 * shown of it when the model closes. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/outfile.h"
#include "oxgen/arm.h"

#include <stdio.h>

static int wants_trace(const cli_options *o)
{
    return ox_str_ends(ox_str_of(o->profile), OX_STR(".json"));
}

char *cli_profile_prefix(const cli_options *o)
{
    ox_buf b = {0};
    const char *tmp = ox_env("TMPDIR");
    if (wants_trace(o)) /* beside the target, so that it can be renamed */
        ox_buf_printf(&b, "%s.", o->profile);
    else
        ox_buf_printf(&b, "%s/oxgen-profile-", tmp && *tmp ? tmp : "/tmp");
    ox_buf_printf(&b, "%llx", (unsigned long long)ox_clock_cycles());
    if (!b.failed) return b.p;
    ox_buf_deinit(&b);
    return NULL;
}

static ox_status show(ox_model *m, const cli_options *o, ox_err *err)
{
    char *table = NULL, *trace = NULL;
    ox_status st = ox_model_end_profile(m, &table, &trace, err);
    if (!st && wants_trace(o)) {
        if (rename(trace, o->profile))
            st = OX_FAIL(err, OX_IO, "%s: the profile cannot be written", o->profile);
    } else if (!st && *o->profile) {
        st = ox_file_write_atomic(o->profile, ox_str_of(table), err);
    } else if (!st) {
        fputs(table, stderr);
    }
    if (trace) ox_file_remove(trace);
    ox_release(table);
    ox_release(trace);
    return st;
}

int cli_close_model(ox_model **m, const cli_options *o, int code)
{
    ox_err err = OX_ERR_INIT;
    if (*m && o->has_profile && show(*m, o, &err)) {
        const int failed = cli_fail(&err);
        if (!code) code = failed;
    }
    ox_model_close(m);
    return code;
}
