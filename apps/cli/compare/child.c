/* child.c - one process in a process group of its own: its input from a file, its output read line
 * by line with a deadline. Whatever happens nothing of it stays behind: the group is killed when it
 * ends, and the kernel kills the child when this process dies. */
#define _GNU_SOURCE
#include "cli/compare/compare.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MOST = 16 << 20, ERRORS_MOST = 8192 };

extern char **environ;

/* Between fork and exec: async-signal-safe calls only. */
static void become(const char *exe, char *const *argv, char *const *env, int in, int out,
                   int errors, pid_t parent)
{
    static const char more[] = "1000";
    struct sigaction a = {.sa_handler = SIG_DFL};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGPIPE, &a, NULL);
    sigaction(SIGXFSZ, &a, NULL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    /* When memory runs out, this one goes and not the comparison. */
    const int score = open("/proc/self/oom_score_adj", O_WRONLY);
    if (score >= 0) (void)!write(score, more, sizeof(more) - 1);
    if (score >= 0) close(score);
    if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0) _exit(127);
    execve(exe, argv, env);
    (void)!write(2, "cannot be executed\n", 19);
    _exit(127);
}

static ox_status merged_env(cli_list *out, const char *const *more, ox_err *err)
{
    bool ok = true;
    for (char **e = environ; ok && *e; e++) {
        bool replaced = false;
        for (const char *const *m = more; *m && !replaced; m++)
            replaced = !strncmp(*m, *e, (size_t)(strchr(*m, '=') - *m) + 1);
        if (!replaced) ok = ox_vec_push(out, *e);
    }
    for (const char *const *m = more; ok && *m; m++)
        ok = ox_vec_push(out, *m);
    if (ok) ok = ox_vec_push(out, (const char *)NULL);
    return ok ? OX_OK : OX_FAIL(err, OX_NO_MEMORY, "no memory for an environment");
}

ox_status child_start(child *c, const char *exe, const char *const *argv, const char *const *env,
                      ox_str input, ox_err *err)
{
    int out[2] = {-1, -1};
    cli_list all = {0};
    ox_status st = OX_OK;
    FILE *in = tmpfile();
    *c = (child){.from = -1};
    c->errors = tmpfile();
    if (!in || !c->errors || fwrite(input.p, 1, input.n, in) != input.n || fflush(in) ||
        fseek(in, 0, SEEK_SET) || pipe2(out, O_CLOEXEC)) {
        st = OX_FAIL(err, OX_IO, "no temporary files for an arm: %s", strerror(errno));
        goto fail;
    }
    OX_TRY_GOTO(merged_env(&all, env, err));
    const pid_t parent = getpid(), pid = fork();
    if (!pid)
        become(exe, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)all.p, fileno(in),
               out[1], fileno((FILE *)c->errors), parent);
    if (pid < 0) {
        st = OX_FAIL(err, OX_IO, "no process for an arm: %s", strerror(errno));
        goto fail;
    }
    setpgid(pid, pid); /* here as well: whoever comes first */
    c->pid = (int)pid;
    c->from = out[0];
    out[0] = -1;
fail:
    if (out[0] >= 0) close(out[0]);
    if (out[1] >= 0) close(out[1]);
    if (in) fclose(in);
    if (st && c->errors) {
        fclose((FILE *)c->errors);
        c->errors = NULL;
    }
    ox_vec_deinit(&all);
    return st;
}

/* Moves the first line of rest into line. */
static bool take_line(child *c)
{
    const char *end = c->rest.n ? memchr(c->rest.p, '\n', c->rest.n) : NULL;
    if (!end) return false;
    const size_t n = (size_t)(end - c->rest.p);
    ox_buf_clear(&c->line);
    ox_buf_put(&c->line, c->rest.p, n);
    memmove(c->rest.p, end + 1, c->rest.n - n - 1);
    c->rest.n -= n + 1;
    return true;
}

child_news child_next(child *c, double deadline)
{
    char piece[65536];
    while (!take_line(c)) {
        if (cli_interrupted()) return CHILD_INTERRUPTED;
        const double left = deadline - ox_clock_seconds();
        if (left <= 0 || c->rest.n > LINE_MOST) return CHILD_LATE;
        struct pollfd p = {.fd = c->from, .events = POLLIN};
        /* At most a moment at a time, so that a signal that comes just before poll is seen. */
        const int ready = poll(&p, 1, left > 0.2 ? 200 : (int)(left * 1e3) + 1);
        if (ready <= 0) continue;
        const ssize_t n = read(c->from, piece, sizeof(piece));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return CHILD_END;
        ox_buf_put(&c->rest, piece, (size_t)n);
    }
    return CHILD_LINE;
}

static void read_last_line(FILE *f, ox_buf *out)
{
    char text[ERRORS_MOST];
    if (fseek(f, 0, SEEK_END)) return;
    const long size = ftell(f);
    if (size < 0 || fseek(f, size > ERRORS_MOST ? size - ERRORS_MOST : 0, SEEK_SET)) return;
    size_t n = fread(text, 1, sizeof(text), f);
    while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    size_t begin = n;
    while (begin && text[begin - 1] != '\n')
        begin--;
    ox_buf_put(out, text + begin, n - begin);
}

void child_end(child *c, bool at_once, ox_buf *last_error)
{
    const double grace = ox_clock_seconds() + 2;
    bool waited = false;
    if (c->from >= 0) close(c->from);
    /* One that has closed its output gets a moment to leave by itself: its exit code counts. */
    while (c->pid && !waited && !at_once && ox_clock_seconds() < grace && !cli_interrupted()) {
        waited = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
        if (!waited) poll(NULL, 0, 2);
    }
    if (c->pid) {
        kill(-c->pid, SIGKILL);
        while (!waited && waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
            continue;
    }
    if (c->errors) {
        if (last_error) read_last_line((FILE *)c->errors, last_error);
        fclose((FILE *)c->errors);
    }
    ox_buf_deinit(&c->line);
    ox_buf_deinit(&c->rest);
    const int status = c->status;
    *c = (child){.from = -1, .status = status};
}
