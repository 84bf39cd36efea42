/* status.c - texts of the status list and the one place that writes error messages. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ox_status_text(ox_status st)
{
    switch (st) {
#define X(name, value, text, exit_code)                                                            \
    case OX_##name:                                                                                \
        return text;
        OX_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

ox_status ox_fail_at(ox_err *err, const char *where, ox_status st, const char *fmt, ...)
{
    if (err && err->status == OX_OK) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
        err->status = st;
        err->where = where;
    }
    return st;
}

void ox_err_prefix(ox_err *err, const char *fmt, ...)
{
    char old[OX_ERR_MAX - 2]; /* room for ": " */

    if (!err || err->status == OX_OK) return;
    snprintf(old, sizeof(old), "%.*s", (int)sizeof(old) - 1, err->msg);
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(err->msg)) return;
    const size_t room = sizeof(err->msg) - (size_t)n; /* what does not fit is cut */
    snprintf(err->msg + n, room, ": %.*s", (int)room, old);
}
