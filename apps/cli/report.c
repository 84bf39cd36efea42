/* report.c - what the command line says: failures, notes, progress bars, Ctrl-C. */
#define _GNU_SOURCE
#include "cli/cli.h"

#include "base/clock.h"
#include "base/fs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t at_once; /* Ctrl-C ends the program: nothing would look at the flag */
static double bar_shown;              /* time of the last drawn bar; 0 = no bar on screen */
static ox_buf notes; /* of the model, until the command gets on: a failure is one line */

static const struct {
    ox_status status;
    int code;
} exit_codes[] = {
#define X(name, value, text, exit_code) {OX_##name, exit_code},
    OX_STATUS_LIST(X)
#undef X
};

/* One line on standard error. Names out of files may hold anything: what could steer a terminal or
 * break the line becomes '?'. */
static void put_line(const char *fmt, va_list ap)
{
    ox_buf b = {0};
    ox_buf_vprintf(&b, fmt, ap);
    for (size_t i = 0; i < b.n; i++) {
        const unsigned char c = (unsigned char)b.p[i];
        if (c < 32 || c == 127 || (c == 0xc2 && i + 1 < b.n && (b.p[i + 1] & 0x60) == 0))
            b.p[i] = '?';
    }
    fprintf(stderr, "oxgen: %.*s\n", (int)b.n, b.p ? b.p : "out of memory");
    ox_buf_deinit(&b);
}

static void say(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    put_line(fmt, ap);
    va_end(ap);
}

void cli_note_later(const cli_options *o, const char *text)
{
    if (o->quiet) return;
    if (o->verbose)
        say("note: %s", text);
    else
        ox_buf_put(&notes, text, strlen(text) + 1);
}

void cli_notes_now(void)
{
    for (size_t at = 0; at < notes.n; at += strlen(notes.p + at) + 1)
        say("note: %s", notes.p + at);
    ox_buf_deinit(&notes);
}

int cli_fail(const ox_err *err)
{
    int code = 1;
    cli_progress_end();
    for (size_t i = 0; i < OX_COUNT(exit_codes); i++)
        if (exit_codes[i].status == err->status) code = exit_codes[i].code;
    ox_buf_deinit(&notes);
    say("%s", err->msg[0] ? err->msg : ox_status_text(err->status));
    return code;
}

int cli_stopped(void)
{
    ox_buf_deinit(&notes);
    say("interrupted");
    return 130;
}

int cli_usage(const char *fmt, ...)
{
    va_list ap;
    ox_buf_deinit(&notes);
    va_start(ap, fmt);
    put_line(fmt, ap);
    va_end(ap);
    return 2;
}

void cli_note(const cli_options *o, const char *fmt, ...)
{
    va_list ap;
    if (o->quiet) return;
    cli_progress_end();
    va_start(ap, fmt);
    put_line(fmt, ap);
    va_end(ap);
}

static void on_interrupt(int signal_number)
{
    static const char line[] = "oxgen: interrupted\n";
    (void)signal_number;
    if (interrupted || at_once) {
        (void)!write(STDERR_FILENO, line, sizeof(line) - 1);
        _exit(130);
    }
    interrupted = 1;
}

void cli_catch_interrupt(int stop_at_once)
{
    at_once = stop_at_once;
    struct sigaction a = {.sa_handler = on_interrupt};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write: exit code 1 */
    signal(SIGXFSZ, SIG_IGN); /* so is a file at the limit */
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
    (void)fflush(stderr);
    return 0;
}

void cli_progress_end(void)
{
    if (bar_shown > 0) fprintf(stderr, "\r%*s\r", 60, "");
    bar_shown = 0;
}

int cli_stdout(ox_str text)
{
    cli_notes_now();
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
