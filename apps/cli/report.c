/* report.c - what the command line says: failures, notes, progress bars, Ctrl-C. */
#define _GNU_SOURCE
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static double bar_shown; /* time of the last drawn bar; 0 = no bar on screen */

static const struct {
    ox_status status;
    int code;
} exit_codes[] = {
#define X(name, value, text, exit_code) {OX_##name, exit_code},
    OX_STATUS_LIST(X)
#undef X
};

int cli_fail(const ox_err *err)
{
    int code = 1;
    cli_progress_end();
    for (size_t i = 0; i < OX_COUNT(exit_codes); i++)
        if (exit_codes[i].status == err->status) code = exit_codes[i].code;
    fprintf(stderr, "oxgen: %s\n", err->msg[0] ? err->msg : ox_status_text(err->status));
    return code;
}

int cli_usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "oxgen: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    return 2;
}

void cli_note(const cli_options *o, const char *fmt, ...)
{
    va_list ap;
    if (o->quiet) return;
    cli_progress_end();
    va_start(ap, fmt);
    fprintf(stderr, "oxgen: ");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
}

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void cli_catch_interrupt(void)
{
    struct sigaction a = {.sa_handler = on_interrupt};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write: exit code 1 */
}

int cli_interrupted(void)
{
    return interrupted;
}

void cli_interrupt_clear(void)
{
    interrupted = 0;
}

int cli_progress(void *user, const char *what, uint64_t done, uint64_t total)
{
    const cli_options *o = user;
    const double now = ox_clock_seconds();
    if (interrupted) return 1;
    if (o->quiet || !isatty(STDERR_FILENO) || now - bar_shown < 0.1) return 0;
    bar_shown = now;
    enum { WIDTH = 30 };
    char bar[WIDTH + 1];
    const double part = total ? (double)done / (double)total : 0.0;
    for (int i = 0; i < WIDTH; i++)
        bar[i] = (double)i < part * WIDTH ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r%-8s [%s] %3.0f %% ", what, bar, part * 100.0);
    fflush(stderr);
    return 0;
}

void cli_progress_end(void)
{
    if (bar_shown > 0) fprintf(stderr, "\r%*s\r", 60, "");
    bar_shown = 0;
}

int cli_stdout(ox_str text)
{
    if (text.n && fwrite(text.p, 1, text.n, stdout) != text.n) {
        fprintf(stderr, "oxgen: cannot write to standard output\n");
        return 1;
    }
    if (fflush(stdout)) {
        fprintf(stderr, "oxgen: cannot write to standard output\n");
        return 1;
    }
    return 0;
}
