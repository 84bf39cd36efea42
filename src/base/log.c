/* log.c - the one mutable global besides the CPU mask. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static ox_log_fn *sink;
static void *sink_user;
static ox_log_level sink_most;

void ox_log_set(ox_log_fn *fn, void *user, ox_log_level most)
{
    sink = fn;
    sink_user = user;
    sink_most = most;
}

void ox_log(ox_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    if (!sink || level > sink_most) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    sink(sink_user, level, line);
}
